#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "hwmodels/calibration.h"
#include "sim/core/csv.h"
#include "sim/core/error.h"
#include "sim/core/unit_text.h"

namespace medley {

namespace {
using Json = nlohmann::ordered_json;

/// Builds leaves and cites their sources by key.
class Leaves {
 public:
  explicit Leaves(const std::map<std::string, std::string>& sources) : sources_(sources) {}

  template <class T>
  void put(Json& parent, std::string_view key, const Sourced<T>& value) const {
    if (!value.known()) return;
    Json leaf;
    if constexpr (std::is_same_v<T, double>) {
      leaf["value"] = *value;
    } else {
      leaf["value"] = format_quantity(*value);
    }
    finish(leaf, value);
    parent[std::string(key)] = std::move(leaf);
  }

  template <class Q>
  void ramp(Json& parent, std::string_view key, const Sourced<Ramp>& value) const {
    if (!value.known()) return;
    const Ramp& r = *value.value;
    Json leaf;
    leaf["fraction"] = r.fraction;
    if (r.half > 0.0) leaf["half"] = format_quantity(Q(r.half));
    if (r.serial > 0.0) leaf["serial"] = r.serial;
    if (std::isfinite(r.high)) {
      leaf["range"] = {format_quantity(Q(r.low)), format_quantity(Q(r.high))};
    }
    finish(leaf, value);
    parent[std::string(key)] = std::move(leaf);
  }

 private:
  template <class T>
  void finish(Json& leaf, const Sourced<T>& value) const {
    if (value.error > 0.0) leaf["error"] = value.error;
    if (value.n > 0) leaf["n"] = value.n;
    leaf["class"] = to_string(value.provenance);
    for (const auto& [key, text] : sources_) {
      if (text != value.source) continue;
      leaf["source"] = key;
      return;
    }
    MEDLEY_CHECK(false, "a calibrated value cites a source that the overlay does not list");
  }
  const std::map<std::string, std::string>& sources_;
};

void add(Json& parent, std::string_view key, Json section) {
  if (!section.empty()) parent[std::string(key)] = std::move(section);
}

template <class Put>
Json per_format(const Put& put) {
  Json map = Json::object();
  for (int d = 0; d < kDTypes; ++d) put(map, static_cast<DType>(d));
  return map;
}

void device_sections(Json& document, const DeviceSpec& device, const Leaves& leaves) {
  add(document, "sustained", per_format([&](Json& map, DType d) {
        leaves.put(map, to_string(d), device.sustained[index(d)]);
      }));
  Json efficiency = Json::object();
  for (int c = 0; c < kOpClasses; ++c) {
    const auto op = static_cast<OpClass>(c);
    const OpEfficiency& from = device.efficiency[index(op)];
    Json entry = Json::object();
    add(entry, "compute", per_format([&](Json& map, DType d) {
          leaves.ramp<Flops>(map, to_string(d), from.compute[index(d)]);
        }));
    add(entry, "compute_block_scaled", per_format([&](Json& map, DType d) {
          leaves.ramp<Flops>(map, to_string(d), from.compute_block_scaled[index(d)]);
        }));
    add(entry, "compute_by_format", per_format([&](Json& map, DType d) {
          leaves.ramp<Flops>(map, to_string(d), from.compute_by_format[index(d)]);
        }));
    leaves.ramp<Bytes>(entry, "memory", from.memory);
    add(entry, "memory_by_format", per_format([&](Json& map, DType d) {
          leaves.ramp<Bytes>(map, to_string(d), from.memory_by_format[index(d)]);
        }));
    add(efficiency, to_string(op), std::move(entry));
  }
  add(document, "efficiency", std::move(efficiency));
  Json launch = Json::object();
  leaves.put(launch, "stream", device.launch_stream);
  leaves.put(launch, "graph", device.launch_graph);
  add(document, "launch", std::move(launch));
  const PowerSpec& p = device.power;
  Json power = Json::object();
  leaves.put(power, "limit", p.limit);
  leaves.put(power, "deep_idle", p.deep_idle);
  leaves.put(power, "context_idle", p.context_idle);
  leaves.put(power, "active_floor", p.active_floor);
  add(power, "energy_per_flop", per_format([&](Json& map, DType d) {
        leaves.put(map, to_string(d), p.energy_per_flop[index(d)]);
      }));
  leaves.put(power, "energy_per_byte", p.energy_per_byte);
  leaves.put(power, "clock_min", p.clock_min);
  leaves.put(power, "voltage_floor", p.voltage_floor);
  add(document, "power", std::move(power));
}

void backend_sections(Json& document, const BackendSpec& backend, const Leaves& leaves) {
  Json host = Json::object(), kernels = Json::object(), memory = Json::object();
  leaves.put(host, "per_step", backend.host_per_step);
  leaves.put(host, "per_sequence", backend.host_per_sequence);
  leaves.put(host, "sync_per_step", backend.sync_per_step);
  leaves.put(host, "sync_per_sequence", backend.sync_per_sequence);
  leaves.put(host, "per_kernel", backend.host_per_kernel);
  leaves.put(host, "per_request", backend.request_overhead);
  leaves.put(host, "per_prompt_token", backend.prompt_token_overhead);
  leaves.put(kernels, "decode_skew", backend.decode_skew);
  leaves.put(memory, "context_reserve", backend.context_reserve);
  leaves.put(memory, "activation_factor", backend.activation_factor);
  add(document, "host", std::move(host));
  add(document, "kernels", std::move(kernels));
  add(document, "memory", std::move(memory));
}

/// As the catalogue is written: objects without objects inside on one line.
void print(const Json& node, std::string& out, std::size_t indent) {
  if (node.is_number_float()) {
    append_number(out, node.get<double>());
    return;
  }
  if (node.is_array()) {
    out += '[';
    for (std::size_t i = 0; i < node.size(); ++i) {
      if (i > 0) out += ", ";
      print(node[i], out, indent);
    }
    out += ']';
    return;
  }
  if (!node.is_object()) {
    out += node.dump();
    return;
  }
  const bool flat = node.contains("class");
  out += '{';
  bool first = true;
  for (const auto& [key, value] : node.items()) {
    if (!first) out += flat ? ", " : ",";
    first = false;
    if (!flat) out += '\n' + std::string(indent + 2, ' ');
    out += Json(key).dump() + ": ";
    print(value, out, indent + 2);
  }
  if (!flat && !first) out += '\n' + std::string(indent, ' ');
  out += '}';
}
}  // namespace

std::string to_json_text(const Calibration& c) {
  Json document;
  document["schema"] = "medley.calibration/1";
  if (!c.device.empty()) document["device"] = c.device;
  if (!c.backend.empty()) document["backend"] = c.backend;
  document["date"] = c.date;
  if (!c.command.empty()) document["command"] = c.command;
  if (!c.notes.empty()) document["notes"] = c.notes;
  Json sources = Json::object();
  for (const auto& [key, text] : c.sources) sources[key] = text;
  document["sources"] = std::move(sources);
  const Leaves leaves(c.sources);
  if (c.backend.empty()) {
    device_sections(document, c.device_values, leaves);
  } else {
    backend_sections(document, c.backend_values, leaves);
  }
  std::string out;
  print(document, out, 0);
  out += '\n';
  return out;
}

}  // namespace medley
