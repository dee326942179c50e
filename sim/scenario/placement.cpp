#include "sim/scenario/placement.h"

#include <algorithm>
#include <numeric>

namespace medley {

bool Placement::complete() const {
  return std::all_of(missing.begin(), missing.end(), [](std::int64_t n) { return n == 0; });
}

Placement place_replicas(const Scenario& scenario) {
  Placement placement;
  placement.pools.resize(scenario.pools.size());
  placement.missing.resize(scenario.pools.size());
  std::vector<std::size_t> order(scenario.pools.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return scenario.pools[a].devices_per_replica() > scenario.pools[b].devices_per_replica();
  });
  std::vector<std::vector<int>> used(scenario.nodes.size());
  for (std::size_t g = 0; g < used.size(); ++g) {
    used[g].resize(static_cast<std::size_t>(scenario.nodes[g].count));
  }
  for (const std::size_t p : order) {
    const PoolSpec& pool = scenario.pools[p];
    std::vector<int>& nodes = used[pool.node_group];
    const int room = scenario.nodes[pool.node_group].type.devices;
    const int need = pool.devices_per_replica();
    std::size_t n = 0;
    for (int r = 0; r < pool.replicas; ++r) {
      while (n < nodes.size() && nodes[n] + need > room) ++n;
      if (n == nodes.size()) {
        placement.missing[p] = pool.replicas - r;
        break;
      }
      placement.pools[p].push_back(
          {static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(nodes[n])});
      nodes[n] += need;
    }
  }
  return placement;
}

}  // namespace medley
