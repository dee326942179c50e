#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "hwmodels/read.h"
#include "hwmodels/sourced_reader.h"

namespace medley {

namespace {
const std::vector<std::string>& fabric_names() {
  static const std::vector<std::string> names = {"none", "switch", "mesh", "ring", "torus", "host"};
  return names;
}
constexpr int kMostDevices = 100000;

/// Measured times scatter (a 2 MiB all-reduce read faster than a 1 MiB one); time must not fall
/// with payload, so neighbours that violate the order are pooled to their mean (isotonic
/// regression).
void make_monotone(std::vector<AllReducePoint>& points) {
  struct Block {
    double sum;
    int count;
    double mean() const { return sum / count; }
  };
  std::vector<Block> blocks;
  for (const AllReducePoint& p : points) {
    blocks.push_back({p.time.value(), 1});
    while (blocks.size() > 1 && blocks[blocks.size() - 2].mean() > blocks.back().mean()) {
      const Block last = blocks.back();
      blocks.pop_back();
      blocks.back().sum += last.sum;
      blocks.back().count += last.count;
    }
  }
  std::size_t i = 0;
  for (const Block& b : blocks) {
    for (int k = 0; k < b.count; ++k) points[i++].time = Seconds(b.mean());
  }
}

void read_all_reduce(ObjectReader& reader, SourcedReader& sourced, NodeSpec& node) {
  reader.each_element("all_reduce", [&](std::size_t, ObjectReader entry) {
    AllReduceTable table;
    table.ranks = static_cast<int>(entry.integer("ranks", 2, kMostDevices));
    table.in_graph = entry.choice("launch", {"stream", "graph"}) == "graph";
    Sourced<int> citation;
    sourced.cite(entry, citation);
    table.source = citation.source;
    table.provenance = citation.provenance;
    bool ascending = true;
    entry.each_element("points", [&](std::size_t, ObjectReader point) {
      AllReducePoint p;
      p.payload = point.quantity<Bytes>("payload", Range::positive());
      p.time = point.quantity<Seconds>("time", Range::positive());
      point.finish();
      if (!table.points.empty() && p.payload <= table.points.back().payload) ascending = false;
      table.points.push_back(p);
    });
    if (table.points.empty()) entry.problem("points", "a table needs at least one point");
    if (!ascending) entry.problem("points", "payloads must ascend");
    entry.finish();
    make_monotone(table.points);
    node.all_reduce.push_back(std::move(table));
  });
}

void read_fabric(ObjectReader& reader, SourcedReader& sourced, NodeSpec& node) {
  ObjectReader fabric = sourced.section(reader, "fabric");
  const std::string kind = fabric.keys().empty() ? "none" : fabric.choice("kind", fabric_names());
  const auto it = std::find(fabric_names().begin(), fabric_names().end(), kind);
  node.fabric = static_cast<FabricKind>(it - fabric_names().begin());
  node.fabric_link = fabric.text_or("link", "");
  node.fabric_bandwidth = sourced.quantity<BytesPerSec>(fabric, "bandwidth");
  node.domain = static_cast<int>(fabric.integer_or("domain", 0, 0, kMostDevices));
  if (node.devices > 0 && node.domain % node.devices != 0) {
    fabric.problem(
        "domain",
        fmt::format("{} is no multiple of the node's {} devices", node.domain, node.devices),
        "devices of whole servers share a fabric");
  }
  if (node.fabric != FabricKind::kNone && node.fabric_link.empty()) {
    fabric.problem("link", "missing required key", "name a catalogue link");
  }
  fabric.finish();
}

void read_host(ObjectReader& reader, SourcedReader& sourced, NodeSpec& node) {
  ObjectReader host = sourced.section(reader, "host");
  node.host_link = host.text_or("link", "");
  node.cpu = host.text_or("cpu", "");
  node.cpus = static_cast<int>(host.integer_or("cpus", 0, 0, kMostDevices));
  node.host_memory = sourced.quantity<Bytes>(host, "memory");
  if (node.cpus > 0 && node.cpu.empty()) {
    host.problem("cpu", "missing required key", "name the catalogue device of the host CPU");
  }
  host.finish();
}

void read_node_power(ObjectReader& reader, SourcedReader& sourced, NodeSpec& node) {
  ObjectReader power = sourced.section(reader, "power");
  node.idle_power = sourced.quantity<Watts>(power, "idle", Range::non_negative());
  node.overhead = sourced.quantity<Watts>(power, "overhead", Range::non_negative());
  node.psu_efficiency = sourced.number(power, "psu_efficiency", Range{Range::positive().min, 1.0});
  power.finish();
}
}  // namespace

std::string_view to_string(FabricKind kind) {
  return fabric_names()[static_cast<std::size_t>(kind)];
}

const std::vector<std::string>& link_kinds() {
  static const std::vector<std::string> kinds = {"device",  "host",   "switch",
                                                 "network", "memory", "storage"};
  return kinds;
}

LinkSpec read_link(ObjectReader& reader, Problems& problems, const Priors* priors) {
  LinkSpec link;
  link.file = reader.file();
  reader.choice("schema", {"medley.link/1"});
  link.name = reader.text("name");
  link.kind = reader.choice("kind", link_kinds());
  link.aliases = reader.texts_or_empty("aliases");
  link.notes = reader.text_or("notes", "");
  SourcedReader sourced(reader, problems);
  link.bandwidth = sourced.quantity<BytesPerSec>(reader, "bandwidth");
  link.achieved = sourced.number(reader, "achieved", Range{Range::positive().min, 1.0});
  link.latency = sourced.quantity<Seconds>(reader, "latency", Range::non_negative());
  link.energy_per_byte =
      sourced.quantity<JoulesPerByte>(reader, "energy_per_byte", Range::non_negative());
  reader.finish();
  if (priors) fill_model_gaps(link, *priors);
  return link;
}

NodeSpec read_node(ObjectReader& reader, Problems& problems) {
  NodeSpec node;
  node.file = reader.file();
  reader.choice("schema", {"medley.node/1"});
  node.name = reader.text("name");
  node.aliases = reader.texts_or_empty("aliases");
  node.notes = reader.text_or("notes", "");
  node.device = reader.text("device");
  node.devices = static_cast<int>(reader.integer("devices", 1, kMostDevices));
  SourcedReader sourced(reader, problems);
  read_fabric(reader, sourced, node);
  read_all_reduce(reader, sourced, node);
  read_host(reader, sourced, node);
  node.network = sourced.quantity<BytesPerSec>(reader, "network");
  read_node_power(reader, sourced, node);
  ObjectReader price = sourced.section(reader, "price");
  node.capex = sourced.quantity<Usd>(price, "capex", Range::non_negative());
  node.rent = sourced.quantity<UsdPerSec>(price, "rent", Range::non_negative());
  price.finish();
  reader.finish();
  return node;
}

}  // namespace medley
