#include "hwmodels/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>

#include "hwmodels/read.h"
#include "hwmodels/sourced_reader.h"

namespace medley {

namespace {
bool is_date(const std::string& text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  for (const std::size_t i : {0, 1, 2, 3, 5, 6, 8, 9}) {
    if (!std::isdigit(static_cast<unsigned char>(text[i]))) return false;
  }
  const int month = (text[5] - '0') * 10 + (text[6] - '0');
  const int day = (text[8] - '0') * 10 + (text[9] - '0');
  return month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

template <class T>
void replace(Sourced<T>& into, const Sourced<T>& from) {
  if (from.known()) into = from;
}

/// Calls visit(mine, theirs) for every leaf that a device's overlay may hold.
template <class Device, class Other, class Visit>
void each_leaf(Device& device, Other& other, const Visit& visit) {
  for (std::size_t d = 0; d < kDTypes; ++d) visit(device.sustained[d], other.sustained[d]);
  for (std::size_t c = 0; c < kOpClasses; ++c) {
    auto& mine = device.efficiency[c];
    auto& theirs = other.efficiency[c];
    for (std::size_t d = 0; d < kDTypes; ++d) {
      visit(mine.compute[d], theirs.compute[d]);
      visit(mine.compute_block_scaled[d], theirs.compute_block_scaled[d]);
      visit(mine.compute_by_format[d], theirs.compute_by_format[d]);
      visit(mine.memory_by_format[d], theirs.memory_by_format[d]);
    }
    visit(mine.memory, theirs.memory);
  }
  visit(device.launch_stream, other.launch_stream);
  visit(device.launch_graph, other.launch_graph);
  auto& mine = device.power;
  auto& theirs = other.power;
  visit(mine.limit, theirs.limit);
  visit(mine.deep_idle, theirs.deep_idle);
  visit(mine.context_idle, theirs.context_idle);
  visit(mine.active_floor, theirs.active_floor);
  for (std::size_t d = 0; d < kDTypes; ++d) {
    visit(mine.energy_per_flop[d], theirs.energy_per_flop[d]);
  }
  visit(mine.energy_per_byte, theirs.energy_per_byte);
  visit(mine.clock_min, theirs.clock_min);
  visit(mine.voltage_floor, theirs.voltage_floor);
}
}  // namespace

Calibration read_calibration(ObjectReader& reader, Problems& problems) {
  Calibration c;
  c.file = reader.file();
  reader.choice("schema", {"medley.calibration/1"});
  c.device = reader.text_or("device", "");
  c.backend = reader.text_or("backend", "");
  if (c.device.empty() == c.backend.empty()) {
    reader.problem("", "an overlay names one device or one backend",
                   "write \"device\": \"<catalogue name>\"");
  }
  c.date = reader.text("date");
  if (!c.date.empty() && !is_date(c.date)) {
    reader.problem("date", fmt::format("\"{}\" is no date", c.date), "write YYYY-MM-DD");
  }
  c.command = reader.text_or("command", "");
  c.notes = reader.text_or("notes", "");
  SourcedReader sourced(reader, problems);
  c.sources = sourced.sources();
  if (c.backend.empty()) {
    read_calibrated(reader, sourced, c.device_values);
  } else {
    ObjectReader host = sourced.section(reader, "host");
    ObjectReader kernels = sourced.section(reader, "kernels");
    ObjectReader memory = sourced.section(reader, "memory");
    read_calibrated(host, kernels, memory, sourced, c.backend_values);
    for (ObjectReader* section : {&host, &kernels, &memory}) section->finish();
  }
  reader.finish();
  return c;
}

Calibration load_calibration(const std::string& path) {
  const nlohmann::ordered_json document = load_json(path);
  Problems problems;
  ObjectReader reader(document, path, "", problems);
  Calibration c = read_calibration(reader, problems);
  problems.throw_if_any();
  return c;
}

void apply(const Calibration& calibration, DeviceSpec& device) {
  each_leaf(device, calibration.device_values,
            [](auto& mine, const auto& theirs) { replace(mine, theirs); });
  const PowerSpec& power = device.power;
  Problems problems;
  const auto below_limit = [&](const Sourced<Watts>& value, const char* key) {
    if (!value.known() || !power.limit.known() || *value <= *power.limit) return;
    problems.add(calibration.file, fmt::format("/power/{}", key),
                 fmt::format("{} W is above the limit of {}, {} W", value.value->value(),
                             device.name, power.limit.value->value()));
  };
  below_limit(power.deep_idle, "deep_idle");
  below_limit(power.context_idle, "context_idle");
  below_limit(power.active_floor, "active_floor");
  problems.throw_if_any();
}

void apply(const Calibration& calibration, BackendSpec& backend) {
  const BackendSpec& values = calibration.backend_values;
  replace(backend.host_per_step, values.host_per_step);
  replace(backend.host_per_sequence, values.host_per_sequence);
  replace(backend.sync_per_step, values.sync_per_step);
  replace(backend.sync_per_sequence, values.sync_per_sequence);
  replace(backend.host_per_kernel, values.host_per_kernel);
  replace(backend.request_overhead, values.request_overhead);
  replace(backend.prompt_token_overhead, values.prompt_token_overhead);
  replace(backend.decode_skew, values.decode_skew);
  replace(backend.context_reserve, values.context_reserve);
  replace(backend.activation_factor, values.activation_factor);
}

}  // namespace medley
