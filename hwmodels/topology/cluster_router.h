#pragma once

// Private to hwmodels/topology.

#include <array>
#include <memory>
#include <vector>

#include "hwmodels/topology/builder.h"
#include "hwmodels/topology/cluster.h"

namespace medley {

/// Routes of a cluster from the rules of its parts: the device fabric where it joins both ends; the
/// inside of the server; else out by one of the sender's NICs, across the network and in by one of
/// the receiver's, whichever pair is shortest (ECMP among equal pairs too).
class ClusterRouter : public TopologyRouter {
 public:
  static constexpr std::uint32_t kMostNics = 64;
  struct Group {
    ClusterTopology::Group at;
    std::uint32_t link_stride = 0;        ///< links of a server
    std::unique_ptr<PortRouter> inside;   ///< of the first server, by vertex within it
    std::uint32_t inside_size = 0;        ///< vertices that `inside` knows
    std::vector<RouteCost> nic_cost;      ///< inside: [vertex][NIC], either way
    std::vector<RouteCost> socket_cost;   ///< [vertex][socket]
    std::unique_ptr<PortRouter> devices;  ///< of the first domain; null: no device fabric
    std::uint32_t domain_links = 0;       ///< links from one domain to the next
    std::uint32_t first_nic = 0;          ///< its number among the network's ports
    std::uint32_t first_socket = 0;       ///< its number among the pool's ports
  };
  std::vector<Group> groups;
  std::unique_ptr<PortRouter> network;  ///< NICs of all servers, group by group
  std::unique_ptr<PortRouter> pool;     ///< sockets of all servers, then its own vertices
  std::uint32_t pool_sockets = 0;
  std::uint32_t pool_first = TopologyVertex::kNone;  ///< first vertex of its own
  std::uint32_t pool_size = 0;

  bool append(const Topology& topology, std::uint32_t from, std::uint32_t to, std::uint64_t hash,
              std::vector<std::uint32_t>& links) const override;

 private:
  struct Place {
    const Group* group = nullptr;
    std::uint32_t node = 0, local = 0;
    std::uint32_t offset() const { return node * group->link_stride; }
  };
  /// Costs from a place to each of `count` ways out of its server; null: there are none.
  static const RouteCost* exits(const std::vector<RouteCost>& table, std::uint32_t local,
                                std::uint32_t count);
  Place place(const Topology& topology, std::uint32_t vertex) const;
  bool by_devices(const Place& a, const Place& b, std::uint64_t hash,
                  std::vector<std::uint32_t>& links) const;
  bool by_network(const Place& a, const Place& b, std::uint64_t hash,
                  std::vector<std::uint32_t>& links) const;
  bool by_pool(const Place& a, std::uint32_t module, bool outward, std::uint64_t hash,
               std::vector<std::uint32_t>& links) const;
};

}  // namespace medley
