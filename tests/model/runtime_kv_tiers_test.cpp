// KV tiers, by hand: constant step times, one device, prompts whose ids say where they are.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "hwmodels/topology/cluster.h"
#include "tests/support/builders.h"
#include "workloads/model.h"

using namespace medley;
using namespace medley::testing;

namespace {

constexpr double kStep = 1e-3;    // s per step
constexpr double kPrompt = 1e-5;  // s per prompt token
constexpr std::int32_t kIdTokens = 32;

/// One replica of `blocks` blocks of 16 tokens with a host tier.
Scenario tier_scenario(std::int64_t blocks, double tier_bytes) {
  Scenario s = one_pool();
  PoolSpec& pool = s.pools[0];
  pool.step_model.kind = StepModelKind::kConstant;
  pool.step_model.per_step = Seconds(kStep);
  pool.step_model.per_prompt_token = Seconds(kPrompt);
  pool.num_blocks_override = blocks;
  pool.batching.block_size = 16;
  KvTierSpec host;
  host.capacity = Bytes(tier_bytes);
  pool.tiering.tiers = {host};
  s.trace.hash_block_tokens = kIdTokens;
  s.report.interval = Seconds(0.0);
  return s;
}

/// A request at `seconds` whose prompt consists of `ids`, the last one in full or to `tail` tokens.
void add_request(Scenario& s, double seconds, const std::vector<std::uint64_t>& ids,
                 std::int32_t output, std::int32_t tail = kIdTokens) {
  const auto full = static_cast<std::int32_t>(ids.size() - 1) * kIdTokens;
  Request r = request_at(seconds, full + tail, output);
  r.row = static_cast<std::uint32_t>(s.trace.requests.size());
  r.hash_begin = static_cast<std::uint32_t>(s.trace.hash_ids.size());
  r.hash_count = static_cast<std::uint32_t>(ids.size());
  s.trace.hash_ids.insert(s.trace.hash_ids.end(), ids.begin(), ids.end());
  s.trace.requests.push_back(r);
}

double token_bytes(const Scenario& s) {
  return kv_bytes_per_token(s.pools[0].model, 1, 1, 0, s.pools[0].precision.kv);
}

/// latency + bytes / least bandwidth between two vertices of the test's cluster.
struct Way {
  double latency = 0.0, bandwidth = 1e300;
  double seconds(double bytes) const { return latency + bytes / bandwidth; }
};
Way way(const ClusterTopology& c, std::uint32_t from, std::uint32_t to) {
  TopologyRoute route;
  c.topology.route(from, to, 0, route);
  Way w;
  for (const std::uint32_t l : route.links) {
    const TopologyLink& link = c.topology.links[l];
    w.latency += link.latency.value();
    w.bandwidth = std::min(w.bandwidth, c.topology.wires[link.wire].bandwidth.value());
  }
  REQUIRE(!route.links.empty());
  return w;
}
ClusterTopology cluster_of_test(const Scenario& s) {
  std::vector<ClusterGroup> groups;
  for (const NodeGroup& g : s.nodes)
    groups.push_back({g.name, &g.type, g.count, &g.device, nullptr});
  return build_cluster(test_catalog(), groups, s.fabric);
}

}  // namespace

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

TEST_CASE("a recall that pushes out others shares the host's memory with them") {
  // As before, but B's blocks have ids: C's 5 blocks overwrite B's ids 13, 12 and begin on 11, so
  // all 6 blocks go down while 4 come up. DRAM is half duplex: while both flow each
  // gets half, so the recall's bytes take twice their time alone.
  Scenario s = tier_scenario(6, 1e9);
  add_request(s, 0.0, {1, 2}, 1);
  add_request(s, 1.0, {11, 12, 13}, 1);
  add_request(s, 2.0, {1, 2, 3}, 1, 16);
  const RunResult r = run(test_catalog(), s);
  const ClusterTopology c = cluster_of_test(s);
  const double bytes = 64.0 * token_bytes(s);
  const Way up = way(c, c.memory(0, 0), c.device(0, 0, 0));
  const Way down = way(c, c.device(0, 0, 0), c.memory(0, 0));
  REQUIRE(up.latency == down.latency);
  CHECK(std::abs(r.requests[2].recall_s - (up.latency + 2.0 * bytes / up.bandwidth)) <= 1e-9);
  CHECK(close(r.tiers[0].bytes_in, 2.5 * bytes));
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
