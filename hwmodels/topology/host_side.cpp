#include "hwmodels/topology/host_side.h"

#include <fmt/format.h>

namespace medley {

namespace {
std::uint32_t spread(std::uint32_t i, std::uint32_t things, std::uint32_t over) {
  return static_cast<std::uint32_t>(std::uint64_t{i} * over / things);
}

void join_sockets(const HostShape& shape, FabricContext& context, const HostSide& side) {
  const std::uint32_t n = shape.sockets;
  for (std::uint32_t i = 0; i < n; ++i) {
    for (std::uint32_t j = i + 1; j < n; ++j) {
      const bool neighbours = j == i + 1 || (i == 0 && j == n - 1);
      if (shape.socket_ring && !neighbours) continue;
      context.add_cable(side.sockets[i], side.sockets[j], shape.socket_link);
    }
  }
}

void hang_devices(const HostShape& shape, FabricContext& context, HostSide& side) {
  const std::uint32_t n = context.size(), per = shape.devices_per_switch;
  const ResolvedLink half = shape.device_link.with_latency(0.5 * shape.device_link.latency);
  const std::uint32_t switches = per > 0 ? (n + per - 1) / per : 0;
  for (std::uint32_t s = 0; s < switches; ++s) {
    side.switches.push_back(context.add_vertex(fmt::format("pcie{}", s), VertexKind::kSwitch));
    context.topology.vertices.back().index = s;
    context.add_cable(side.switches[s], side.sockets[spread(s, switches, shape.sockets)],
                      shape.root_link.with_latency(half.latency));
  }
  for (std::uint32_t d = 0; d < n; ++d) {
    if (per > 0) {
      context.add_cable(context.ports[d], side.switches[d / per], half);
    } else {
      context.add_cable(context.ports[d], side.sockets[spread(d, n, shape.sockets)],
                        shape.device_link);
    }
  }
}

void hang_nics(const HostShape& shape, FabricContext& context, HostSide& side) {
  const ResolvedLink half = shape.nic_link.with_latency(0.5 * shape.nic_link.latency);
  for (std::uint32_t i = 0; i < shape.nics; ++i) {
    side.nics.push_back(context.add_vertex(fmt::format("nic{}", i), VertexKind::kNic));
    context.topology.vertices.back().index = i;
    if (shape.nics_with_devices && shape.devices_per_switch > 0) {
      context.add_cable(side.nics[i], side.switches[i / shape.devices_per_switch], half);
    } else {
      context.add_cable(side.nics[i], side.sockets[spread(i, shape.nics, shape.sockets)],
                        shape.nic_link);
    }
  }
}
}  // namespace

HostSide build_host_side(const HostShape& shape, FabricContext& context) {
  HostSide side;
  const auto add = [&](std::vector<std::uint32_t>& list, const char* name, std::uint32_t i,
                       VertexKind kind) {
    list.push_back(context.add_vertex(fmt::format("{}{}", name, i), kind));
    context.topology.vertices.back().index = i;
  };
  for (std::uint32_t s = 0; s < shape.sockets; ++s) {
    add(side.sockets, "socket", s, VertexKind::kHost);
  }
  if (shape.memory) {
    for (std::uint32_t s = 0; s < shape.sockets; ++s) {
      add(side.memory, "dram", s, VertexKind::kMemory);
      context.add_cable(side.sockets[s], side.memory[s], *shape.memory);
    }
  }
  join_sockets(shape, context, side);
  hang_devices(shape, context, side);
  hang_nics(shape, context, side);
  for (std::uint32_t i = 0; i < shape.storage; ++i) {
    add(side.storage, "nvme", i, VertexKind::kStorage);
    context.add_cable(side.storage[i], side.sockets[spread(i, shape.storage, shape.sockets)],
                      shape.storage_link);
  }
  return side;
}

}  // namespace medley
