// KV tiers, by hand: constant step times, one device, prompts whose ids say where they are.
#include <doctest/doctest.h>

#include "tests/support/tiered_pool.h"

using namespace medley;
using namespace medley::testing;

TEST_CASE("a recalled prefix costs latency + bytes / bandwidth, to the nanosecond") {
  // 6 blocks. A (4 blocks of ids 1, 2) leaves; B's 6 blocks, which have no ids, overwrite them:
  // both ids go to the host. C = A's prompt + 16 tokens of its own: 64 tokens come back, 16 are
  // computed.
  Scenario s = tier_scenario(6, 1e9);
  add_request(s, 0.0, {1, 2}, 1);
  s.trace.requests.push_back(request_at(1.0, 96, 1));
  add_request(s, 2.0, {1, 2, 3}, 1, 16);
  const RunResult r = run(test_catalog(), s);
  const ClusterTopology c = cluster_of_test(s);
  const double bytes = 64.0 * token_bytes(s);
  const double recall = way(c, c.memory(0, 0), c.device(0, 0, 0)).seconds(bytes);
  MESSAGE("recall of " << bytes << " B: " << recall << " s");
  const RequestRecord& q = r.requests[2];
  CHECK(q.tier_cached_tokens == 64);
  CHECK(q.cached_tokens == 64);
  CHECK(std::abs(q.recall_s - recall) <= 1e-9);
  CHECK(std::abs((q.scheduled - q.arrival).value() - recall) <= 1e-9);
  CHECK(std::abs((q.first_token - q.scheduled).value() - (kStep + 16 * kPrompt)) <= 1e-9);
  REQUIRE(r.tiers.size() == 1);
  CHECK(r.tiers[0].recalls == 1);
  CHECK(r.tiers[0].recalled_tokens == 64);
  CHECK(close(r.tiers[0].bytes_out, bytes));
  CHECK(close(r.tiers[0].bytes_in, bytes));
  CHECK(close(r.tiers[0].peak, bytes));
  CHECK(r.tiers[0].evicted_entries == 0);
}

TEST_CASE("two recalls from the drives of one server take twice the bytes' time") {
  // Replica 0 gets ids 1, 2 and replica 1 ids 3, 4; both overwrite them and ask again at once.
  Scenario s = constant_pool(2, 6);
  KvTierSpec drives;
  drives.where = KvTierSpec::Where::kNvme;
  drives.capacity = Bytes(1e9);
  s.pools[0].tiering.tiers = {drives};
  s.routing = {"round_robin", {}};
  add_request(s, 0.0, {1, 2}, 1);
  add_request(s, 0.0, {3, 4}, 1);
  s.trace.requests.push_back(request_at(1.0, 96, 1));
  s.trace.requests.push_back(request_at(1.0, 96, 1));
  add_request(s, 2.0, {1, 2, 5}, 1, 16);
  add_request(s, 2.0, {3, 4, 6}, 1, 16);
  const RunResult r = run(test_catalog(), s);
  const ClusterTopology c = cluster_of_test(s);
  const Way up = way(c, c.storage(0, 0), c.device(0, 0, 0));
  const double bytes = 64.0 * token_bytes(s);
  MESSAGE("drives: " << up.bandwidth << " B/s, recall of " << bytes
                     << " B beside another: " << r.requests[4].recall_s << " s");
  for (const std::size_t i : {4U, 5U}) {
    CHECK(r.requests[i].tier_cached_tokens == 64);
    CHECK(std::abs(r.requests[i].recall_s - (up.latency + 2.0 * bytes / up.bandwidth)) <= 2e-9);
  }
  REQUIRE(r.tiers.size() == 1);  // the node's, shared
  CHECK(r.tiers[0].recalls == 2);
  CHECK(close(r.tiers[0].bytes_out, 2.0 * bytes));
}

