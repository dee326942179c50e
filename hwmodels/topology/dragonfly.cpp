#include <fmt/format.h>

#include <algorithm>

#include "hwmodels/topology/builder.h"
#include "hwmodels/topology/kinds.h"

namespace medley {

namespace {
/// Groups of routers, a cable between every two routers of a group, and the groups' global cables
/// shared out evenly: the global cable c of a group (router c / globals) goes to its c-th other
/// group, round and round. Minimal: local, global, local; at most one global cable. Among several
/// global cables to a group those with the shortest way, by hash.
class DragonflyRouter : public PortRouter {
 public:
  std::uint32_t hosts = 1, routers = 1, globals = 1, groups = 1, per_pair = 1;
  std::uint32_t port_base = 0, local_base = 0;
  double port_latency = 0.0, local_latency = 0.0, global_latency = 0.0;
  std::vector<std::uint32_t> global_link;  ///< out of each group's cable, [group][cable]

  RouteCost cost(std::uint32_t a, std::uint32_t b) const override {
    if (a == b) return 0;
    const std::uint32_t ra = a / hosts, rb = b / hosts;
    if (ra == rb) return route_cost(2, 2 * port_latency);
    const std::uint32_t ga = ra / routers, gb = rb / routers;
    if (ga == gb) return route_cost(3, 2 * port_latency + local_latency);
    if (per_pair == 0) return kNoRoute;
    const std::uint32_t locals = fewest(ra, rb);
    return route_cost(3 + locals, 2 * port_latency + global_latency + locals * local_latency);
  }

  void append(std::uint32_t a, std::uint32_t b, std::uint64_t hash, std::uint32_t offset,
              std::vector<std::uint32_t>& links) const override {
    if (a == b) return;
    const std::uint32_t ra = a / hosts, rb = b / hosts, ga = ra / routers, gb = rb / routers;
    links.push_back(offset + port_base + 2 * a);
    if (ga == gb) {
      local(ra, rb, offset, links);
    } else {
      const std::uint32_t least = fewest(ra, rb);
      std::uint32_t equals = 0;
      for (std::uint32_t k = 0; k < per_pair; ++k) equals += locals(ra, rb, k) == least;
      auto pick = static_cast<std::uint32_t>(hash % equals);
      for (std::uint32_t k = 0; k < per_pair; ++k) {
        if (locals(ra, rb, k) != least || pick-- > 0) continue;
        local(ra, exit(ga, gb, k), offset, links);
        links.push_back(offset + global_link[ga * routers * globals + channel(ga, gb, k)]);
        local(exit(gb, ga, k), rb, offset, links);
        break;
      }
    }
    links.push_back(offset + port_base + 2 * b + 1);
  }

  /// The k-th of a group's global cables to another group, and the router that has it.
  std::uint32_t channel(std::uint32_t from, std::uint32_t to, std::uint32_t k) const {
    return (to < from ? to : to - 1) + k * (groups - 1);
  }
  std::uint32_t exit(std::uint32_t from, std::uint32_t to, std::uint32_t k) const {
    return from * routers + channel(from, to, k) / globals;
  }
  std::uint32_t local_pairs() const { return routers * (routers - 1) / 2; }

