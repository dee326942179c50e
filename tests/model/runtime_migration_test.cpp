// Weights on their way to the devices, and decoding requests on theirs, by hand.
#include <doctest/doctest.h>

#include "tests/support/tiered_pool.h"

using namespace medley;
using namespace medley::testing;

TEST_CASE("two cold starts from one server's drives take twice as long as one") {
  const auto ready = [](int replicas) {
    Scenario s = constant_pool(2, 64);
    s.pools[0].replicas = replicas;
    s.pools[0].load_weights.from = WeightLoadSpec::From::kNvme;
    s.pools[0].load_weights.engine_start = Seconds(3.0);
    s.trace.requests = {request_at(0.0, 16, 2)};
    const RunResult r = run(test_catalog(), s);
    // Served as soon as the engine is there: one step with the prompt, one more token.
    const double served = r.requests[0].last_token.seconds().value();
    CHECK(std::abs(served - (r.replicas[0].load_s + 2.0 * kStep + 16.0 * kPrompt)) <= 2e-9);
    CHECK(r.replicas[0].loads == 1);
    return r.replicas[0].load_s;
  };
  Scenario s = constant_pool(2, 64);
  const ClusterTopology c = cluster_of_test(s);
  const Way up = way(c, c.storage(0, 0), c.device(0, 0, 0));
  const double bytes =
      stage_weight_bytes(s.pools[0].model, 1, 1, 0, s.pools[0].precision.weights).value();
  const double one = ready(1), two = ready(2);
  MESSAGE(bytes << " B of weights: " << one << " s, two at once: " << two << " s");
  CHECK(std::abs(one - (up.latency + bytes / up.bandwidth + 3.0)) <= 2e-9);
  CHECK(std::abs(two - (up.latency + 2.0 * bytes / up.bandwidth + 3.0)) <= 2e-9);
}

TEST_CASE("requests go to the replica that is up") {
  // Both load at the start, from one node group's DRAM; the request waits at one of them.
  Scenario s = constant_pool(2, 64);
  s.pools[0].load_weights.from = WeightLoadSpec::From::kHost;
  s.pools[0].load_weights.engine_start = Seconds(1.0);
  s.trace.requests = {request_at(0.5, 16, 2), request_at(2.0, 16, 2)};
  const RunResult r = run(test_catalog(), s);
  CHECK(r.requests[0].scheduled.seconds().value() > 1.0);
  CHECK(r.requests[1].scheduled == r.requests[1].arrival);
  s.pools[0].load_weights.at_start = false;
  CHECK(run(test_catalog(), s).requests[0].scheduled == r.requests[0].arrival);
}

