#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/workload_spec.h"

namespace medley {

/// Start times of the units (requests or sessions) of an open-loop arrival process.
///   t_k = L^-1(S_k), S_k = sum of k gaps of mean 1, L the integral of the rate curve.
/// Gap laws: constant (t_0 = 0), exponential, gamma (shape 1/cv^2), Weibull (shape solving
/// Gamma(1+2/k)/Gamma(1+1/k)^2 = 1 + cv^2). Valid for cv in [0.01, 30].
class ArrivalTimes {
 public:
  ArrivalTimes(const ArrivalSpec& spec, std::uint64_t seed, const std::string& stream);
  /// The next start [s], or infinity when the rate curve has ended.
  double next();

 private:
  double gap();
  const ArrivalSpec& spec_;
  Rng rng_;
  double shape_ = 1.0;
  double scale_ = 1.0;
  double sum_ = 0.0;
  bool first_ = true;
};

/// Shape of the unit-mean Weibull law with this coefficient of variation.
double weibull_shape(double cv);

/// Requests of one generated source. Random streams: "<source>/arrivals", "/input", "/output",
/// "/turns", "/think", "/prefix", "/user-think".
Trace generate_trace(const GeneratorSpec& spec, const std::string& source, std::uint64_t seed);

/// Replaces the times of `trace` (in its order) by generated ones, or closes the loop: with
/// concurrency N the first N requests start and each later one follows the one N before it (or,
/// with a shared queue, whichever completes).
void replace_arrivals(Trace& trace, const ArrivalSpec& spec, const std::string& source,
                      std::uint64_t seed);

/// Index k in [0, n) with probability ~ 1/(k+1)^exponent.
class Zipf {
 public:
  Zipf(std::int64_t n, double exponent);
  std::size_t sample(Rng& rng) const;

 private:
  std::vector<double> upto_;
};

}  // namespace medley
