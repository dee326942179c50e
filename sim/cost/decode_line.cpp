#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/core/error.h"
#include "sim/cost/step_model.h"
#include "sim/cost/step_model_impl.h"

namespace medley {

namespace {

constexpr std::size_t at(Feature f) {
  return static_cast<std::size_t>(f);
}
constexpr double kForever = 1e15;

/// max of two lines at j = 0, and how many steps the larger one stays the larger.
struct Upper {
  double value = 0.0;
  double slope = 0.0;
  double holds = kForever;  ///< j up to which (inclusive) it is the maximum
};
Upper upper(double a, double a_slope, double b, double b_slope) {
  // Equal at j = 0: the steeper one is the maximum from here on.
  const bool first = a > b || (a == b && a_slope >= b_slope);
  const Upper u{first ? a : b, first ? a_slope : b_slope, kForever};
  const double other = first ? b : a;
  const double other_slope = first ? b_slope : a_slope;
  if (other_slope <= u.slope) return u;
  return {u.value, u.slope, std::floor((u.value - other) / (other_slope - u.slope))};
}

/// Features of step j: contexts grow by one token per sequence.
Features shifted(const Features& x, double below_window, double j) {
  Features y = x;
  y[at(Feature::kDecodeContext)] += j * x[at(Feature::kDecodes)];
  y[at(Feature::kDecodeContextWindow)] += j * below_window;
  return y;
}

}  // namespace

DecodeLine StepModel::decode_line(const Features& x, double max_kv, double below_window) const {
  const Impl& m = *impl_;
  MEDLEY_CHECK(x[at(Feature::kChunkTokens)] == 0.0, "a decode line has no prefill");
  const StepCost now = m.step(x, max_kv, {});
  DecodeLine line;
  line.clock = now.clock;
  std::copy(std::begin(now.trust), std::end(now.trust), line.trust);
  line.link_bytes = now.link_bytes;
  line.flops = now.flops;
  line.bytes = now.bytes;
  line.dynamic_j = now.dynamic_j;
  line.kv_j = now.kv_j;

  // Slopes of the decode-attention kernels; everything else is constant while the batch is.
  const double decodes = x[at(Feature::kDecodes)];
  const double skew = m.alpha * std::max(0.0, decodes * max_kv - x[at(Feature::kDecodeContext)]);
  Features start = x;
  start[at(Feature::kDecodeContext)] += skew;
  const Features next = shifted(start, below_window, 1.0);
  const double volt = m.voltage(now.clock);
  const double ranks = m.input.tensor_parallel;
  double holds = kForever;
  double device_slope = 0.0;
  double dynamic_slope = 0.0, flops_slope = 0.0, bytes_slope = 0.0;
  for (const auto& stage : m.context_ops) {
    for (const RooflineOp& r : stage) {
      if (!r.grows) continue;
      const auto bytes_at = [&](const Features& f) {
        return r.op.weight_bytes(f) + r.op.kv_bytes(f) + r.op.activation_bytes(f);
      };
      const double f0 = r.op.flops(start), f1 = r.op.flops(next) - f0;
      const double b0 = bytes_at(start), b1 = bytes_at(next) - b0;
      const Upper u = upper(r.compute_s(f0) / now.clock, f1 * r.inv_compute / now.clock,
                            r.memory_s(b0), b1 * r.inv_memory);
      holds = std::min(holds, u.holds);
      device_slope += r.op.repeats * u.slope;
      dynamic_slope +=
          r.op.repeats * (r.j_flop * f1 * (m.limited ? volt * volt : 1.0) + r.j_byte * b1);
      flops_slope += r.op.repeats * f1;
      bytes_slope += r.op.repeats * b1;
    }
  }
  line.dynamic_slope = ranks * dynamic_slope;
  line.kv_slope = line.dynamic_slope;
  line.flops_slope = ranks * flops_slope;
  line.bytes_slope = ranks * bytes_slope;

  if (m.input.spec.kind == StepModelKind::kConstant) {
    device_slope = 0.0;
    holds = kForever;
  } else if (m.input.spec.kind == StepModelKind::kTables) {
    const double mean = x[at(Feature::kDecodeContext)] / decodes;
    const auto p = m.tables->decode_piece(decodes, mean);
    device_slope = p.slope_s;
    holds = std::floor(p.end_kv - mean);
    if (m.alpha != 0.0) {
      const auto q = m.tables->decode_piece(decodes, max_kv);
      device_slope += m.alpha * (q.slope_s - p.slope_s);
      holds = std::min(holds, std::floor(q.end_kv - max_kv));
    }
    device_slope *= m.input.model.total_layers();
  } else if (m.limited && now.clock <= m.clock_min) {
    // Duty-cycled: the time follows the energy, unless the kernels take longer.
    const double least = now.dynamic_j / ranks / (m.limit_w - m.floor_w);
    if (now.device_s <= least * (1.0 + 1e-12)) {
      device_slope = dynamic_slope / (m.limit_w - m.floor_w);
      holds = 0.0;  // one step at a time: rare, and exact without more algebra
    }
  }

  line.busy_s = now.device_s;
  line.busy_slope = device_slope;
  const double host = m.host(x);
  if (m.input.backend.host_mode == HostMode::kSerial) {
    line.step_s = now.device_s + host;
    line.step_slope = device_slope;
  } else {
    const Upper u = upper(now.device_s, device_slope, host, 0.0);
    line.step_s = u.value;
    line.step_slope = u.slope;
    holds = std::min(holds, u.holds);
  }
  line.steps = static_cast<std::int64_t>(std::min(std::max(holds, 0.0), kForever)) + 1;
  return line;
}

}  // namespace medley
