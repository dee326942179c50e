#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "hwmodels/topology/graph_router.h"
#include "hwmodels/topology/kinds.h"
#include "sim/core/error.h"

namespace medley {

namespace {
/// Sites with a structure each; what leaves one goes to its gateway, over the WAN's shortest path
/// between gateways, and from the other gateway to its port.
class WanRouter : public PortRouter {
 public:
  struct Site {
    std::unique_ptr<PortRouter> inside;
    std::uint32_t gateway = 0;  ///< its port number inside
  };
  std::vector<Site> sites;
  std::vector<std::uint32_t> site_of, local;  ///< of each port
  std::unique_ptr<PortRouter> between;        ///< gateways, by site

  RouteCost cost(std::uint32_t a, std::uint32_t b) const override {
    const std::uint32_t sa = site_of[a], sb = site_of[b];
    if (sa == sb) return sites[sa].inside->cost(local[a], local[b]);
    const RouteCost out = sites[sa].inside->cost(local[a], sites[sa].gateway);
    const RouteCost middle = between->cost(sa, sb);
    const RouteCost in = sites[sb].inside->cost(sites[sb].gateway, local[b]);
    const bool any = out != kNoRoute && middle != kNoRoute && in != kNoRoute;
    return any ? out + middle + in : kNoRoute;
  }
  void append(std::uint32_t a, std::uint32_t b, std::uint64_t hash, std::uint32_t offset,
              std::vector<std::uint32_t>& links) const override {
    const std::uint32_t sa = site_of[a], sb = site_of[b];
    if (sa == sb) return sites[sa].inside->append(local[a], local[b], hash, offset, links);
    sites[sa].inside->append(local[a], sites[sa].gateway, hash, offset, links);
    between->append(sa, sb, mix_hash(hash), offset, links);
    sites[sb].inside->append(sites[sb].gateway, local[b], mix_hash(hash + 1), offset, links);
  }
};

/// The ports of one site, its gateway as the last.
FabricContext site_context(const FabricContext& all, const std::string& name, std::uint32_t first,
                           std::uint32_t last, const ResolvedLink& gateway) {
  FabricContext site{all.catalog, all.topology, all.problems};
  site.plane = all.plane;
  site.default_link = all.default_link;
  site.prefix = all.prefix + name + "/";
  for (std::uint32_t p = 0; p < all.size(); ++p) {
    if (all.server[p] < first || all.server[p] >= last) continue;
    site.ports.push_back(all.ports[p]);
    site.rail.push_back(all.rail[p]);
    site.server.push_back(all.server[p] - first);
    if (!all.limits.empty()) site.limits.push_back(all.limits[p]);
  }
  site.wide_from = site.size();
  site.wide_link = gateway;
  site.ports.push_back(site.add_vertex("gateway", VertexKind::kSite));
  site.rail.push_back(0);
  site.server.push_back(site.server.empty() ? 0 : site.server.back());
  if (!site.limits.empty()) site.limits.push_back(BytesPerSec(1e30));
  return site;
}

FabricSpec default_site(const FabricSpec& spec) {
  FabricSpec out;
  out.kind = "switch";
  out.file = spec.file;
  out.pointer = spec.pointer;
  const auto it = spec.links.find("link");
  if (it != spec.links.end()) out.links["link"] = it->second;
  return out;
}

/// Can the site be joined that way?
bool check_site(const FabricSite& site, FabricContext& inside) {
  const FabricKindInfo* kind = site.fabric ? find_fabric_kind(site.fabric->kind) : nullptr;
  if (site.fabric && (kind == nullptr || kind->ports != FabricPorts::kNics || kind->name == "wan" ||
                      kind->name == "list")) {
    inside.problem(*site.fabric, "kind",
                   fmt::format("a site is not joined by \"{}\"", site.fabric->kind),
                   "use switch, leaf-spine, fat-tree, rail-optimized or dragonfly");
    return false;
  }
  return true;
}

std::unique_ptr<PortRouter> build_wan(const FabricSpec& spec, FabricContext& context) {
  std::int64_t nodes = 0;
  std::uint32_t servers = 0;
  for (const FabricSite& s : spec.sites) nodes += s.nodes;
  for (const std::uint32_t s : context.server) servers = std::max(servers, s + 1);
  if (nodes != servers) {
    context.problem(spec, "sites",
                    fmt::format("the sites have {} servers, the cluster {}", nodes, servers),
                    "give every server a site");
  }
  const ResolvedLink gateway =
      context.link(spec, spec.links.contains("gateway") ? "gateway" : "link");
  std::map<std::string, std::uint32_t> number;
  for (const FabricSite& s : spec.sites) {
    number.emplace(s.name, static_cast<std::uint32_t>(number.size()));
  }
  std::vector<std::string> names;
  for (const auto& [name, i] : number) names.push_back(name);
  for (const FabricCable& c : spec.cables) {
    for (const std::string& end : {c.from, c.to}) {
      if (number.contains(end)) continue;
      context.problems.add(spec.file, c.pointer, fmt::format("there is no site \"{}\"", end),
                           suggest(end, names));
    }
  }
  if (!context.problems.empty()) return nullptr;
  auto router = std::make_unique<WanRouter>();
  router->site_of.resize(context.size());
  router->local.resize(context.size());
  std::vector<std::uint32_t> gateways;
  std::uint32_t first = 0;
  for (const FabricSite& s : spec.sites) {
    const auto last = first + static_cast<std::uint32_t>(s.nodes);
    FabricContext inside = site_context(context, s.name, first, last, gateway);
    std::uint32_t next = 0;
    for (std::uint32_t p = 0; p < context.size(); ++p) {
      if (context.server[p] < first || context.server[p] >= last) continue;
      router->site_of[p] = static_cast<std::uint32_t>(gateways.size());
      router->local[p] = next++;
    }
    if (!check_site(s, inside)) return nullptr;
    const FabricSpec plain = default_site(spec);
    const FabricSpec& use = s.fabric ? *s.fabric : plain;
    gateways.push_back(inside.ports.back());
    const std::uint32_t gateway_port = inside.size() - 1;
    std::unique_ptr<PortRouter> built = find_fabric_kind(use.kind)->build(use, inside);
    if (!built) return nullptr;
    router->sites.push_back({std::move(built), gateway_port});
    first = last;
  }
  const auto wan_links = static_cast<std::uint32_t>(context.topology.links.size());
  for (const FabricCable& c : spec.cables) {
    context.add_cable(gateways[number[c.from]], gateways[number[c.to]],
                      context.resolve(c.link, spec.file));
  }
  if (!context.problems.empty()) return nullptr;
  context.topology.finish();
  router->between = GraphRouter::make(context.topology, gateways, wan_links);
  return router;
}
}  // namespace

FabricKindInfo wan_kind() {
  return {"wan",
          "sites, each with a structure of its own, joined by long links: {\"sites\": {name: "
          "{\"nodes\", \"fabric\"}}, \"links\": [{\"from\", \"to\", \"bandwidth\", \"latency\"}]}",
          FabricPorts::kNics,
          {link_param("link", "required where a site has no fabric", "cable of a server"),
           link_param("gateway", "as link", "cable of a site's gateway to its fabric")},
          [](const FabricSpec& spec) {
            std::int64_t nodes = 0;
            for (const FabricSite& s : spec.sites) nodes += s.nodes;
            return nodes;
          },
          build_wan};
}

}  // namespace medley
