#pragma once

// The inside of a server apart from its device fabric; private to hwmodels/topology.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hwmodels/topology/builder.h"

namespace medley {

/// A PCIe tree under one or more sockets. Devices and NICs spread evenly over the sockets, in
/// order. Device to socket takes the device link's latency, half of it on each side of a switch.
struct HostShape {
  std::uint32_t sockets = 1;
  bool socket_ring = false;  ///< else every two sockets are joined
  ResolvedLink socket_link;
  std::optional<ResolvedLink> memory;    ///< DRAM of a socket; half duplex
  std::uint32_t devices_per_switch = 0;  ///< 0: each on a root port of its own
  ResolvedLink device_link;
  ResolvedLink root_link;  ///< switch to root port: what its devices share
  std::uint32_t nics = 0;
  ResolvedLink nic_link;
  bool nics_with_devices = false;  ///< NIC i under the switch (or on the socket) of device i
  std::uint32_t storage = 0;       ///< vertices; each on `storage_link`
  ResolvedLink storage_link;
};

struct HostSide {
  std::vector<std::uint32_t> sockets, memory, switches, nics, storage;
};

/// Adds sockets, DRAM, switches, NICs and drives to `context` (its ports are the devices, its plane
/// kHost) and the cables among them.
HostSide build_host_side(const HostShape& shape, FabricContext& context);

/// One hop between sockets: remote less local DRAM latency of two-socket servers, 60-130 ns
/// (assumed).
inline constexpr double kSocketHop = 0.1e-6;
/// Access to DRAM (assumed).
inline constexpr double kDramLatency = 0.1e-6;

}  // namespace medley
