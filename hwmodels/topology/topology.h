#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/provenance.h"
#include "sim/core/units.h"

namespace medley {

/// What stands at a corner of the network. A device's own memory is no vertex: it is a resource of
/// whoever runs the traffic, which adds it to the wires of a route at both ends (a transfer uses
/// the wires of its route, the memory of the device that sends and of the one that receives).
/// kMemory is memory that others reach over wires: DRAM of a socket, a module of a CXL pool.
enum class VertexKind : std::uint8_t { kDevice, kHost, kNic, kSwitch, kMemory, kStorage, kSite };
inline constexpr int kVertexKinds = 7;
std::string_view to_string(VertexKind kind);  ///< "device", "host", "nic", ...

/// One corner. `group` and `node` say which server it belongs to (kNone: none); `index` counts
/// those of its kind within the node (device 3, socket 1).
struct TopologyVertex {
  static constexpr std::uint32_t kNone = 0xffffffffU;
  std::string name;
  VertexKind kind = VertexKind::kDevice;
  std::uint32_t group = kNone;
  std::uint32_t node = kNone;
  std::uint32_t index = 0;
  /// May traffic between others pass? Chips of a ring or torus forward, other devices do not;
  /// memory and storage never do.
  bool forwards = true;
};

/// What a link is for; routes between two vertices use the first of these that joins them.
enum class LinkPlane : std::uint8_t {
  kFabric,   ///< devices among each other (NVLink, xGMI, ICI), within a server or across
  kHost,     ///< inside a server: PCIe, sockets, DRAM, drives, NICs
  kPool,     ///< servers to a memory pool
  kNetwork,  ///< servers among each other
};

/// One direction of a link. `wire` is what traffic shares: both directions of a half-duplex link
/// name the same wire, each direction of a full-duplex one its own. The two directions of a cable
/// follow each other: `l ^ 1` is the other direction of link l.
struct TopologyLink {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t wire = 0;
  Seconds latency;
  LinkPlane plane = LinkPlane::kNetwork;
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

class Topology;

/// Finds routes: a structure's own rule, or shortest paths. Immutable, safe to share.
class TopologyRouter {
 public:
  virtual ~TopologyRouter() = default;
  /// Appends the links from one vertex to another; false where this rule knows no way. `hash`
  /// picks among equals; every bit of it is random.
  virtual bool append(const Topology& topology, std::uint32_t from, std::uint32_t to,
                      std::uint64_t hash, std::vector<std::uint32_t>& links) const = 0;
};

/// Links out of service, by index. The topology must outlive it and stay where it is.
class LinkFailures {
 public:
  explicit LinkFailures(const Topology& topology);
  void set_link(std::uint32_t link, bool down);      ///< this direction only
  void set_cable(std::uint32_t link, bool down);     ///< both directions
  void set_vertex(std::uint32_t vertex, bool down);  ///< every link that touches it
  bool down(std::uint32_t link) const { return down_[link]; }
  bool any() const { return count_ > 0; }

 private:
  const Topology* topology_;
  std::vector<bool> down_;
  std::size_t count_ = 0;
};

/// Devices, hosts, switches and the links between them.
///
/// Routes are deterministic functions of (from, to, flow). Between two devices that a device fabric
/// joins they use that fabric alone; within a server they stay inside; else they cross the network.
/// Among the ways that are left: fewest links, then lowest latency; among equals the flow's hash
/// picks (ECMP), so that many flows use all of them. Laws: a route is connected, starts and ends
/// where asked, is never longer than needed (but for dragonflies, which cross at most one global
/// link) and takes as long back as there.
class Topology {
 public:
  std::vector<TopologyVertex> vertices;
  std::vector<TopologyLink> links;
  std::vector<TopologyWire> wires;
  std::vector<std::uint32_t> endpoints;          ///< who talks: devices, else hosts, in order
  std::vector<std::string> notes;                ///< what was assumed, worth telling
  std::shared_ptr<const TopologyRouter> router;  ///< null: shortest paths by search

  /// About a microsecond with a structure's rule and, when `out` is used again, without allocation.
  /// Throws InputError where there is no way.
  void route(std::uint32_t from, std::uint32_t to, std::uint64_t flow, TopologyRoute& out) const;
  /// The same around links that are down: other equals first, then a search of what is left (about
  /// a millisecond at 10,000 devices).
  void route(std::uint32_t from, std::uint32_t to, std::uint64_t flow, const LinkFailures& failures,
             TopologyRoute& out) const;
  /// Lowest-bandwidth wire of a route; what one flow alone reaches. Infinite for an empty route.
  BytesPerSec bottleneck(const TopologyRoute& route) const;
  /// The vertex of that name, or kNone.
  std::uint32_t find(std::string_view name) const;
  /// Links out of a vertex, ascending (built by `finish`).
  struct Adjacent {
    const std::uint32_t* first;
    const std::uint32_t* last;
    const std::uint32_t* begin() const { return first; }
    const std::uint32_t* end() const { return last; }
  };
  Adjacent out_links(std::uint32_t vertex) const;
  /// Call once after vertices and links are complete.
  void finish();

 private:
  void fill_latency(TopologyRoute& out) const;
  [[noreturn]] void fail_no_way(std::uint32_t from, std::uint32_t to) const;
  std::vector<std::uint32_t> out_offset_, out_link_;
};

/// Shortest path by search: fewest links, then lowest latency, then `hash`, in the first set of
/// planes that joins the two (see LinkPlane). O(vertices + links); scratch memory is kept per
/// thread. False where there is no way. The oracle of the structured rules, and the way around
/// failures.
bool search_route(const Topology& topology, std::uint32_t from, std::uint32_t to,
                  std::uint64_t hash, const LinkFailures* failures,
                  std::vector<std::uint32_t>& links);

/// One step of a sequence of random words from a flow's identity.
constexpr std::uint64_t mix_hash(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace medley
