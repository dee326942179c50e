#include "sim/report/statistics.h"

#include <algorithm>
#include <cmath>

namespace medley {

namespace {
constexpr std::size_t kBatches = 20;
constexpr std::size_t kFewestForInterval = 200;
constexpr double kStudent90 = 1.729132811521367;  // 0.95 quantile of Student's t, 19 degrees

void confidence(const std::vector<double>& values, Moments& m) {
  if (values.size() < kFewestForInterval) return;
  double sum_squares = 0.0;
  for (std::size_t b = 0; b < kBatches; ++b) {
    const std::size_t begin = b * values.size() / kBatches;
    const std::size_t end = (b + 1) * values.size() / kBatches;
    double sum = 0.0;
    for (std::size_t i = begin; i < end; ++i) sum += values[i];
    const double deviation = sum / static_cast<double>(end - begin) - m.mean;
    sum_squares += deviation * deviation;
  }
  const double half =
      kStudent90 * std::sqrt(sum_squares / static_cast<double>((kBatches - 1) * kBatches));
  m.lo90 = m.mean - half;
  m.hi90 = m.mean + half;
}

double interpolate(double low, double high, double fraction) {
  return fraction == 0.0 ? low : low + (high - low) * fraction;
}

// Order statistics around p (n - 1), with everything before `from` already below them.
double quantile_from(std::vector<double>& values, double p, std::size_t& from) {
  const double rank = p * static_cast<double>(values.size() - 1);
  const auto k = static_cast<std::size_t>(rank);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(k);
  std::nth_element(values.begin() + static_cast<std::ptrdiff_t>(from), at, values.end());
  from = k;
  if (k + 1 == values.size()) return *at;
  return interpolate(*at, *std::min_element(at + 1, values.end()), rank - static_cast<double>(k));
}
}  // namespace

Moments moments_of(std::vector<double>& values) {
  Moments m;
  m.count = static_cast<std::int64_t>(values.size());
  if (values.empty()) return m;
  const auto n = static_cast<double>(values.size());
  double sum = 0.0;
  m.min = m.max = values.front();
  for (const double v : values) {
    sum += v;
    m.min = std::min(m.min, v);
    m.max = std::max(m.max, v);
  }
  m.mean = sum / n;
  double squares = 0.0;
  for (const double v : values) squares += (v - m.mean) * (v - m.mean);
  m.std = std::sqrt(squares / n);
  confidence(values, m);
  std::size_t from = 0;
  m.p50 = quantile_from(values, 0.50, from);
  m.p90 = quantile_from(values, 0.90, from);
  m.p95 = quantile_from(values, 0.95, from);
  m.p99 = quantile_from(values, 0.99, from);
  return m;
}

Moments moments_of(const LogHistogram& h) {
  Moments m;
  m.count = h.count();
  if (m.count == 0) return m;
  m.mean = h.mean();
  m.std = h.stddev();
  m.min = h.min();
  m.p50 = h.quantile(0.50);
  m.p90 = h.quantile(0.90);
  m.p95 = h.quantile(0.95);
  m.p99 = h.quantile(0.99);
  m.max = h.max();
  return m;
}

double sorted_quantile(const std::vector<double>& sorted, double p) {
  if (sorted.empty()) return kBlank;
  const double rank = p * static_cast<double>(sorted.size() - 1);
  const auto k = static_cast<std::size_t>(rank);
  if (k + 1 >= sorted.size()) return sorted.back();
  return interpolate(sorted[k], sorted[k + 1], rank - static_cast<double>(k));
}

}  // namespace medley
