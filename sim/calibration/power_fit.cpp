#include "sim/calibration/power_fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "sim/calibration/kernel_fit.h"
#include "sim/calibration/solve.h"

namespace medley {

namespace {
constexpr double kShortest = 0.1e-3, kLongest = 50e-3;  ///< s
constexpr double kBelowLimit = 0.95, kAtLimit = 0.97;
constexpr std::size_t kRowsPerBin = 3;
constexpr std::size_t kLeastBins = 10;
constexpr std::size_t kLeastAtLimit = 20;

struct Row {
  double flop_rate, byte_rate, watts;
};
using Bin = std::tuple<std::size_t, int, int>;  ///< format, half octaves of the two rates

struct Medians {
  std::size_t dtype;
  double flop_rate, byte_rate, watts, weight;
};

int half_octave(double x) {
  return x > 0.0 ? static_cast<int>(std::floor(2.0 * std::log2(x))) : -1;
}

std::vector<Medians> medians_of(const std::map<Bin, std::vector<Row>>& bins) {
  std::vector<Medians> out;
  for (const auto& [bin, rows] : bins) {
    if (rows.size() < kRowsPerBin) continue;
    std::vector<double> f, b, w;
    for (const Row& r : rows) {
      f.push_back(r.flop_rate);
      b.push_back(r.byte_rate);
      w.push_back(r.watts);
    }
    out.push_back({std::get<0>(bin), median(f), median(b), median(w),
                   std::sqrt(static_cast<double>(rows.size()))});
  }
  return out;
}

struct Split {
  std::map<Bin, std::vector<Row>> bins[2];  ///< fitted, judged
  std::map<std::size_t, std::vector<double>> at_limit;
  int rows = 0, limited = 0;
};

Split split(const std::vector<KernelSample>& samples, const DeviceSpec& device) {
  Split s;
  for (const KernelSample& k : samples) {
    if (!k.watts || k.time_s < kShortest || k.time_s > kLongest) continue;
    const DType dtype = compute_fallback(device, k.dtype).value_or(k.dtype);
    const auto& peak = device.peak[index(dtype)];
    const double limit = k.limit_watts.value_or(
        device.power.limit.known() ? device.power.limit.value->value() : 1e300);
    const Row row{k.flops / k.time_s, k.bytes / k.time_s, *k.watts};
    if (row.watts >= kAtLimit * limit) {
      ++s.limited;
      const bool compute =
          peak.known() && device.memory_bandwidth.known() &&
          k.flops / peak.value->value() > k.bytes / device.memory_bandwidth.value->value();
      if (k.op_class == OpClass::kGemm && compute) {
        s.at_limit[index(dtype)].push_back(row.flop_rate / peak.value->value());
      }
    } else if (row.watts < kBelowLimit * limit) {
      ++s.rows;
      s.bins[held_out(k) ? 1 : 0]
            [{index(dtype), half_octave(row.flop_rate), half_octave(row.byte_rate)}]
                .push_back(row);
    }
  }
  return s;
}

struct Terms {
  double floor = 0.0;
  double per_byte = 0.0;
  std::map<std::size_t, double> per_flop;
  double watts(const Medians& m) const {
    const auto it = per_flop.find(m.dtype);
    return floor + per_byte * m.byte_rate + (it == per_flop.end() ? 0.0 : it->second * m.flop_rate);
  }
};

Terms solve(const std::vector<Medians>& bins) {
  std::map<std::size_t, std::size_t> column;
  for (const Medians& m : bins) column.emplace(m.dtype, 0);
  std::size_t columns = 2;
  for (auto& [dtype, at] : column) at = columns++;
  Terms terms;
  std::vector<double> weight(bins.size());
  for (std::size_t i = 0; i < bins.size(); ++i) weight[i] = bins[i].weight;
  for (int round = 0; round < 6; ++round) {  // towards least absolute deviations
    std::vector<double> rows, rhs;
    for (std::size_t i = 0; i < bins.size(); ++i) {
      const Medians& m = bins[i];
      std::vector<double> row(columns, 0.0);
      const double w = std::sqrt(weight[i]) / m.watts;
      row[0] = w;
      row[1] = w * m.byte_rate;
      row[column[m.dtype]] = w * m.flop_rate;
      rows.insert(rows.end(), row.begin(), row.end());
      rhs.push_back(w * m.watts);
    }
    const auto x = non_negative_least_squares(rows, columns, rhs);
    terms.floor = x[0];
    terms.per_byte = x[1];
    for (const auto& [dtype, at] : column) terms.per_flop[dtype] = x[at];
    for (std::size_t i = 0; i < bins.size(); ++i) {
      const double off = std::fabs(terms.watts(bins[i]) / bins[i].watts - 1.0);
      weight[i] = bins[i].weight / std::max(off, 0.02);
    }
  }
  return terms;
}

template <class Q>
Sourced<Q> leaf(double value, double error, int n) {
  Sourced<Q> out;
  out.value = Q(rounded(value));
  out.provenance = Provenance::kMeasured;
  out.error = rounded(error, 3);
  out.n = n;
  return out;
}
}  // namespace

PowerFit fit_power(const std::vector<KernelSample>& samples, const DeviceSpec& device) {
  const Split s = split(samples, device);
  PowerFit fit;
  fit.rows = s.rows;
  fit.at_limit = s.limited;
  for (const auto& [dtype, shares] : s.at_limit) {
    if (shares.size() < kLeastAtLimit) continue;
    const double middle = median(shares);
    std::vector<double> off;
    for (const double x : shares) off.push_back(std::fabs(x / middle - 1.0));
    fit.sustained[dtype] =
        leaf<double>(std::min(1.0, middle), 1.4826 * median(off), static_cast<int>(shares.size()));
  }
  const std::vector<Medians> train = medians_of(s.bins[0]), judge = medians_of(s.bins[1]);
  fit.bins = static_cast<int>(train.size());
  if (train.size() < kLeastBins) return fit;
  const Terms terms = solve(train);
  std::vector<double> off, magnitude;
  for (const Medians& m : judge) {
    off.push_back(terms.watts(m) / m.watts - 1.0);
    magnitude.push_back(std::fabs(off.back()));
  }
  fit.median_error = median(magnitude);
  fit.bias = median(off);
  fit.sigma = 1.4826 * fit.median_error;
  fit.active_floor = leaf<Watts>(terms.floor, fit.sigma, fit.bins);
  if (terms.per_byte > 0.0) {
    fit.energy_per_byte = leaf<JoulesPerByte>(terms.per_byte, fit.sigma, fit.bins);
  }
  for (const auto& [dtype, value] : terms.per_flop) {
    if (value > 0.0) fit.energy_per_flop[dtype] = leaf<JoulesPerFlop>(value, fit.sigma, fit.bins);
  }
  return fit;
}

}  // namespace medley
