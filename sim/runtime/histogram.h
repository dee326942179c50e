#pragma once

#include <cstdint>
#include <vector>

namespace medley {

/// Distribution of positive durations from 1 ns to 10^6 s in bins of 1/256 of a doubling: at most
/// 0.4 % wide. Count, sum, minimum and maximum are exact; quantiles are interpolated inside a bin.
class LogHistogram {
 public:
  /// `weight` observations of `value` seconds.
  void add(double value, std::int64_t weight);
  /// `weight` observations of each of first, first + slope, ..., `count` values. slope >= 0.
  void add_line(double first, double slope, std::int64_t count, std::int64_t weight);
  void merge(const LogHistogram& other);
  std::int64_t count() const { return count_; }
  double mean() const;  ///< NaN when empty
  double stddev() const;
  double min() const;
  double max() const;
  double quantile(double p) const;  ///< NaN when empty

 private:
  std::vector<std::int64_t> bins_;
  std::int64_t count_ = 0;
  double sum_ = 0.0;
  double sum_squares_ = 0.0;
  double min_ = 0.0;
  double max_ = 0.0;
};

}  // namespace medley
