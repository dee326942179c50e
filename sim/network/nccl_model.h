#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hwmodels/node.h"
#include "sim/core/provenance.h"
#include "sim/network/collective.h"

namespace medley {

class Catalog;
class Network;
struct CollectiveCall;

enum class NcclAlgorithm : std::uint8_t { kRing, kTree, kNvls };
enum class NcclProtocol : std::uint8_t { kLl, kLl128, kSimple };
std::string_view to_string(NcclAlgorithm algorithm);  ///< "ring", "tree", "nvls"
std::string_view to_string(NcclProtocol protocol);    ///< "LL", "LL128", "Simple"

/// What two numbers say beyond NCCL's own tables: fitted, class derived, to the fit half of the
/// validation set `collectives` (single-node A100, H100, H200, B200; results/validation).
struct NcclCalibration {
  double call_s = 22e-6;         ///< each call: launch from the host and meeting of the ranks
  double fill_root_s = 2.75e-3;  ///< c of the pipeline's fill, c sqrt(bytes / bandwidth) [s^1/2]
};

/// Where a communicator runs.
struct NcclPlace {
  int generation = 0;          ///< row of the tables: 0 Volta, 1 Ampere, 2 Hopper, 3 Blackwell
  bool nvlink = true;          ///< else PCIe
  double bus_bandwidth = 0.0;  ///< of one device inside the node [B/s]
  double node_network = 0.0;   ///< of one node, all NICs, per direction [B/s]
  bool nvls = false;           ///< the switches can add
  /// What the network adds to the tables' latency of each hop between nodes: NCCL asks the plugin
  /// of the NIC for it. 0: a fast InfiniBand, which the tables stand for.
  double network_latency_s = 0.0;
};

struct NcclChoice {
  NcclAlgorithm algorithm = NcclAlgorithm::kRing;
  NcclProtocol protocol = NcclProtocol::kSimple;
  double latency_s = 0.0;   ///< of the tables
  double bandwidth = 0.0;   ///< bytes of payload per second
  double time_s = 0.0;      ///< call + latency + fill + bytes / bandwidth
  double estimate_s = 0.0;  ///< latency + bytes / bandwidth, by which it was chosen
};

/// NCCL's cost model: of the algorithms and protocols that can run, the one with the least
///   estimate = base + steps x hop latency + bytes / bandwidth
///   ring all-reduce: 2(n-1) steps, 2(N-1) of them between nodes; reduce-scatter, all-gather half;
///     bandwidth = bus n / steps; broadcast n steps at the bus bandwidth
///   tree (all-reduce): 2 ((n/N - 1) inner + log2(N) outer), bandwidth = .92 bus / 2
///   NVLS (all-reduce, one node, > 4 ranks): bandwidth = bus x efficiency x 5/6
///   bus = the device's links at their effective rate, at most the node's network where there are
///   several nodes; LL: half of it and at most a ceiling, LL128: .92 of it (tree: 7/9)
/// and its time = call + estimate + c sqrt(bytes / bandwidth): a pipeline of d stages whose pieces
/// cost h each takes X + 2 sqrt(d h X) + ... at the best number of pieces.
/// Assumes the fabric to itself, ranks that meet at once, one GPU per rank.
/// Not modelled: NVLS between nodes, CollNet, PAT, corrections of trees by size.
/// Source: NVIDIA/nccl src/graph/tuning.cc and topo.h (tables @5067397, 2026-06); class datasheet:
/// the vendor's own figures. The two of `NcclCalibration` are fitted.
/// `algorithm`, `protocol`: only these. nullopt where nothing can run.
std::optional<NcclChoice> nccl_choose(const NcclPlace& place, CollectiveKind kind, int ranks,
                                      int nodes, double bytes,
                                      const NcclCalibration& calibration = {},
                                      std::optional<NcclAlgorithm> algorithm = {},
                                      std::optional<NcclProtocol> protocol = {});

/// The place of `ranks` devices of one node: switched NVLink 3 to 5, the host's PCIe, or all eight
/// devices of a V100's cube mesh (a part of it depends on which links join it). nullopt for others
/// (xGMI, ICI, ...), which run other libraries.
std::optional<NcclPlace> nccl_place(const Catalog& catalog, const NodeSpec& node, int ranks);

/// The time of a collective where it meets nobody.
struct CollectiveEstimate {
  CollectiveTime time;
  std::string algorithm;  ///< "measured table", "nccl ring LL128", "ring", ...
  std::optional<NcclChoice> nccl;
};
struct EstimateOptions {
  bool in_graph = true;            ///< launched from a captured graph: no call time
  bool use_tables = true;          ///< measured all-reduce tables of the node
  double network_latency_s = 0.0;  ///< NcclPlace::network_latency_s: EFA about 80 us (fitted)
  NcclCalibration calibration;
};
/// In this order: the node's measured table (all-reduce inside one node); NCCL's model; the closed
/// form of a ring (all-to-all, send: direct) over the node's link. `time.source` says which.
/// `ranks` = nodes x ranks per node, consecutive. Throws InputError where a rate is unknown.
CollectiveEstimate estimate_collective(const Catalog& catalog, const NodeSpec& node,
                                       CollectiveKind kind, int ranks, int nodes, Bytes bytes,
                                       const EstimateOptions& options = {});

/// How to run it over a network so that alone it takes `time_s`: `call` (kind, bytes, members set)
/// gets an algorithm, a share of the wires' bandwidth and a start time. Wires that are slower than
/// the estimate by themselves stay as they are.
void apply_estimate(const Network& network, const CollectiveEstimate& estimate,
                    CollectiveCall& call);

}  // namespace medley
