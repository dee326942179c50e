#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/rng.h"

namespace medley {

/// A non-negative random quantity: tokens of a prompt, seconds of thinking, turns of a session.
///
///   fixed        a
///   uniform      on [a, b] (whole numbers: each of a..b alike)
///   exponential  mean a
///   lognormal    exp(a + b Z), Z standard normal
///   gamma        shape a, scale b
///   histogram    bin i with probability weight_i / sum; uniform inside a bin
///
/// Values outside [min, max] are clamped, not drawn again: a server's own token cap piles requests
/// up at the cap in the same way. The moments given by the user are those before clamping.
struct Distribution {
  enum class Kind : std::uint8_t { kFixed, kUniform, kExponential, kLognormal, kGamma, kHistogram };
  struct Bin {
    double low = 0.0;
    double high = 0.0;
    double upto = 0.0;  ///< cumulative probability, 1 for the last bin
  };
  Kind kind = Kind::kFixed;
  double a = 0.0;
  double b = 0.0;
  double min = 0.0;
  double max = 1.7976931348623157e308;
  std::vector<Bin> bins;

  static Distribution fixed(double value);
  static Distribution uniform(double low, double high);
  static Distribution exponential(double mean);
  static Distribution lognormal(double mu, double sigma);
  static Distribution gamma(double mean, double cv);
  /// Weights need not sum to 1; bins with weight 0 are left out. At least one must be positive.
  struct WeightedBin {
    double low = 0.0;
    double high = 0.0;
    double weight = 0.0;
  };
  static Distribution histogram(const std::vector<WeightedBin>& bins);

  /// What the user may know of a lognormal; exactly two of these fix (mu, sigma).
  struct LognormalFacts {
    std::optional<double> mu, sigma, mean, cv, p50, p90, p99;
  };
  /// Sets `why` and gives nothing when the facts are not two, contradict or have no solution.
  /// With mean m and quantile q_z: ln m = mu + sigma^2/2, ln q_z = mu + z sigma; of the two roots
  /// for (mean, quantile) the smaller sigma is taken.
  static std::optional<Distribution> lognormal_from(const LognormalFacts& facts, std::string& why);

  double sample(Rng& rng) const;
  /// Rounded to nearest and at least `at_least`; uniform and histogram bins draw whole numbers.
  std::int64_t sample_count(Rng& rng, std::int64_t at_least) const;
  /// Mean before clamping.
  double mean() const;
};

}  // namespace medley
