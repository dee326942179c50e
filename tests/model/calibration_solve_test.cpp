#include <doctest/doctest.h>

#include <cmath>
#include <span>
#include <vector>

#include "sim/calibration/ramp_fit.h"
#include "sim/calibration/solve.h"

using namespace medley;

TEST_CASE("non-negative least squares: a hand-derived case with an active bound") {
  // A = [1 0; 1 1; 1 2], b = (3, 2, 1): the unconstrained answer is x = (3, -1), exact. With
  // x1 >= 0 the second column leaves: x0 = mean of b = 2, and the gradient at (2, 0) in x1 is
  // a1 . (b - 2) = 0 * 1 + 1 * 0 + 2 * (-1) = -2 < 0, so x1 stays at 0.
  const std::vector<double> a = {1, 0, 1, 1, 1, 2};
  const auto x = non_negative_least_squares(a, 2, std::vector<double>{3, 2, 1});
  CHECK(x[0] == doctest::Approx(2.0));
  CHECK(x[1] == 0.0);
  // With b = (1, 2, 4) both are free: normal equations 3 x0 + 3 x1 = 7, 3 x0 + 5 x1 = 10, so
  // x1 = 1.5, x0 = 5/6.
  const auto y = non_negative_least_squares(a, 2, std::vector<double>{1, 2, 4});
  CHECK(y[0] == doctest::Approx(5.0 / 6.0));
  CHECK(y[1] == doctest::Approx(1.5));
}

TEST_CASE("columns of very different size, and a column of zeros") {
  // x0 counts joules per flop (1e-12), x1 watts (1e2): b = 1e-12 * 3e14 + 100 = 400, ...
  const std::vector<double> a = {3e14, 1, 0, 1e14, 1, 0, 6e14, 1, 0};
  const auto x = non_negative_least_squares(a, 3, std::vector<double>{400, 200, 700});
  CHECK(x[0] == doctest::Approx(1e-12));
  CHECK(x[1] == doctest::Approx(100.0));
  CHECK(x[2] == 0.0);
}

TEST_CASE("the simplex walks to a corner that is not smooth") {
  // |x - 3| + 2 |y + 1| + |x + y - 2| has its minimum 0 at (3, -1).
  const auto end = minimise(
      [](std::span<const double> p) {
        return std::fabs(p[0] - 3) + 2 * std::fabs(p[1] + 1) + std::fabs(p[0] + p[1] - 2);
      },
      {0.0, 0.0}, 0.5);
  CHECK(end[0] == doctest::Approx(3.0).epsilon(1e-3));
  CHECK(end[1] == doctest::Approx(-1.0).epsilon(1e-3));
}

TEST_CASE("rounding to significant digits; quantiles by rank") {
  CHECK(rounded(0.123456) == 0.1235);
  CHECK(rounded(9.87654e12, 3) == 9.88e12);
  CHECK(rounded(0.0) == 0.0);
  CHECK(median({3, 1, 2}) == 2.0);
  CHECK(quantile({5, 1, 4, 2, 3, 10, 9, 8, 7, 6}, 0.9) == 10.0);
  CHECK(median({}) == 0.0);
}

TEST_CASE("time of a pair of ramps, by hand") {
  // Peak 100 TFLOP/s at .8 after 0.8 GFLOP; 1 TB/s at .5 after 1 MB; a third not hidden.
  // F = 7.2 GFLOP: C = 8e9 / 80e12 = 100 us.  B = 19 MB: M = 20e6 / 0.5e12 = 40 us.
  // t = 100 + 0.25 * 40 = 110 us. With B = 99 MB: M = 200 us, t = 200 + 25 = 225 us.
  RampPair pair;
  pair.compute = Ramp{0.8, 0.8e9};
  pair.compute.serial = 0.25;
  pair.memory = Ramp{0.5, 1e6};
  const RampRates rates{100e12, 1e12};
  CHECK(pair.time_s(rates, 7.2e9, 19e6) == doctest::Approx(110e-6));
  CHECK(pair.compute_bound(rates, 7.2e9, 19e6));
  CHECK(pair.time_s(rates, 7.2e9, 99e6) == doctest::Approx(225e-6));
  CHECK(!pair.compute_bound(rates, 7.2e9, 99e6));
}
