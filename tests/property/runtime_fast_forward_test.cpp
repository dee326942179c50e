// Fast-forward against step by step, and the invariants of a run, on random scenarios.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "sim/core/rng.h"
#include "tests/support/builders.h"

using namespace medley;
using namespace medley::testing;

namespace {

ModelSpec windowed_model() {
  ModelSpec m = small_model();
  LayerGroup g = m.layers[0];
  g.count = 1;
  g.attention = AttentionKind::kSliding;
  g.window = 96;
  m.layers.push_back(g);
  return m;
}

Scenario random_scenario(std::uint64_t seed) {
  Rng rng(seed, "scenario");
  Scenario s = one_pool(1 + static_cast<int>(rng.below(3)));
  PoolSpec& pool = s.pools[0];
  if (rng.uniform() < 0.3) pool.model = windowed_model();
  // A slow device, so that steps take milliseconds and the power limit sometimes binds.
  DeviceSpec& d = s.nodes[0].device;
  d.memory_bandwidth = known(BytesPerSec(2e8));
  for (auto& p : d.peak) {
    if (p.known()) p = known(FlopsPerSec(3e8));
  }
  // Ranges that some of the work lies outside of.
  d.efficiency[index(OpClass::kAttentionDecode)].memory.value->high = 1e5;
  d.efficiency[index(OpClass::kGemm)].memory.value->low = 1e4;
  if (rng.uniform() < 0.5) {
    for (auto& j : d.power.energy_per_flop) {
      if (j.known()) j = known(JoulesPerFlop(2e-6));
    }
    d.power.energy_per_byte = known(JoulesPerByte(1e-6));
    d.power.limit = known(Watts(300.0 + 400.0 * rng.uniform()));
  }
  BackendSpec& b = pool.backend;
  b.name = "test";
  b.host_mode = rng.uniform() < 0.5 ? HostMode::kSerial : HostMode::kOverlapped;
  b.host_per_step = known(Seconds(rng.uniform() * 2e-3));
  b.host_per_sequence = known(Seconds(rng.uniform() * 1e-4));
  b.decode_skew = known(rng.uniform() < 0.5 ? 0.0 : 0.05);
  BatchPolicy& p = pool.batching;
  p.scheduler = static_cast<SchedulerKind>(rng.below(3));
  p.admission = rng.uniform() < 0.3 ? AdmissionOrder::kPriority : AdmissionOrder::kFcfs;
  p.max_num_seqs = 1 + static_cast<std::int32_t>(rng.below(12));
  p.max_num_batched_tokens = 32 + static_cast<std::int32_t>(rng.below(256));
  p.prefix_caching = rng.uniform() < 0.7;
  pool.num_blocks_override = 30 + static_cast<std::int64_t>(rng.below(60));
  s.report.interval = Seconds(0.1);

  s.trace.hash_block_tokens = 32;
  double t = 0.0;
  const int n = 60;
  for (int i = 0; i < n; ++i) {
    t += rng.exponential(0.05);
    Request r = request_at(t, 1 + static_cast<std::int32_t>(rng.below(300)),
                           1 + static_cast<std::int32_t>(rng.below(120)));
    r.row = static_cast<std::uint32_t>(i);
    r.priority = static_cast<std::int16_t>(rng.below(3));
    r.hash_begin = static_cast<std::uint32_t>(s.trace.hash_ids.size());
    const std::uint64_t family = rng.below(4);
    const std::int64_t common = static_cast<std::int64_t>(rng.below(6));
    for (std::int64_t k = 0; k * 32 < r.input_tokens; ++k) {
      s.trace.hash_ids.push_back(k < common ? family * 100 + static_cast<std::uint64_t>(k)
                                            : 10000 + static_cast<std::uint64_t>(i * 100 + k));
      ++r.hash_count;
    }
    s.trace.requests.push_back(r);
  }
  return s;
}

void check_invariants(const Scenario& s, const RunResult& r) {
  // INV-1: requests conserved.
  CHECK(r.arrived == static_cast<std::int64_t>(r.requests.size()));
  CHECK(r.arrived == r.finished + r.rejected + r.unfinished);
  double attributed = 0.0, active = 0.0;
  std::int64_t produced = 0, wanted = 0;
  for (std::size_t i = 0; i < r.requests.size(); ++i) {
    const RequestRecord& q = r.requests[i];
    if (q.status != RequestStatus::kFinished) continue;
    // INV-2: time runs forward for every request.
    CHECK(q.arrival <= q.scheduled);
    CHECK(q.scheduled < q.first_token);
    CHECK(q.first_token <= q.last_token);
    CHECK(q.output_tokens == s.trace.requests[i].output_tokens);
    CHECK(q.cached_tokens < s.trace.requests[i].input_tokens);
    wanted += q.output_tokens;
    attributed += q.energy_j;
  }
  for (const ReplicaRecord& rep : r.replicas) {
    produced += rep.output_tokens;
    active += rep.active_energy_j;
    // INV-3, INV-4: never more blocks than there are, never busier than the clock.
    CHECK(rep.peak_blocks <= rep.blocks);
    CHECK(rep.busy_s <= r.end.seconds().value() * (1.0 + 1e-12));
    // INV-5: energy is the integral of power.
    double extra = 0.0;
    for (const double e : rep.extra_energy_j) extra += e;
    CHECK(close(extra + 50.0 * rep.busy_s, rep.active_energy_j, 1e-9));
    CHECK(close(rep.attributed_j, rep.active_energy_j, 1e-9));
    // The limit holds on average over any run of work.
    CHECK(rep.active_energy_j <=
          s.nodes[0].device.power.limit.value->value() * rep.busy_s * (1.0 + 1e-6));
  }
  CHECK(produced == wanted);
  CHECK(close(attributed, active, 1e-9));
}

}  // namespace

