#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hwmodels/topology/builder.h"
#include "hwmodels/topology/kinds.h"

namespace medley {

namespace {
/// Sizes of a fat tree of two or three levels of switches. Leaf l has `up` cables, `parallel` to
/// each of the aggregation switches (spines) of its pod; each of those has `cores` cables, the j-th
/// aggregation switch of every pod to the same core switches.
struct TreeShape {
  std::uint32_t hosts = 1;   ///< ports of a leaf
  std::uint32_t leaves = 1;  ///< in all
  std::uint32_t pods = 1;
  std::uint32_t leaves_per_pod = 1;
  std::uint32_t aggs = 0;      ///< per pod; two levels: the spines, one pod
  std::uint32_t parallel = 1;  ///< cables from a leaf to each of them
  std::uint32_t cores = 0;     ///< per aggregation switch; 0: two levels
  std::uint32_t up() const { return aggs * parallel; }
};

/// Up as far as needed and down again: 2, 4 or 6 links. The way up is free: the flow's hash picks
/// it (ECMP), or the destination's number does (d-mod-k: then nothing shares a wire on the way down
/// but what goes to one port, and shifts by a constant share none at all). The way down is given.
class FatTreeRouter : public PortRouter {
 public:
  TreeShape shape;
  std::uint32_t port_base = 0, up_base = 0, core_base = 0;
  double port_latency = 0.0, hop_latency = 0.0;
  bool by_destination = false;
  std::vector<std::uint32_t> leaf;   ///< of each port
  std::vector<std::uint32_t> place;  ///< of each port on its leaf

  RouteCost cost(std::uint32_t a, std::uint32_t b) const override {
    if (a == b) return 0;
    const std::uint32_t la = leaf[a], lb = leaf[b];
    if (la == lb) return route_cost(2, 2 * port_latency);
    if (shape.aggs == 0) return kNoRoute;
    if (pod(la) == pod(lb)) return route_cost(4, 2 * port_latency + 2 * hop_latency);
    return shape.cores == 0 ? kNoRoute : route_cost(6, 2 * port_latency + 4 * hop_latency);
  }

  void append(std::uint32_t a, std::uint32_t b, std::uint64_t hash, std::uint32_t offset,
              std::vector<std::uint32_t>& links) const override {
    if (a == b) return;
    const std::uint32_t la = leaf[a], lb = leaf[b];
    links.push_back(offset + port_base + 2 * a);
    if (la != lb) {
      std::uint64_t pick_up = hash, pick_core = hash >> 20, pick_down = hash >> 40;
      if (by_destination) {
        pick_up = place[b];
        pick_core = place[b] / shape.up();
        pick_core += lb % shape.leaves_per_pod;  // leaves of a pod start at different cores
        pick_down = place[b] / shape.aggs;
      }
      const auto up = static_cast<std::uint32_t>(pick_up % shape.up());
      const std::uint32_t agg = by_destination ? up % shape.aggs : up / shape.parallel;
      const std::uint32_t lane = by_destination ? up / shape.aggs : up % shape.parallel;
      links.push_back(offset + up_base + 2 * (la * shape.up() + agg * shape.parallel + lane));
      if (pod(la) != pod(lb)) {
        const auto core = static_cast<std::uint32_t>(pick_core % shape.cores);
        links.push_back(offset + core_link(pod(la), agg, core));
        links.push_back(offset + core_link(pod(lb), agg, core) + 1);
      }
      const auto down = static_cast<std::uint32_t>(pick_down % shape.parallel);
      links.push_back(offset + up_base + 2 * (lb * shape.up() + agg * shape.parallel + down) + 1);
    }
    links.push_back(offset + port_base + 2 * b + 1);
  }

