#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/provenance.h"
#include "sim/core/units.h"

namespace medley {

/// What stands at a corner of the network.
enum class VertexKind : std::uint8_t { kDevice, kHost, kNic, kSwitch, kMemory, kStorage, kSite };

/// One corner. `group` and `node` say which server it belongs to (kNone: none); `index` counts
/// those of its kind within the node (device 3, socket 1).
struct TopologyVertex {
  static constexpr std::uint32_t kNone = 0xffffffffU;
  std::string name;
  VertexKind kind = VertexKind::kDevice;
  std::uint32_t group = kNone;
  std::uint32_t node = kNone;
  std::uint32_t index = 0;
};

/// One direction of a link. `wire` is what traffic shares: both directions of a half-duplex link
/// name the same wire, each direction of a full-duplex one its own.
struct TopologyLink {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t wire = 0;
  Seconds latency;
};

/// A shared capacity: bandwidth that large transfers reach (raw bandwidth x achieved fraction).
struct TopologyWire {
  std::string name;
  BytesPerSec bandwidth;
  JoulesPerByte energy;  ///< 0 where unknown
  std::string link;      ///< catalogue name it is made of; may be empty
  Provenance provenance = Provenance::kAssumed;
};

/// Links of one path, in order; empty from a vertex to itself.
struct TopologyRoute {
  std::vector<std::uint32_t> links;
  Seconds latency;
};

class TopologyRouter;  ///< finds routes: a structure's own rule, or shortest paths

/// Devices, hosts, switches and the links between them.
///
/// Routes are deterministic: fewest links, then lowest latency; among equals the flow's hash picks
/// (ECMP). Law: a route is connected, starts and ends where asked, and is never longer than needed.
class Topology {
 public:
  std::vector<TopologyVertex> vertices;
  std::vector<TopologyLink> links;
  std::vector<TopologyWire> wires;

  /// Throws InputError where there is no way.
  void route(std::uint32_t from, std::uint32_t to, std::uint64_t flow, TopologyRoute& out) const;
};

}  // namespace medley
