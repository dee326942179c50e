#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hwmodels/device.h"
#include "hwmodels/node.h"
#include "hwmodels/topology/fabric.h"
#include "hwmodels/topology/topology.h"

namespace medley {

/// How the servers of a cluster are joined; all absent: see `build_cluster`.
struct ClusterFabricSpec {
  std::optional<FabricSpec> network;  ///< NICs: switch, leaf-spine, ..., wan, list
  std::optional<FabricSpec> devices;  ///< devices across servers: nvswitch, torus, mesh, ring
  std::optional<FabricSpec> pool;     ///< sockets to shared memory: cxl-pool
  std::optional<FabricSpec> host;     ///< inside of every server: pcie-tree, numa
  LinkUse storage;                    ///< the drives of a server
  int nics_per_node = 0;              ///< 0: worked out
  bool given() const {
    return network || devices || pool || host || storage.given() || nics_per_node > 0;
  }
};

/// `count` servers of one type. `device` and `cpu` null: looked up in the catalogue.
struct ClusterGroup {
  std::string name;
  const NodeSpec* type = nullptr;
  int count = 1;
  const DeviceSpec* device = nullptr;
  const DeviceSpec* cpu = nullptr;
};

/// The topology of a cluster with the places of its parts. Vertices of a server follow each other,
/// all servers of a group alike.
struct ClusterTopology {
  static constexpr std::uint32_t kNone = TopologyVertex::kNone;
  struct Group {
    std::string name;
    std::uint32_t first = 0;   ///< vertex of its first server
    std::uint32_t stride = 0;  ///< vertices of a server
    std::uint32_t nodes = 0;
    std::uint32_t devices = 0, sockets = 0, nics = 0, drives = 0;  ///< of a server
    std::uint32_t socket_at = 0, memory_at = 0, nic_at = 0, storage_at = 0;
    std::uint32_t domain = 0;  ///< devices that a fabric of theirs joins; 0: none
  };
  Topology topology;
  std::vector<Group> groups;
  std::vector<std::uint32_t> pool;  ///< memory modules

  std::uint32_t device(std::size_t group, std::uint32_t node, std::uint32_t index) const;
  std::uint32_t host(std::size_t group, std::uint32_t node, std::uint32_t socket = 0) const;
  /// DRAM of a socket.
  std::uint32_t memory(std::size_t group, std::uint32_t node, std::uint32_t socket = 0) const;
  std::uint32_t nic(std::size_t group, std::uint32_t node, std::uint32_t index = 0) const;
  /// The drives of a server, as one; kNone where it has none.
  std::uint32_t storage(std::size_t group, std::uint32_t node) const;
  /// The socket a device hangs on.
  std::uint32_t socket_of(std::size_t group, std::uint32_t index) const;
};

/// Builds servers and what joins them.
///
/// Inside a server (from its NodeSpec): the device fabric (switch: one wire per device and
/// direction of all its links; mesh, ring, torus: a wire per cable); each device on `host_link` to
/// a root port of its socket, devices spread evenly over the sockets; DRAM at the CPU's bandwidth x
/// its copy efficiency, half duplex; NICs that share `network`; drives. Assumed where nothing says
/// otherwise (class assumed; listed in the topology's notes where a number was missing):
///   NICs       one per device where that leaves each at least 100 Gbit/s, else one; a NIC per
///              device shares a PCIe switch with its device
///   sockets    `cpus`, joined by the CPU's own link (three of them; one NVLink-C2C); one where the
///              catalogue names no such link
///   drives     one NVMe Gen4 x4 for every two devices, striped, on the first socket
///   DRAM       100 GB/s where the CPU is unknown
///   NIC        1.25 GB/s where `network` is unknown and there are several servers
/// Devices that are CPUs are sockets of their own: they talk over the sockets' links and DRAM.
/// Between servers, unless `fabric` says otherwise: NICs on one non-blocking switch; trays whose
/// node type has a "domain" (NVL72) share one device fabric per domain.
/// Problems (all at once, at the fabric's own JSON pointers): InputError.
ClusterTopology build_cluster(const Catalog& catalog, const std::vector<ClusterGroup>& groups,
                              const ClusterFabricSpec& fabric);

/// Reads `cluster.fabric`: the name of a catalogue topology; one structure (by kind it joins NICs,
/// devices, sockets or makes the inside of servers); an explicit {"nodes", "links"}; or
/// {"network", "devices", "pool", "host", "storage", "nics_per_node"} of such. Problems go to
/// `problems`.
ClusterFabricSpec read_cluster_fabric(const nlohmann::ordered_json& value, const std::string& file,
                                      const std::string& pointer, const Catalog& catalog,
                                      Problems& problems);

/// One server alone: what `medley show topology <node type>` draws.
ClusterTopology build_node(const Catalog& catalog, const NodeSpec& node);

}  // namespace medley
