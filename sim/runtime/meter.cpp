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
  ReplicaRecord& r = *record_;
  const double before = r.busy_s;
  const double energy_before = r.active_energy_j;
  a.points == nullptr ? take_line(a) : take_points(a);
  const double seconds = r.busy_s - before;
  r.link_bytes += a.link_bytes * static_cast<double>(a.steps);
  if (a.clock < 1.0) {
    r.limited_s += seconds;
    spread_limited(a, seconds);
  }
  for (int c = 0; c < kProvenanceClasses; ++c) r.trust_s[c] += a.trust[c] * seconds;
  if (a.extrapolated.time > 0.0) {
    const double floor_j = floor_w_ * seconds;
    const double dynamic_j = r.active_energy_j - energy_before - floor_j;
    r.extrapolated_s += a.extrapolated.time * seconds;
    r.extrapolated_j += a.extrapolated.time * floor_j + a.extrapolated.energy * dynamic_j;
  }
  if (spans_ != nullptr) {
    spans_->push_back({r.pool, r.replica, a.start, a.end, a.sequences, a.prompt_tokens, a.steps});
  }
}

void ReplicaMeter::take_line(const Advance& a) {
  const double n = static_cast<double>(a.steps);
  const double pairs = n * (n - 1.0) / 2.0;
  const auto sum = [&](double DecodePoint::*field) {
    return n * a.first.*field + pairs * a.slope.*field;
  };
  ReplicaRecord& r = *record_;
  const double seconds = sum(&DecodePoint::step_s) * share_;
  r.busy_s += seconds;
  r.active_energy_j += floor_w_ * seconds + sum(&DecodePoint::dynamic_j);
  r.flops += sum(&DecodePoint::flops);
  r.bytes += sum(&DecodePoint::bytes);
  if (a.token_gaps > 0) {
    gaps_->add(a.gap_s, a.token_gaps);
    if (a.steps > 1) {
      gaps_->add_line(a.first.step_s + a.slope.step_s, a.slope.step_s, a.steps - 1, a.token_gaps);
    }
  }
  spread(a);
}

void ReplicaMeter::take_points(const Advance& a) {
  ReplicaRecord& r = *record_;
  const double extra_w = (floor_w_ - idle_w_) * share_;
  const double bin_s = static_cast<double>(bin_ns_) * 1e-9;
  std::int64_t bin = a.start.ns() / bin_ns_;
  double at = static_cast<double>(a.start.ns() - bin * bin_ns_) * 1e-9;  // since the bin began
  double in_bin = 0.0;
  for (std::int64_t i = 0; i < a.steps; ++i) {
    const DecodePoint& p = a.points[i];
    r.busy_s += p.step_s * share_;
    r.active_energy_j += floor_w_ * share_ * p.step_s + p.dynamic_j;
    r.flops += p.flops;
    r.bytes += p.bytes;
    if (a.token_gaps > 0) gaps_->add(i == 0 ? a.gap_s : p.step_s, a.token_gaps);
    const double step_j = extra_w * p.step_s + p.dynamic_j;
    double left = p.step_s;
    while (at + left > bin_s) {
      const double part = bin_s - at;
      add_to_bin(r.extra_energy_j, bin++, in_bin + step_j * (part / p.step_s));
      in_bin = 0.0;
      left -= part;
      at = 0.0;
    }
    in_bin += step_j * (left / p.step_s);
    at += left;
  }
  if (in_bin != 0.0) add_to_bin(r.extra_energy_j, bin, in_bin);
}

void ReplicaMeter::add_to_bin(std::vector<double>& bins, std::int64_t bin, double amount) {
  const auto i = static_cast<std::size_t>(bin);
  if (bins.size() <= i) bins.resize(std::max(i + 1, bins.size() + bins.size() / 2), 0.0);
  bins[i] += amount;
}

/// Evenly over the advance.
void ReplicaMeter::spread_limited(const Advance& a, double seconds) {
  const std::int64_t span = a.end.ns() - a.start.ns();
  if (span <= 0) return;
  for (std::int64_t at = a.start.ns(); at < a.end.ns();) {
    const std::int64_t bin = at / bin_ns_;
    const std::int64_t next = std::min((bin + 1) * bin_ns_, a.end.ns());
    add_to_bin(record_->limited_bin_s, bin,
               seconds * (static_cast<double>(next - at) / static_cast<double>(span)));
    at = next;
  }
}

void ReplicaMeter::spread(const Advance& a) {
  const std::int64_t first_bin = a.start.ns() / bin_ns_;
  const std::int64_t last_bin = (a.end.ns() - 1) / bin_ns_;
  const double n = static_cast<double>(a.steps);
  const double extra_w = (floor_w_ - idle_w_) * share_;
  const double first_s = a.first.step_s;
  const double slope_s = a.slope.step_s;
  const auto seconds = [&](double k) { return k * first_s + slope_s * (k * (k - 1.0) / 2.0); };
  const auto dynamic = [&](double k) {
    return k * a.first.dynamic_j + a.slope.dynamic_j * (k * (k - 1.0) / 2.0);
  };
  const double all = extra_w * seconds(n) + dynamic(n);
  double given = 0.0;
  for (std::int64_t bin = first_bin; bin < last_bin; ++bin) {
    // Energy until the end of this bin: whole steps, and a share of the one under way.
    const double ahead = static_cast<double>((bin + 1) * bin_ns_ - a.start.ns()) * 1e-9;
    double k = std::floor(ahead / first_s);
    if (slope_s > 0.0) {
      const double b = first_s - slope_s / 2.0;
      k = std::floor((std::sqrt(b * b + 2.0 * slope_s * ahead) - b) / slope_s);
    }
    k = std::clamp(k, 0.0, n - 1.0);
    const double step = first_s + slope_s * k;
    const double part = std::clamp((ahead - seconds(k)) / step, 0.0, 1.0);
    const double upto = extra_w * (seconds(k) + part * step) + dynamic(k) +
                        part * (a.first.dynamic_j + a.slope.dynamic_j * k);
    add_to_bin(record_->extra_energy_j, bin, upto - given);
    given = upto;
  }
  add_to_bin(record_->extra_energy_j, last_bin, all - given);
}

}  // namespace medley
