#include <fmt/format.h>

#include <cctype>
#include <nlohmann/json.hpp>

#include "hwmodels/calibration.h"
#include "hwmodels/read.h"
#include "hwmodels/sourced_reader.h"

namespace medley {

namespace {
constexpr int kFirstYear = 1990;
constexpr int kLastYear = 2100;

/// Calls `visit(dtype, reader of the map, key)` for each number format of the map `key`.
template <class Visit>
void each_dtype(ObjectReader& parent, std::string_view key, const Visit& visit) {
  auto map = parent.maybe_object(key);
  if (!map) return;
  for (const std::string& name : map->keys()) {
    if (name.starts_with('$') || name == "comment") continue;
    const auto& names = dtype_names();
    const auto dtype = parse_dtype(name);
    if (!dtype || to_string(*dtype) != name) {
      map->problem(name, fmt::format("unknown number format \"{}\"", name), suggest(name, names));
      map->raw(name);
      continue;
    }
    visit(*dtype, *map, name);
  }
  map->finish();
}

void read_efficiency(ObjectReader& reader, SourcedReader& sourced, DeviceSpec& device) {
  auto map = reader.maybe_object("efficiency");
  if (!map) return;
  for (const std::string& name : map->keys()) {
    if (name.starts_with('$') || name == "comment") continue;
    const auto op_class = parse_op_class(name);
    if (!op_class) {
      map->raw(name);
      map->problem(name, fmt::format("unknown op class \"{}\"", name),
                   suggest(name, op_class_names()));
      continue;
    }
    ObjectReader entry = map->object(name);
    OpEfficiency& efficiency = device.efficiency[index(*op_class)];
    each_dtype(entry, "compute", [&](DType d, ObjectReader& parent, const std::string& key) {
      efficiency.compute[index(d)] = sourced.ramp<Flops>(parent, key);
    });
    each_dtype(entry, "compute_block_scaled",
               [&](DType d, ObjectReader& parent, const std::string& key) {
                 efficiency.compute_block_scaled[index(d)] = sourced.ramp<Flops>(parent, key);
               });
    each_dtype(entry, "compute_by_format",
               [&](DType d, ObjectReader& parent, const std::string& key) {
                 efficiency.compute_by_format[index(d)] = sourced.ramp<Flops>(parent, key);
               });
    efficiency.memory = sourced.ramp<Bytes>(entry, "memory");
    each_dtype(entry, "memory_by_format",
               [&](DType d, ObjectReader& parent, const std::string& key) {
                 efficiency.memory_by_format[index(d)] = sourced.ramp<Bytes>(parent, key);
               });
    entry.finish();
  }
  map->finish();
}

void read_power(ObjectReader& reader, SourcedReader& sourced, PowerSpec& power) {
  ObjectReader entry = sourced.section(reader, "power");
  power.limit = sourced.quantity<Watts>(entry, "limit");
  power.deep_idle = sourced.quantity<Watts>(entry, "deep_idle", Range::non_negative());
  power.context_idle = sourced.quantity<Watts>(entry, "context_idle", Range::non_negative());
  power.active_floor = sourced.quantity<Watts>(entry, "active_floor", Range::non_negative());
  each_dtype(entry, "energy_per_flop", [&](DType d, ObjectReader& parent, const std::string& key) {
    power.energy_per_flop[index(d)] =
        sourced.quantity<JoulesPerFlop>(parent, key, Range::non_negative());
  });
  power.energy_per_byte =
      sourced.quantity<JoulesPerByte>(entry, "energy_per_byte", Range::non_negative());
  power.clock_min = sourced.number(entry, "clock_min", Range{Range::positive().min, 1.0});
  power.voltage_floor = sourced.number(entry, "voltage_floor", Range::fraction());
  entry.finish();
  const auto above_limit = [&](const Sourced<Watts>& value, const char* key) {
    if (!value.known() || !power.limit.known() || *value <= *power.limit) return;
    entry.problem(key, fmt::format("{} W is above the device's own limit of {} W",
                                   value.value->value(), power.limit.value->value()));
  };
  above_limit(power.deep_idle, "deep_idle");
  above_limit(power.context_idle, "context_idle");
  above_limit(power.active_floor, "active_floor");
}

void read_rates(ObjectReader& reader, SourcedReader& sourced, DeviceSpec& device) {
  each_dtype(reader, "peak", [&](DType d, ObjectReader& parent, const std::string& key) {
    device.peak[index(d)] = sourced.quantity<FlopsPerSec>(parent, key);
  });
  ObjectReader memory = sourced.section(reader, "memory");
  device.memory_capacity = sourced.quantity<Bytes>(memory, "capacity");
  device.memory_bandwidth = sourced.quantity<BytesPerSec>(memory, "bandwidth");
  device.last_level_cache = sourced.quantity<Bytes>(memory, "last_level_cache");
  memory.finish();
}
}  // namespace

void read_calibrated(ObjectReader& reader, SourcedReader& sourced, DeviceSpec& device) {
  each_dtype(reader, "sustained", [&](DType d, ObjectReader& parent, const std::string& key) {
    device.sustained[index(d)] = sourced.number(parent, key, Range{Range::positive().min, 1.0});
  });
  read_efficiency(reader, sourced, device);
  ObjectReader launch = sourced.section(reader, "launch");
  device.launch_stream = sourced.quantity<Seconds>(launch, "stream", Range::non_negative());
  device.launch_graph = sourced.quantity<Seconds>(launch, "graph", Range::non_negative());
  launch.finish();
  read_power(reader, sourced, device.power);
}

const std::vector<std::string>& device_kinds() {
  static const std::vector<std::string> kinds = {"gpu", "cpu", "npu", "tpu", "pim", "fpga"};
  return kinds;
}

std::string slug(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isalnum(u) || c == '.') {
      out += static_cast<char>(std::tolower(u));
    } else if (c == '+') {
      out += (out.ends_with('-') || out.empty()) ? "plus" : "-plus";
    } else if (!out.empty() && !out.ends_with('-')) {
      out += '-';
    }
  }
  while (out.ends_with('-')) out.pop_back();
  return out;
}

DeviceSpec read_device(ObjectReader& reader, Problems& problems, const Priors* priors) {
  DeviceSpec device;
  device.file = reader.file();
  reader.choice("schema", {"medley.device/1"});
  device.name = reader.text("name");
  device.vendor = reader.text("vendor");
  device.kind = reader.choice("kind", device_kinds());
  device.year = static_cast<int>(reader.integer_or("year", 0, kFirstYear, kLastYear));
  device.aliases = reader.texts_or_empty("aliases");
  device.notes = reader.text_or("notes", "");
  SourcedReader sourced(reader, problems);
  read_rates(reader, sourced, device);
  read_calibrated(reader, sourced, device);
  device.cores = static_cast<int>(reader.integer_or("cores", 0, 1, 1 << 20));
  device.fabric = reader.text_or("fabric", "");
  device.host_link = reader.text_or("host_link", "");
  ObjectReader price = sourced.section(reader, "price");
  device.capex = sourced.quantity<Usd>(price, "capex", Range::non_negative());
  device.rent = sourced.quantity<UsdPerSec>(price, "rent", Range::non_negative());
  price.finish();
  reader.finish();
  if (priors) fill_model_gaps(device, *priors);
  return device;
}

}  // namespace medley
