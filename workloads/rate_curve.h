#pragma once

#include <cstdint>
#include <vector>

namespace medley {

/// A rate of arrivals over time, r(t) [1/s] with t [s] from the source's start, and its integral
/// L(t) = int_0^t r. Arrivals of any gap law are placed at L^-1(S_k), S_k the sum of k unit-mean
/// gaps (time change), so that burstiness and daily shape are two independent choices and a
/// Poisson gap law gives the exact non-homogeneous Poisson process.
class RateCurve {
 public:
  struct Knot {
    double t = 0.0;
    double rate = 0.0;
  };
  static RateCurve constant(double rate);
  /// r(t) = mean (1 + amplitude cos(2 pi (t - peak) / period)), 0 <= amplitude <= 1.
  static RateCurve sinusoid(double mean, double amplitude, double period, double peak);
  /// Straight lines between knots (t ascending, first at 0); nothing arrives after the last.
  static RateCurve linear(const std::vector<Knot>& knots);
  /// Rate of knot i from its t to the next one's; the last holds until `end`.
  /// With `repeat` the whole pattern starts again at `end`.
  static RateCurve steps(const std::vector<Knot>& knots, double end, bool repeat);

  double rate(double t) const;
  double integral(double t) const;
  /// The t with L(t) = x; infinity when the curve's whole integral is below x.
  double invert(double x) const;
  /// Mean rate over one period or over the curve's span.
  double mean() const;
  double end() const { return repeat_ ? kForever : end_; }

  static constexpr double kForever = 1.7976931348623157e308;

 private:
  struct Piece {  // r(t) = r0 + slope (t - t0) on [t0, t1]; `before` is L(t0)
    double t0, t1, r0, slope, before;
  };
  void add_piece(double t0, double t1, double r0, double r1);
  double within(double x) const;  // inverse on one pass through the pieces
  double integral_within(double t) const;

  std::vector<Piece> pieces_;
  double end_ = kForever;
  double total_ = 0.0;
  bool repeat_ = false;
  bool wave_ = false;
  double mean_ = 0.0, amplitude_ = 0.0, period_ = 1.0, peak_ = 0.0;
};

}  // namespace medley
