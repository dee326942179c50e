#include "sim/calibration/ramp_fit.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/calibration/solve.h"
#include "sim/core/error.h"

namespace medley {

namespace {
constexpr double kMostLog = 1.0;  ///< a sample further off than a factor e counts no more
constexpr double kLeastResidual = 0.02;
constexpr double kNormalMad = 1.4826;  ///< standard deviation over median absolute deviation

/// Times in units that do not know the device: slow = 1/fraction, ramp = half / (rate fraction).
struct Side {
  double slow = 1.0;
  double ramp = 0.0;  ///< s
  double time(double work, double rate) const { return ramp + slow * work / rate; }
};

Side side_of(const Ramp& ramp, double rate) {
  return {1.0 / ramp.fraction, ramp.half / (rate * ramp.fraction)};
}
Ramp ramp_of(const Side& side, double rate) {
  Ramp ramp;
  ramp.fraction = std::min(1.0, 1.0 / side.slow);
  ramp.half = side.ramp * rate * ramp.fraction;
  return ramp;
}

class TwoSides {
 public:
  TwoSides(std::span<const RampSample> samples, const RampRates& rates,
           const std::optional<Ramp>& fixed)
      : samples_(samples), rates_(rates) {
    if (fixed) {
      fixed_ = side_of(*fixed, rates.peak);
      fixed_serial_ = fixed->serial;
    }
    for (const RampSample& s : samples) weight_ += s.weight;
  }

  Side all_compute() const {
    return regress(std::vector<bool>(samples_.size(), true), true, Side{1.5, 3e-6});
  }

  RampPair solve() const {
    double best = 0.0;
    std::vector<double> answer;
    for (const double lean : {0.4, 1.0, 2.5}) {
      const auto [compute, memory] = alternate(lean);
      for (const double serial : {0.05, 0.6}) {
        std::vector<double> start = {std::log(memory.slow), log_time(memory.ramp)};
        if (!fixed_) {
          start.insert(start.end(), {std::log(compute.slow), log_time(compute.ramp), serial});
        } else if (serial > 0.5) {
          continue;
        }
        const auto cost = [&](std::span<const double> p) { return loss(p); };
        std::vector<double> end = minimise(cost, start, 0.3);
        const double value = loss(end);
        if (answer.empty() || value < best) {
          best = value;
          answer = std::move(end);
        }
      }
    }
    return pair_of(answer);
  }

 private:
  static double log_time(double s) { return std::log(std::max(s, 1e-7)); }

  Side memory_of(std::span<const double> p) const {
    return {std::max(1.0, std::exp(p[0])), std::exp(p[1])};
  }
  Side compute_of(std::span<const double> p) const {
    if (fixed_) return *fixed_;
    return {std::max(1.0, std::exp(p[2])), std::exp(p[3])};
  }
  double serial_of(std::span<const double> p) const {
    return fixed_ ? fixed_serial_ : std::clamp(p[4], 0.0, 1.0);
  }

  double loss(std::span<const double> p) const {
    const Side memory = memory_of(p), compute = compute_of(p);
    const double serial = serial_of(p);
    double sum = 0.0;
    for (const RampSample& s : samples_) {
      const double t = overlapped(compute.time(s.flops, rates_.peak),
                                  memory.time(s.bytes, rates_.bandwidth), serial);
      sum += s.weight * std::min(kMostLog, std::fabs(std::log(t / s.time_s)));
    }
    return sum / weight_;
  }

  RampPair pair_of(std::span<const double> p) const {
    RampPair pair;
    pair.compute = ramp_of(compute_of(p), rates_.peak);
    pair.compute.serial = serial_of(p);
    pair.memory = ramp_of(memory_of(p), rates_.bandwidth);
    return pair;
  }

