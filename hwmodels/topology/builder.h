#pragma once

// What the builders of structures share; private to hwmodels/topology.

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hwmodels/topology/fabric.h"
#include "hwmodels/topology/topology.h"

namespace medley {

/// A path's cost: links first, then latency. Latencies are compared in whole picoseconds (up to
/// 281 s), so that sums in another order are equal.
using RouteCost = std::uint64_t;
inline constexpr RouteCost kNoRoute = std::numeric_limits<RouteCost>::max();
constexpr RouteCost route_cost(std::uint64_t hops, double latency_s) {
  return (hops << 48) + static_cast<std::uint64_t>(latency_s * 1e12 + 0.5);
}

/// Routes between the numbered ports of a structure. Links are appended as numbers of the topology
/// it was built into plus `offset` (structures that repeat, server by server, share one rule).
class PortRouter {
 public:
  virtual ~PortRouter() = default;
  virtual RouteCost cost(std::uint32_t a, std::uint32_t b) const = 0;  ///< 0 for a == b
  /// Only where cost is finite.
  virtual void append(std::uint32_t a, std::uint32_t b, std::uint64_t hash, std::uint32_t offset,
                      std::vector<std::uint32_t>& links) const = 0;
};

/// A cable's numbers, resolved.
struct ResolvedLink {
  BytesPerSec raw;        ///< before `achieved`
  BytesPerSec bandwidth;  ///< per direction, all parallel ones together
  Seconds latency;
  JoulesPerByte energy;
  std::string link;
  Provenance provenance = Provenance::kAssumed;
  bool half_duplex = false;

  ResolvedLink with_latency(Seconds l) const {
    ResolvedLink out = *this;
    out.latency = l;
    return out;
  }
  /// At most `cap` raw: a NIC slower than its cable.
  ResolvedLink capped(BytesPerSec cap) const;
};

/// Where a structure goes.
struct FabricContext {
  const Catalog& catalog;
  Topology& topology;
  Problems& problems;
  std::vector<std::uint32_t> ports = {};  ///< vertices to join, in order
  std::vector<std::uint32_t> extras =
      {};  ///< out: vertices of its own that are ports too, after those
  std::vector<BytesPerSec> limits = {};    ///< raw rate of each port; empty: the cable's
  std::vector<std::uint32_t> rail = {};    ///< of each port: its number within its server
  std::vector<std::uint32_t> server = {};  ///< of each port
  LinkPlane plane = LinkPlane::kNetwork;
  std::string prefix = {};  ///< of names
  /// Ports from this one on have `wide_link` instead of their structure's (gateways).
  std::uint32_t wide_from = 0xffffffffU;
  ResolvedLink wide_link = {};
  /// "link" where the structure names none (what is known of the NICs).
  std::optional<ResolvedLink> default_link = {};
  /// Ports that a name of an explicit list stands for ("h100/3", "h100/3/nic0", "h100/*").
  std::function<std::vector<std::uint32_t>(const std::string&)> find_ports = {};
  std::vector<std::string> port_names = {};  ///< examples, for hints

  std::uint32_t size() const { return static_cast<std::uint32_t>(ports.size()); }
  std::uint32_t add_vertex(const std::string& name, VertexKind kind);
  /// Adds a cable and returns its first link (from -> to); the other direction is that plus 1.
  std::uint32_t add_cable(std::uint32_t from, std::uint32_t to, const ResolvedLink& link);
  /// The cable of port p to `to`, slowed to the port's limit.
  std::uint32_t add_port_cable(std::uint32_t p, std::uint32_t to, const ResolvedLink& link);
  /// `key` of the spec, else `fallback` (a catalogue name), else a problem and an arbitrary value.
  ResolvedLink link(const FabricSpec& spec, std::string_view key, std::string_view fallback = "");
  ResolvedLink resolve(const LinkUse& use, const std::string& file);
  void problem(const FabricSpec& spec, std::string_view key, std::string message,
               std::string hint = "");
};

/// Adds a cable to a topology: two links, one wire each, or one wire for both when half duplex.
std::uint32_t add_cable(Topology& topology, std::uint32_t from, std::uint32_t to,
                        const ResolvedLink& link, LinkPlane plane);
/// Numbers of a catalogue link. Throws InputError where its rate is unknown.
ResolvedLink resolve_link(const Catalog& catalog, std::string_view name);
ResolvedLink resolve_spec(const struct LinkSpec& spec);

/// Latency of one switch and its cable: about .13 us of a switch and 15 m of fibre (assumed).
inline constexpr double kSwitchHop = 0.2e-6;

}  // namespace medley
