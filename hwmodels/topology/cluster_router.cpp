#include "hwmodels/topology/cluster_router.h"

#include <algorithm>

namespace medley {

ClusterRouter::Place ClusterRouter::place(const Topology& topology, std::uint32_t vertex) const {
  const TopologyVertex& v = topology.vertices[vertex];
  Place p;
  if (v.group == TopologyVertex::kNone) return p;
  p.group = &groups[v.group];
  p.node = v.node;
  p.local = vertex - p.group->at.first - v.node * p.group->at.stride;
  return p;
}

bool ClusterRouter::append(const Topology& topology, std::uint32_t from, std::uint32_t to,
                           std::uint64_t hash, std::vector<std::uint32_t>& links) const {
  const Place a = place(topology, from), b = place(topology, to);
  if (a.group && b.group) {
    if (by_devices(a, b, hash, links)) return true;
    if (a.group == b.group && a.node == b.node) {
      if (std::max(a.local, b.local) >= a.group->inside_size) return false;  // a fabric's switch
      if (a.group->inside->cost(a.local, b.local) == kNoRoute) return false;
      a.group->inside->append(a.local, b.local, hash, a.offset(), links);
      return true;
    }
    return network && by_network(a, b, hash, links);
  }
  const auto in_pool = [&](std::uint32_t v) {
    return v >= pool_first && v - pool_first < pool_size;
  };
  if (a.group && in_pool(to)) return by_pool(a, to - pool_first, true, hash, links);
  if (b.group && in_pool(from)) return by_pool(b, from - pool_first, false, hash, links);
  return false;
}

bool ClusterRouter::by_devices(const Place& a, const Place& b, std::uint64_t hash,
                               std::vector<std::uint32_t>& links) const {
  const Group& g = *a.group;
  const std::uint32_t n = g.at.devices;
  if (a.group != b.group || !g.devices || a.local >= n || b.local >= n) return false;
  const std::uint32_t x = a.node * n + a.local, y = b.node * n + b.local;
  const std::uint32_t domain = x / g.at.domain;
  if (domain != y / g.at.domain) return false;
  const std::uint32_t i = x % g.at.domain, j = y % g.at.domain;
  if (g.devices->cost(i, j) == kNoRoute) return false;
  g.devices->append(i, j, hash, domain * g.domain_links, links);
  return true;
}

const RouteCost* ClusterRouter::exits(const std::vector<RouteCost>& table, std::uint32_t local,
                                      std::uint32_t count) {
  const std::size_t at = std::size_t{local} * count;
  return at + count <= table.size() ? table.data() + at : nullptr;
}

bool ClusterRouter::by_network(const Place& a, const Place& b, std::uint64_t hash,
                               std::vector<std::uint32_t>& links) const {
  const Group &ga = *a.group, &gb = *b.group;
  const RouteCost* out = exits(ga.nic_cost, a.local, ga.at.nics);
  const RouteCost* in = exits(gb.nic_cost, b.local, gb.at.nics);
  if (!out || !in) return false;
  const std::uint32_t pa = ga.first_nic + a.node * ga.at.nics;
  const std::uint32_t pb = gb.first_nic + b.node * gb.at.nics;
  RouteCost best = kNoRoute;
  std::uint32_t equals = 0, best_i = 0, best_j = 0;
  for (std::uint32_t i = 0; i < ga.at.nics; ++i) {
    for (std::uint32_t j = 0; j < gb.at.nics; ++j) {
      if (out[i] == kNoRoute || in[j] == kNoRoute) continue;
      const RouteCost ends = out[i] + in[j];
      if (ends >= best) continue;  // the network costs something
      const RouteCost across = network->cost(pa + i, pb + j);
      if (across == kNoRoute || ends + across > best) continue;
      if (ends + across < best) equals = 0;
      best = ends + across;
      // The k-th of equals takes the place of the one kept with chance 1/k.
      ++equals;
      if (mix_hash(hash + equals) % equals == 0) best_i = i, best_j = j;
    }
  }
  if (best == kNoRoute) return false;
  ga.inside->append(a.local, ga.at.nic_at + best_i, hash, a.offset(), links);
  network->append(pa + best_i, pb + best_j, mix_hash(hash), 0, links);
  gb.inside->append(gb.at.nic_at + best_j, b.local, mix_hash(hash + 1), b.offset(), links);
  return true;
}

bool ClusterRouter::by_pool(const Place& a, std::uint32_t module, bool outward, std::uint64_t hash,
                            std::vector<std::uint32_t>& links) const {
  const Group& g = *a.group;
  const RouteCost* inside = exits(g.socket_cost, a.local, g.at.sockets);
  if (!inside) return false;
  const std::uint32_t first = g.first_socket + a.node * g.at.sockets;
  const std::uint32_t target = pool_sockets + module;
  RouteCost best = kNoRoute;
  std::uint32_t best_s = 0;
  for (std::uint32_t s = 0; s < g.at.sockets; ++s) {
    const RouteCost across =
        outward ? pool->cost(first + s, target) : pool->cost(target, first + s);
    if (across == kNoRoute || inside[s] == kNoRoute || inside[s] + across >= best) continue;
    best = inside[s] + across;
    best_s = s;
  }
  if (best == kNoRoute) return false;
  const std::uint32_t socket = g.at.socket_at + best_s;
  if (outward) {
    g.inside->append(a.local, socket, hash, a.offset(), links);
    pool->append(first + best_s, target, hash, 0, links);
  } else {
    pool->append(target, first + best_s, hash, 0, links);
    g.inside->append(socket, a.local, hash, a.offset(), links);
  }
  return true;
}

}  // namespace medley
