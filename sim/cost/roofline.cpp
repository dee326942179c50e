#include "sim/cost/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/core/error.h"

namespace medley {

namespace {

/// Classes whose arithmetic never limits them: only their bytes are modelled.
bool memory_only(OpClass c) {
  return c == OpClass::kElementwise || c == OpClass::kEmbedding || c == OpClass::kSampling ||
         c == OpClass::kCopy;
}

InputError missing(const DeviceSpec& device, const std::string& field, const std::string& why) {
  return InputError(
      device.file, "/" + field,
      fmt::format("device {} has no {}, which {}", device.name, field, why),
      fmt::format("supply it with --set cluster.nodes.<group>.overrides.{}=<value>", field));
}

DType arithmetic_dtype(const DeviceSpec& device, DType wanted, const std::string& op) {
  if (device.peak[index(wanted)].known()) return wanted;
  if (const auto other = compute_fallback(device, wanted)) return *other;
  throw missing(device, fmt::format("peak.{}", to_string(wanted)), "op " + op + " needs");
}

void join_compute(RooflineOp& r, const StepModelInput& in) {
  const DeviceSpec& device = in.device;
  const DType dtype = arithmetic_dtype(device, r.op.dtype, r.op.name);
  const Sourced<FlopsPerSec>& peak = device.peak[index(dtype)];
  double fraction = 1.0;
  r.compute_class = peak.provenance;
  r.compute_source = peak.source;
  if (!in.backend.ideal()) {
    const Sourced<Ramp>& ramp =
        device.efficiency[index(r.op.op_class)].compute_of(dtype, r.op.stored, r.op.block_scaled);
    if (!ramp.known()) {
      throw missing(
          device,
          fmt::format("efficiency.{}.compute.{}", to_string(r.op.op_class), to_string(dtype)),
          "op " + r.op.name + " needs");
    }
    fraction = (*ramp).fraction;
    r.half_flops = (*ramp).half;
    r.serial = (*ramp).serial;
    r.flops_low = (*ramp).low;
    r.flops_high = (*ramp).high;
    r.compute_class = weaker(peak.provenance, ramp.provenance);
    r.compute_source = ramp.source;
    // Without an energy model the power limit cannot act through the clock; a measured sustained
    // rate then stands in for it.
    const Sourced<double>& sustained = device.sustained[index(dtype)];
    if (sustained.known() && !device.power.energy_per_flop[index(dtype)].known()) {
      fraction = std::min(fraction, *sustained);
    }
    fraction = std::min(1.0, fraction / in.spec.time_factor);
  }
  r.inv_compute = 1.0 / ((*peak).value() * fraction);
  const Sourced<JoulesPerFlop>& energy = device.power.energy_per_flop[index(dtype)];
  if (energy.known()) r.j_flop = (*energy).value();
}

void join_memory(RooflineOp& r, const StepModelInput& in) {
  const DeviceSpec& device = in.device;
  if (!device.memory_bandwidth.known()) throw missing(device, "memory.bandwidth", "every op needs");
  double fraction = 1.0;
  r.memory_class = device.memory_bandwidth.provenance;
  r.memory_source = device.memory_bandwidth.source;
  if (!in.backend.ideal()) {
    const Sourced<Ramp>& ramp = device.efficiency[index(r.op.op_class)].memory_of(r.op.stored);
    if (!ramp.known()) {
      throw missing(device, fmt::format("efficiency.{}.memory", to_string(r.op.op_class)),
                    "op " + r.op.name + " needs");
    }
    fraction = std::min(1.0, (*ramp).fraction / in.spec.time_factor);
    r.half_bytes = (*ramp).half;
    r.bytes_low = (*ramp).low;
    r.bytes_high = (*ramp).high;
    r.memory_class = weaker(r.memory_class, ramp.provenance);
    r.memory_source = ramp.source;
  }
  r.inv_memory = 1.0 / ((*device.memory_bandwidth).value() * fraction);
  if (device.power.energy_per_byte.known()) r.j_byte = (*device.power.energy_per_byte).value();
}

}  // namespace

void SparseForm::add(const LinearForm& form) {
  for (int f = 0; f < kFeatures; ++f) {
    const double c = form.coefficient[static_cast<std::size_t>(f)];
    if (c == 0.0) continue;
    int i = 0;
    while (i < terms_ && feature_[i] != f) ++i;
    if (i == terms_) feature_[terms_++] = static_cast<std::uint8_t>(f);
    coefficient_[i] += c;
  }
}

double SparseForm::operator[](Feature f) const {
  for (int i = 0; i < terms_; ++i) {
    if (feature_[i] == static_cast<std::uint8_t>(f)) return coefficient_[i];
  }
  return 0.0;
}

OpGroup group_of(const StepOp& op) {
  const auto uses = [&](Feature f) {
    return op.flops[f] != 0 || op.weight_bytes[f] != 0 || op.kv_bytes[f] != 0 ||
           op.activation_bytes[f] != 0 || op.message_bytes[f] != 0;
  };
  bool tokens = uses(Feature::kTokens) || uses(Feature::kExpertsHit);
  const bool logits = uses(Feature::kLogits);
  bool context = tokens && logits;
  for (int f = 0; f < kFeatures; ++f) {
    const auto feature = static_cast<Feature>(f);
    if (feature == Feature::kOne || feature == Feature::kTokens ||
        feature == Feature::kExpertsHit || feature == Feature::kLogits) {
      continue;
    }
    context = context || uses(feature);
  }
  if (context) return OpGroup::kContext;
  return logits ? OpGroup::kLogits : OpGroup::kTokens;
}

std::vector<RooflineOp> join_device(const StepModelInput& in) {
  std::vector<RooflineOp> joined;
  for (int stage = 0; stage < in.pipeline_parallel; ++stage) {
    for (StepOp& op : lower_step(in.model, in.precision, in.tensor_parallel, in.pipeline_parallel,
                                 stage, in.expert_parallel)) {
      RooflineOp r;
      r.stage = stage;
      r.op = std::move(op);
      for (const Feature f : {Feature::kDecodeContext, Feature::kDecodeContextWindow}) {
        r.grows =
            r.grows || r.op.flops[f] != 0 || r.op.kv_bytes[f] != 0 || r.op.activation_bytes[f] != 0;
      }
      r.flops.add(r.op.flops);
      for (const LinearForm* form : {&r.op.weight_bytes, &r.op.kv_bytes, &r.op.activation_bytes})
        r.bytes.add(*form);
      r.kernels = r.op.op_class == OpClass::kCollective
                      ? 0.0
                      : static_cast<double>(r.op.kernels) * r.op.repeats * in.backend.kernels_fused;
      if (r.op.op_class != OpClass::kCollective) {
        if (!memory_only(r.op.op_class)) join_compute(r, in);
        join_memory(r, in);
      }
      joined.push_back(std::move(r));
    }
  }
  return joined;
}

ReplicaPower replica_power(const StepModelInput& in) {
  const PowerSpec& p = in.device.power;
  ReplicaPower power;
  power.devices = in.tensor_parallel * in.pipeline_parallel;
  power.provenance = Provenance::kMeasured;
  const auto take = [&](const Sourced<Watts>& from, std::optional<Watts>& to, const char* field) {
    to = from.value;
    if (from.known()) {
      power.provenance = weaker(power.provenance, from.provenance);
    } else {
      power.missing.push_back(fmt::format("power.{}", field));
    }
  };
  take(p.context_idle, power.context_idle, "context_idle");
  take(p.active_floor, power.active_floor, "active_floor");
  power.deep_idle = p.deep_idle.value;
  power.limit = p.limit.value;
  power.dynamic_known = true;
  const auto need = [&](bool known, Provenance provenance, const std::string& field) {
    if (known) {
      power.provenance = weaker(power.provenance, provenance);
      return;
    }
    power.dynamic_known = false;
    if (std::find(power.missing.begin(), power.missing.end(), field) == power.missing.end()) {
      power.missing.push_back(field);
    }
  };
  need(p.energy_per_byte.known(), p.energy_per_byte.provenance, "power.energy_per_byte");
  DType compute = in.precision.activations;
  if (!in.device.peak[index(compute)].known()) {
    compute = compute_fallback(in.device, compute).value_or(compute);
  }
  const Sourced<JoulesPerFlop>& flop = p.energy_per_flop[index(compute)];
  need(flop.known(), flop.provenance, fmt::format("power.energy_per_flop.{}", to_string(compute)));
  return power;
}

}  // namespace medley
