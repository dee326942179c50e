#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "hwmodels/priors.h"
#include "sim/scenario/missing.h"
#include "sim/scenario/read.h"

namespace medley {

namespace {
constexpr std::int64_t kMostNodes = 1000000;

/// The device's power limit set by the operator; never above the board's own.
void apply_power_limit(ResolvingReader& reader, DeviceSpec& device) {
  const auto limit = reader.maybe_quantity<Watts>("power_limit", Range::positive());
  if (!limit) return;
  Sourced<Watts>& own = device.power.limit;
  if (own.known() && *limit > *own) {
    reader.problem("power_limit",
                   fmt::format("{} is above the limit of {}, {}", format_quantity(*limit),
                               device.name, format_quantity(*own)),
                   "a power limit can only be lowered");
    return;
  }
  own.value = *limit;
  own.source = "power_limit of the scenario";
}

void check_order(ResolvingReader& reader, const PowerSpec& power) {
  if (!power.active_floor.known() || !power.limit.known()) return;
  if (*power.active_floor < *power.limit) return;
  reader.problem(reader.has("power_limit") ? "power_limit" : "overrides",
                 fmt::format("the power limit {} is not above the active floor {}: the device "
                             "could do no work",
                             format_quantity(*power.limit), format_quantity(*power.active_floor)),
                 "raise power_limit or lower power.active_floor");
}

std::vector<std::string> unknown_fields(const NodeGroup& group) {
  std::vector<std::string> all =
      unknown_power(group.device, group.type, native_dtypes(group.device));
  for (const bool capex : {false, true}) {
    for (std::string& f : unknown_price(group.device, group.type, capex)) {
      all.push_back(std::move(f));
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

/// Fills unknown power and price with class priors and notes which.
void assume(NodeGroup& group, const ReadContext& context) {
  const std::vector<std::string> before = unknown_fields(group);
  group.device = with_assumed(group.device, context.catalog.priors());
  group.type = with_assumed(group.type, group.device, context.catalog.priors());
  const std::vector<std::string> after = unknown_fields(group);
  std::vector<std::string>& filled = context.assumed[group.name];
  std::set_difference(before.begin(), before.end(), after.begin(), after.end(),
                      std::back_inserter(filled));
}

bool read_type(ResolvingReader& reader, NodeGroup& group, const ReadContext& context) {
  const auto type = reader.maybe_text("type");
  if (!type) {
    group.type = read_inline_node(reader, group.name);
    return !group.type.device.empty();
  }
  for (const char* key :
       {"device", "devices", "fabric", "all_reduce", "host", "network", "power", "price"}) {
    reader.in().raw(key);
    if (!reader.has(key)) continue;
    reader.problem(key, "belongs to a node spelled out in the scenario",
                   "leave \"type\" out, or change catalogue values under \"overrides\"");
  }
  return try_at(reader, "type", [&] { group.type = context.catalog.node(*type); });
}

NodeGroup read_group(const std::string& name, ResolvingReader& reader, const ReadContext& context) {
  NodeGroup group;
  group.name = name;
  const bool typed = read_type(reader, group, context);
  const char* at = reader.has("type") ? "type" : "device";
  const bool known = typed && try_at(reader, at, [&] {
                       group.device = context.catalog.device(group.type.device);
                     });
  group.count = static_cast<int>(reader.integer_or("count", 1, 1, kMostNodes));
  if (known) {
    apply_overrides(reader, group.device, group.type);
    fill_model_gaps(group.device, context.catalog.priors());
    if (!group.type.cpu.empty()) {
      try_at(reader, at, [&] { group.cpu = context.catalog.device(group.type.cpu); });
    }
    if (context.assume_missing) assume(group, context);
    apply_power_limit(reader, group.device);
    check_order(reader, group.device.power);
  } else {
    for (const char* key : {"overrides", "power_limit"}) reader.in().raw(key);
  }
  reader.finish();
  return group;
}
/// Without comments, "$" keys and nulls.
nlohmann::json plain_values(const nlohmann::ordered_json& value) {
  if (!value.is_structured()) return nlohmann::json(value);
  nlohmann::json out = value.is_array() ? nlohmann::json::array() : nlohmann::json::object();
  for (const auto& [key, below] : value.items()) {
    if (value.is_array()) {
      out.push_back(plain_values(below));
    } else if (key != "comment" && !key.starts_with('$') && !below.is_null()) {
      out[key] = plain_values(below);
    }
  }
  return out;
}

ClusterFabricSpec read_fabric_of(ResolvingReader& cluster, const std::vector<NodeGroup>& groups,
                                 const ReadContext& context) {
  const nlohmann::ordered_json* raw = cluster.in().raw("fabric");
  if (!raw || raw->is_null()) return {};
  const std::size_t before = cluster.problems().size();
  ClusterFabricSpec fabric =
      read_cluster_fabric(*raw, cluster.in().file(), cluster.in().pointer_to("fabric"),
                          context.catalog, cluster.problems());
  if (fabric.given()) cluster.out()["fabric"] = plain_values(*raw);
  if (cluster.problems().size() > before || !fabric.given()) return fabric;
  std::vector<ClusterGroup> built;
  for (const NodeGroup& g : groups) {
    if (g.device.name.empty()) return fabric;  // unknown: told already
    built.push_back({g.name, &g.type, g.count, &g.device, g.cpu ? &*g.cpu : nullptr});
  }
  try_at(cluster, "fabric", [&] { build_cluster(context.catalog, built, fabric); });
  return fabric;
}
}  // namespace

std::vector<NodeGroup> read_cluster(ResolvingReader& cluster, const ReadContext& context,
                                    ClusterFabricSpec& fabric) {
  std::vector<NodeGroup> groups;
  cluster.each_member("nodes", [&](const std::string& name, ResolvingReader reader) {
    groups.push_back(read_group(name, reader, context));
  });
  if (groups.empty()) {
    cluster.problem(
        "nodes", "the cluster has no nodes",
        "for example {\"h100\": {\"type\": \"...\", \"count\": 1}}; `medley list nodes`");
  }
  fabric = read_fabric_of(cluster, groups, context);
  cluster.finish();
  return groups;
}

}  // namespace medley