 private:
  std::uint32_t pod(std::uint32_t l) const { return l / shape.leaves_per_pod; }
  std::uint32_t core_link(std::uint32_t p, std::uint32_t agg, std::uint32_t core) const {
    return core_base + 2 * ((p * shape.aggs + agg) * shape.cores + core);
  }
};

std::uint32_t divide_up(std::uint32_t a, double b) {
  return static_cast<std::uint32_t>(std::ceil(a / b - 1e-9));
}
std::uint32_t divide_up(std::uint32_t a, std::uint32_t b) {
  return (a + b - 1) / b;
}
std::uint32_t small(const FabricSpec& spec, const char* key, std::uint32_t fallback) {
  return static_cast<std::uint32_t>(spec.count(key, fallback));
}
constexpr std::uint32_t kHostsPerLeaf = 32;  ///< half of a 64-port switch

/// Sizes from what is given; what is not follows from the number of ports.
TreeShape shape_of(const FabricSpec& spec, std::uint32_t ports, std::uint32_t leaves) {
  TreeShape s;
  const std::uint32_t radix = small(spec, "radix", 2 * kHostsPerLeaf);
  s.hosts = small(spec, "hosts_per_leaf", std::min(std::max(ports, 1U), radix / 2));
  s.leaves = leaves > 0 ? leaves : small(spec, "leaves", std::max(1U, divide_up(ports, s.hosts)));
  s.parallel = small(spec, "parallel", 1);
  const double over = spec.number("oversubscription", 1.0);
  const char* aggs = spec.kind == "fat-tree" ? "aggs_per_pod" : "spines";
  s.aggs = small(spec, aggs, std::max(1U, divide_up(s.hosts, over * s.parallel)));
  s.leaves_per_pod = s.leaves;
  if (spec.kind == "fat-tree") {
    s.leaves_per_pod = small(spec, "leaves_per_pod", radix / 2);
    s.pods = small(spec, "pods", std::max(1U, divide_up(s.leaves, s.leaves_per_pod)));
    s.leaves = s.pods * s.leaves_per_pod;
    const double core_over = spec.number("core_oversubscription", 1.0);
    s.cores = small(spec, "cores_per_agg",
                    std::max(1U, divide_up(s.leaves_per_pod * s.parallel, core_over)));
  }
  return s;
}

void check_shape(const FabricSpec& spec, FabricContext& context, const TreeShape& s) {
  constexpr double kMostCables = 4e6;
  const auto places = static_cast<std::uint64_t>(s.hosts) * s.leaves;
  if (spec.kind != "rail-optimized" && places < context.size()) {
    context.problem(spec, "hosts_per_leaf",
                    fmt::format("{} leaves of {} have {} places for {} ports", s.leaves, s.hosts,
                                places, context.size()),
                    "more leaves or more hosts_per_leaf; leave one out and it is worked out");
  }
  if (static_cast<double>(s.leaves) * s.up() > kMostCables) {
    context.problem(spec, "", "more than four million cables", "a smaller structure");
  }
}

/// Switches and cables above the leaves.
void build_upper(FabricContext& context, FatTreeRouter& r, const std::vector<std::uint32_t>& leaves,
                 const ResolvedLink& up, const ResolvedLink& core) {
  const TreeShape& s = r.shape;
  const bool three = s.cores > 0;
  std::vector<std::uint32_t> aggs;
  for (std::uint32_t i = 0; i < s.pods * s.aggs; ++i) {
    aggs.push_back(context.add_vertex(
        three ? fmt::format("agg{}.{}", i / s.aggs, i % s.aggs) : fmt::format("spine{}", i),
        VertexKind::kSwitch));
  }
  r.up_base = static_cast<std::uint32_t>(context.topology.links.size());
  for (std::uint32_t l = 0; l < s.leaves; ++l) {
    for (std::uint32_t u = 0; u < s.up(); ++u) {
      context.add_cable(leaves[l], aggs[l / s.leaves_per_pod * s.aggs + u / s.parallel], up);
    }
  }
  if (!three) return;
  std::vector<std::uint32_t> cores;
  for (std::uint32_t i = 0; i < s.aggs * s.cores; ++i) {
    cores.push_back(context.add_vertex(fmt::format("core{}", i), VertexKind::kSwitch));
  }
  r.core_base = static_cast<std::uint32_t>(context.topology.links.size());
  for (std::uint32_t a = 0; a < aggs.size(); ++a) {
    for (std::uint32_t k = 0; k < s.cores; ++k) {
      context.add_cable(aggs[a], cores[a % s.aggs * s.cores + k], core);
    }
  }
}

/// Which leaf each port is on: in order, or by rail.
void place_ports(const FabricSpec& spec, FabricContext& context, FatTreeRouter& r,
                 std::uint32_t rails, std::uint32_t nodes_per_unit) {
  std::vector<std::uint32_t> used(r.shape.leaves, 0);
  for (std::uint32_t p = 0; p < context.size(); ++p) {
    const std::uint32_t leaf =
        spec.kind == "rail-optimized"
            ? context.server[p] / nodes_per_unit * rails + context.rail[p] % rails
            : p / r.shape.hosts;
    r.leaf.push_back(leaf);
    r.place.push_back(used[leaf]++);
  }
}

std::unique_ptr<PortRouter> assemble(const FabricSpec& spec, FabricContext& context,
                                     const TreeShape& shape, std::uint32_t rails,
                                     std::uint32_t nodes_per_unit) {
  const ResolvedLink port = context.link(spec, "link");
  const double hop = spec.number("hop_latency", kSwitchHop);
  const auto inner = [&](const char* key, const char* other) {
    const char* use = spec.links.contains(key) ? key : other;
    return context.link(spec, use).with_latency(Seconds(hop));
  };
  const ResolvedLink up = inner("uplink", "link");
  const ResolvedLink core = inner("core_link", spec.links.contains("uplink") ? "uplink" : "link");
  check_shape(spec, context, shape);
  if (!context.problems.empty()) return nullptr;
  auto router = std::make_unique<FatTreeRouter>();
  router->shape = shape;
  router->port_latency = 0.5 * port.latency.value();
  router->hop_latency = hop;
  router->by_destination = spec.word("routing", "ecmp") == "d-mod-k";
  std::vector<std::uint32_t> leaves;
  for (std::uint32_t l = 0; l < shape.leaves; ++l) {
    leaves.push_back(context.add_vertex(
        rails > 0 ? fmt::format("leaf{}.rail{}", l / rails, l % rails) : fmt::format("leaf{}", l),
        VertexKind::kSwitch));
  }
  place_ports(spec, context, *router, rails, nodes_per_unit);
  router->port_base = static_cast<std::uint32_t>(context.topology.links.size());
  const ResolvedLink half = port.with_latency(0.5 * port.latency);
  for (std::uint32_t p = 0; p < context.size(); ++p) {
    context.add_port_cable(p, leaves[router->leaf[p]], half);
  }
  if (shape.aggs > 0) build_upper(context, *router, leaves, up, core);
  return router;
}

std::unique_ptr<PortRouter> build_fat_tree(const FabricSpec& spec, FabricContext& context) {
  return assemble(spec, context, shape_of(spec, context.size(), 0), 0, 1);
}

std::unique_ptr<PortRouter> build_rail(const FabricSpec& spec, FabricContext& context) {
  std::uint32_t rails = 1, servers = 0;
  for (std::uint32_t p = 0; p < context.size(); ++p) {
    rails = std::max(rails, context.rail[p] + 1);
    servers = std::max(servers, context.server[p] + 1);
  }
  rails = small(spec, "rails", rails);
  const std::uint32_t per_unit = small(spec, "nodes_per_unit", kHostsPerLeaf);
  const std::uint32_t units = std::max(1U, divide_up(servers, per_unit));
  TreeShape s = shape_of(spec, per_unit, units * rails);
  s.hosts = per_unit;
  if (spec.word("spine", "yes") == "no") s.aggs = 0;
  return assemble(spec, context, s, rails, per_unit);
}

std::vector<FabricParam> tree_params(std::vector<FabricParam> first) {
  using Type = FabricParam::Type;
  first.push_back(link_param("link", "required", "cable of a port; half its latency at each end"));
  first.push_back(link_param("uplink", "the same", "cable between switches"));
  first.push_back({"oversubscription",
                   Type::kNumber,
                   "1",
                   "ports over uplinks of a leaf, in cables of equal speed",
                   0.01,
                   1000.0,
                   {}});
  first.push_back(count_param("parallel", "1", "cables from a leaf to each switch above"));
  first.push_back(time_param("hop_latency", "0.2 us", "of a cable between switches"));
  first.push_back({"routing",
                   Type::kWord,
                   "ecmp",
                   "way up by flow hash, or by destination (d-mod-k)",
                   0,
                   0,
                   {"ecmp", "d-mod-k"}});
  return first;
}

std::int64_t leaf_spine_ports(const FabricSpec& spec) {
  if (spec.has("ports")) return spec.count("ports", 0);
  return spec.count("hosts_per_leaf", 0) * spec.count("leaves", 0);
}
std::int64_t fat_tree_ports(const FabricSpec& spec) {
  if (spec.has("ports")) return spec.count("ports", 0);
  const std::int64_t half = spec.count("radix", 2 * kHostsPerLeaf) / 2;
  return spec.count("hosts_per_leaf", half) * spec.count("leaves_per_pod", half) *
         spec.count("pods", spec.has("radix") ? 2 * half : 0);
}
}  // namespace

FabricKindInfo leaf_spine_kind() {
  return {"leaf-spine",
          "two levels of switches: each leaf is joined to every spine",
          FabricPorts::kNics,
          tree_params({count_param("ports", "as many as there are", "things on it"),
                       count_param("hosts_per_leaf", "up to 32", "ports of a leaf"),
                       count_param("leaves", "as many as needed", "leaf switches"),
                       count_param("spines", "hosts_per_leaf / oversubscription / parallel",
                                   "spine switches")}),
          leaf_spine_ports,
          build_fat_tree};
}

FabricKindInfo fat_tree_kind() {
  return {"fat-tree",
          "three levels of switches: leaves and aggregation switches in pods, cores above",
          FabricPorts::kNics,
          tree_params({count_param("ports", "as many as there are", "things on it"),
                       count_param("radix", "64", "ports of a switch; half of them down", 2, 4096),
                       count_param("hosts_per_leaf", "radix / 2", "ports of a leaf"),
                       count_param("leaves_per_pod", "radix / 2", "leaves of a pod"),
                       count_param("pods", "as many as needed", "pods"),
                       count_param("aggs_per_pod", "hosts_per_leaf / oversubscription / parallel",
                                   "aggregation switches of a pod"),
                       count_param("cores_per_agg", "leaves_per_pod / core_oversubscription",
                                   "cores of an aggregation switch"),
                       {"core_oversubscription",
                        FabricParam::Type::kNumber,
                        "1",
                        "down over up of an aggregation switch",
                        0.01,
                        1000.0,
                        {}},
                       link_param("core_link", "as uplink", "cable to the cores")}),
          fat_tree_ports,
          build_fat_tree};
}

FabricKindInfo rail_kind() {
  return {"rail-optimized",
          "NIC i of every server of a unit on leaf i; spines join rails and units",
          FabricPorts::kNics,
          tree_params({count_param("rails", "NICs of a server", "leaves of a unit"),
                       count_param("nodes_per_unit", "32", "servers of a unit"),
                       count_param("nodes", "as many as there are", "servers, when shown alone"),
                       count_param("spines", "nodes_per_unit / oversubscription / parallel",
                                   "spine switches"),
                       {"spine",
                        FabricParam::Type::kWord,
                        "yes",
                        "no: rails are not joined (rail-only)",
                        0,
                        0,
                        {"yes", "no"}}}),
          [](const FabricSpec& spec) { return spec.count("nodes", 0) * spec.count("rails", 0); },
          build_rail};
}

}  // namespace medley
