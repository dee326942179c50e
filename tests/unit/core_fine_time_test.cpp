#include "sim/core/fine_time.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "sim/core/rng.h"

namespace medley {
namespace {

TEST_CASE("fine time: whole nanoseconds and a fraction below one") {
  const FineTime t = FineTime().after(1.5e-9);
  CHECK(t.whole_ns() == 1);
  CHECK(t.fraction_ns() == 0.5);
  const FineTime u = t.after(0.75e-9);
  CHECK(u.whole_ns() == 2);
  CHECK(u.fraction_ns() == 0.25);
  CHECK(u - t == doctest::Approx(0.75e-9).epsilon(1e-15));
  CHECK(t - u == -(u - t));
  CHECK(FineTime(SimTime::from_ns(7)).whole_ns() == 7);
  CHECK(FineTime().after(0.0) == FineTime());
}

TEST_CASE("fine time: rounded to the nearest tick, halves up") {
  CHECK(FineTime().after(1.25e-9).rounded().ns() == 1);
  CHECK(FineTime().after(1.5e-9).rounded().ns() == 2);
  CHECK(FineTime().after(1.75e-9).rounded().ns() == 2);
  CHECK(FineTime::max().rounded() == SimTime::max());
}

TEST_CASE("fine time: order is that of time") {
  const FineTime a = FineTime().after(2.25e-9), b = FineTime().after(2.5e-9);
  CHECK(a < b);
  CHECK(b < FineTime(SimTime::from_ns(3)));
  CHECK(FineTime(SimTime::from_ns(2)) < a);
  CHECK(b < FineTime::max());
}

TEST_CASE("fine time: what does not fit is never") {
  CHECK(FineTime().after(std::numeric_limits<double>::infinity()) == FineTime::max());
  CHECK(FineTime().after(1e300) == FineTime::max());
  const FineTime late = SimTime::from_ns(INT64_MAX - 1000);
  CHECK(late.after(1.0) == FineTime::max());
  CHECK(late.after(std::numeric_limits<double>::quiet_NaN()) == FineTime::max());
}

// A third of a nanosecond, 3e6 times, a year into the run: a double of seconds would have lost it
// all (its step there is 3.7 ns), ticks would have made it nothing or 3 times as much.
TEST_CASE("fine time: steps below a tick add up however late") {
  const FineTime start = SimTime::from_ns(31'536'000'000'000'000);
  FineTime t = start;
  for (int i = 0; i < 3'000'000; ++i) t = t.after(1e-9 / 3.0);
  CHECK(t - start == doctest::Approx(1e-3).epsilon(1e-12));
}

TEST_CASE("fine time: adding and taking the difference gives the duration back") {
  Rng rng(1, "test/fine-time");
  for (int i = 0; i < 20'000; ++i) {
    const FineTime t = FineTime(SimTime::from_ns(static_cast<std::int64_t>(rng.below(1ULL << 50))))
                           .after(rng.uniform() * 1e-9);
    const double d = std::min(1e8, rng.lognormal(-10.0, 8.0));
    const FineTime u = t.after(d);
    CHECK(u - t == doctest::Approx(d).epsilon(4e-16).scale(1e-9));
    CHECK(u >= t);
    CHECK(u.fraction_ns() >= 0.0);
    CHECK(u.fraction_ns() < 1.0);
  }
}

}  // namespace
}  // namespace medley
