#include "hwmodels/topology/graph_router.h"

#include <algorithm>

#include "sim/core/error.h"

namespace medley {

std::unique_ptr<GraphRouter> GraphRouter::make(const Topology& topology,
                                               const std::vector<std::uint32_t>& members,
                                               std::uint32_t first_link) {
  std::unique_ptr<GraphRouter> router(new GraphRouter());
  router->read_edges(topology, members, first_link);
  router->find_core();
  if (router->core_size_ > kMostCore) return nullptr;
  router->table_.assign(std::size_t{router->core_size_} * router->core_size_, kNoRoute);
  for (std::uint32_t v = 0; v < members.size(); ++v) {
    if (router->core_[v] != kNone) router->flood(v);
  }
  return router;
}

void GraphRouter::read_edges(const Topology& topology, const std::vector<std::uint32_t>& members,
                             std::uint32_t first_link) {
  std::vector<std::uint32_t> position(topology.vertices.size(), kNone);
  for (std::uint32_t i = 0; i < members.size(); ++i) {
    MEDLEY_CHECK(position[members[i]] == kNone, "a member of a graph stands twice");
    position[members[i]] = i;
    forwards_.push_back(topology.vertices[members[i]].forwards);
  }
  std::vector<std::vector<Edge>> out(members.size());
  for (std::uint32_t l = first_link; l < topology.links.size(); ++l) {
    const TopologyLink& link = topology.links[l];
    if (position[link.from] == kNone || position[link.to] == kNone) continue;
    out[position[link.from]].push_back({l, position[link.to], route_cost(1, link.latency.value())});
  }
  edge_begin_.assign(1, 0);
  for (const std::vector<Edge>& list : out) {
    edges_.insert(edges_.end(), list.begin(), list.end());
    edge_begin_.push_back(static_cast<std::uint32_t>(edges_.size()));
  }
}

void GraphRouter::find_core() {
  const auto n = static_cast<std::uint32_t>(forwards_.size());
  attach_.assign(n, kNone);
  core_.assign(n, kNone);
  std::vector<bool> single(n, false);
  for (std::uint32_t v = 0; v < n; ++v) {
    const std::uint32_t begin = edge_begin_[v], end = edge_begin_[v + 1];
    single[v] = begin < end && std::all_of(edges_.begin() + begin, edges_.begin() + end,
                                           [&](const Edge& e) { return e.to == edges_[begin].to; });
  }
  for (std::uint32_t v = 0; v < n; ++v) {
    const std::uint32_t to = single[v] ? edges_[edge_begin_[v]].to : kNone;
    if (to != kNone && forwards_[to] && !single[to]) attach_[v] = to;
    if (attach_[v] == kNone) core_[v] = core_size_++;
  }
}

/// Costs of all core vertices to one of them. Links cost one each, so that a queue has them in
/// order; the latency part is final when a vertex leaves it.
void GraphRouter::flood(std::uint32_t target) {
  RouteCost* cost = table_.data() + std::size_t{core_[target]} * core_size_;
  constexpr int kLatencyBits = 48;
  std::vector<std::uint32_t> queue = {target};
  cost[core_[target]] = 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const std::uint32_t v = queue[i];
    if (v != target && !forwards_[v]) continue;
    for (std::uint32_t e = edge_begin_[v]; e < edge_begin_[v + 1]; ++e) {
      const std::uint32_t u = edges_[e].to;  // cables are symmetric
      if (core_[u] == kNone) continue;
      const RouteCost through = cost[core_[v]] + edges_[e].cost;
      RouteCost& own = cost[core_[u]];
      if (own == kNoRoute) {
        queue.push_back(u);
        own = through;
      } else if (own >> kLatencyBits == through >> kLatencyBits) {
        own = std::min(own, through);
      }
    }
  }
}

RouteCost GraphRouter::core_cost(std::uint32_t v, std::uint32_t target) const {
  if (core_[v] == kNone || core_[target] == kNone) return kNoRoute;
  return table_[std::size_t{core_[target]} * core_size_ + core_[v]];
}

RouteCost GraphRouter::best_edge(std::uint32_t from, std::uint32_t to) const {
  RouteCost best = kNoRoute;
  for (std::uint32_t e = edge_begin_[from]; e < edge_begin_[from + 1]; ++e) {
    if (edges_[e].to == to) best = std::min(best, edges_[e].cost);
  }
  return best;
}

RouteCost GraphRouter::cost(std::uint32_t a, std::uint32_t b) const {
  if (a == b) return 0;
  if (attach_[a] == b || attach_[b] == a) return best_edge(a, b);
  RouteCost sum = 0;
  if (attached(a)) sum += best_edge(a, attach_[a]);
  if (attached(b)) sum += best_edge(attach_[b], b);
  const RouteCost middle = core_cost(attached(a) ? attach_[a] : a, attached(b) ? attach_[b] : b);
  return middle == kNoRoute ? kNoRoute : sum + middle;
}

void GraphRouter::take_edge(std::uint32_t from, std::uint32_t to, std::uint64_t& hash,
                            std::uint32_t offset, std::vector<std::uint32_t>& links) const {
  const RouteCost best = best_edge(from, to);
  std::uint32_t equals = 0;
  const auto good = [&](std::uint32_t e) { return edges_[e].to == to && edges_[e].cost == best; };
  for (std::uint32_t e = edge_begin_[from]; e < edge_begin_[from + 1]; ++e) equals += good(e);
  hash = mix_hash(hash);
  auto pick = static_cast<std::uint32_t>(hash % equals);
  for (std::uint32_t e = edge_begin_[from]; e < edge_begin_[from + 1]; ++e) {
    if (good(e) && pick-- == 0) return links.push_back(offset + edges_[e].link);
  }
}

void GraphRouter::append(std::uint32_t a, std::uint32_t b, std::uint64_t hash, std::uint32_t offset,
                         std::vector<std::uint32_t>& links) const {
  if (a == b) return;
  if (attach_[a] == b || attach_[b] == a) return take_edge(a, b, hash, offset, links);
  std::uint32_t at = a;
  if (attached(a)) take_edge(a, at = attach_[a], hash, offset, links);
  const std::uint32_t goal = attached(b) ? attach_[b] : b;
  while (at != goal) {
    const RouteCost left = core_cost(at, goal);
    std::uint32_t equals = 0;
    const auto good = [&](const Edge& e) {
      const RouteCost rest = core_cost(e.to, goal);
      return rest != kNoRoute && (e.to == goal || forwards_[e.to]) && rest + e.cost == left;
    };
    const auto begin = edges_.begin() + edge_begin_[at], end = edges_.begin() + edge_begin_[at + 1];
    for (auto e = begin; e != end; ++e) equals += good(*e);
    MEDLEY_CHECK(equals > 0, "a route lost its way");
    hash = mix_hash(hash);
    auto pick = static_cast<std::uint32_t>(hash % equals);
    for (auto e = begin; e != end; ++e) {
      if (!good(*e) || pick-- > 0) continue;
      links.push_back(offset + e->link);
      at = e->to;
      break;
    }
  }
  if (attached(b)) take_edge(goal, b, hash, offset, links);
}

}  // namespace medley
