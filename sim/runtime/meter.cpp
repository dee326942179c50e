#include "sim/runtime/meter.h"

#include <algorithm>
#include <cmath>

namespace medley {

ReplicaMeter::ReplicaMeter(double floor_w, double idle_w, int lanes, SimTime bin,
                           ReplicaRecord& record, LogHistogram& gaps, std::vector<TraceSpan>* spans)
    : floor_w_(floor_w),
      idle_w_(idle_w),
      share_(1.0 / lanes),
      bin_ns_(bin.ns()),
      record_(&record),
      gaps_(&gaps),
      spans_(spans) {}

void ReplicaMeter::on_advance(const Advance& a) {
  const double n = static_cast<double>(a.steps);
  const double pairs = n * (n - 1.0) / 2.0;
  const double seconds = (n * a.first_s + a.slope_s * pairs) * share_;
  ReplicaRecord& r = *record_;
  r.busy_s += seconds;
  r.active_energy_j += floor_w_ * seconds + n * a.dynamic_j + a.dynamic_slope * pairs;
  r.flops += a.flops;
  r.bytes += a.bytes;
  r.link_bytes += a.link_bytes;
  if (a.clock < 1.0) r.limited_s += seconds;
  for (int c = 0; c < kProvenanceClasses; ++c) r.trust_s[c] += a.trust[c] * seconds;
  if (a.token_gaps > 0) {
    gaps_->add(a.gap_s, a.token_gaps);
    if (a.steps > 1) gaps_->add_line(a.first_s + a.slope_s, a.slope_s, a.steps - 1, a.token_gaps);
  }
  if (spans_ != nullptr) {
    spans_->push_back({r.pool, r.replica, a.start, a.end, a.sequences, a.prompt_tokens, a.steps});
  }
  spread(a);
}

void ReplicaMeter::add_to_bin(std::int64_t bin, double joules) {
  auto& bins = record_->extra_energy_j;
  const auto i = static_cast<std::size_t>(bin);
  if (bins.size() <= i) bins.resize(std::max(i + 1, bins.size() + bins.size() / 2), 0.0);
  bins[i] += joules;
}

void ReplicaMeter::spread(const Advance& a) {
  const std::int64_t first_bin = a.start.ns() / bin_ns_;
  const std::int64_t last_bin = (a.end.ns() - 1) / bin_ns_;
  const double n = static_cast<double>(a.steps);
  const double extra_w = (floor_w_ - idle_w_) * share_;
  const auto seconds = [&](double k) { return k * a.first_s + a.slope_s * (k * (k - 1.0) / 2.0); };
  const auto dynamic = [&](double k) {
    return k * a.dynamic_j + a.dynamic_slope * (k * (k - 1.0) / 2.0);
  };
  const double all = extra_w * seconds(n) + dynamic(n);
  double given = 0.0;
  for (std::int64_t bin = first_bin; bin < last_bin; ++bin) {
    // Energy until the end of this bin: whole steps, and a share of the one under way.
    const double ahead = static_cast<double>((bin + 1) * bin_ns_ - a.start.ns()) * 1e-9;
    double k = std::floor(ahead / a.first_s);
    if (a.slope_s > 0.0) {
      const double b = a.first_s - a.slope_s / 2.0;
      k = std::floor((std::sqrt(b * b + 2.0 * a.slope_s * ahead) - b) / a.slope_s);
    }
    k = std::clamp(k, 0.0, n - 1.0);
    const double step = a.first_s + a.slope_s * k;
    const double part = std::clamp((ahead - seconds(k)) / step, 0.0, 1.0);
    const double upto = extra_w * (seconds(k) + part * step) + dynamic(k) +
                        part * (a.dynamic_j + a.dynamic_slope * k);
    add_to_bin(bin, upto - given);
    given = upto;
  }
  add_to_bin(last_bin, all - given);
}

}  // namespace medley
