#pragma once

#include <cstdint>
#include <string_view>

namespace medley {

/// One reproducible random stream. Streams are named by purpose ("arrivals/chat"), all derived from
/// the run's seed, so adding a component never shifts another's draws. Portable: the generator is
/// xoshiro256** seeded by splitmix64 over fnv1a(name); the distributions are ours or Boost.Random's
/// (`std::` ones differ between standard libraries).
class Rng {
 public:
  Rng(std::uint64_t seed, std::string_view stream);
  using result_type = std::uint64_t;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return UINT64_MAX; }
  result_type operator()();

  double uniform();  ///< [0, 1), 53 bits
  double uniform(double low, double high);
  std::uint64_t below(std::uint64_t n);  ///< unbiased integer in [0, n), n > 0
  double exponential(double mean);
  double normal(double mean, double sigma);
  double lognormal(double mu, double sigma);  ///< parameters of the logarithm
  double gamma(double shape, double scale);
  double weibull(double shape, double scale);

 private:
  std::uint64_t state_[4];
};

}  // namespace medley
