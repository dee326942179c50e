#pragma once

// From a node type to the structures inside it; private to hwmodels/topology.

#include <optional>

#include "hwmodels/topology/cluster.h"
#include "hwmodels/topology/host_side.h"

namespace medley {

/// One group with what its catalogue entries say.
struct NodePlan {
  const ClusterGroup* group = nullptr;
  const NodeSpec* type = nullptr;
  const DeviceSpec* device = nullptr;
  const DeviceSpec* cpu = nullptr;
  bool devices_are_sockets = false;     ///< CPUs as devices
  HostShape host;                       ///< sockets, PCIe, NICs, drives
  std::optional<FabricSpec> fabric;     ///< between the devices
  std::uint32_t domain = 0;             ///< devices it joins
  std::optional<BytesPerSec> nic_rate;  ///< raw, of one NIC
};

/// Works out a group's plan. What had to be assumed for want of a number goes to `notes`; unknown
/// links and rates to `problems`.
NodePlan plan_node(const Catalog& catalog, const ClusterGroup& group,
                   const ClusterFabricSpec& fabric, bool several, std::vector<std::string>& notes,
                   Problems& problems);

/// Sizes of a torus of `devices` in `dims` dimensions, as equal as they can be, largest first.
std::vector<std::int64_t> even_dims(std::int64_t devices, int dims);

}  // namespace medley
