#include <algorithm>
#include <cmath>

#include "sim/core/error.h"
#include "sim/cost/step_model.h"
#include "sim/cost/step_model_impl.h"

namespace medley {

namespace {

constexpr double kForever = 1e15;

/// max of two lines at j = 0, and up to which j (inclusive) it stays the maximum.
struct Upper {
  double value = 0.0;
  double slope = 0.0;
  double holds = kForever;
  bool first = false;  ///< the first line is the maximum
};
Upper upper(double a, double a_slope, double b, double b_slope) {
  // Equal at j = 0: the steeper one is the maximum from here on.
  const bool first = a > b || (a == b && a_slope >= b_slope);
  const Upper u{first ? a : b, first ? a_slope : b_slope, kForever, first};
  const double other = first ? b : a;
  const double other_slope = first ? b_slope : a_slope;
  if (other_slope <= u.slope) return u;
  return {u.value, u.slope, std::floor((u.value - other) / (other_slope - u.slope)), first};
}

}  // namespace

DecodeBatch StepModel::decode_batch(const Features& x, double max_kv, double below_window) const {
  const Impl& m = *impl_;
  MEDLEY_CHECK(medley::at(x, Feature::kChunkTokens) == 0.0, "a decode batch has no prefill");
  const StepCost now = m.step(x, max_kv, {});
  DecodeBatch b;
  b.model_ = impl_.get();
  b.clock_ = now.clock;
  b.stage_s_ = now.stage_s;
  b.link_bytes_ = now.link_bytes;
  std::copy(std::begin(now.trust), std::end(now.trust), b.trust_);
  b.extrapolated_ = now.extrapolated;
  b.base_ = {0.0, 0.0, now.dynamic_j, now.kv_j, now.flops, now.bytes, 0.0};
  b.link_s_ = now.link_s;
  b.launch_s_ = now.launch_s;
  b.memory_fixed_s_ = now.memory_s;
  if (m.input.spec.kind == StepModelKind::kTables && now.device_s > 0.0) {
    b.memory_share_ = now.memory_s / now.device_s;
  }
  b.host_floor_s_ = now.host_floor_s;
  b.host_after_s_ = now.step_s - std::max(now.device_s, now.host_floor_s);
  b.decodes_ = medley::at(x, Feature::kDecodes);
  const double context = medley::at(x, Feature::kDecodeContext);
  b.mean_kv_ = context / b.decodes_;
  b.max_kv_ = max_kv;

  // Per step every context grows by one token, a windowed one only below the window.
  const double ranks = m.input.tensor_parallel;
  const double volt = m.limited ? m.voltage(now.clock) : 1.0;
  const double skew = m.alpha * std::max(0.0, b.decodes_ * max_kv - context);
  double kernels_s = 0.0;
  for (const auto& stage : m.context_ops) {
    for (const RooflineOp& r : stage) {
      if (!r.grows) continue;
      const auto growth = [&](const SparseForm& f) {
        return f[Feature::kDecodeContext] * b.decodes_ +
               f[Feature::kDecodeContextWindow] * below_window;
      };
      const double flops = r.flops(x) + skew * r.flops[Feature::kDecodeContext];
      const double bytes = r.bytes(x) + skew * r.bytes[Feature::kDecodeContext];
      const double more_flops = growth(r.flops), more_bytes = growth(r.bytes);
      const double n = r.op.repeats;
      MEDLEY_CHECK(b.kernel_count_ < DecodeBatch::kMostKernels,
                   "too many kinds of growing kernels");
      DecodeBatch::Kernel& k = b.kernels_[b.kernel_count_++];
      const double compute0 = n * r.compute_s(flops) / now.clock, memory0 = n * r.memory_s(bytes);
      const double compute1 = n * more_flops * r.inv_compute / now.clock;
      const double memory1 = n * more_bytes * r.inv_memory;
      k = {compute0 + r.serial * memory0, compute1 + r.serial * memory1,
           memory0 + r.serial * compute0, memory1 + r.serial * compute1};
      kernels_s += std::max(k.compute0, k.memory0);
      if (!(k.compute0 > k.memory0)) b.memory_fixed_s_ -= k.memory0;
      const double energy = r.j_flop * more_flops * volt * volt + r.j_byte * more_bytes;
      b.slope_.dynamic_j += ranks * n * energy;
      b.slope_.flops += ranks * n * more_flops;
      b.slope_.bytes += ranks * n * more_bytes;
    }
  }
  b.slope_.kv_j = b.slope_.dynamic_j;
  b.fixed_s_ = now.device_s - kernels_s;
  if (m.limited && now.clock <= m.clock_min) {
    b.least_s_per_j_ = 1.0 / (ranks * (m.limit_w - m.floor_w));
    b.fixed_s_ = now.kernels_s - kernels_s;  // the step itself may have been stretched
  }
  return b;
}

double DecodeBatch::device_s(double j, double& memory_s) const {
  const StepModel::Impl& m = *model_;
  switch (m.input.spec.kind) {
    case StepModelKind::kConstant:
      memory_s = 0.0;
      return m.input.spec.time_factor *
             (m.input.spec.per_step.value() + m.input.spec.per_sequence.value() * decodes_);
    case StepModelKind::kTables: {
      const double s = m.tables_decode_s(decodes_, mean_kv_ + j, max_kv_ + j);
      memory_s = memory_share_ * s;
      return s;
    }
    case StepModelKind::kRoofline:
      break;
  }
  double s = fixed_s_;
  memory_s = memory_fixed_s_;
  for (int i = 0; i < kernel_count_; ++i) {
    const Kernel& k = kernels_[i];
    const double compute = k.compute0 + j * k.compute1;
    const double memory = k.memory0 + j * k.memory1;
    s += std::max(compute, memory);
    if (!(compute > memory)) memory_s += memory;
  }
  return std::max(s, least_s_per_j_ * (base_.dynamic_j + j * slope_.dynamic_j));
}

DecodePoint DecodeBatch::at(double j) const {
  DecodePoint p;
  p.busy_s = device_s(j, p.memory_s);
  p.step_s = std::max(p.busy_s, host_floor_s_) + host_after_s_;
  p.dynamic_j = base_.dynamic_j + j * slope_.dynamic_j;
  p.kv_j = base_.kv_j + j * slope_.kv_j;
  p.flops = base_.flops + j * slope_.flops;
  p.bytes = base_.bytes + j * slope_.bytes;
  return p;
}

DecodeLine DecodeBatch::line(double j0) const {
  const StepModel::Impl& m = *model_;
  DecodeLine line;
  line.first = at(j0);
  line.slope = slope_;
  double memory_slope = 0.0;
  double holds = kForever;
  double slope = 0.0;
  if (m.input.spec.kind == StepModelKind::kTables) {
    const auto p = m.tables->decode_piece(decodes_, mean_kv_ + j0);
    slope = p.slope_s;
    holds = std::floor(p.end_kv - (mean_kv_ + j0));
    if (m.alpha != 0.0) {
      const auto q = m.tables->decode_piece(decodes_, max_kv_ + j0);
      slope += m.alpha * (q.slope_s - p.slope_s);
      holds = std::min(holds, std::floor(q.end_kv - (max_kv_ + j0)));
    }
    slope *= m.input.spec.time_factor * m.input.model.total_layers();
    memory_slope = memory_share_ * slope;
  } else if (m.input.spec.kind == StepModelKind::kRoofline) {
    double s = fixed_s_;
    for (int i = 0; i < kernel_count_; ++i) {
      const Kernel& k = kernels_[i];
      const Upper u =
          upper(k.compute0 + j0 * k.compute1, k.compute1, k.memory0 + j0 * k.memory1, k.memory1);
      s += u.value;
      slope += u.slope;
      if (!u.first) memory_slope += u.slope;
      holds = std::min(holds, u.holds);
    }
    const Upper u =
        upper(s, slope, least_s_per_j_ * line.first.dynamic_j, least_s_per_j_ * slope_.dynamic_j);
    slope = u.slope;
    holds = std::min(holds, u.holds);
  }
  line.slope.busy_s = line.slope.step_s = slope;
  line.slope.memory_s = memory_slope;
  if (host_floor_s_ > 0.0) {
    const Upper u = upper(line.first.busy_s, slope, host_floor_s_, 0.0);
    line.slope.step_s = u.slope;
    holds = std::min(holds, u.holds);
  }
  line.steps = static_cast<std::int64_t>(std::min(std::max(holds, 0.0), kForever)) + 1;
  return line;
}

}  // namespace medley
