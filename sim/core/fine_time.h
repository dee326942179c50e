#pragma once

#include <compare>
#include <cstdint>

#include "sim/core/sim_time.h"

namespace medley {

/// A point of simulated time finer than a tick: whole nanoseconds and a fraction of one in [0, 1).
/// What chains many steps shorter than a tick (messages of a collective, fluid activities) keeps
/// its time in this form, so that rounding neither accumulates nor depends on how late it is.
/// Adding a duration d is exact to max(2^-53 d, 1e-25 s).
class FineTime {
 public:
  constexpr FineTime() = default;
  constexpr FineTime(SimTime tick) : ns_(tick.ns()) {}  // NOLINT: a tick is a fine time
  static constexpr FineTime max() { return FineTime(SimTime::max()); }

  /// `delay` >= 0. Beyond what fits (infinite delays too): max().
  FineTime after(double delay_s) const {
    const double ns = delay_s * 1e9;
    if (!(ns < 9.2e18 - static_cast<double>(ns_))) return max();
    const auto whole = static_cast<std::int64_t>(ns);
    FineTime t;
    t.ns_ = ns_ + whole;
    t.fraction_ = fraction_ + (ns - static_cast<double>(whole));
    if (t.fraction_ >= 1.0) {
      t.fraction_ -= 1.0;
      ++t.ns_;
    }
    return t;
  }
  /// Nearest tick, halves up.
  constexpr SimTime rounded() const {
    return SimTime::from_ns(fraction_ >= 0.5 && ns_ < INT64_MAX ? ns_ + 1 : ns_);
  }
  constexpr std::int64_t whole_ns() const { return ns_; }
  constexpr double fraction_ns() const { return fraction_; }
  constexpr double seconds() const { return (static_cast<double>(ns_) + fraction_) * 1e-9; }
  constexpr auto operator<=>(const FineTime&) const = default;
  /// Seconds from `b` to `a`.
  friend constexpr double operator-(const FineTime& a, const FineTime& b) {
    return (static_cast<double>(a.ns_ - b.ns_) + (a.fraction_ - b.fraction_)) * 1e-9;
  }

 private:
  std::int64_t ns_ = 0;
  double fraction_ = 0.0;
};

}  // namespace medley
