#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hwmodels/catalog.h"
#include "hwmodels/node.h"
#include "hwmodels/read.h"
#include "sim/core/error.h"

namespace medley {

namespace {
/// The fabric of one node as numbers: what the formulas of node.h need.
struct Fabric {
  FabricKind kind = FabricKind::kNone;
  double link = 0.0;   ///< achieved B/s of one link
  double total = 0.0;  ///< achieved B/s of one device over all its links
  double latency = 0.0;
  Provenance provenance = Provenance::kMeasured;
  std::string source;

  bool direct() const { return kind != FabricKind::kSwitch && kind != FabricKind::kHost; }
  /// What one of n communicating devices can send: behind a switch everything, on a direct fabric
  /// only the links towards the n-1 others.
  double bandwidth(int n) const { return direct() ? std::min(total, (n - 1) * link) : total; }
  /// Mean number of links a byte crosses when everybody sends to everybody.
  double hops(int n) const {
    if (kind != FabricKind::kRing && kind != FabricKind::kTorus) return 1.0;
    const double dims =
        kind == FabricKind::kRing ? 1.0 : std::max(1.0, std::round(total / link / 2.0));
    return std::max(1.0, dims * std::pow(n, 1.0 / dims) / 4.0);
  }
};

[[noreturn]] void fail_unknown(const LinkSpec& link, const NodeSpec& node, const char* field) {
  throw InputError(
      link.file, std::string("/") + field,
      fmt::format("the {} of link \"{}\" is unknown, but node type \"{}\" sends over it", field,
                  link.name, node.name),
      fmt::format("supply it in a catalogue directory of your own: links/{}.json",
                  slug(link.name)));
}

Fabric fabric_of(const Catalog& catalog, const NodeSpec& node) {
  const LinkSpec* joining = node.resolved_link ? &*node.resolved_link : joining_link(catalog, node);
  if (joining == nullptr) {
    throw InputError(
        node.file, "/fabric",
        fmt::format("the devices of node type \"{}\" have no fabric between them", node.name),
        "use one device per replica, or give the node a fabric");
  }
  const LinkSpec& link = *joining;
  if (!link.bandwidth.known()) fail_unknown(link, node, "bandwidth");
  if (!link.achieved.known()) fail_unknown(link, node, "achieved");
  if (!link.latency.known()) fail_unknown(link, node, "latency");
  Fabric f;
  f.kind = node.fabric;
  f.latency = link.latency.value->value();
  f.link = link.bandwidth.value->value() * *link.achieved;
  // Without a total the fabric is its link: right for switches and the host, one link elsewhere.
  f.total = node.fabric_bandwidth.known()
                ? node.fabric_bandwidth.value->value() * *link.achieved
                : (node.fabric == FabricKind::kMesh ? (node.devices - 1) * f.link : f.link);
  f.provenance =
      weaker(weaker(link.bandwidth.provenance, link.achieved.provenance), link.latency.provenance);
  f.source = fmt::format("{}: bandwidth {}; achieved {}; latency {}", link.name,
                         link.bandwidth.source, link.achieved.source, link.latency.source);
  return f;
}

/// Bytes each rank moves per byte of payload in a ring all-reduce.
double ring_factor(int n) {
  return 2.0 * (n - 1) / n;
}
double ring_alpha(const Fabric& f, int n) {
  return 2.0 * (n - 1) * f.latency;
}
double ring_beta(const Fabric& f, int n) {
  return ring_factor(n) / f.bandwidth(n);
}

double table_time(const AllReduceTable& table, const Fabric& f, double payload) {
  const auto& points = table.points;
  const AllReducePoint& first = points.front();
  const AllReducePoint& last = points.back();
  if (payload >= last.payload.value()) {
    return last.time.value() * payload / last.payload.value();
  }
  if (payload <= first.payload.value()) {
    const double shrunk =
        first.time.value() - ring_beta(f, table.ranks) * (first.payload.value() - payload);
    return std::min(first.time.value(), std::max(shrunk, ring_alpha(f, table.ranks)));
  }
  const auto above = std::upper_bound(
      points.begin(), points.end(), payload,
      [](double p, const AllReducePoint& point) { return p < point.payload.value(); });
  const AllReducePoint& hi = *above;
  const AllReducePoint& lo = *(above - 1);
  const double share = (payload - lo.payload.value()) / (hi.payload - lo.payload).value();
  return lo.time.value() + share * (hi.time - lo.time).value();
}

/// The table to use for `ranks`: its own, else the next larger group, else the largest.
const AllReduceTable* choose_table(const NodeSpec& node, int ranks, bool in_graph) {
  bool have_mode = false;
  for (const AllReduceTable& t : node.all_reduce) have_mode = have_mode || t.in_graph == in_graph;
  const AllReduceTable* best = nullptr;
  for (const AllReduceTable& t : node.all_reduce) {
    if (t.points.empty() || t.ranks < 2 || (have_mode && t.in_graph != in_graph)) continue;
    if (!best) {
      best = &t;
    } else if (best->ranks < ranks ? t.ranks > best->ranks
                                   : t.ranks >= ranks && t.ranks < best->ranks) {
      best = &t;
    }
  }
  return best;
}

CollectiveTime from_table(const AllReduceTable& table, const Fabric& f, int ranks, double payload) {
  CollectiveTime out;
  out.source = table.source;
  out.provenance = table.provenance;
  if (table.ranks == ranks) {
    out.time = Seconds(table_time(table, f, payload));
    if (payload < table.points.front().payload.value() ||
        payload > table.points.back().payload.value()) {
      out.provenance = weaker(out.provenance, Provenance::kDerived);
      out.extrapolated = true;
    }
    return out;
  }
  const double floor = table_time(table, f, 0.0);
  const double growth = std::log2(ranks) / std::log2(table.ranks);
  const double rate = ring_beta(f, ranks) / ring_beta(f, table.ranks);
  out.time = Seconds(floor * growth + (table_time(table, f, payload) - floor) * rate);
  out.provenance = weaker(out.provenance, Provenance::kDerived);
  out.extrapolated = true;
  out.source += fmt::format(", scaled from {} to {} ranks", table.ranks, ranks);
  return out;
}

void check(const NodeSpec& node, int ranks, Bytes payload) {
  MEDLEY_CHECK(ranks >= 1 && ranks <= node.devices, "a collective stays within its node");
  MEDLEY_CHECK(payload.value() >= 0.0, "a payload is not negative");
}
}  // namespace

const LinkSpec* joining_link(const Catalog& catalog, const NodeSpec& node) {
  const std::string& name = node.fabric_link.empty() ? node.host_link : node.fabric_link;
  if (node.fabric == FabricKind::kNone || name.empty()) return nullptr;
  return &catalog.link(name);
}

CollectiveTime all_reduce_time(const Catalog& catalog, const NodeSpec& node, int ranks,
                               Bytes payload, bool in_graph) {
  check(node, ranks, payload);
  if (ranks == 1) return {Seconds(0.0), Provenance::kMeasured, "one rank", false};
  const Fabric f = fabric_of(catalog, node);
  if (const AllReduceTable* table = choose_table(node, ranks, in_graph)) {
    return from_table(*table, f, ranks, payload.value());
  }
  return {Seconds(ring_alpha(f, ranks) + ring_beta(f, ranks) * payload.value()), f.provenance,
          f.source, false};
}

CollectiveTime send_time(const Catalog& catalog, const NodeSpec& node, Bytes payload) {
  check(node, 1, payload);
  const Fabric f = fabric_of(catalog, node);
  const double rate = f.direct() ? f.link : f.total;
  return {Seconds(f.latency + payload.value() / rate), f.provenance, f.source, false};
}

CollectiveTime all_to_all_time(const Catalog& catalog, const NodeSpec& node, int ranks,
                               Bytes payload) {
  check(node, ranks, payload);
  if (ranks == 1) return {Seconds(0.0), Provenance::kMeasured, "one rank", false};
  const Fabric f = fabric_of(catalog, node);
  const int messages = node.fabric == FabricKind::kSwitch ? 1 : ranks - 1;
  const double sent = payload.value() * (ranks - 1) / ranks;
  return {Seconds(messages * f.latency + sent * f.hops(ranks) / f.bandwidth(ranks)), f.provenance,
          f.source, false};
}

}  // namespace medley
