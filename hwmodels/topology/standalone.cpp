#include <fmt/format.h>

#include "hwmodels/catalog.h"
#include "hwmodels/topology/builder.h"
#include "sim/core/error.h"

namespace medley {

namespace {
/// A structure's ports, by vertex.
class AloneRouter : public TopologyRouter {
 public:
  AloneRouter(const FabricContext& context, std::unique_ptr<PortRouter> ports)
      : ports_(std::move(ports)), number_(context.topology.vertices.size(), TopologyVertex::kNone) {
    std::uint32_t next = 0;
    for (const std::uint32_t v : context.ports) number_[v] = next++;
    for (const std::uint32_t v : context.extras) number_[v] = next++;
  }
  bool append(const Topology&, std::uint32_t from, std::uint32_t to, std::uint64_t hash,
              std::vector<std::uint32_t>& links) const override {
    const std::uint32_t a = number_[from], b = number_[to];
    if (a == TopologyVertex::kNone || b == TopologyVertex::kNone) return false;
    if (ports_->cost(a, b) == kNoRoute) return false;
    ports_->append(a, b, hash, 0, links);
    return true;
  }

 private:
  std::unique_ptr<PortRouter> ports_;
  std::vector<std::uint32_t> number_;
};

void add_ports(const FabricSpec& spec, const FabricKindInfo& kind, FabricContext& context,
               std::int64_t count) {
  const bool devices = kind.ports == FabricPorts::kDevices || kind.ports == FabricPorts::kInside;
  const std::int64_t rails = spec.kind == "rail-optimized" ? spec.count("rails", 1) : 1;
  for (std::int64_t p = 0; p < count; ++p) {
    const std::int64_t server = p / rails, rail = p % rails;
    const std::string name = devices     ? fmt::format("device{}", p)
                             : rails > 1 ? fmt::format("host{}.nic{}", server, rail)
                                         : fmt::format("host{}", p);
    const std::uint32_t v = context.add_vertex(name, devices     ? VertexKind::kDevice
                                                     : rails > 1 ? VertexKind::kNic
                                                                 : VertexKind::kHost);
    context.topology.vertices[v].index = static_cast<std::uint32_t>(p);
    context.topology.vertices[v].forwards = !devices;
    context.ports.push_back(v);
    context.rail.push_back(static_cast<std::uint32_t>(rail));
    context.server.push_back(static_cast<std::uint32_t>(server));
  }
}

/// Who talks in a structure: its ports, else its devices, hosts or whatever it has.
std::vector<std::uint32_t> endpoints_of(const Topology& t, const FabricContext& context) {
  if (!context.ports.empty()) return context.ports;
  for (const VertexKind kind : {VertexKind::kDevice, VertexKind::kHost, VertexKind::kNic}) {
    std::vector<std::uint32_t> found;
    for (std::uint32_t v = 0; v < t.vertices.size(); ++v) {
      if (t.vertices[v].kind == kind) found.push_back(v);
    }
    if (!found.empty()) return found;
  }
  return context.extras;
}

LinkPlane plane_of(FabricPorts ports) {
  switch (ports) {
    case FabricPorts::kDevices:
      return LinkPlane::kFabric;
    case FabricPorts::kHosts:
      return LinkPlane::kPool;
    case FabricPorts::kInside:
      return LinkPlane::kHost;
    default:
      return LinkPlane::kNetwork;
  }
}
}  // namespace

Topology build_topology(const Catalog& catalog, const FabricSpec& spec) {
  Topology topology;
  Problems problems;
  FabricContext context{catalog, topology, problems};
  const FabricKindInfo* kind = find_fabric_kind(spec.kind);
  MEDLEY_CHECK(kind != nullptr, "a structure of no kind was read");
  context.plane = plane_of(kind->ports);
  const std::int64_t ports = kind->own_ports(spec);
  constexpr std::int64_t kMostPorts = 1000000;
  if (ports == 0 || ports > kMostPorts) {
    context.problem(spec, "",
                    ports == 0 ? "alone it does not say how many ports it has"
                               : fmt::format("{} ports are too many", ports),
                    "give \"ports\", or every size of it");
    problems.throw_if_any();
  }
  add_ports(spec, *kind, context, ports);
  std::unique_ptr<PortRouter> router = kind->build(spec, context);
  problems.throw_if_any();
  topology.endpoints = endpoints_of(topology, context);
  topology.finish();
  if (router) topology.router = std::make_shared<AloneRouter>(context, std::move(router));
  return topology;
}

}  // namespace medley
