#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hwmodels/catalog.h"
#include "sim/core/error.h"
#include "sim/network/choose.h"
#include "sim/network/closed_forms.h"
#include "sim/network/nccl_model.h"

namespace medley {

namespace {

/// Rings over the slower of the node's link and the share of its network.
CollectiveEstimate from_links(const Catalog& catalog, const NodeSpec& node, CollectiveKind kind,
                              int ranks, int nodes, Bytes bytes) {
  CollectiveEstimate out;
  out.algorithm = "ring";
  const auto n = static_cast<std::uint32_t>(ranks);
  if (nodes == 1 && kind == CollectiveKind::kAllToAll) {
    out.algorithm = "direct";
    out.time = all_to_all_time(catalog, node, ranks, bytes);
    return out;
  }
  if (nodes == 1 && kind == CollectiveKind::kAllReduce) {
    NodeSpec bare = node;
    bare.all_reduce.clear();
    out.time = all_reduce_time(catalog, bare, ranks, bytes);
    return out;
  }
  // What a ring of one node takes gives its rate; others need the network's.
  const CollectiveTime pair = send_time(catalog, node, Bytes(0.0));
  LinkModel m;
  m.latency = pair.time.value();
  m.bandwidth = 1e9 / (send_time(catalog, node, Bytes(1e9)).time - pair.time).value();
  out.time.provenance = pair.provenance;
  out.time.source = pair.source;
  if (nodes > 1) {
    if (!node.network.known()) {
      throw InputError(node.file, "/network",
                       fmt::format("the network of node type \"{}\" is unknown", node.name),
                       "give \"network\", the rate of all its NICs per direction");
    }
    m.bandwidth = std::min(m.bandwidth, node.network.value->value() * nodes / ranks);
    out.time.provenance = weaker(out.time.provenance, node.network.provenance);
    out.time.source += "; network " + node.network.source;
  }
  double time;
  switch (kind) {
    case CollectiveKind::kAllReduce:
      time = ring_time(2 * (n - 1), n, 1, bytes.value(), m);
      break;
    case CollectiveKind::kBroadcast:
      time = chain_time(n - 1, default_chunks(bytes.value()), bytes.value(), m);
      break;
    case CollectiveKind::kAllToAll:
      out.algorithm = "direct";
      time = direct_time(n - 1, bytes.value() / ranks, m);
      break;
    case CollectiveKind::kSendRecv:
      out.algorithm = "direct";
      time = direct_time(1, bytes.value(), m);
      break;
    default:
      time = ring_time(n - 1, n, 1, bytes.value(), m);
  }
  out.time.time = Seconds(time);
  return out;
}

}  // namespace

CollectiveEstimate estimate_collective(const Catalog& catalog, const NodeSpec& node,
                                       CollectiveKind kind, int ranks, int nodes, Bytes bytes,
                                       const EstimateOptions& options) {
  MEDLEY_CHECK(ranks >= 1 && nodes >= 1 && ranks % nodes == 0 && ranks / nodes <= node.devices,
               "ranks are spread evenly over nodes");
  CollectiveEstimate out;
  if (ranks == 1) {
    out.time = {Seconds(0.0), Provenance::kMeasured, "one rank", false};
    out.algorithm = "none";
    return out;
  }
  if (options.use_tables && nodes == 1 && kind == CollectiveKind::kAllReduce &&
      !node.all_reduce.empty()) {
    out.time = all_reduce_time(catalog, node, ranks, bytes, options.in_graph);
    out.time.source = "measured table: " + out.time.source;
    out.algorithm = "measured table";
    return out;
  }
  if (std::optional<NcclPlace> place = nccl_place(catalog, node, ranks / nodes)) {
    place->network_latency_s = options.network_latency_s;
    NcclCalibration calibration = options.calibration;
    if (options.in_graph) calibration.call_s = 0.0;
    out.nccl = nccl_choose(*place, kind, ranks, nodes, bytes.value(), calibration);
    if (out.nccl) {
      out.time.time = Seconds(out.nccl->time_s);
      out.time.provenance = Provenance::kDerived;
      out.algorithm =
          fmt::format("nccl {} {}", to_string(out.nccl->algorithm), to_string(out.nccl->protocol));
      out.time.source = fmt::format(
          "{}: tuning constants of NVIDIA/nccl@5067397; call and fill fitted to measured "
          "all-reduces",
          out.algorithm);
      return out;
    }
  }
  return from_links(catalog, node, kind, ranks, nodes, bytes);
}

void apply_estimate(const Network& network, const CollectiveEstimate& estimate,
                    CollectiveCall& call) {
  call.start_s = 0.0;
  call.step_s = 0.0;
  call.efficiency = 1.0;
  const double bandwidth_time =
      estimate.nccl ? call.shape.bytes / estimate.nccl->bandwidth : estimate.time.time.value();
  if (call.algorithm == "auto" && estimate.nccl) {
    constexpr const char* kNames[] = {"ring", "double_tree", "nvls"};
    call.algorithm = kNames[static_cast<int>(estimate.nccl->algorithm)];
  }
  CollectivePlan plan = plan_collective(network, call);
  if (plan.algorithm == nullptr) return;  // one rank
  const auto program = plan.algorithm->make(plan.shape);
  LinkModel bytes_alone = plan.model;
  bytes_alone.latency = bytes_alone.inner_latency = 0.0;
  const double wires = program->closed_form(bytes_alone);
  if (wires > 0.0 && bandwidth_time > 0.0) {
    call.efficiency = std::clamp(wires / bandwidth_time, 1e-6, 1.0);
  }
  plan.model.bandwidth *= call.efficiency;
  plan.model.inner_bandwidth *= call.efficiency;
  const double alone = program->closed_form(plan.model);
  call.algorithm = plan.algorithm->name;
  if (alone < estimate.time.time.value()) {
    call.start_s = estimate.time.time.value() - alone;
  } else if (alone > estimate.time.time.value() && !estimate.nccl) {
    // A table's time holds latencies too: give the bytes what these leave.
    const double latency = alone - wires / call.efficiency;
    const double left = estimate.time.time.value() - latency;
    call.efficiency = left > wires ? wires / left : 1.0;
  }
}

}  // namespace medley
