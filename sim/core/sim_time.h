#pragma once

#include <compare>
#include <cstdint>

#include "sim/core/units.h"

namespace medley {

/// A point of simulated time: int64 nanoseconds since the start of the run (292 years).
/// `after` is the one place where durations are rounded: to nearest, ties to even.
class SimTime {
 public:
  constexpr SimTime() = default;
  static constexpr SimTime from_ns(std::int64_t ns) { return SimTime(ns); }
  /// Throws InputError when the result does not fit.
  static SimTime after(SimTime now, Seconds delay);
  static SimTime from_seconds(Seconds s) { return after(SimTime(), s); }
  static constexpr SimTime max() { return SimTime(INT64_MAX); }

  constexpr std::int64_t ns() const { return ns_; }
  constexpr Seconds seconds() const { return Seconds(static_cast<double>(ns_) * 1e-9); }
  constexpr auto operator<=>(const SimTime&) const = default;
  /// Elapsed time; exact below 2^53 ns (104 days).
  friend constexpr Seconds operator-(SimTime a, SimTime b) {
    return Seconds(static_cast<double>(a.ns_ - b.ns_) * 1e-9);
  }

 private:
  constexpr explicit SimTime(std::int64_t ns) : ns_(ns) {}
  std::int64_t ns_ = 0;
};

/// The clock of a component that takes many small steps: an int64 base plus a double offset that
/// stays below a second, so that rounding never accumulates however long the run.
class LocalClock {
 public:
  LocalClock() = default;
  explicit LocalClock(SimTime now) : base_ns_(now.ns()) {}
  void advance(Seconds step) {
    offset_s_ += step.value();
    if (offset_s_ >= 1.0) rebase();
  }
  /// The time `ahead` from here, rounded to nearest; does not move the clock.
  SimTime time(Seconds ahead = Seconds(0)) const;

 private:
  void rebase();
  std::int64_t base_ns_ = 0;
  double offset_s_ = 0.0;
};

}  // namespace medley