TEST_CASE("what the first tier evicts goes to the second and comes back from there") {
  // Host: room for 4 blocks. A's 4 blocks go there at 1 s. At 2 s B's ids 13 and 12 push them down
  // to the drives; its 11, in the same instant, finds only what still comes and is lost. C at 3 s
  // finds A's ids on the drives.
  Scenario s = tier_scenario(6, 4.0 * 16.0 * 256.0);
  REQUIRE(token_bytes(s) == 256.0);
  KvTierSpec drives;
  drives.where = KvTierSpec::Where::kNvme;
  drives.capacity = Bytes(1e9);
  s.pools[0].tiering.tiers.push_back(drives);
  add_request(s, 0.0, {1, 2}, 1);
  add_request(s, 1.0, {11, 12, 13}, 1);
  s.trace.requests.push_back(request_at(2.0, 96, 1));
  add_request(s, 3.0, {1, 2, 3}, 1, 16);
  const RunResult r = run(test_catalog(), s);
  const ClusterTopology c = cluster_of_test(s);
  const double bytes = 64.0 * 256.0;
  const double recall = way(c, c.storage(0, 0), c.device(0, 0, 0)).seconds(bytes);
  CHECK(std::abs(r.requests[3].recall_s - recall) <= 1e-9);
  REQUIRE(r.tiers.size() == 2);
  CHECK(close(r.tiers[0].bytes_in, 2.0 * bytes));
  CHECK(close(r.tiers[0].bytes_out, bytes));
  CHECK(close(r.tiers[1].bytes_in, bytes));
  CHECK(r.tiers[0].evicted_entries == 2);
  CHECK(r.tiers[0].dropped_entries == 1);
  CHECK(r.tiers[0].recalls == 0);
  CHECK(r.tiers[1].recalls == 1);
  CHECK(r.tiers[0].peak <= r.tiers[0].capacity);
}

TEST_CASE("a recall that is slower than prefilling is not worth it") {
  // 64 tokens: prefilled in kStep + 64 kPrompt = 1.64 ms. Drives take 16 KiB in microseconds; with
  // free prompt tokens and steps of 1 ns the transfer is the slower one.
  Scenario s = tier_scenario(6, 1e9);
  s.pools[0].tiering.recall_if_faster = true;
  add_request(s, 0.0, {1, 2}, 1);
  s.trace.requests.push_back(request_at(1.0, 96, 1));
  add_request(s, 2.0, {1, 2, 3}, 1, 16);
  CHECK(run(test_catalog(), s).requests[2].tier_cached_tokens == 64);
  s.pools[0].step_model.per_step = Seconds(1e-9);
  s.pools[0].step_model.per_prompt_token = Seconds(0.0);
  const RunResult r = run(test_catalog(), s);
  CHECK(r.requests[2].tier_cached_tokens == 0);
  CHECK(r.requests[2].cached_tokens == 0);
}

TEST_CASE("write-through stores when computed, swapping brings preempted requests back") {
  Scenario s = tier_scenario(6, 1e9);
  s.pools[0].tiering.write_through = true;
  add_request(s, 0.0, {1, 2}, 1);
  RunResult r = run(test_catalog(), s);
  CHECK(close(r.tiers[0].bytes_in, 64.0 * 256.0));  // nothing was evicted

  // Two requests of 16 tokens that grow to 64: 4 blocks each where 6 are. The later one goes when a
  // block is missing; its full blocks come back instead of being computed again.
  s = tier_scenario(6, 1e9);
  s.trace.requests = {request_at(0.0, 16, 49), request_at(0.0, 16, 49)};
  r = run(test_catalog(), s);
  REQUIRE(r.requests[1].preemptions > 0);
  CHECK(r.requests[1].recall_s == 0.0);
  const std::int64_t recomputed = r.replicas[0].recomputed_tokens;
  s.pools[0].tiering.swap = true;
  r = run(test_catalog(), s);
  REQUIRE(r.requests[1].preemptions > 0);
  CHECK(r.requests[1].recall_s > 0.0);
  CHECK(r.requests[1].tier_cached_tokens == 0);  // that was not at its first admission
  CHECK(r.replicas[0].recalled_tokens > 0);
  CHECK(r.replicas[0].recomputed_tokens < recomputed);
  CHECK(r.finished == 2);
}

TEST_CASE("without a tier the same prompts are computed again") {
  Scenario s = tier_scenario(6, 1e9);
  s.pools[0].tiering = {};
  add_request(s, 0.0, {1, 2}, 1);
  add_request(s, 1.0, {11, 12, 13}, 1);
  add_request(s, 2.0, {1, 2, 3}, 1, 16);
  const RunResult r = run(test_catalog(), s);
  CHECK(r.requests[2].cached_tokens == 0);
  CHECK(std::abs((r.requests[2].first_token - r.requests[2].arrival).value() -
                 (kStep + 80 * kPrompt)) <= 1e-9);
  CHECK(r.tiers.empty());
}
