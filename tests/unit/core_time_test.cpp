#include <doctest/doctest.h>

#include "sim/core/error.h"
#include "sim/core/sim_time.h"

using namespace medley;

TEST_CASE("durations are rounded to the nearest nanosecond, ties to even") {
  const SimTime zero;
  CHECK(SimTime::after(zero, Seconds(1.4e-9)).ns() == 1);
  CHECK(SimTime::after(zero, Seconds(1.6e-9)).ns() == 2);
  CHECK(SimTime::after(zero, Seconds(0.5e-9)).ns() == 0);
  CHECK(SimTime::after(zero, Seconds(1.5e-9)).ns() == 2);
  CHECK(SimTime::after(zero, Seconds(2.5e-9)).ns() == 2);
  CHECK(SimTime::after(SimTime::from_ns(10), Seconds(-3e-9)).ns() == 7);
  CHECK(SimTime::from_seconds(Seconds(0.25)).ns() == 250'000'000);
  CHECK((SimTime::from_ns(7) - SimTime::from_ns(10)).value() == doctest::Approx(-3e-9));
  CHECK(SimTime::from_ns(1) < SimTime::from_ns(2));
  CHECK(SimTime::from_ns(1'500'000'000).seconds().value() == 1.5);
}

TEST_CASE("time that does not fit is an error, never a wrap") {
  CHECK_THROWS_AS(SimTime::after(SimTime::max(), Seconds(1e-9)), InputError);
  CHECK_THROWS_AS(SimTime::from_seconds(Seconds(1e10)), InputError);
  CHECK_THROWS_AS(SimTime::from_seconds(Seconds(-1e10)), InputError);
  CHECK_NOTHROW(SimTime::from_seconds(Seconds(9.1e9)));
  const double nan = __builtin_nan("");
  CHECK_THROWS_AS(SimTime::from_seconds(Seconds(nan)), InternalError);
}

TEST_CASE("the local clock looks ahead without moving") {
  LocalClock clock(SimTime::from_ns(5));
  CHECK(clock.time(Seconds(2e-9)).ns() == 7);
  CHECK(clock.time().ns() == 5);
  clock.advance(Seconds(0.7));
  clock.advance(Seconds(0.7));
  CHECK(clock.time().ns() == 1'400'000'005);
}
