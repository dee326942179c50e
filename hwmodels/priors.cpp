#include "hwmodels/priors.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/core/error.h"

namespace medley {

namespace {
const KindPriors* priors_for(const DeviceSpec& device, const Priors& priors) {
  const auto it = priors.kinds.find(device.kind);
  return it == priors.kinds.end() ? nullptr : &it->second;
}

template <class T>
void assume(Sourced<T>& into, T value, const std::string& what, const std::string& reason) {
  if (into.known()) return;
  into.value = value;
  into.provenance = Provenance::kAssumed;
  into.source = fmt::format("class prior, {}: {}", what, reason);
}

Ramp ramp_of(const RampPrior& prior, double fraction, double rate) {
  Ramp ramp{fraction, rate * fraction * prior.ramp_time.value()};
  ramp.serial = prior.serial;
  return ramp;
}

/// The peak that speaks for the device's matrix units, as a 16-bit rate.
std::optional<FlopsPerSec> sixteen_bit_peak(const DeviceSpec& device) {
  for (const DType d : {DType::kBf16, DType::kFp16}) {
    if (device.peak[index(d)].known()) return *device.peak[index(d)];
  }
  for (const DType d : {DType::kFp8, DType::kInt8}) {
    if (device.peak[index(d)].known()) return 0.5 * *device.peak[index(d)];
  }
  if (device.peak[index(DType::kFp32)].known()) return *device.peak[index(DType::kFp32)];
  return std::nullopt;
}
}  // namespace

namespace {
bool is_narrow(DType d) {
  return bytes_of(d) < 1.5;
}

/// The fraction to assume for one op class and format; see fill_model_gaps.
double assumed_fraction(const DeviceSpec& device, const KindPriors& kind, OpClass op_class,
                        DType dtype) {
  const auto& gemm = device.efficiency[index(OpClass::kGemm)].compute;
  double fraction = kind.efficiency[index(op_class)]->compute.fraction;
  for (const DType wide : {DType::kBf16, DType::kFp16}) {
    const auto& own = gemm[index(wide)];
    if (own.known()) fraction = std::min(fraction, own.value->fraction);
  }
  if (is_narrow(dtype)) fraction *= kind.narrow_formats.value;
  const auto& own = gemm[index(dtype)];
  return own.known() ? std::min(fraction, own.value->fraction) : fraction;
}

void fill_efficiency(DeviceSpec& device, const KindPriors& kind, OpClass op_class) {
  const auto& prior = kind.efficiency[index(op_class)];
  if (!prior) return;
  const std::string what = fmt::format("{} {}", device.kind, to_string(op_class));
  OpEfficiency& own = device.efficiency[index(op_class)];
  for (int d = 0; d < kDTypes; ++d) {
    const auto dtype = static_cast<DType>(d);
    const auto& peak = device.peak[index(dtype)];
    if (!peak.known()) continue;
    assume(own.compute[index(dtype)],
           ramp_of(prior->compute, assumed_fraction(device, kind, op_class, dtype),
                   peak.value->value()),
           what, prior->reason);
  }
  Sourced<Ramp>& blocks = own.compute_block_scaled[index(DType::kFp8)];
  const Sourced<Ramp>& plain = own.compute[index(DType::kFp8)];
  if (op_class == OpClass::kGroupedGemm && plain.known() && !blocks.known()) {
    Ramp ramp = *plain;
    ramp.fraction *= kind.block_scaled.value;
    ramp.half *= kind.block_scaled.value;
    assume(blocks, ramp, what + " block-scaled", kind.block_scaled.reason);
  }
  if (!device.memory_bandwidth.known()) return;
  assume(own.memory,
         ramp_of(prior->memory, prior->memory.fraction, device.memory_bandwidth.value->value()),
         what, prior->reason);
}
}  // namespace

void fill_model_gaps(DeviceSpec& device, const Priors& priors) {
  const KindPriors* kind = priors_for(device, priors);
  if (!kind) return;
  // Gemm first (it is the first class), so that no other class is assumed to beat it. Within gemm
  // the 16-bit formats precede the narrow ones that follow from them.
  for (int i = 0; i < kOpClasses; ++i) fill_efficiency(device, *kind, static_cast<OpClass>(i));
  const auto fill = [&](auto& into, const auto& prior, const char* what) {
    assume(into, prior.value, device.kind + " " + what, prior.reason);
  };
  fill(device.launch_stream, kind->launch_stream, "launch_stream");
  fill(device.launch_graph, kind->launch_graph, "launch_graph");
  fill(device.power.clock_min, kind->clock_min, "clock_min");
  fill(device.power.voltage_floor, kind->voltage_floor, "voltage_floor");
}

void fill_model_gaps(LinkSpec& link, const Priors& priors) {
  const auto it = priors.links.find(link.kind);
  if (it == priors.links.end()) return;
  assume(link.achieved, it->second.achieved.value, link.kind + " link achieved",
         it->second.achieved.reason);
  assume(link.latency, it->second.latency.value, link.kind + " link latency",
         it->second.latency.reason);
}

namespace {
void assume_energy(DeviceSpec& device, const KindPriors& kind) {
  PowerSpec& power = device.power;
  assume(power.energy_per_byte, kind.energy_per_byte.value, device.kind + " energy_per_byte",
         kind.energy_per_byte.reason);
  if (!power.limit.known() || !power.active_floor.known()) return;
  const double budget = power.limit.value->value() - power.active_floor.value->value();
  for (int d = 0; d < kDTypes; ++d) {
    const auto& peak = device.peak[static_cast<std::size_t>(d)];
    if (!peak.known() || budget <= 0.0) continue;
    assume(power.energy_per_flop[static_cast<std::size_t>(d)],
           JoulesPerFlop(budget / (kind.sustained.value * peak.value->value())),
           device.kind + " energy_per_flop", kind.sustained.reason);
  }
}
}  // namespace

DeviceSpec with_assumed(const DeviceSpec& device, const Priors& priors) {
  DeviceSpec out = device;
  const KindPriors* kind = priors_for(device, priors);
  if (!kind) return out;
  const auto what = [&](const char* field) { return device.kind + " " + field; };
  if (const auto peak = sixteen_bit_peak(device)) {
    Watts limit = *peak * kind->limit_per_flop.value;
    if (out.power.context_idle.known()) limit = std::max(limit, 2.0 * *out.power.context_idle);
    assume(out.power.limit, limit, what("power limit"), kind->limit_per_flop.reason);
  }
  if (out.power.limit.known()) {
    const Watts limit = *out.power.limit;
    Watts deep = kind->deep_idle.value * limit;
    if (out.power.context_idle.known()) deep = std::min(deep, *out.power.context_idle);
    assume(out.power.deep_idle, deep, what("deep_idle"), kind->deep_idle.reason);
    assume(out.power.context_idle, std::max(kind->context_idle.value * limit, *out.power.deep_idle),
           what("context_idle"), kind->context_idle.reason);
    assume(out.power.active_floor,
           std::max(kind->active_floor.value * limit, *out.power.context_idle),
           what("active_floor"), kind->active_floor.reason);
    assume(out.capex, Usd(kind->capex_per_watt.value * limit.value()), what("capex"),
           kind->capex_per_watt.reason);
  }
  assume_energy(out, *kind);
  if (out.capex.known()) {
    assume(out.rent, *out.capex / kind->rent_over.value, what("rent"), kind->rent_over.reason);
  }
  return out;
}

NodeSpec with_assumed(const NodeSpec& node, const DeviceSpec& device, const Priors& priors) {
  NodeSpec out = node;
  const NodePriors& p = priors.node;
  assume(out.psu_efficiency, p.psu_efficiency.value, "node psu_efficiency",
         p.psu_efficiency.reason);
  if (device.power.limit.known()) {
    assume(out.overhead,
           p.overhead_fixed.value + node.cpus * p.overhead_per_cpu.value +
               node.devices * p.overhead_per_device_watt.value * *device.power.limit,
           "node overhead", p.overhead_per_device_watt.reason);
  }
  if (device.capex.known()) {
    assume(out.capex, node.devices * p.capex_over_devices.value * *device.capex, "node capex",
           p.capex_over_devices.reason);
  }
  if (device.rent.known()) {
    assume(out.rent, node.devices * *device.rent, "node rent", "the sum of its devices' rents");
  }
  return out;
}

LinkSpec with_assumed(const LinkSpec& link, const Priors& priors) {
  LinkSpec out = link;
  const auto it = priors.links.find(link.kind);
  if (it == priors.links.end()) return out;
  assume(out.energy_per_byte, it->second.energy_per_byte.value, link.kind + " link energy_per_byte",
         it->second.energy_per_byte.reason);
  return out;
}

}  // namespace medley
