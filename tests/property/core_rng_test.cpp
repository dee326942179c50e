#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "sim/core/rng.h"

using namespace medley;

namespace {
constexpr int kDraws = 200'000;
constexpr double kSigmas =
    4.5;  // a right generator fails one such check in 150,000; seeds are fixed

/// Checks the sample mean of draw() against `mean`, and that of its squared deviation against
/// `variance`; `kurtosis` is the distribution's fourth standardised moment, which sets the error of
/// the variance: Var(s^2) = (kurtosis - 1) variance^2 / n.
template <class Draw>
void check_moments(const Draw& draw, double mean, double variance, double kurtosis) {
  double sum = 0.0;
  double squares = 0.0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = draw() - mean;
    sum += x;
    squares += x * x;
  }
  const double n = kDraws;
  CHECK(std::abs(sum / n) < kSigmas * std::sqrt(variance / n));
  CHECK(std::abs(squares / n - variance) < kSigmas * variance * std::sqrt((kurtosis - 1.0) / n));
}
}  // namespace

TEST_CASE("xoshiro256**: streams are reproducible and apart") {
  Rng a(42, "arrivals");
  Rng again(42, "arrivals");
  Rng other(42, "lengths");
  Rng next_seed(43, "arrivals");
  int same_other = 0;
  int same_seed = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t x = a();
    CHECK(x == again());
    same_other += x == other();
    same_seed += x == next_seed();
  }
  CHECK(same_other == 0);
  CHECK(same_seed == 0);
}

TEST_CASE("frozen draws: results of a seed never change") {
  Rng rng(1, "frozen");
  CHECK(rng() == 3665340299259366357ULL);
  CHECK(rng() == 3120902962703328502ULL);
  CHECK(rng.uniform() == 0.22225204923723729);
  CHECK(rng.below(1000) == 472);
  CHECK(rng.normal(0, 1) == doctest::Approx(0.97539198931535642).epsilon(1e-12));
  CHECK(rng.exponential(1) == doctest::Approx(1.203329002778339).epsilon(1e-12));
  CHECK(rng.gamma(0.5, 2) == doctest::Approx(2.6972365112913548).epsilon(1e-12));
}

TEST_CASE("moments") {
  Rng rng(5, "moments");
  // Uniform on [a, b]: (a+b)/2, (b-a)^2/12, kurtosis 9/5.
  check_moments([&] { return rng.uniform(); }, 0.5, 1.0 / 12.0, 1.8);
  check_moments([&] { return rng.uniform(-3, 5); }, 1.0, 64.0 / 12.0, 1.8);
  check_moments([&] { return rng.normal(2, 3); }, 2.0, 9.0, 3.0);
  check_moments([&] { return rng.exponential(4); }, 4.0, 16.0, 9.0);
  // Gamma(k, s): k s, k s^2, kurtosis 3 + 6/k.
  check_moments([&] { return rng.gamma(0.25, 2); }, 0.5, 1.0, 3.0 + 24.0);
  check_moments([&] { return rng.gamma(1.0, 3); }, 3.0, 9.0, 9.0);
  check_moments([&] { return rng.gamma(7.5, 2); }, 15.0, 30.0, 3.0 + 0.8);
  // Weibull(2, s) is Rayleigh: mean s sqrt(pi)/2, variance s^2 (1 - pi/4), kurtosis 3.245.
  const double pi = std::acos(-1.0);
  check_moments([&] { return rng.weibull(2, 3); }, 1.5 * std::sqrt(pi), 9.0 * (1.0 - pi / 4.0),
                3.25);
  check_moments([&] { return rng.weibull(1, 3); }, 3.0, 9.0, 9.0);
  // ln of a lognormal is normal.
  check_moments([&] { return std::log(rng.lognormal(1.5, 0.5)); }, 1.5, 0.25, 3.0);
}

// Kolmogorov-Smirnov: P(sqrt(n) D > 1.95) is about 0.001 for the right distribution.
TEST_CASE("distributions: Kolmogorov-Smirnov at 0.1 %") {
  Rng rng(9, "ks");
  const auto statistic = [](std::vector<double> sample, auto&& cdf) {
    std::sort(sample.begin(), sample.end());
    const auto n = static_cast<double>(sample.size());
    double worst = 0.0;
    for (std::size_t i = 0; i < sample.size(); ++i) {
      const double f = cdf(sample[i]);
      const auto rank = static_cast<double>(i);
      worst = std::max({worst, f - rank / n, (rank + 1.0) / n - f});
    }
    return std::sqrt(n) * worst;
  };
  const auto draw = [](auto&& one) {
    std::vector<double> all(20'000);
    for (double& x : all) x = one();
    return all;
  };
  constexpr double kCritical = 1.95;
  CHECK(statistic(draw([&] { return rng.uniform(); }), [](double x) { return x; }) < kCritical);
  CHECK(statistic(draw([&] { return rng.exponential(2); }),
                  [](double x) { return 1 - std::exp(-x / 2); }) < kCritical);
  CHECK(statistic(draw([&] { return rng.normal(0, 1); }),
                  [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }) < kCritical);
  CHECK(statistic(draw([&] { return rng.weibull(0.7, 1); }),
                  [](double x) { return 1 - std::exp(-std::pow(x, 0.7)); }) < kCritical);
  // Gamma(2, 1): 1 - (1 + x) exp(-x).
  CHECK(statistic(draw([&] { return rng.gamma(2, 1); }),
                  [](double x) { return 1 - (1 + x) * std::exp(-x); }) < kCritical);
  // Gamma(1/2, 2) is chi-square with one degree: erf(sqrt(x/2)).
  CHECK(statistic(draw([&] { return rng.gamma(0.5, 2); }),
                  [](double x) { return std::erf(std::sqrt(x / 2)); }) < kCritical);
}

TEST_CASE("below is unbiased and in range") {
  Rng rng(13, "below");
  constexpr int kFaces = 6;
  std::vector<int> count(kFaces, 0);
  for (int i = 0; i < kDraws; ++i) ++count[rng.below(kFaces)];
  double chi2 = 0.0;
  constexpr double kExpected = static_cast<double>(kDraws) / kFaces;
  for (const int c : count) chi2 += (c - kExpected) * (c - kExpected) / kExpected;
  CHECK(chi2 < 20.52);  // chi-square, 5 degrees of freedom, 0.1 %
  CHECK(rng.below(1) == 0);
  // Two thirds of 2^64: a plain modulo would give the lower half 2/3 of the draws, not 1/2.
  const std::uint64_t n = 0xAAAAAAAAAAAAAAAAULL;
  int low = 0;
  for (int i = 0; i < kDraws; ++i) {
    const std::uint64_t x = rng.below(n);
    REQUIRE(x < n);
    low += x < n / 2;
  }
  CHECK(std::abs(low - kDraws / 2.0) < kSigmas * std::sqrt(kDraws / 4.0));
  for (int i = 0; i < 1000; ++i) {
    const double u = rng.uniform();
    REQUIRE((u >= 0.0 && u < 1.0));
  }
}
