#include <fmt/format.h>

#include "hwmodels/topology/graph_router.h"
#include "hwmodels/topology/host_side.h"
#include "hwmodels/topology/kinds.h"

namespace medley {

namespace {
/// Everything that was added after `first` becomes a port too, so that routes to sockets and DRAM
/// need no search.
std::unique_ptr<PortRouter> route_all(FabricContext& context, std::size_t first,
                                      std::uint32_t first_link) {
  std::vector<std::uint32_t> members = context.ports;
  for (auto v = static_cast<std::uint32_t>(first); v < context.topology.vertices.size(); ++v) {
    members.push_back(v);
    context.extras.push_back(v);
  }
  context.topology.finish();
  return GraphRouter::make(context.topology, members, first_link);
}

std::uint32_t host_count(const FabricSpec& spec, const char* key, std::uint32_t fallback) {
  return static_cast<std::uint32_t>(spec.count(key, fallback));
}

HostShape common_shape(const FabricSpec& spec, FabricContext& context) {
  HostShape shape;
  shape.sockets = host_count(spec, "sockets", spec.kind == "numa" ? 2 : 1);
  if (shape.sockets > 1) {
    shape.socket_link = context.link(spec, "socket_link")
                            .with_latency(Seconds(spec.number("socket_latency", kSocketHop)));
  }
  shape.socket_ring = spec.word("joined", "mesh") == "ring";
  if (spec.links.contains("memory")) {
    ResolvedLink memory = context.link(spec, "memory");
    memory.half_duplex = true;
    shape.memory = memory;
  }
  return shape;
}

std::unique_ptr<PortRouter> build_pcie_tree(const FabricSpec& spec, FabricContext& context) {
  HostShape shape = common_shape(spec, context);
  shape.devices_per_switch = host_count(spec, "devices_per_switch", 0);
  shape.device_link = context.link(spec, "link");
  shape.root_link =
      spec.links.contains("root_link") ? context.link(spec, "root_link") : shape.device_link;
  if (!context.problems.empty()) return nullptr;
  const std::size_t first = context.topology.vertices.size();
  const auto first_link = static_cast<std::uint32_t>(context.topology.links.size());
  build_host_side(shape, context);
  return route_all(context, first, first_link);
}

std::unique_ptr<PortRouter> build_numa(const FabricSpec& spec, FabricContext& context) {
  const HostShape shape = common_shape(spec, context);
  if (!context.problems.empty()) return nullptr;
  const std::size_t first = context.topology.vertices.size();
  const auto first_link = static_cast<std::uint32_t>(context.topology.links.size());
  build_host_side(shape, context);
  return route_all(context, first, first_link);
}

std::unique_ptr<PortRouter> build_cxl_pool(const FabricSpec& spec, FabricContext& context) {
  const ResolvedLink host = context.link(spec, "link");
  const ResolvedLink module =
      spec.links.contains("module_link") ? context.link(spec, "module_link") : host;
  const std::uint32_t modules = host_count(spec, "modules", 1);
  const bool through = spec.word("switch", "yes") == "yes";
  if (!context.problems.empty()) return nullptr;
  const std::size_t first = context.topology.vertices.size();
  const auto first_link = static_cast<std::uint32_t>(context.topology.links.size());
  std::vector<std::uint32_t> memory;
  for (std::uint32_t m = 0; m < modules; ++m) {
    memory.push_back(context.add_vertex(fmt::format("pool{}", m), VertexKind::kMemory));
    context.topology.vertices.back().index = m;
  }
  if (through) {
    const std::uint32_t hub = context.add_vertex("cxl-switch", VertexKind::kSwitch);
    for (std::uint32_t p = 0; p < context.size(); ++p) {
      context.add_cable(context.ports[p], hub, host.with_latency(0.5 * host.latency));
    }
    for (const std::uint32_t m : memory) {
      context.add_cable(hub, m, module.with_latency(0.5 * module.latency));
    }
  } else {
    for (std::uint32_t p = 0; p < context.size(); ++p) {
      for (const std::uint32_t m : memory) context.add_cable(context.ports[p], m, host);
    }
  }
  return route_all(context, first, first_link);
}

std::vector<FabricParam> host_params(std::vector<FabricParam> first) {
  using Type = FabricParam::Type;
  first.push_back(
      link_param("socket_link", "required with several sockets", "all cables between two sockets"));
  first.push_back(time_param("socket_latency", "0.1 us", "from socket to socket"));
  first.push_back({"joined",
                   Type::kWord,
                   "mesh",
                   "sockets: each with each, or in a ring",
                   0,
                   0,
                   {"mesh", "ring"}});
  first.push_back(link_param("memory", "none", "DRAM of a socket, half duplex"));
  return first;
}
}  // namespace

FabricKindInfo pcie_tree_kind() {
  return {
      "pcie-tree",
      "devices on root ports of their own or behind PCIe switches, under one or more sockets",
      FabricPorts::kInside,
      host_params({count_param("devices", "those of the server", "devices"),
                   count_param("sockets", "1", "host bridges"),
                   count_param("devices_per_switch", "0", "that share a root port; 0: none do", 0),
                   link_param("link", "required", "cable of a device"),
                   link_param("root_link", "as link", "from a switch to its root port")}),
      [](const FabricSpec& spec) { return spec.count("devices", 0); },
      build_pcie_tree};
}

FabricKindInfo numa_kind() {
  return {"numa",
          "sockets with their DRAM, joined by links of their own",
          FabricPorts::kInside,
          host_params({count_param("sockets", "2", "sockets")}),
          [](const FabricSpec&) { return std::int64_t{-1}; },
          build_numa};
}

FabricKindInfo cxl_pool_kind() {
  return {"cxl-pool",
          "memory modules that several servers reach over CXL",
          FabricPorts::kHosts,
          {count_param("ports", "sockets of the servers", "sockets on it"),
           count_param("modules", "1", "memory modules"),
           link_param("link", "required", "cable of a socket"),
           link_param("module_link", "as link", "cable of a module"),
           {"switch",
            FabricParam::Type::kWord,
            "yes",
            "no: every socket has a cable to every module",
            0,
            0,
            {"yes", "no"}}},
          [](const FabricSpec& spec) { return spec.count("ports", 0); },
          build_cxl_pool};
}

}  // namespace medley
