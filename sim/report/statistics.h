#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sim/runtime/histogram.h"

namespace medley {

inline constexpr double kBlank = std::numeric_limits<double>::quiet_NaN();

/// What a distribution is told by. NaN where there is nothing to tell.
struct Moments {
  std::int64_t count = 0;
  double mean = kBlank;
  double std = kBlank;  ///< population form (divides by the count), as numpy's default
  double min = kBlank;
  double p50 = kBlank, p90 = kBlank, p95 = kBlank, p99 = kBlank;
  double max = kBlank;
  double lo90 = kBlank, hi90 = kBlank;  ///< 90 % confidence interval of the mean
};

/// Exact moments. `values` stand in order of arrival; the vector is reordered.
///   Quantile p: linear interpolation between the order statistics around p (n - 1) (numpy's
///   default).
///   lo90, hi90: mean -+ t s / sqrt(b) over b = 20 batch means of consecutive values (t = 1.729 for
///   19 degrees of freedom), blank below 200 values: queueing delays are correlated, so the plain
///   standard error would be far too small. Valid when a batch is longer than a busy period.
Moments moments_of(std::vector<double>& values);

/// Moments kept by a histogram: count, mean, std, min and max are exact, quantiles within 0.4 %.
Moments moments_of(const LogHistogram& histogram);

/// The same quantile of sorted values; NaN when empty.
double sorted_quantile(const std::vector<double>& sorted, double p);

}  // namespace medley
