#pragma once

#include <string>
#include <vector>

#include "hwmodels/device.h"
#include "sim/calibration/kernel_fit.h"

namespace medley {

/// Measured kernels of one device.
struct TransferCase {
  const DeviceSpec* device = nullptr;
  std::vector<KernelSample> samples;
};

/// What ramps carried over from other devices are worth on one device's held-out kernels.
struct TransferRow {
  std::string device;
  OpClass op_class = OpClass::kGemm;
  DType dtype = DType::kBf16;
  Residuals own;      ///< with its own ramps
  std::string donor;  ///< nearest device
  Residuals nearest;  ///< with the donor's
  int donors = 0;
  Residuals medians;  ///< with the medians over all other devices
};

/// Ramps of one device at the rates of another: fraction, ramp *time* and `serial` stay, so
///   half' = half rate' / rate.
RampPair carried_over(const RampPair& ramps, const RampRates& from, const RampRates& to);
/// Medians of fraction, ramp time and serial over several devices, at the rates `to`.
RampPair median_ramps(const std::vector<std::pair<RampPair, RampRates>>& all, const RampRates& to);
/// How unlike two devices are: 4 for another vendor, 4 for another kind, a quarter per year, and
/// the octaves between their 16-bit peaks over bandwidths.
double distance(const DeviceSpec& a, const DeviceSpec& b);

/// Leave one device out: for every device, op class and format (stored as computed) that another
/// case has too, the errors of its own ramps (fitted to the other half), of the nearest other
/// device's and of the medians over all others. In order of device, class, format.
std::vector<TransferRow> leave_one_device_out(const std::vector<TransferCase>& cases,
                                              const KernelFitOptions& options);

}  // namespace medley
