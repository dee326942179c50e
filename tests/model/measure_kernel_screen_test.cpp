#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "sim/core/rng.h"
#include "sim/measure/kernel_screen.h"

namespace {
using medley::KernelSample;

KernelSample row(double position, double time_s, const std::string& curve = "c") {
  KernelSample s;
  s.op = "gemm";
  s.curve = curve;
  s.position = position;
  s.time_s = time_s;
  return s;
}

std::vector<KernelSample> curve_of(const std::vector<double>& times) {
  std::vector<KernelSample> all;
  for (std::size_t i = 0; i < times.size(); ++i) all.push_back(row(double(i + 1), times[i]));
  return all;
}

std::vector<double> times_of(const std::vector<KernelSample>& samples) {
  std::vector<double> all;
  for (const KernelSample& s : samples) all.push_back(s.time_s);
  return all;
}
}  // namespace

TEST_CASE("the monotone median fit, by hand") {
  // 1 2 | 9 3 4 5: 9 is above 3, pool {3, 9} with lower median 3; 4 and 5 are above it and stay.
  CHECK(medley::isotonic_median_fit({1, 2, 9, 3, 4, 5}) == std::vector<double>{1, 2, 3, 3, 4, 5});
  // 5 6 | 1: pools {1, 6} -> 1 < 5 -> {1, 5, 6}, lower median 5 (the fall is what is doubted).
  CHECK(medley::isotonic_median_fit({5, 6, 1}) == std::vector<double>{5, 5, 5});
  CHECK(medley::isotonic_median_fit({1, 1, 2, 3}) == std::vector<double>{1, 1, 2, 3});
  CHECK(medley::isotonic_median_fit({}).empty());
}

TEST_CASE("a slow row, a fast row and a lasting step") {
  // 10 20 [50] 21 22: {21, 50} has lower median 21, 50 is 2.4 of it and goes.
  auto slow = curve_of({10, 20, 50, 21, 22});
  const medley::Screened s = medley::screen_monotone(slow);
  CHECK(times_of(slow) == std::vector<double>{10, 20, 21, 22});
  REQUIRE(s.removed.size() == 1);
  CHECK(s.removed[0].position == 3.0);
  CHECK(s.removed[0].fit_s == doctest::Approx(21.0));
  CHECK(s.falling == 2);  // 21 and 22, behind 50
  CHECK(s.curves == 1);
  CHECK(s.rows == 5);

  // 10 20 21 [5] 22: {5, 21} -> 5 < 20 -> {5, 20, 21} -> 20 >= 10: 5 is a quarter of it and goes.
  auto fast = curve_of({10, 20, 21, 5, 22});
  medley::screen_monotone(fast);
  CHECK(times_of(fast) == std::vector<double>{10, 20, 21, 22});

  // A kernel that is slower from here on is what it is.
  auto step = curve_of({10, 10, 25, 25, 26});
  CHECK(medley::screen_monotone(step).removed.empty());
  // Falls within the tolerance stay: 10.5 to 10 is 5 %.
  auto noise = curve_of({10.5, 10, 10.4, 11});
  CHECK(medley::screen_monotone(noise).removed.empty());
}

TEST_CASE("curves are screened apart, in order of position whatever the order of rows") {
  std::vector<KernelSample> samples = {row(3, 30),          row(1, 10, "other"), row(2, 90),
                                       row(2, 20, "other"), row(1, 10),          row(4, 31)};
  const medley::Screened s = medley::screen_monotone(samples);
  CHECK(s.curves == 2);
  REQUIRE(s.removed.size() == 1);
  CHECK(s.removed[0].time_s == 90.0);
  CHECK(times_of(samples) == std::vector<double>{30, 10, 20, 10, 31});
}

TEST_CASE("laws of screening: monotone curves lose nothing, scale does not matter, rows add up") {
  medley::Rng rng(7, "screen/laws");
  for (int round = 0; round < 200; ++round) {
    std::vector<double> times;
    double t = 1.0;
    const int n = 1 + static_cast<int>(rng.uniform() * 40);
    for (int i = 0; i < n; ++i) times.push_back(t *= 1.0 + rng.uniform());
    auto clean = curve_of(times);
    CHECK(medley::screen_monotone(clean).removed.empty());

    for (double& x : times) x *= std::exp(0.6 * (rng.uniform() - 0.5));
    const std::vector<double> y = medley::isotonic_median_fit(times);
    CHECK(std::is_sorted(y.begin(), y.end()));
    auto noisy = curve_of(times);
    const medley::Screened first = medley::screen_monotone(noisy);
    CHECK(noisy.size() + first.removed.size() == times.size());
    std::vector<double> scaled = times;
    for (double& x : scaled) x *= 4096.0;
    auto larger = curve_of(scaled);
    CHECK(medley::screen_monotone(larger).removed.size() == first.removed.size());
  }
}