  /// Regimes by F/peak * lean against B/bandwidth, then by the fitted sides.
  std::pair<Side, Side> alternate(double lean) const {
    std::vector<bool> compute_side;
    for (const RampSample& s : samples_) {
      compute_side.push_back(lean * s.flops / rates_.peak > s.bytes / rates_.bandwidth);
    }
    Side compute = fixed_.value_or(Side{1.5, 3e-6});
    Side memory{1.3, 3e-6};
    for (int round = 0; round < 12; ++round) {
      if (!fixed_) compute = regress(compute_side, true, compute);
      memory = regress(compute_side, false, memory);
      bool same = true;
      for (std::size_t i = 0; i < samples_.size(); ++i) {
        const RampSample& s = samples_[i];
        const bool now =
            compute.time(s.flops, rates_.peak) > memory.time(s.bytes, rates_.bandwidth);
        same = same && now == compute_side[i];
        compute_side[i] = now;
      }
      if (same) break;
    }
    return {compute, memory};
  }

  /// Least absolute relative deviations of one side over its own samples.
  Side regress(const std::vector<bool>& compute_side, bool compute, Side before) const {
    const double rate = compute ? rates_.peak : rates_.bandwidth;
    std::vector<double> ideal, time, weight;
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      if (compute_side[i] != compute) continue;
      const RampSample& s = samples_[i];
      ideal.push_back((compute ? s.flops : s.bytes) / rate);
      time.push_back(s.time_s);
      weight.push_back(s.weight);
    }
    if (time.size() < 3) return before;
    Side side = before;
    for (int round = 0; round < 8; ++round) {
      std::vector<double> rows, rhs;
      for (std::size_t i = 0; i < time.size(); ++i) {
        double w = weight[i];
        if (round > 0) {
          const double off = std::fabs((side.ramp + side.slow * ideal[i]) / time[i] - 1.0);
          w /= std::max(off, kLeastResidual);
        }
        const double root = std::sqrt(w);
        rows.insert(rows.end(), {root / time[i] * 1e-6, root * ideal[i] / time[i]});
        rhs.push_back(root);
      }
      const auto x = non_negative_least_squares(rows, 2, rhs);
      side = {std::max(1.0, x[1]), x[0] * 1e-6};
    }
    return side;
  }

  std::span<const RampSample> samples_;
  RampRates rates_;
  std::optional<Side> fixed_;
  double fixed_serial_ = 0.0;
  double weight_ = 0.0;
};
}  // namespace

double RampPair::time_s(const RampRates& rates, double flops, double bytes) const {
  const double c = (flops + compute.half) / (rates.peak * compute.fraction);
  const double m = (bytes + memory.half) / (rates.bandwidth * memory.fraction);
  return overlapped(c, m, compute.serial);
}

bool RampPair::compute_bound(const RampRates& rates, double flops, double bytes) const {
  return (flops + compute.half) / (rates.peak * compute.fraction) >
         (bytes + memory.half) / (rates.bandwidth * memory.fraction);
}

RampPair fit_ramps(std::span<const RampSample> samples, const RampRates& rates,
                   const std::optional<Ramp>& fixed_compute) {
  MEDLEY_CHECK(!samples.empty() && rates.peak > 0.0 && rates.bandwidth > 0.0, "nothing to fit to");
  return TwoSides(samples, rates, fixed_compute).solve();
}

Ramp fit_compute_ramp(std::span<const RampSample> samples, const RampRates& rates,
                      double most_ramp_s) {
  Side side = TwoSides(samples, rates, std::nullopt).all_compute();
  side.ramp = std::min(side.ramp, most_ramp_s);
  return ramp_of(side, rates.peak);
}

Residuals residuals(const RampPair& ramps, const RampRates& rates,
                    std::span<const RampSample> samples) {
  std::vector<double> off, magnitude, logs;
  for (const RampSample& s : samples) {
    const double ratio = ramps.time_s(rates, s.flops, s.bytes) / s.time_s;
    off.push_back(ratio - 1.0);
    magnitude.push_back(std::fabs(ratio - 1.0));
    logs.push_back(std::fabs(std::log(ratio)));
  }
  Residuals r;
  r.n = static_cast<int>(off.size());
  r.median = median(magnitude);
  r.p90 = quantile(magnitude, 0.9);
  r.bias = median(off);
  r.sigma = kNormalMad * median(logs);
  return r;
}

}  // namespace medley
