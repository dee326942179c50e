// INV-7 to INV-10 on whole runs and on the shipped catalogue.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "sim/core/error.h"
#include "sim/core/rng.h"
#include "tests/support/builders.h"

using namespace medley;
using namespace medley::testing;

namespace {

/// Chat-like random requests for one pool of three replicas on a slow device.
Scenario busy_fleet(std::uint64_t seed, const std::string& router) {
  Scenario s = one_pool(3);
  s.nodes[0].device.memory_bandwidth = known(BytesPerSec(2e8));
  s.pools[0].batching.max_num_seqs = 6;
  s.pools[0].num_blocks_override = 200;
  s.routing = {router, {}};
  s.report.interval = Seconds(0);
  s.trace.sessions = {"a", "b", "c", "d", "e"};
  Rng rng(seed, "fleet");
  double t = 0.0;
  for (int i = 0; i < 120; ++i) {
    t += rng.exponential(0.02);
    Request r = request_at(t, 1 + static_cast<std::int32_t>(rng.below(200)),
                           1 + static_cast<std::int32_t>(rng.below(80)));
    r.row = static_cast<std::uint32_t>(i);
    r.session = static_cast<std::uint32_t>(rng.below(5));
    s.trace.requests.push_back(r);
  }
  return s;
}

}  // namespace

TEST_CASE("INV-7: a server with ready work never idles (Lindley's recursion, exactly)") {
  Scenario s = one_pool(1);
  textbook_server(s.pools[0], 1e-3);
  s.pools[0].num_blocks_override = 1 << 20;
  Rng rng(3, "lindley");
  double t = 0.0;
  for (int i = 0; i < 3000; ++i) {
    t += rng.exponential(0.12);
    s.trace.requests.push_back(request_at(t, 1, 1 + static_cast<std::int32_t>(rng.below(200))));
    s.trace.requests.back().row = static_cast<std::uint32_t>(i);
  }
  const RunResult r = run(test_catalog(), s);
  SimTime free;
  for (const RequestRecord& q : r.requests) {
    CHECK(q.scheduled == std::max(q.arrival, free));
    free = q.last_token;
  }
}

TEST_CASE("INV-8: no policy sees a future: output lengths change nothing until they are produced") {
  for (const std::string& router : routing_registry().names()) {
    CAPTURE(router);
    Scenario s = busy_fleet(17, router);
    if (router == "prefix_affinity") s.routing.params = {{"slack", 8.0}, {"factor", 1.5}};
    const RunResult before = run(test_catalog(), s);
    constexpr std::size_t kChanged = 60;
    for (std::size_t i = kChanged; i < s.trace.requests.size(); ++i)
      s.trace.requests[i].output_tokens += 40;
    const RunResult after = run(test_catalog(), s);
    for (std::size_t i = 0; i <= kChanged; ++i) {
      CAPTURE(i);
      // Where a request went was decided before any of the longer outputs could show.
      CHECK(before.requests[i].replica == after.requests[i].replica);
      CHECK(before.requests[i].arrival == after.requests[i].arrival);
    }
    // And everything that was over by then is untouched.
    const SimTime first_change = before.requests[kChanged].arrival;
    for (std::size_t i = 0; i < kChanged; ++i) {
      if (before.requests[i].last_token > first_change) continue;
      CHECK(before.requests[i].last_token == after.requests[i].last_token);
    }
  }
}

TEST_CASE("INV-9: no step is faster than its roofline at datasheet rates") {
  const Catalog catalog{{}};
  const ModelZoo zoo({shipped_data_directory() + "/workloads/zoo"});
  for (const char* model : {"llama-3.1-8b", "mixtral-8x7b", "deepseek-v2-lite", "gpt-oss-20b"}) {
    for (const char* node : {"8xh100-sxm", "8xa100-sxm-80gb", "8xmi300x", "8xgaudi3", "4xl40s"}) {
      CAPTURE(model);
      CAPTURE(node);
      StepModelInput in;
      in.model = zoo.find(model);
      in.node = catalog.node(node);
      in.device = catalog.device(in.node.device);
      in.backend = catalog.backend("vllm-2026");
      in.backend.host_per_step = known(Seconds(0));
      in.backend.host_per_sequence = known(Seconds(0));
      const StepModel real(catalog, in);
      in.backend = catalog.backend("ideal");
      in.device.power = {};  // and no power limit
      const StepModel roofline(catalog, in);
      Rng rng(1, "batches");
      for (int i = 0; i < 40; ++i) {
        FeatureBuilder b(real.context());
        double longest = 0.0;
        for (std::uint64_t k = rng.below(64); k > 0; --k) {
          const auto kv = static_cast<std::int64_t>(1 + rng.below(4000));
          b.add_decode(kv);
          longest = std::max(longest, static_cast<double>(kv));
        }
        b.add_chunk({static_cast<std::int64_t>(1 + rng.below(4000)),
                     static_cast<std::int64_t>(rng.below(4000)), true});
        CHECK(real.step(b.features(), longest).step_s >=
              roofline.step(b.features(), longest).step_s * (1.0 - 1e-9));
      }
    }
  }
}

TEST_CASE("INV-10: more capacity never slows a fixed assignment and order") {
  // One replica, first come first served, one request at a time: faster memory, faster arithmetic
  // and a higher power limit each leave every request no later than before.
  Scenario s = busy_fleet(23, "round_robin");
  s.pools[0].replicas = 1;
  s.pools[0].batching.max_num_seqs = 1;
  const RunResult base = run(test_catalog(), s);
  const auto no_later = [&](const Scenario& changed) {
    const RunResult r = run(test_catalog(), changed);
    for (std::size_t i = 0; i < r.requests.size(); ++i) {
      CHECK(r.requests[i].last_token <= base.requests[i].last_token);
    }
  };
  Scenario faster = s;
  faster.nodes[0].device.memory_bandwidth = known(BytesPerSec(4e8));
  no_later(faster);
  faster = s;
  for (auto& p : faster.nodes[0].device.peak) {
    if (p.known()) p = known(FlopsPerSec(2.0 * p.value->value()));
  }
  no_later(faster);
  faster = s;
  faster.nodes[0].device.power.limit = known(Watts(2000));
  no_later(faster);
}

TEST_CASE("INV-1: nobody is lost when arrivals and samples share their instants") {
  for (const double interval : {1.0, 0.5, 0.25, 0.7}) {
    CAPTURE(interval);
    Scenario s = one_pool(2);
    textbook_server(s.pools[0], 1e-3);
    s.pools[0].num_blocks_override = 1 << 20;
    s.report.interval = Seconds(interval);
    for (int i = 0; i < 6; ++i) {
      s.trace.requests.push_back(
          request_at(i / 2, 10, 20));  // two at each whole second, idle between
      s.trace.requests.back().row = static_cast<std::uint32_t>(i);
    }
    const RunResult r = run(test_catalog(), s);
    CHECK(r.finished == 6);
    CHECK(r.end == SimTime::from_ns(2'020'000'000));
    CHECK(r.samples.back().time == r.end);  // the last sample closes the account
    CHECK(r.samples.back().output_tokens == 120);
  }
}

TEST_CASE("a warm-up that leaves nothing to measure is refused") {
  Scenario s = one_pool(1);
  textbook_server(s.pools[0], 1e-3);
  s.pools[0].num_blocks_override = 1 << 20;
  s.trace.requests = {request_at(0.0, 10, 20), request_at(5.0, 10, 20)};
  s.measure.warmup = SimTime::from_ns(6'000'000'000);
  CHECK_THROWS_WITH_AS(run(test_catalog(), s), doctest::Contains("warmup"), InputError);
}
