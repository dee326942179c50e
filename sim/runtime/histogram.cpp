#include "sim/runtime/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "sim/core/error.h"

namespace medley {

namespace {
constexpr double kLowest = 0x1p-30;  // 0.93 ns
constexpr double kHighest = 0x1p20;  // 1.05e6 s
constexpr int kBinBits = 8;
constexpr std::size_t kBins = std::size_t{50} << kBinBits;  // 50 doublings
constexpr std::uint64_t kFirst = std::bit_cast<std::uint64_t>(kLowest) >> (52 - kBinBits);

/// The exponent and leading fraction bits of a double are its bin: no logarithm.
std::size_t bin_of(double value) {
  if (value <= kLowest) return 0;
  if (value >= kHighest) return kBins - 1;
  return static_cast<std::size_t>((std::bit_cast<std::uint64_t>(value) >> (52 - kBinBits)) -
                                  kFirst);
}

double lower_edge(double bin) {
  const double whole = std::floor(bin);
  const std::uint64_t bits = (static_cast<std::uint64_t>(whole) + kFirst) << (52 - kBinBits);
  const double edge = std::bit_cast<double>(bits);
  if (whole == bin) return edge;
  const double next = std::bit_cast<double>(bits + (std::uint64_t{1} << (52 - kBinBits)));
  return edge + (next - edge) * (bin - whole);
}
}  // namespace

void LogHistogram::add(double value, std::int64_t weight) {
  if (weight <= 0) return;
  MEDLEY_CHECK(value >= 0.0, "durations are non-negative");
  if (bins_.empty()) bins_.resize(kBins);
  const auto w = static_cast<double>(weight);
  min_ = count_ == 0 ? value : std::min(min_, value);
  max_ = count_ == 0 ? value : std::max(max_, value);
  count_ += weight;
  sum_ += w * value;
  sum_squares_ += w * value * value;
  bins_[bin_of(value)] += weight;
}

void LogHistogram::add_line(double first, double slope, std::int64_t count, std::int64_t weight) {
  if (count <= 0 || weight <= 0) return;
  MEDLEY_CHECK(first >= 0.0 && slope >= 0.0, "durations are non-negative and do not shrink");
  if (bins_.empty()) bins_.resize(kBins);
  const auto n = static_cast<double>(count);
  const auto w = static_cast<double>(weight);
  const double last = first + slope * (n - 1.0);
  min_ = count_ == 0 ? first : std::min(min_, first);
  max_ = count_ == 0 ? last : std::max(max_, last);
  count_ += count * weight;
  // sum_j (a + b j) and sum_j (a + b j)^2 for j = 0 .. n-1.
  const double sum_j = n * (n - 1.0) / 2.0;
  const double sum_jj = sum_j * (2.0 * n - 1.0) / 3.0;
  sum_ += w * (n * first + slope * sum_j);
  sum_squares_ += w * (n * first * first + 2.0 * first * slope * sum_j + slope * slope * sum_jj);

  std::size_t bin = bin_of(first);
  const std::size_t last_bin = bin_of(last);
  std::int64_t below = 0;  // values already counted
  while (bin < last_bin && below < count) {
    const double upper = lower_edge(static_cast<double>(bin) + 1.0);
    const double reached = std::ceil((upper - first) / slope);
    const std::int64_t upto =
        reached >= n ? count : std::max(below, static_cast<std::int64_t>(reached));
    bins_[bin] += (upto - below) * weight;
    below = upto;
    // The next value may lie far ahead: skip the bins between.
    bin = std::max(bin + 1, bin_of(first + slope * static_cast<double>(below)));
  }
  bins_[last_bin] += (count - below) * weight;
}

void LogHistogram::merge(const LogHistogram& other) {
  if (other.count_ == 0) return;
  if (bins_.empty()) bins_.resize(kBins);
  for (std::size_t i = 0; i < kBins; ++i) bins_[i] += other.bins_[i];
  min_ = count_ == 0 ? other.min_ : std::min(min_, other.min_);
  max_ = count_ == 0 ? other.max_ : std::max(max_, other.max_);
  count_ += other.count_;
  sum_ += other.sum_;
  sum_squares_ += other.sum_squares_;
}

namespace {
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
}

double LogHistogram::mean() const {
  return count_ == 0 ? kNan : sum_ / static_cast<double>(count_);
}

double LogHistogram::stddev() const {
  if (count_ == 0) return kNan;
  const double m = mean();
  return std::sqrt(std::max(0.0, sum_squares_ / static_cast<double>(count_) - m * m));
}

double LogHistogram::min() const {
  return count_ == 0 ? kNan : min_;
}

double LogHistogram::max() const {
  return count_ == 0 ? kNan : max_;
}

double LogHistogram::quantile(double p) const {
  if (count_ == 0) return kNan;
  if (p <= 0.0) return min_;
  if (p >= 1.0) return max_;
  const double rank = p * static_cast<double>(count_ - 1);
  double before = 0.0;
  for (std::size_t i = 0; i < kBins; ++i) {
    const auto here = static_cast<double>(bins_[i]);
    if (here > 0.0 && rank < before + here) {
      const double inside = (rank - before + 0.5) / here;
      return std::clamp(lower_edge(static_cast<double>(i) + std::min(inside, 1.0)), min_, max_);
    }
    before += here;
  }
  return max_;
}

}  // namespace medley
