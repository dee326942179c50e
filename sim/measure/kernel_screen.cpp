#include "sim/measure/kernel_screen.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <tuple>

#include "sim/core/error.h"

namespace medley {

namespace {
double lower_median(const std::vector<double>& sorted) {
  return sorted[(sorted.size() - 1) / 2];
}

auto curve_of(const KernelSample& s) {
  return std::tie(s.op, s.dtype, s.weights, s.curve);
}

/// Screens samples[order[first..last)], one curve; marks what goes.
void screen_curve(const std::vector<KernelSample>& samples, const std::vector<std::size_t>& order,
                  std::size_t first, std::size_t last, double tolerance, Screened& out,
                  std::vector<char>& gone) {
  ++out.curves;
  std::vector<double> y;
  double highest = 0.0;
  for (std::size_t i = first; i < last; ++i) {
    const double t = samples[order[i]].time_s;
    y.push_back(std::log(t));
    if (t * (1.0 + tolerance) < highest) ++out.falling;
    highest = std::max(highest, t);
  }
  const std::vector<double> fit = isotonic_median_fit(y);
  const double most = std::log1p(tolerance) + 1e-12;
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (std::fabs(y[i] - fit[i]) <= most) continue;
    const KernelSample& s = samples[order[first + i]];
    out.removed.push_back({s.key(), s.position, s.time_s, std::exp(fit[i])});
    gone[order[first + i]] = 1;
  }
}
}  // namespace

std::vector<double> isotonic_median_fit(const std::vector<double>& y) {
  std::vector<std::vector<double>> pools;  // each sorted
  for (const double value : y) {
    std::vector<double> pool = {value};
    while (!pools.empty() && lower_median(pools.back()) > lower_median(pool)) {
      std::vector<double> joined;
      joined.reserve(pool.size() + pools.back().size());
      std::merge(pools.back().begin(), pools.back().end(), pool.begin(), pool.end(),
                 std::back_inserter(joined));
      pool = std::move(joined);
      pools.pop_back();
    }
    pools.push_back(std::move(pool));
  }
  std::vector<double> fit;
  for (const std::vector<double>& pool : pools) {
    fit.insert(fit.end(), pool.size(), lower_median(pool));
  }
  return fit;
}

Screened screen_monotone(std::vector<KernelSample>& samples, double tolerance) {
  MEDLEY_CHECK(tolerance > 0.0, "a tolerance is positive");
  Screened out;
  out.rows = static_cast<std::int64_t>(samples.size());
  std::vector<std::size_t> order(samples.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const auto left = curve_of(samples[a]);
    const auto right = curve_of(samples[b]);
    if (left != right) return left < right;
    return samples[a].position < samples[b].position;
  });
  std::vector<char> gone(samples.size(), 0);
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first + 1;
    while (last < order.size() &&
           curve_of(samples[order[last]]) == curve_of(samples[order[first]])) {
      ++last;
    }
    screen_curve(samples, order, first, last, tolerance, out, gone);
    first = last;
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (gone[i] != 0) continue;
    if (kept != i) samples[kept] = std::move(samples[i]);
    ++kept;
  }
  samples.resize(kept);
  return out;
}

}  // namespace medley