TEST_CASE("after a failure the weights come again before the replica serves") {
  // Down at 1 s, repaired at 1.5 s, restarted at 1.6 s, then its weights and the engine's 3 s.
  Scenario s = constant_pool(1, 64);
  s.pools[0].load_weights.from = WeightLoadSpec::From::kNvme;
  s.pools[0].load_weights.at_start = false;
  s.pools[0].load_weights.engine_start = Seconds(3.0);
  s.failures.given = true;
  s.failures.restart = Seconds(0.1);
  FailureSpec::Event event;
  event.part = {FailingKind::kReplica, "p/0", 0, 0, 0, {}};
  event.at = SimTime::from_ns(1'000'000'000);
  event.lasts = Seconds(0.5);
  s.failures.events = {event};
  s.trace.requests = {request_at(0.0, 16, 2), request_at(1.2, 16, 2)};
  const RunResult r = run(test_catalog(), s);
  const ClusterTopology c = cluster_of_test(s);
  const Way up = way(c, c.storage(0, 0), c.device(0, 0, 0));
  const double bytes =
      stage_weight_bytes(s.pools[0].model, 1, 1, 0, s.pools[0].precision.weights).value();
  const double ready = 1.6 + up.seconds(bytes) + 3.0;
  REQUIRE(r.replicas[0].outages.size() == 1);
  CHECK(std::abs(r.replicas[0].outages[0].ready.seconds().value() - ready) <= 2e-9);
  CHECK(r.replicas[0].loads == 1);
  CHECK(r.finished == 2);
  CHECK(std::abs(r.requests[1].scheduled.seconds().value() - ready) <= 2e-9);
}

TEST_CASE("a request that moves stops for latency + its last tokens over the bandwidth") {
  // Replica 0 gets A and C, replica 1 the short B. First step of replica 0: 640 prompt tokens,
  // 1 + 6.4 ms; then 1 ms each. At 1 s: 992 decode steps, 320 + 992 tokens of A have KV; C's has as
  // many, A comes first. The copy of 1312 x 256 B takes microseconds, so A stops at the end of step
  // 993, at 1.0004 s, and one token's KV follows. It has made 994 of its 2000 tokens; the other
  // 1006 come one per millisecond.
  Scenario s = constant_pool(2, 1000);
  s.routing = {"round_robin", {}};
  s.pools[0].batching.max_num_batched_tokens = 4096;
  s.migration.policy = MigrationSpec::Policy::kBalance;
  s.migration.threshold = 0.05;
  s.trace.requests = {request_at(0.0, 320, 2000), request_at(0.0, 16, 2),
                      request_at(0.0, 320, 2000)};
  const RunResult r = run(test_catalog(), s);
  REQUIRE(r.migrations.size() == 1);
  const MigrationRecord& m = r.migrations[0];
  const ClusterTopology c = cluster_of_test(s);
  const Way across = way(c, c.device(0, 0, 0), c.device(0, 0, 1));
  CHECK(m.request == 0);
  CHECK(m.from == 0);
  CHECK(m.to == 1);
  CHECK(m.began == SimTime::from_ns(1'000'000'000));
  CHECK(m.stopped == SimTime::from_ns(1'000'400'000));
  CHECK(m.rounds == 1);
  CHECK(close(m.bytes, 1313.0 * 256.0));
  const double stop = across.seconds(256.0);
  MESSAGE("copy of " << 1312 * 256 << " B: " << across.seconds(1312 * 256.0) << " s; stopped for "
                     << stop << " s");
  CHECK(std::abs((m.arrived - m.stopped).value() - stop) <= 2e-9);
  CHECK(std::abs(r.requests[0].migration_s - stop) <= 2e-9);
  CHECK(std::abs(r.requests[0].last_token.seconds().value() - (1.0004 + stop + 1.006)) <= 4e-9);
  CHECK(r.requests[0].migrations == 1);
  CHECK(r.requests[0].replica == 1);
  CHECK(r.requests[0].output_tokens == 2000);
  // C is not slowed down: its 2000 tokens end 1.9994 s after its first at 7.4 ms.
  CHECK(r.requests[2].last_token == SimTime::from_ns(7'400'000 + 1'999'000'000));
  CHECK(r.replicas[0].output_tokens == 994 + 2000);
  CHECK(r.replicas[1].output_tokens == 2 + 1006);
}

TEST_CASE("many tokens go in several copies, the last of which is short") {
  // A link so slow that copies take many steps: 256 B per token over 256 kB/s = 1 ms a token, as
  // fast as they are made, would never end; at a tenth of that each copy leaves a tenth.
  Scenario s = constant_pool(2, 1000);
  s.nodes[0].type.devices = 1;
  s.nodes[0].count = 2;
  s.nodes[0].type.network = known(BytesPerSec(2.56e6));
  s.routing = {"round_robin", {}};
  s.migration.policy = MigrationSpec::Policy::kBalance;
  s.migration.threshold = 0.05;
  s.migration.stop_tokens = 8;
  s.trace.requests = {request_at(0.0, 320, 4000), request_at(0.0, 16, 2),
                      request_at(0.0, 320, 4000)};
  const RunResult r = run(test_catalog(), s);
  REQUIRE(!r.migrations.empty());
  const MigrationRecord& m = r.migrations[0];
  const ClusterTopology c = cluster_of_test(s);
  const Way across = way(c, c.device(0, 0, 0), c.device(0, 1, 0));
  MESSAGE("rounds " << m.rounds << ", stopped for " << (m.arrived - m.stopped).value() << " s");
  CHECK(m.rounds >= 2);
  // At most stop_tokens and the step under way were left.
  CHECK((m.arrived - m.stopped).value() <= across.seconds(9.0 * 256.0) + 2e-9);
  CHECK((m.arrived - m.stopped).value() >= across.seconds(256.0) - 2e-9);
  CHECK(r.finished == 3);
}

TEST_CASE("a drained replica gives everything away and takes nothing new") {
  Scenario s = constant_pool(2, 1000);
  s.routing = {"round_robin", {}};
  s.migration.policy = MigrationSpec::Policy::kDrain;
  s.migration.drains = {{0, 0, SimTime::from_ns(500'000'000)}};
  for (int i = 0; i < 6; ++i) {
    s.trace.requests.push_back(request_at(0.01 * i, 64, 3000));
    s.trace.requests.back().row = static_cast<std::uint32_t>(i);
  }
  for (int i = 0; i < 4; ++i) {
    s.trace.requests.push_back(request_at(1.0 + 0.01 * i, 64, 100));
    s.trace.requests.back().row = static_cast<std::uint32_t>(6 + i);
  }
  const RunResult r = run(test_catalog(), s);
  CHECK(r.finished == 10);
  CHECK(r.migrations.size() == 3);
  for (const RequestRecord& q : r.requests) CHECK(q.replica == 1);
  MESSAGE("drained at " << r.replicas[0].drained.seconds().value() << " s");
  CHECK(r.replicas[0].drained > SimTime::from_ns(500'000'000));
  CHECK(r.replicas[0].drained < SimTime::from_ns(600'000'000));
}
