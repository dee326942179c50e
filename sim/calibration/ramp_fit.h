#pragma once

#include <optional>
#include <span>
#include <vector>

#include "hwmodels/device.h"

namespace medley {

/// One kernel to fit ramps to: its work, its time without launches, and what it counts.
struct RampSample {
  double flops = 0.0;
  double bytes = 0.0;
  double time_s = 0.0;
  double weight = 1.0;
};

/// Rates that ramps are shares of.
struct RampRates {
  double peak = 0.0;       ///< flop/s
  double bandwidth = 0.0;  ///< B/s
};

/// The two ramps of one op class and format.
struct RampPair {
  Ramp compute;  ///< with `serial`
  Ramp memory;
  /// C = (F + half) / (peak fraction), M alike; overlapped(C, M, serial).
  double time_s(const RampRates& rates, double flops, double bytes) const;
  bool compute_bound(const RampRates& rates, double flops, double bytes) const;
};

/// Ramps that minimise the weighted mean of min(1, |log(predicted / measured)|): the logarithm
/// treats twice too slow and twice too fast alike and small kernels like large ones, the absolute
/// value and the bound keep outliers from pulling.
///   1. For several assignments of samples to the two regimes: non-negative least squares of t/t on
///      (1/(peak fraction), half/(peak fraction)) inside each regime, weights 1/max(|residual|, 2
///      %) (iteratively, so that absolute deviations are minimised), and assignment to the slower
///      side again, until it stands still.
///   2. From each, with little and with much overlap, the simplex of Nelder and Mead over the
///      logarithms of the four parameters and `serial`. The best of all is taken.
/// Constraints: 0 < fraction <= 1, half >= 0, 0 <= serial <= 1. `fixed_compute`: only the memory
/// ramp is fitted. Needs a sample; samples of one regime alone leave the other side at rate and
/// ramp time that do not bind.
RampPair fit_ramps(std::span<const RampSample> samples, const RampRates& rates,
                   const std::optional<Ramp>& fixed_compute = std::nullopt);

/// The compute ramp alone, of samples that are all on its side: least absolute relative deviations
/// over fraction and half, `serial` 0. A ramp time above `most_ramp_s` is cut to it.
Ramp fit_compute_ramp(std::span<const RampSample> samples, const RampRates& rates,
                      double most_ramp_s);

/// How far predictions lie from measurements, relative to these.
struct Residuals {
  int n = 0;
  double median = 0.0;  ///< of |predicted / measured - 1|
  double p90 = 0.0;
  double bias = 0.0;   ///< median of predicted / measured - 1
  double sigma = 0.0;  ///< robust standard deviation of log(predicted / measured) around 0
};
Residuals residuals(const RampPair& ramps, const RampRates& rates,
                    std::span<const RampSample> samples);

}  // namespace medley
