#include "workloads/rate_curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "sim/core/error.h"

namespace medley {

RateCurve RateCurve::constant(double rate) {
  RateCurve c;
  c.mean_ = rate;
  c.wave_ = true;
  return c;
}

RateCurve RateCurve::sinusoid(double mean, double amplitude, double period, double peak) {
  MEDLEY_CHECK(amplitude >= 0.0 && amplitude <= 1.0 && period > 0.0, "sinusoid: out of range");
  RateCurve c = constant(mean);
  c.amplitude_ = amplitude;
  c.period_ = period;
  c.peak_ = peak;
  return c;
}

void RateCurve::add_piece(double t0, double t1, double r0, double r1) {
  MEDLEY_CHECK(t1 >= t0 && r0 >= 0.0 && r1 >= 0.0, "rate curve: bad piece");
  if (t1 == t0) return;
  pieces_.push_back({t0, t1, r0, (r1 - r0) / (t1 - t0), total_});
  total_ += (r0 + r1) / 2.0 * (t1 - t0);
}

RateCurve RateCurve::linear(const std::vector<Knot>& knots) {
  RateCurve c;
  for (std::size_t i = 0; i + 1 < knots.size(); ++i) {
    c.add_piece(knots[i].t, knots[i + 1].t, knots[i].rate, knots[i + 1].rate);
  }
  c.end_ = knots.back().t;
  return c;
}

RateCurve RateCurve::steps(const std::vector<Knot>& knots, double end, bool repeat) {
  RateCurve c;
  for (std::size_t i = 0; i < knots.size(); ++i) {
    const double next = i + 1 < knots.size() ? knots[i + 1].t : end;
    c.add_piece(knots[i].t, next, knots[i].rate, knots[i].rate);
  }
  c.end_ = end;
  c.repeat_ = repeat;
  return c;
}

double RateCurve::rate(double t) const {
  if (wave_) {
    if (amplitude_ == 0.0) return mean_;
    return mean_ * (1.0 + amplitude_ * std::cos(2.0 * std::numbers::pi * (t - peak_) / period_));
  }
  if (repeat_) t = std::fmod(t, end_);
  for (const Piece& p : pieces_) {
    if (t >= p.t0 && t < p.t1) return p.r0 + p.slope * (t - p.t0);
  }
  return 0.0;
}

double RateCurve::integral_within(double t) const {
  double sum = 0.0;
  for (const Piece& p : pieces_) {
    if (t <= p.t0) break;
    const double d = std::min(t, p.t1) - p.t0;
    sum = p.before + d * (p.r0 + p.slope * d / 2.0);
  }
  return sum;
}

double RateCurve::integral(double t) const {
  if (wave_) {
    if (amplitude_ == 0.0) return mean_ * t;
    const double w = 2.0 * std::numbers::pi / period_;
    return mean_ * (t + amplitude_ / w * (std::sin(w * (t - peak_)) + std::sin(w * peak_)));
  }
  if (!repeat_) return integral_within(t);
  const double rounds = std::floor(t / end_);
  return rounds * total_ + integral_within(t - rounds * end_);
}

double RateCurve::within(double x) const {
  auto it = std::upper_bound(pieces_.begin(), pieces_.end(), x,
                             [](double v, const Piece& p) { return v < p.before; });
  if (it == pieces_.begin()) return std::numeric_limits<double>::infinity();
  --it;
  const double area = x - it->before;
  if (area == 0.0) return it->t0;
  // r0 d + slope d^2 / 2 = area, in the form that neither cancels nor divides by a zero slope.
  const double root = std::sqrt(std::max(0.0, it->r0 * it->r0 + 2.0 * it->slope * area));
  const double d = 2.0 * area / (it->r0 + root);
  return std::min(it->t0 + d, it->t1);
}

double RateCurve::invert(double x) const {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  if (!wave_) {
    if (!repeat_) return x <= total_ ? within(x) : kNever;
    if (total_ <= 0.0) return kNever;
    const double rounds = std::floor(x / total_);
    return rounds * end_ + within(x - rounds * total_);
  }
  if (mean_ <= 0.0) return kNever;
  if (amplitude_ == 0.0) return x / mean_;
  // |L(t) - mean t| <= mean A/w: bracketed, then Newton kept inside the bracket.
  const double slack = amplitude_ * period_ / std::numbers::pi;
  double low = std::max(0.0, x / mean_ - slack);
  double high = x / mean_ + slack;
  double t = x / mean_;
  for (int i = 0; i < 200; ++i) {
    const double error = integral(t) - x;
    if (error == 0.0) return t;
    (error > 0.0 ? high : low) = t;
    double next = t - error / rate(t);
    if (!(next > low && next < high)) next = (low + high) / 2.0;
    if (std::abs(next - t) <= 1e-10 + 1e-15 * t) return next;
    t = next;
  }
  return t;
}

double RateCurve::mean() const {
  return wave_ ? mean_ : total_ / end_;
}

}  // namespace medley
