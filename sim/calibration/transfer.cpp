#include "sim/calibration/transfer.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "sim/calibration/solve.h"

namespace medley {

namespace {
double ramp_time(const Ramp& ramp, double rate) {
  return ramp.half / (rate * ramp.fraction);
}
Ramp ramp_at(double fraction, double time_s, double rate) {
  return Ramp{fraction, time_s * rate * fraction};
}

std::optional<double> balance(const DeviceSpec& d) {
  if (!d.memory_bandwidth.known()) return std::nullopt;
  for (const DType t : {DType::kBf16, DType::kFp16}) {
    const auto& peak = d.peak[index(t)];
    if (peak.known()) return peak.value->value() / d.memory_bandwidth.value->value();
  }
  return std::nullopt;
}

const KernelFitRow* row_of(const KernelFit& fit, OpClass op_class, DType dtype) {
  for (const KernelFitRow& row : fit.rows) {
    if (row.op_class == op_class && row.dtype == dtype && row.stored == dtype &&
        !row.block_scaled && row.fitted > 0) {
      return &row;
    }
  }
  return nullptr;
}
}  // namespace

RampPair carried_over(const RampPair& ramps, const RampRates& from, const RampRates& to) {
  RampPair out = ramps;
  out.compute.half *= to.peak / from.peak;
  out.memory.half *= to.bandwidth / from.bandwidth;
  return out;
}

RampPair median_ramps(const std::vector<std::pair<RampPair, RampRates>>& all, const RampRates& to) {
  std::vector<double> compute, compute_s, memory, memory_s, serial;
  for (const auto& [pair, rates] : all) {
    compute.push_back(pair.compute.fraction);
    compute_s.push_back(ramp_time(pair.compute, rates.peak));
    memory.push_back(pair.memory.fraction);
    memory_s.push_back(ramp_time(pair.memory, rates.bandwidth));
    serial.push_back(pair.compute.serial);
  }
  RampPair out;
  out.compute = ramp_at(median(compute), median(compute_s), to.peak);
  out.compute.serial = median(serial);
  out.memory = ramp_at(median(memory), median(memory_s), to.bandwidth);
  return out;
}

double distance(const DeviceSpec& a, const DeviceSpec& b) {
  double d = 0.25 * std::abs(a.year - b.year);
  if (a.vendor != b.vendor) d += 4.0;
  if (a.kind != b.kind) d += 4.0;
  const auto x = balance(a), y = balance(b);
  if (x && y) d += std::fabs(std::log2(*x / *y));
  return d;
}

std::vector<TransferRow> leave_one_device_out(const std::vector<TransferCase>& cases,
                                              const KernelFitOptions& options) {
  KernelFitOptions half = options;
  half.holdout = true;
  std::vector<KernelFit> fits;
  for (const TransferCase& c : cases) fits.push_back(fit_kernels(c.samples, *c.device, half));
  std::vector<TransferRow> rows;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (const KernelFitRow& own : fits[i].rows) {
      if (own.stored != own.dtype || own.fitted == 0) continue;
      TransferRow row{cases[i].device->name, own.op_class, own.dtype, own.held_out, {}, {}, 0, {}};
      std::vector<std::pair<RampPair, RampRates>> others;
      const KernelFitRow* nearest = nullptr;
      double least = 0.0;
      for (std::size_t k = 0; k < cases.size(); ++k) {
        const KernelFitRow* other = k == i ? nullptr : row_of(fits[k], own.op_class, own.dtype);
        if (other == nullptr) continue;
        others.emplace_back(other->ramps, other->rates);
        const double d = distance(*cases[i].device, *cases[k].device);
        if (nearest == nullptr || d < least) {
          nearest = other;
          least = d;
          row.donor = cases[k].device->name;
        }
      }
      if (nearest == nullptr) continue;
      row.donors = static_cast<int>(others.size());
      row.nearest =
          residuals(carried_over(nearest->ramps, nearest->rates, own.rates), own.rates, own.judged);
      row.medians = residuals(median_ramps(others, own.rates), own.rates, own.judged);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace medley