 private:
  std::uint32_t locals(std::uint32_t ra, std::uint32_t rb, std::uint32_t k) const {
    const std::uint32_t ga = ra / routers, gb = rb / routers;
    return (exit(ga, gb, k) != ra ? 1U : 0U) + (exit(gb, ga, k) != rb ? 1U : 0U);
  }
  std::uint32_t fewest(std::uint32_t ra, std::uint32_t rb) const {
    std::uint32_t best = 2;
    for (std::uint32_t k = 0; k < per_pair && best > 0; ++k) {
      best = std::min(best, locals(ra, rb, k));
    }
    return best;
  }
  void local(std::uint32_t r, std::uint32_t s, std::uint32_t offset,
             std::vector<std::uint32_t>& links) const {
    if (r == s) return;
    const std::uint32_t x = r % routers, y = s % routers, i = std::min(x, y), j = std::max(x, y);
    const std::uint32_t pair = i * routers - i * (i + 1) / 2 + (j - i - 1);
    links.push_back(offset + local_base + 2 * (r / routers * local_pairs() + pair) +
                    (x > y ? 1 : 0));
  }
};

void check_dragonfly(const FabricSpec& spec, FabricContext& context, const DragonflyRouter& r) {
  const std::uint64_t places = std::uint64_t{r.groups} * r.routers * r.hosts;
  if (places < context.size()) {
    context.problem(spec, "groups",
                    fmt::format("{} groups of {} routers of {} ports are {} places for {} ports",
                                r.groups, r.routers, r.hosts, places, context.size()),
                    "more groups; leave them out and they are worked out");
  }
  if (r.groups > r.routers * r.globals + 1) {
    context.problem(
        spec, "groups",
        fmt::format("{} global cables of a group cannot reach {} other groups",
                    r.routers * r.globals, r.groups - 1),
        fmt::format("at most routers x globals + 1 = {} groups", r.routers * r.globals + 1));
  }
}

void build_cables(FabricContext& context, DragonflyRouter& r, const ResolvedLink& local,
                  const ResolvedLink& global) {
  std::vector<std::uint32_t> vertices;
  for (std::uint32_t i = 0; i < r.groups * r.routers; ++i) {
    vertices.push_back(context.add_vertex(fmt::format("router{}.{}", i / r.routers, i % r.routers),
                                          VertexKind::kSwitch));
  }
  r.local_base = static_cast<std::uint32_t>(context.topology.links.size());
  for (std::uint32_t g = 0; g < r.groups; ++g) {
    for (std::uint32_t i = 0; i < r.routers; ++i) {
      for (std::uint32_t j = i + 1; j < r.routers; ++j) {
        context.add_cable(vertices[g * r.routers + i], vertices[g * r.routers + j], local);
      }
    }
  }
  const std::uint32_t channels = r.routers * r.globals;
  r.global_link.assign(std::size_t{r.groups} * channels, TopologyVertex::kNone);
  for (std::uint32_t g = 0; g < r.groups; ++g) {
    for (std::uint32_t h = g + 1; h < r.groups; ++h) {
      for (std::uint32_t k = 0; k < r.per_pair; ++k) {
        const std::uint32_t l =
            context.add_cable(vertices[r.exit(g, h, k)], vertices[r.exit(h, g, k)], global);
        r.global_link[g * channels + r.channel(g, h, k)] = l;
        r.global_link[h * channels + r.channel(h, g, k)] = l + 1;
      }
    }
  }
}

std::unique_ptr<PortRouter> build_dragonfly(const FabricSpec& spec, FabricContext& context) {
  auto r = std::make_unique<DragonflyRouter>();
  const auto small = [&](const char* key, std::uint32_t fallback) {
    return static_cast<std::uint32_t>(spec.count(key, fallback));
  };
  r->hosts = small("hosts_per_router", 4);
  r->routers = small("routers_per_group", 2 * r->hosts);
  r->globals = small("globals_per_router", r->hosts);
  const std::uint32_t per_group = r->hosts * r->routers;
  r->groups = small("groups", std::max(1U, (context.size() + per_group - 1) / per_group));
  r->per_pair = r->groups > 1 ? r->routers * r->globals / (r->groups - 1) : 0;
  if (spec.has("globals_per_pair")) {
    r->per_pair = std::min(r->per_pair, small("globals_per_pair", 1));
  }
  const ResolvedLink link = context.link(spec, "link");
  const auto inner = [&](const char* key, const char* time, double fallback) {
    return context.link(spec, spec.links.contains(key) ? key : "link")
        .with_latency(Seconds(spec.number(time, fallback)));
  };
  constexpr double kLongFibre = 0.5e-6;  // a switch and some 70 m of fibre
  const ResolvedLink local = inner("local_link", "local_latency", kSwitchHop);
  const ResolvedLink global = inner("global_link", "global_latency", kLongFibre);
  check_dragonfly(spec, context, *r);
  if (!context.problems.empty()) return nullptr;
  r->port_latency = 0.5 * link.latency.value();
  r->local_latency = local.latency.value();
  r->global_latency = global.latency.value();
  const auto first = static_cast<std::uint32_t>(context.topology.vertices.size());
  build_cables(context, *r, local, global);
  r->port_base = static_cast<std::uint32_t>(context.topology.links.size());
  for (std::uint32_t p = 0; p < context.size(); ++p) {
    context.add_port_cable(p, first + p / r->hosts, link.with_latency(0.5 * link.latency));
  }
  return r;
}
}  // namespace

FabricKindInfo dragonfly_kind() {
  return {"dragonfly",
          "groups of all-to-all routers, joined to every other group (canonical, minimal routes)",
          FabricPorts::kNics,
          {count_param("groups", "as many as needed", "groups"),
           count_param("routers_per_group", "2 x hosts_per_router", "routers of a group"),
           count_param("hosts_per_router", "4", "ports of a router"),
           count_param("globals_per_router", "as hosts_per_router", "global cables of a router"),
           count_param("globals_per_pair", "all there are", "global cables between two groups"),
           link_param("link", "required", "cable of a port; half its latency at each end"),
           link_param("local_link", "as link", "cable inside a group"),
           link_param("global_link", "as link", "cable between groups"),
           time_param("local_latency", "0.2 us", "of a cable inside a group"),
           time_param("global_latency", "0.5 us", "of a cable between groups")},
          [](const FabricSpec& spec) {
            return spec.count("groups", 0) * spec.count("routers_per_group", 0) *
                   spec.count("hosts_per_router", 0);
          },
          build_dragonfly};
}

}  // namespace medley
