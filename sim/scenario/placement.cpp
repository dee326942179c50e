#include "sim/scenario/placement.h"

#include <algorithm>
#include <numeric>

namespace medley {

bool Placement::complete() const {
  return std::all_of(missing.begin(), missing.end(), [](std::int64_t n) { return n == 0; });
}

namespace {
constexpr double kFull = 1.0 + 1e-9;

/// First device from which `need` devices have room for another `fraction`; a replica that fits in
/// a node stays in one, a larger one takes whole nodes. SIZE_MAX: none.
std::size_t find_room(const std::vector<double>& used, std::size_t per_node, std::size_t need,
                      double fraction, std::size_t from) {
  for (std::size_t first = from; first + need <= used.size(); ++first) {
    const bool spans = need > per_node;
    if (spans ? first % per_node != 0 : first % per_node + need > per_node) continue;
    std::size_t d = 0;
    while (d < need && used[first + d] + fraction <= kFull) ++d;
    if (d == need) return first;
  }
  return SIZE_MAX;
}

void place_pool(const Scenario& scenario, std::size_t p, std::vector<double>& used,
                Placement& placement) {
  const PoolSpec& pool = scenario.pools[p];
  const auto per_node = static_cast<std::size_t>(scenario.nodes[pool.node_group].type.devices);
  const auto need = static_cast<std::size_t>(pool.devices_per_replica());
  const double fraction = pool.sharing.fraction;
  std::size_t from = 0;
  for (int r = 0; r < pool.replicas; ++r) {
    const std::size_t first = find_room(used, per_node, need, fraction, from);
    if (first == SIZE_MAX) {
      placement.missing[p] = pool.replicas - r;
      return;
    }
    placement.pools[p].push_back({static_cast<std::uint32_t>(first / per_node),
                                  static_cast<std::uint32_t>(first % per_node)});
    for (std::size_t d = 0; d < need; ++d) used[first + d] += fraction;
    from = first;  // what is before it has no room for another of this pool
  }
}
}  // namespace

Placement place_replicas(const Scenario& scenario) {
  Placement placement;
  placement.pools.resize(scenario.pools.size());
  placement.missing.resize(scenario.pools.size());
  std::vector<std::size_t> order(scenario.pools.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return scenario.pools[a].devices_per_replica() > scenario.pools[b].devices_per_replica();
  });
  std::vector<std::vector<double>> used(scenario.nodes.size());  // by device
  for (std::size_t g = 0; g < used.size(); ++g) {
    const NodeGroup& group = scenario.nodes[g];
    used[g].resize(static_cast<std::size_t>(group.count) *
                   static_cast<std::size_t>(std::max(0, group.type.devices)));
  }
  for (const std::size_t p : order)
    place_pool(scenario, p, used[scenario.pools[p].node_group], placement);
  return placement;
}

}  // namespace medley
