#include "sim/network/nccl_model.h"

#include <algorithm>
#include <cmath>

#include "hwmodels/catalog.h"
#include "sim/core/error.h"
#include "sim/network/nccl_tables.h"

namespace medley {

std::string_view to_string(NcclAlgorithm algorithm) {
  constexpr std::string_view kNames[] = {"ring", "tree", "nvls"};
  return kNames[static_cast<int>(algorithm)];
}
std::string_view to_string(NcclProtocol protocol) {
  constexpr std::string_view kNames[] = {"LL", "LL128", "Simple"};
  return kNames[static_cast<int>(protocol)];
}

namespace {

struct NcclQuery {
  const NcclPlace& place;
  CollectiveKind kind;
  int ranks, nodes;
  double bytes;

  const nccl::Generation& generation() const { return nccl::kGenerations[place.generation]; }
  double bus() const {
    return nodes > 1 ? std::min(place.bus_bandwidth, place.node_network) : place.bus_bandwidth;
  }
  double ll_ceiling() const { return generation().ll_ceiling[std::min(nodes, 3) - 1]; }
  double inner(int row) const {
    return place.nvlink ? nccl::kNvlinkLatency[row] : nccl::kPcieLatency[row];
  }
};

NcclChoice ring_choice(const NcclQuery& q, NcclProtocol protocol) {
  const int row = static_cast<int>(protocol);
  int steps = q.ranks;  // broadcast
  int outer = q.nodes > 1 ? q.nodes : 0;
  if (q.kind != CollectiveKind::kBroadcast) {
    steps = q.ranks - 1;
    outer = q.nodes - 1;
  }
  if (q.kind == CollectiveKind::kAllReduce) {
    steps *= 2;
    outer *= 2;
  }
  double inner_latency = q.inner(row);
  if (q.nodes > 1 && protocol == NcclProtocol::kLl) inner_latency *= nccl::kNetLlPenalty;
  NcclChoice c{NcclAlgorithm::kRing, protocol, 0.0, 0.0, 0.0, 0.0};
  c.latency_s = nccl::kBaseLatency[row] + (steps - outer) * inner_latency +
                outer * (nccl::kNetLatency[row] + q.place.network_latency_s);
  const bool plateau = protocol == NcclProtocol::kSimple && q.nodes > 1 &&
                       q.kind == CollectiveKind::kAllReduce &&
                       q.bytes >= q.ranks * nccl::kPlateauBytes;
  if (plateau) c.latency_s *= nccl::kRingPlateau;
  double bus = q.bus();
  if (protocol == NcclProtocol::kLl) bus = std::min(0.5 * bus, q.ll_ceiling());
  if (protocol == NcclProtocol::kLl128) bus *= nccl::kLl128Share;
  c.bandwidth = q.kind == CollectiveKind::kBroadcast ? bus : bus * q.ranks / steps;
  return c;
}

NcclChoice tree_choice(const NcclQuery& q, NcclProtocol protocol) {
  const int row = 3 + static_cast<int>(protocol);
  double inner_latency = q.inner(row);
  if (q.nodes > 1 && protocol == NcclProtocol::kLl) inner_latency *= nccl::kNetLlPenalty;
  NcclChoice c{NcclAlgorithm::kTree, protocol, 0.0, 0.0, 0.0, 0.0};
  const double outer = std::floor(std::log2(q.nodes));
  c.latency_s = nccl::kBaseLatency[row] +
                2.0 * ((q.ranks / q.nodes - 1) * inner_latency +
                       outer * (nccl::kNetLatency[row] + q.place.network_latency_s));
  double bus = q.bus();
  if (protocol == NcclProtocol::kLl) {
    bus = std::min(bus * nccl::kTreeLlShare, q.ll_ceiling());
  } else if (protocol == NcclProtocol::kLl128) {
    bus *= q.nodes == 1 ? nccl::kTreeLl128Share : nccl::kLl128Share;
  } else {
    bus *= nccl::kTreeShare;
  }
  c.bandwidth = 0.5 * bus;
  return c;
}

NcclChoice nvls_choice(const NcclQuery& q) {
  NcclChoice c{NcclAlgorithm::kNvls, NcclProtocol::kSimple, 0.0, 0.0, 0.0, 0.0};
  c.latency_s = nccl::kBaseLatency[6] + nccl::kNvlinkLatency[6];
  c.bandwidth = q.place.bus_bandwidth * q.generation().nvls * nccl::kNvlsShare;
  return c;
}

}  // namespace

std::optional<NcclChoice> nccl_choose(const NcclPlace& place, CollectiveKind kind, int ranks,
                                      int nodes, double bytes, const NcclCalibration& calibration,
                                      std::optional<NcclAlgorithm> algorithm,
                                      std::optional<NcclProtocol> protocol) {
  MEDLEY_CHECK(ranks >= 2 && nodes >= 1 && ranks % nodes == 0 && bytes >= 0.0,
               "ranks are spread evenly over nodes");
  if (kind == CollectiveKind::kAllToAll || kind == CollectiveKind::kSendRecv) return {};
  const NcclQuery q{place, kind, ranks, nodes, bytes};
  if (!(q.bus() > 0.0)) return {};
  const bool all_reduce = kind == CollectiveKind::kAllReduce;
  std::optional<NcclChoice> best;
  const auto consider = [&](NcclChoice c) {
    if ((algorithm && c.algorithm != *algorithm) || (protocol && c.protocol != *protocol)) return;
    c.estimate_s = c.latency_s + bytes / c.bandwidth;
    if (!best || c.estimate_s < best->estimate_s) best = c;
  };
  for (const NcclProtocol p : {NcclProtocol::kLl, NcclProtocol::kLl128, NcclProtocol::kSimple}) {
    if (p == NcclProtocol::kLl128 && !place.nvlink) continue;
    consider(ring_choice(q, p));
    if (all_reduce) consider(tree_choice(q, p));
  }
  if (all_reduce && place.nvls && nodes == 1 && ranks >= nccl::kNvlsRanks) consider(nvls_choice(q));
  if (!best) return {};
  best->time_s = calibration.call_s + best->estimate_s +
                 calibration.fill_root_s * std::sqrt(bytes / best->bandwidth);
  return best;
}

std::optional<NcclPlace> nccl_place(const Catalog& catalog, const NodeSpec& node, int ranks) {
  NcclPlace place;
  if (node.network.known()) place.node_network = node.network.value->value();
  const LinkSpec* link = node.resolved_link ? &*node.resolved_link : joining_link(catalog, node);
  if (link == nullptr) return {};
  const bool whole_mesh = node.fabric == FabricKind::kTorus && ranks == node.devices;
  if (node.fabric == FabricKind::kSwitch || whole_mesh) {
    for (int g = 0; g < 4; ++g) {
      if (link->name != nccl::kGenerations[g].fabric) continue;
      place.generation = g;
      place.bus_bandwidth = nccl::kGenerations[g].link * nccl::kGenerations[g].links;
      place.nvls = nccl::kGenerations[g].nvls > 0.0;
      return place;
    }
    return {};
  }
  const bool pcie = link->name.rfind("PCIe", 0) == 0;
  if (!pcie || !link->bandwidth.known() || !link->achieved.known()) return {};
  place.generation = 1;
  place.nvlink = false;
  place.bus_bandwidth = link->bandwidth.value->value() * *link->achieved;
  return place;
}

}  // namespace medley
