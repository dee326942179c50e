#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "hwmodels/topology/cluster.h"
#include "tests/support/builders.h"
#include "workloads/model.h"

namespace medley::testing {

inline constexpr double kStep = 1e-3;    // s per step
inline constexpr double kPrompt = 1e-5;  // s per prompt token
inline constexpr std::int32_t kIdTokens = 32;

/// Replicas of constant step times on a server with PCIe and 2 drives per four devices; blocks of
/// 16 tokens, ids of 32.
inline Scenario constant_pool(int replicas, std::int64_t blocks) {
  Scenario s = one_pool(replicas);
  s.nodes[0].type.host_link = "PCIe 5.0 x16";
  PoolSpec& pool = s.pools[0];
  pool.step_model.kind = StepModelKind::kConstant;
  pool.step_model.per_step = Seconds(kStep);
  pool.step_model.per_prompt_token = Seconds(kPrompt);
  pool.num_blocks_override = blocks;
  pool.batching.block_size = 16;
  s.trace.hash_block_tokens = kIdTokens;
  s.report.interval = Seconds(0.0);
  return s;
}

/// One replica of `blocks` blocks of 16 tokens with a host tier.
inline Scenario tier_scenario(std::int64_t blocks, double tier_bytes) {
  Scenario s = constant_pool(1, blocks);
  PoolSpec& pool = s.pools[0];
  KvTierSpec host;
  host.capacity = Bytes(tier_bytes);
  pool.tiering.tiers = {host};
  return s;
}

/// A request at `seconds` whose prompt consists of `ids`, the last one in full or to `tail` tokens.
inline void add_request(Scenario& s, double seconds, const std::vector<std::uint64_t>& ids,
                        std::int32_t output, std::int32_t tail = kIdTokens) {
  const auto full = static_cast<std::int32_t>(ids.size() - 1) * kIdTokens;
  Request r = request_at(seconds, full + tail, output);
  r.row = static_cast<std::uint32_t>(s.trace.requests.size());
  r.hash_begin = static_cast<std::uint32_t>(s.trace.hash_ids.size());
  r.hash_count = static_cast<std::uint32_t>(ids.size());
  s.trace.hash_ids.insert(s.trace.hash_ids.end(), ids.begin(), ids.end());
  s.trace.requests.push_back(r);
}

inline double token_bytes(const Scenario& s) {
  return kv_bytes_per_token(s.pools[0].model, 1, 1, 0, s.pools[0].precision.kv);
}

/// latency + bytes / least bandwidth between two vertices of the test's cluster.
struct Way {
  double latency = 0.0, bandwidth = 1e300;
  double seconds(double bytes) const { return latency + bytes / bandwidth; }
};
inline Way way(const ClusterTopology& c, std::uint32_t from, std::uint32_t to) {
  TopologyRoute route;
  c.topology.route(from, to, 0, route);
  Way w;
  for (const std::uint32_t l : route.links) {
    const TopologyLink& link = c.topology.links[l];
    w.latency += link.latency.value();
    w.bandwidth = std::min(w.bandwidth, c.topology.wires[link.wire].bandwidth.value());
  }
  return w;
}
inline ClusterTopology cluster_of_test(const Scenario& s) {
  std::vector<ClusterGroup> groups;
  for (const NodeGroup& g : s.nodes)
    groups.push_back({g.name, &g.type, g.count, &g.device, nullptr});
  return build_cluster(test_catalog(), groups, s.fabric);
}

}  // namespace medley::testing
