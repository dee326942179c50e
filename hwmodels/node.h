#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/core/provenance.h"
#include "sim/core/units.h"

namespace medley {

/// One kind of link, per direction.
struct LinkSpec {
  std::string name;
  std::string kind;  ///< "device", "host", "switch", "network", "memory", "storage"
  std::vector<std::string> aliases;
  std::string file;
  std::string notes;
  Sourced<BytesPerSec> bandwidth;
  Sourced<double> achieved;  ///< fraction of `bandwidth` a large transfer reaches
  Sourced<Seconds> latency;
  Sourced<JoulesPerByte> energy_per_byte;
};

/// Measured all-reduce time against payload for `ranks` devices of a node.
struct AllReducePoint {
  Bytes payload;
  Seconds time;
};
struct AllReduceTable {
  int ranks = 0;
  bool in_graph = false;               ///< measured inside a captured graph, without host launches
  std::vector<AllReducePoint> points;  ///< ascending payload, times non-decreasing
  Provenance provenance = Provenance::kMeasured;
  std::string source;
};

/// How the devices of a node reach each other.
enum class FabricKind { kNone, kSwitch, kMesh, kRing, kTorus, kHost };

/// A server or tray: devices, their fabric, host and everything else that draws power.
///   node watts = (overhead + host + sum(device watts)) / psu_efficiency
struct NodeSpec {
  std::string name;
  std::vector<std::string> aliases;
  std::string file;
  std::string notes;
  std::string device;  ///< catalogue name of the accelerator
  int devices = 0;
  FabricKind fabric = FabricKind::kNone;
  std::string fabric_link;                ///< catalogue link between devices; per pair when kMesh
  Sourced<BytesPerSec> fabric_bandwidth;  ///< per device and direction, all links together
  int domain = 0;  ///< devices that share the fabric across servers (NVL72: 72); 0: the node's own
  std::vector<AllReduceTable> all_reduce;  ///< measured; empty: alpha-beta
  std::string host_link;
  std::string cpu;  ///< catalogue name of the host CPU; may be empty
  int cpus = 0;
  Sourced<Bytes> host_memory;
  Sourced<BytesPerSec> network;  ///< per direction, all NICs together
  Sourced<Watts> idle_power;     ///< whole node, AC, devices context-idle, where measured
  Sourced<Watts> overhead;  ///< host CPUs idle + DRAM + NICs + fans + drives, DC, without devices
  Sourced<double> psu_efficiency;
  Sourced<Usd> capex;
  Sourced<UsdPerSec> rent;  ///< whole node
  /// The link between the devices as a parameter draw has it; absent: looked up in the catalogue.
  std::optional<LinkSpec> resolved_link;
};

/// Time of one all-reduce of `payload` bytes among `ranks` devices of `node`.
///   bandwidth(n): behind a switch or the host the device's whole fabric; on a mesh, ring or torus
///     min(whole fabric, (n-1) links), so that a pair on a mesh gets one link.
///   ring:  2(n-1) * latency + 2(n-1)/n * payload / bandwidth(n)         (no table)
///   table for exactly `ranks`: piecewise linear in time over payload; beyond the largest point at
///     its bus bandwidth; below the smallest the ring's bandwidth term shrinks with the payload,
///     never below the ring's latency term nor above the point's time;
///   table for another rank count R: its latency part t(0) scaled by log2(ranks)/log2(R), the rest
///     by the ring's bandwidth terms, beta(ranks)/beta(R) (class derived). The next larger table is
///     taken, else the largest.
/// Tables of the wanted launch mode go first: the launch of a collective from the host costs tens
/// of microseconds, which a captured graph saves. Without such a table the other mode's serve.
/// Valid: ranks within one node. Law: non-decreasing in payload; 0 for one rank.
/// Throws InputError where a link's rate is unknown or the node has no fabric.
struct CollectiveTime {
  Seconds time;
  Provenance provenance = Provenance::kAssumed;
  std::string source;
  bool extrapolated = false;  ///< from a table, outside its payloads or rank counts
};
class Catalog;
/// The link that joins the devices of a node (its fabric's, else the host's); nullptr where it has
/// no fabric. Throws InputError for a name that is in no catalogue.
const LinkSpec* joining_link(const Catalog& catalog, const NodeSpec& node);
CollectiveTime all_reduce_time(const Catalog& catalog, const NodeSpec& node, int ranks,
                               Bytes payload, bool in_graph = true);
/// Point to point inside the node: latency + payload / achieved bandwidth of one pair.
CollectiveTime send_time(const Catalog& catalog, const NodeSpec& node, Bytes payload);
/// All-to-all of `payload` bytes held per rank (expert parallel dispatch or combine):
///   latency * (1 for a switch, else n-1) + (n-1)/n * payload * hops / bandwidth(n),
/// hops = 1 but for rings and d-dimensional tori, where a byte crosses max(1, d n^(1/d) / 4) links.
CollectiveTime all_to_all_time(const Catalog& catalog, const NodeSpec& node, int ranks,
                               Bytes payload);

}  // namespace medley