TEST_CASE("fast-forward equals step by step to 1e-9, with every invariant") {
  int preempted = 0, cached = 0, limited = 0, extrapolated = 0, stalled = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    Scenario s = random_scenario(seed);
    const RunResult fast = run(test_catalog(), s);
    s.fast_forward = false;
    const RunResult slow = run(test_catalog(), s);
    check_invariants(s, fast);
    check_invariants(s, slow);
    REQUIRE(fast.requests.size() == slow.requests.size());
    for (std::size_t i = 0; i < fast.requests.size(); ++i) {
      CAPTURE(i);
      const RequestRecord& a = fast.requests[i];
      const RequestRecord& b = slow.requests[i];
      CHECK(a.status == b.status);
      if (a.status != RequestStatus::kFinished) continue;
      // 1 ns for the rounding of each instant, beside 1e-9.
      CHECK(std::abs((a.last_token - b.last_token).value()) <=
            2e-9 + 1e-9 * a.last_token.seconds().value());
      CHECK(std::abs((a.first_token - b.first_token).value()) <=
            2e-9 + 1e-9 * a.first_token.seconds().value());
      CHECK(a.preemptions == b.preemptions);
      CHECK(a.cached_tokens == b.cached_tokens);
      CHECK(close(a.energy_j, b.energy_j, 1e-9));
      const double e2e = (a.last_token - a.arrival).value();
      double parts = (a.scheduled - a.arrival).value();
      // Compute and memory together: a kernel whose two times cross within a run is bound by both
      // there, and the step at the crossing may count for either.
      const double slack = 4e-9 + 1e-9 * a.last_token.seconds().value();
      double moved = 0.0;
      for (int p = 0; p < TimeShares::kParts; ++p) {
        const double difference = a.time.seconds[p] - b.time.seconds[p];
        const bool by_kernel = p == TimeShares::kCompute || p == TimeShares::kMemory;
        if (by_kernel) moved += difference;
        CHECK(std::abs(by_kernel ? moved : difference) <=
              (by_kernel && p < TimeShares::kMemory ? 1e-3 : slack));
        CHECK(a.time.seconds[p] > -1e-9);
        parts += a.time.seconds[p];
      }
      // Admission and end are rounded to ticks, and where a replica fell idle in between.
      CHECK(std::abs(parts - e2e) <= 2e-9 + 1e-9 * a.preemptions);
      stalled += a.time[TimeShares::kStall] > 1e-6 ? 1 : 0;
      preempted += a.preemptions;
      cached += a.cached_tokens > 0 ? 1 : 0;
    }
    for (std::size_t k = 0; k < fast.replicas.size(); ++k) {
      CHECK(fast.replicas[k].steps == slow.replicas[k].steps);
      CHECK(close(fast.replicas[k].busy_s, slow.replicas[k].busy_s, 1e-9));
      CHECK(close(fast.replicas[k].active_energy_j, slow.replicas[k].active_energy_j, 1e-9));
      CHECK(close(fast.replicas[k].extrapolated_s, slow.replicas[k].extrapolated_s, 1e-9));
      CHECK(close(fast.replicas[k].extrapolated_j, slow.replicas[k].extrapolated_j, 1e-9));
      CHECK(fast.replicas[k].extrapolated_s < fast.replicas[k].busy_s);
      CHECK(fast.replicas[k].extrapolated_j < fast.replicas[k].active_energy_j);
      extrapolated += fast.replicas[k].extrapolated_s > 0.0 ? 1 : 0;
      CHECK(close(fast.replicas[k].flops, slow.replicas[k].flops, 1e-9));
      limited += fast.replicas[k].limited_s > 0.0 ? 1 : 0;
    }
    CHECK(fast.pools[0].itl.count() == slow.pools[0].itl.count());
  }
  // The scenarios exercise what they are meant to.
  CHECK(preempted > 50);
  CHECK(stalled > 0);
  CHECK(cached > 100);
  CHECK(limited > 10);
  CHECK(extrapolated > 0);
}

