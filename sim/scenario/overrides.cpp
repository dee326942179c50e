#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "hwmodels/read.h"
#include "sim/scenario/read.h"

namespace medley {

using Json = nlohmann::ordered_json;

namespace {
constexpr const char* kSource = "given in the scenario";

/// Members that are words or counts, not sourced values.
bool is_plain(const std::string& pointer) {
  constexpr std::array kPlain = {"/device",      "/devices",       "/fabric",    "/fabric/kind",
                                 "/fabric/link", "/fabric/domain", "/host_link", "/host/link",
                                 "/host/cpu",    "/host/cpus",     "/all_reduce"};
  return std::any_of(kPlain.begin(), kPlain.end(), [&](const char* p) { return pointer == p; });
}

void cite(Json& value, Json& sources) {
  if (!value.contains("class")) value["class"] = "assumed";
  const std::string source = value.contains("source") && value["source"].is_string()
                                 ? value["source"].get<std::string>()
                                 : kSource;
  value["source"] = source;
  sources[source] = source;
}

/// The catalogue's form of values written bare.
Json sourced(const Json& value, const std::string& pointer, Json& sources) {
  if (value.is_null() || (is_plain(pointer) && !value.is_object())) {
    if (pointer != "/all_reduce" || !value.is_array()) return value;
    Json tables = value;
    for (Json& table : tables) {
      if (table.is_object()) cite(table, sources);
    }
    return tables;
  }
  if (value.is_object() && (value.contains("value") || value.contains("fraction"))) {
    Json out = value;
    cite(out, sources);
    return out;
  }
  if (value.is_object()) {
    Json out = Json::object();
    for (const auto& [key, below] : value.items()) {
      out[key] = sourced(below, pointer + "/" + key, sources);
    }
    return out;
  }
  Json out = Json::object();
  out[pointer.starts_with("/efficiency/") ? "fraction" : "value"] = value;
  cite(out, sources);
  return out;
}

/// {"a.b": 1} -> {"a": {"b": 1}}.
void nest(const Json& from, Json& into) {
  for (const auto& [key, value] : from.items()) {
    Json* at = &into;
    std::size_t begin = 0;
    for (std::size_t dot; (dot = key.find('.', begin)) != std::string::npos; begin = dot + 1) {
      at = &(*at)[key.substr(begin, dot - begin)];
      if (!at->is_object()) *at = Json::object();
    }
    Json& target = (*at)[key.substr(begin)];
    if (value.is_object()) {
      if (!target.is_object()) target = Json::object();
      nest(value, target);
    } else {
      target = value;
    }
  }
}

/// Problems of a catalogue entry made up here, in terms of what the user wrote.
void forward(const Problems& found, Problems& problems) {
  for (Problem p : found.list()) {
    if (p.pointer.ends_with("/value")) p.pointer.resize(p.pointer.size() - 6);
    problems.add(std::move(p));
  }
}

template <class T>
void take(Sourced<T>& base, const Sourced<T>& over) {
  if (over.known()) base = over;
}

void overlay(DeviceSpec& base, const DeviceSpec& over) {
  for (std::size_t d = 0; d < kDTypes; ++d) {
    take(base.peak[d], over.peak[d]);
    take(base.sustained[d], over.sustained[d]);
    take(base.power.energy_per_flop[d], over.power.energy_per_flop[d]);
    for (std::size_t c = 0; c < kOpClasses; ++c) {
      take(base.efficiency[c].compute[d], over.efficiency[c].compute[d]);
    }
  }
  for (std::size_t c = 0; c < kOpClasses; ++c) {
    take(base.efficiency[c].memory, over.efficiency[c].memory);
  }
  take(base.memory_capacity, over.memory_capacity);
  take(base.memory_bandwidth, over.memory_bandwidth);
  take(base.last_level_cache, over.last_level_cache);
  take(base.launch_stream, over.launch_stream);
  take(base.launch_graph, over.launch_graph);
  take(base.power.limit, over.power.limit);
  take(base.power.deep_idle, over.power.deep_idle);
  take(base.power.context_idle, over.power.context_idle);
  take(base.power.active_floor, over.power.active_floor);
  take(base.power.energy_per_byte, over.power.energy_per_byte);
  take(base.power.clock_min, over.power.clock_min);
  take(base.power.voltage_floor, over.power.voltage_floor);
  take(base.capex, over.capex);
  take(base.rent, over.rent);
  if (!over.fabric.empty()) base.fabric = over.fabric;
  if (!over.host_link.empty()) base.host_link = over.host_link;
}

void overlay(NodeSpec& base, const NodeSpec& over) {
  base.fabric = over.fabric;
  base.fabric_link = over.fabric_link;
  if (over.domain > 0) base.domain = over.domain;
  take(base.fabric_bandwidth, over.fabric_bandwidth);
  if (!over.host_link.empty()) base.host_link = over.host_link;
  if (!over.cpu.empty()) base.cpu = over.cpu;
  if (over.cpus > 0) base.cpus = over.cpus;
  take(base.host_memory, over.host_memory);
  take(base.network, over.network);
  take(base.idle_power, over.idle_power);
  take(base.overhead, over.overhead);
  take(base.psu_efficiency, over.psu_efficiency);
  take(base.capex, over.capex);
  take(base.rent, over.rent);
}

/// Names what an entry is and takes what may not be overridden out of the user's hands.
Json entry(const Json& values, const std::string& pointer, const Json& fixed,
           const std::vector<std::string>& allowed, ObjectReader& group, Problems& problems) {
  Json sources = Json::object();
  Json out = fixed;
  for (const auto& [key, value] : values.items()) {
    if (key == "comment" || key.starts_with('$')) continue;
    if (std::find(allowed.begin(), allowed.end(), key) == allowed.end()) {
      problems.add(group.file(), pointer + "/" + key, "unknown key", suggest(key, allowed));
      continue;
    }
    out[key] = sourced(value, "/" + key, sources);
  }
  out["sources"] = sources;
  return out;
}
}  // namespace

void apply_overrides(ResolvingReader& group, DeviceSpec& device, NodeSpec& node) {
  const Json* raw = group.in().raw("overrides");
  if (!raw || raw->is_null()) return;
  if (!raw->is_object()) {
    group.problem("overrides", "expected an object", "for example {\"power.limit\": \"500 W\"}");
    return;
  }
  Json values = Json::object();
  nest(*raw, values);
  group.out()["overrides"] = nlohmann::json(values);
  const std::string pointer = group.in().pointer_to("overrides");
  Problems found;
  if (values.contains("node")) {
    const Json of_node = values["node"].is_object() ? values["node"] : Json::object();
    const Json fixed = {{"schema", "medley.node/1"},
                        {"name", node.name},
                        {"device", node.device},
                        {"devices", node.devices}};
    Json full = entry(of_node, pointer + "/node", fixed,
                      {"network", "power", "price", "fabric", "host"}, group.in(), found);
    Json& fabric = full["fabric"];
    if (fabric.is_null()) fabric = Json::object();
    if (fabric.is_object()) {
      if (!fabric.contains("kind")) fabric["kind"] = to_string(node.fabric);
      if (!fabric.contains("link")) fabric["link"] = node.fabric_link;
    }
    ObjectReader reader(full, group.in().file(), pointer + "/node", found);
    overlay(node, read_node(reader, found));
    values.erase("node");
  }
  const Json fixed = {{"schema", "medley.device/1"},
                      {"name", device.name},
                      {"vendor", device.vendor},
                      {"kind", device.kind}};
  const Json full = entry(values, pointer, fixed,
                          {"peak", "sustained", "memory", "efficiency", "launch", "power", "price",
                           "fabric", "host_link", "node"},
                          group.in(), found);
  ObjectReader reader(full, group.in().file(), pointer, found);
  overlay(device, read_device(reader, found, nullptr));
  forward(found, group.problems());
}

NodeSpec read_inline_node(ResolvingReader& group, const std::string& name) {
  Json values = Json::object();
  const std::vector<std::string> keys = {"device", "devices", "fabric", "all_reduce",
                                         "host",   "network", "power",  "price"};
  for (const std::string& key : keys) {
    const Json* raw = group.in().raw(key);
    if (!raw || raw->is_null()) continue;
    values[key] = *raw;
    group.out()[key] = nlohmann::json(*raw);
  }
  if (values.empty()) {
    group.problem("type", "missing required key",
                  "name a node type (`medley list nodes`), or spell one out with \"device\" and "
                  "\"devices\"");
    return {};
  }
  Problems found;
  const Json fixed = {{"schema", "medley.node/1"}, {"name", name}};
  const Json full = entry(values, group.in().pointer(), fixed, keys, group.in(), found);
  ObjectReader reader(full, group.in().file(), group.in().pointer(), found);
  NodeSpec node = read_node(reader, found);
  node.file = group.in().file();
  forward(found, group.problems());
  return node;
}

}  // namespace medley
