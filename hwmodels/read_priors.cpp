#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "hwmodels/read.h"

namespace medley {

namespace {
/// A prior is {"value": ..., "reason": "..."}; both are required.
template <class T, class Read>
Prior<T> read_prior(ObjectReader& parent, std::string_view key, const Read& read) {
  ObjectReader entry = parent.object(key);
  Prior<T> prior;
  prior.value = read(entry);
  prior.reason = entry.text("reason");
  entry.finish();
  return prior;
}

template <class Q>
Prior<Q> quantity(ObjectReader& parent, std::string_view key) {
  return read_prior<Q>(parent, key, [](ObjectReader& e) { return e.quantity<Q>("value"); });
}

Prior<double> number(ObjectReader& parent, std::string_view key,
                     Range range = Range::non_negative()) {
  return read_prior<double>(parent, key, [&](ObjectReader& e) { return e.number("value", range); });
}

RampPrior read_ramp(ObjectReader& parent, std::string_view key) {
  ObjectReader entry = parent.object(key);
  RampPrior prior;
  prior.fraction = entry.number("fraction", Range{Range::positive().min, 1.0});
  prior.ramp_time = entry.quantity<Seconds>("ramp_time");
  if (key == "compute") prior.serial = entry.number_or("serial", 0.0, Range::fraction());
  entry.finish();
  return prior;
}

KindPriors read_kind(ObjectReader& reader) {
  KindPriors kind;
  ObjectReader efficiency = reader.object("efficiency");
  for (const std::string& name : op_class_names()) {
    if (name == to_string(OpClass::kCollective) || name == to_string(OpClass::kHost)) continue;
    ObjectReader entry = efficiency.object(name);
    OpPrior prior;
    prior.compute = read_ramp(entry, "compute");
    prior.memory = read_ramp(entry, "memory");
    prior.reason = entry.text("reason");
    entry.finish();
    kind.efficiency[index(*parse_op_class(name))] = prior;
  }
  efficiency.finish();
  kind.block_scaled = number(reader, "block_scaled", Range{Range::positive().min, 1.0});
  kind.narrow_formats = number(reader, "narrow_formats", Range{Range::positive().min, 1.0});
  kind.launch_stream = quantity<Seconds>(reader, "launch_stream");
  kind.launch_graph = quantity<Seconds>(reader, "launch_graph");
  kind.clock_min = number(reader, "clock_min", Range{Range::positive().min, 1.0});
  kind.voltage_floor = number(reader, "voltage_floor", Range::fraction());
  kind.limit_per_flop = quantity<JoulesPerFlop>(reader, "limit_per_flop");
  kind.deep_idle = number(reader, "deep_idle", Range::fraction());
  kind.context_idle = number(reader, "context_idle", Range::fraction());
  kind.active_floor = number(reader, "active_floor", Range::fraction());
  kind.sustained = number(reader, "sustained", Range{Range::positive().min, 1.0});
  kind.energy_per_byte = quantity<JoulesPerByte>(reader, "energy_per_byte");
  kind.capex_per_watt = number(reader, "capex_usd_per_watt");
  kind.rent_over = quantity<Seconds>(reader, "rent_over");
  reader.finish();
  return kind;
}
}  // namespace

Priors read_priors(ObjectReader& reader, Problems&) {
  Priors priors;
  priors.file = reader.file();
  reader.choice("schema", {"medley.priors/1"});
  ObjectReader kinds = reader.object("kinds");
  for (const std::string& name : device_kinds()) {
    ObjectReader kind = kinds.object(name);
    priors.kinds[name] = read_kind(kind);
  }
  kinds.finish();
  ObjectReader links = reader.object("links");
  for (const std::string& name : link_kinds()) {
    ObjectReader entry = links.object(name);
    LinkPriors& link = priors.links[name];
    link.achieved = number(entry, "achieved", Range{Range::positive().min, 1.0});
    link.latency = quantity<Seconds>(entry, "latency");
    link.energy_per_byte = quantity<JoulesPerByte>(entry, "energy_per_byte");
    entry.finish();
  }
  links.finish();
  ObjectReader node = reader.object("node");
  priors.node.overhead_fixed = quantity<Watts>(node, "overhead_fixed");
  priors.node.overhead_per_cpu = quantity<Watts>(node, "overhead_per_cpu");
  priors.node.overhead_per_device_watt = number(node, "overhead_per_device_watt");
  priors.node.psu_efficiency = number(node, "psu_efficiency", Range{Range::positive().min, 1.0});
  priors.node.capex_over_devices = number(node, "capex_over_devices", Range::at_least(1.0));
  node.finish();
  ObjectReader uncertainty = reader.object("uncertainty");
  priors.uncertainty = read_draw_priors(uncertainty);
  reader.finish();
  return priors;
}

}  // namespace medley
