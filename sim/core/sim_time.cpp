#include "sim/core/sim_time.h"

#include <cmath>

#include "sim/core/error.h"

namespace medley {

namespace {
[[noreturn]] void out_of_range() {
  throw InputError("", "", "simulated time leaves its range of 292 years",
                   "a rate is too low, a time too long, or the load too heavy for the hardware");
}
std::int64_t round_ns(double seconds) {
  const double ns = std::nearbyint(seconds * 1e9);
  MEDLEY_CHECK(!std::isnan(ns), "a duration is not a number");
  if (!(ns > -9.2e18 && ns < 9.2e18)) out_of_range();
  return static_cast<std::int64_t>(ns);
}
std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) out_of_range();
  return sum;
}
}  // namespace

SimTime SimTime::after(SimTime now, Seconds delay) {
  return SimTime(checked_add(now.ns_, round_ns(delay.value())));
}

SimTime LocalClock::time(Seconds ahead) const {
  return SimTime::from_ns(checked_add(base_ns_, round_ns(offset_s_ + ahead.value())));
}

void LocalClock::rebase() {
  const double whole = std::floor(offset_s_);
  base_ns_ = checked_add(base_ns_, round_ns(whole));
  offset_s_ -= whole;
}

}  // namespace medley
