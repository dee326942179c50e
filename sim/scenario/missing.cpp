#include "sim/scenario/missing.h"

#include <fmt/format.h>

namespace medley {

namespace {
std::string_view unit_of(std::string_view field) {
  struct Unit {
    std::string_view end, unit;
  };
  constexpr Unit kUnits[] = {{"energy_per_byte", "... pJ/B"},
                             {"psu_efficiency", "0.9..."},
                             {"capex", "... USD"},
                             {"rent", "... USD/h"},
                             {"memory.capacity", "... GB"},
                             {"memory.bandwidth", "... TB/s"}};
  for (const Unit& u : kUnits) {
    if (field.ends_with(u.end)) return u.unit;
  }
  if (field.find("energy_per_flop") != field.npos) return "... pJ/flop";
  if (field.find("peak.") != field.npos) return "... TFLOP/s";
  return "... W";
}
}  // namespace

std::vector<DType> native_dtypes(const DeviceSpec& device) {
  std::vector<DType> all;
  for (int d = 0; d < kDTypes; ++d) {
    if (device.peak[static_cast<std::size_t>(d)].known()) all.push_back(static_cast<DType>(d));
  }
  return all;
}

std::vector<std::string> unknown_power(const DeviceSpec& device, const NodeSpec& node,
                                       const std::vector<DType>& used) {
  std::vector<std::string> fields;
  const auto need = [&](bool known, std::string field) {
    if (!known) fields.push_back(std::move(field));
  };
  need(device.power.context_idle.known(), "power.context_idle");
  need(device.power.active_floor.known(), "power.active_floor");
  need(device.power.energy_per_byte.known(), "power.energy_per_byte");
  for (const DType d : used) {
    need(device.power.energy_per_flop[index(d)].known(),
         fmt::format("power.energy_per_flop.{}", to_string(d)));
  }
  need(node.overhead.known(), "node.power.overhead");
  need(node.psu_efficiency.known(), "node.power.psu_efficiency");
  return fields;
}

std::vector<std::string> unknown_price(const DeviceSpec& device, const NodeSpec& node, bool capex) {
  if (capex) {
    if (device.capex.known() || node.capex.known()) return {};
    return {"node.price.capex"};
  }
  if (device.rent.known() || node.rent.known()) return {};
  return {"node.price.rent"};
}

std::string set_line(const std::string& group, std::string_view field) {
  return fmt::format("--set 'cluster.nodes.{}.overrides.{}={}'", group, field, unit_of(field));
}

}  // namespace medley
