#include <fmt/format.h>

#include "hwmodels/topology/builder.h"
#include "hwmodels/topology/kinds.h"

namespace medley {

namespace {
/// Every port on one non-blocking switch: only the ports' own wires can be busy. Each end's wire
/// has half of the link's latency, so that the link's figure holds end to end.
class SwitchRouter : public PortRouter {
 public:
  SwitchRouter(std::uint32_t base, double latency) : base_(base), latency_(latency) {}
  RouteCost cost(std::uint32_t a, std::uint32_t b) const override {
    return a == b ? 0 : route_cost(2, latency_);
  }
  void append(std::uint32_t a, std::uint32_t b, std::uint64_t, std::uint32_t offset,
              std::vector<std::uint32_t>& links) const override {
    if (a == b) return;
    links.push_back(offset + base_ + 2 * a);
    links.push_back(offset + base_ + 2 * b + 1);
  }

 private:
  std::uint32_t base_;
  double latency_;
};

std::unique_ptr<PortRouter> build_switch(const FabricSpec& spec, FabricContext& context) {
  const ResolvedLink whole = context.link(spec, "link");
  if (!context.problems.empty()) return nullptr;
  const ResolvedLink half = whole.with_latency(0.5 * whole.latency);
  const std::uint32_t hub =
      context.add_vertex(spec.kind == "nvswitch" ? "nvswitch" : "switch", VertexKind::kSwitch);
  const auto base = static_cast<std::uint32_t>(context.topology.links.size());
  for (std::uint32_t p = 0; p < context.size(); ++p) context.add_port_cable(p, hub, half);
  return std::make_unique<SwitchRouter>(base, whole.latency.value());
}

std::int64_t switch_ports(const FabricSpec& spec) {
  return spec.count("ports", 0);
}
}  // namespace

FabricKindInfo switch_kind() {
  return {"switch",
          "one non-blocking switch",
          FabricPorts::kNics,
          {count_param("ports", "as many as there are", "things on it"),
           link_param("link", "required", "cable of a port; half its latency at each end")},
          switch_ports,
          build_switch};
}

FabricKindInfo nvswitch_kind() {
  return {"nvswitch",
          "devices behind a non-blocking switch of their own (NVSwitch, NVL72): each device's port "
          "is one wire of all its links",
          FabricPorts::kDevices,
          {count_param("ports", "all devices of a server", "devices of a domain"),
           link_param("link", "required", "all links of one device together")},
          switch_ports,
          build_switch};
}

}  // namespace medley
