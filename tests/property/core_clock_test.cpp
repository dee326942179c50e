#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>

#include "sim/core/rng.h"
#include "sim/core/sim_time.h"

using namespace medley;

// n steps of h seconds end at n*h. The offset stays below 1 s, so each addition errs by at most
// half an ulp of a number below 2, 2^-53 s; n = 1e8 steps err by at most 1e8 * 2^-53 s = 11 ns even
// if every rounding went the same way, and a naive double sum at 1e5 s by up to 1e8 * 2^-37 s = 0.7
// ms. Here 2e6 steps: 2e6 * 2^-53 s = 0.22 ns, so the end is right to the last tick of rounding,
// however far from zero the clock started.
TEST_CASE("the local clock does not drift, wherever it starts") {
  constexpr std::int64_t kSteps = 2'000'000;
  for (const std::int64_t start : {std::int64_t{0}, std::int64_t{1} << 60}) {
    for (const double step : {1e-3, 7.3e-6, 0.0217, 0.9999, 3.7}) {
      LocalClock clock(SimTime::from_ns(start));
      for (std::int64_t i = 0; i < kSteps; ++i) clock.advance(Seconds(step));
      const long double exact = static_cast<long double>(step) * kSteps * 1e9L;
      const auto elapsed = static_cast<long double>(clock.time().ns() - start);
      CAPTURE(step);
      CHECK(std::abs(static_cast<double>(elapsed - exact)) <= 1.0);
    }
  }
}

TEST_CASE("random steps: the local clock agrees with an exact integer sum") {
  Rng rng(11, "clock");
  LocalClock clock;
  std::int64_t exact_ns = 0;
  for (int i = 0; i < 500'000; ++i) {
    const auto ns = static_cast<std::int64_t>(rng.below(2'000'000'000));
    exact_ns += ns;
    clock.advance(SimTime::from_ns(ns).seconds());
    if (i % 1000 == 0) CHECK(clock.time().ns() == exact_ns);
  }
  CHECK(clock.time().ns() == exact_ns);
}
