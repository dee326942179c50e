#pragma once

#include <string>
#include <vector>

#include "sim/measure/kernel_table.h"

namespace medley {

/// How far a row may lie from the monotone fit of its curve, as a share of the fitted time.
inline constexpr double kScreenTolerance = 0.10;

/// A row that does not fit its curve.
struct KernelOutlier {
  std::string key;  ///< KernelSample::key()
  double position = 0.0;
  double time_s = 0.0;
  double fit_s = 0.0;  ///< what the monotone fit has there
};
struct Screened {
  std::int64_t curves = 0;
  std::int64_t rows = 0;     ///< looked at
  std::int64_t falling = 0;  ///< rows whose time is more than the tolerance below an earlier one's
  std::vector<KernelOutlier> removed;
};

/// Along each curve (same op, formats and KernelSample::curve) more work cannot take less time.
/// The times of a curve are fitted, in the logarithm, by the non-decreasing function with the least
/// sum of absolute errors: pool-adjacent-violators with the lower median of each pool, which a lone
/// outlier does not move. Rows further than `tolerance` from the fit (a factor of 1 + tolerance up
/// or down) are removed from `samples`; the others keep their order. The lower median means: of two
/// rows that contradict one another the slower one is doubted. Assumes outliers are the minority of
/// any pool. A step that lasts (a kernel that is slower for all larger sizes) is no outlier. Laws:
/// a curve that never falls loses nothing; the scale of the times does not matter; screening twice
/// removes nothing more from a monotone rest.
Screened screen_monotone(std::vector<KernelSample>& samples, double tolerance = kScreenTolerance);

/// The fit alone: `y` in order of position.
std::vector<double> isotonic_median_fit(const std::vector<double>& y);

}  // namespace medley