TEST_CASE("same input, same result; permuted ties change nothing but the order of equals (INV-6)") {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    CAPTURE(seed);
    Scenario s = random_scenario(seed);
    const RunResult a = run(test_catalog(), s);
    const RunResult b = run(test_catalog(), s);
    CHECK(a.fingerprint == b.fingerprint);
    s.tie_seed = 99 + seed;
    const RunResult c = run(test_catalog(), s);
    for (std::size_t i = 0; i < a.requests.size(); ++i) {
      CHECK(a.requests[i].last_token == b.requests[i].last_token);
      CHECK(a.requests[i].last_token == c.requests[i].last_token);
    }
  }
}

TEST_CASE("sampling and reporting never change results") {
  Scenario s = random_scenario(5);
  const RunResult a = run(test_catalog(), s);
  s.report.interval = Seconds(0.013);
  s.report.chrome_trace = true;
  const RunResult b = run(test_catalog(), s);
  CHECK(a.fingerprint == b.fingerprint);
  CHECK(b.samples.size() > a.samples.size());
  for (std::size_t i = 0; i < a.requests.size(); ++i)
    CHECK(a.requests[i].energy_j == b.requests[i].energy_j);
}

TEST_CASE("a horizon reports what is unfinished and loses nothing") {
  Scenario s = random_scenario(9);
  const RunResult whole = run(test_catalog(), s);
  s.horizon = SimTime::from_seconds(0.5 * whole.end.seconds());
  const RunResult cut = run(test_catalog(), s);
  CHECK(cut.unfinished > 0);
  CHECK(cut.arrived == cut.finished + cut.rejected + cut.unfinished);
  for (const ReplicaRecord& rep : cut.replicas)
    CHECK(close(rep.attributed_j, rep.active_energy_j, 1e-9));
}

TEST_CASE("requests that can never run are rejected with the reason") {
  Scenario s = one_pool();
  textbook_server(s.pools[0], 1e-3);
  s.pools[0].num_blocks_override = 10;  // 160 tokens
  s.pools[0].max_model_len = 1000;
  s.trace.requests = {request_at(0.0, 100, 10), request_at(0.1, 150, 30),
                      request_at(0.2, 900, 200)};
  const RunResult r = run(test_catalog(), s);
  CHECK(r.requests[0].status == RequestStatus::kFinished);
  CHECK(r.requests[1].status == RequestStatus::kRejectedNeverFits);
  CHECK(r.requests[2].status == RequestStatus::kRejectedTooLong);
  CHECK(r.rejected == 2);
}
