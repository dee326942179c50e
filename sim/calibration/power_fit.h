#pragma once

#include <vector>

#include "hwmodels/device.h"
#include "sim/measure/kernel_table.h"

namespace medley {

/// Power of one device from kernels measured with watts:
///   P = P0 + sum_d jF[d] F/t + jB B/t          by non-negative least squares, relative to P,
/// over rows of 0.1 ms to 50 ms (shorter and longer loops are sampled badly by NVML) whose watts
/// are below 0.95 of the limit. Single rows scatter by 20 %: rows are binned by format and by
/// octave halves of F/t and of B/t and the bins' medians are fitted, bins of 3 rows and more.
///   sustained[d] = median of F/t over the peak, GEMMs at the limit (>= 0.97) of 0.1 ms to 50 ms
///   whose compute time by data sheet exceeds their memory time.
/// Assumes: NVML's board power; the clock at its top below the limit. Validity: the formats and
/// rates that were measured.
struct PowerFit {
  int rows = 0;  ///< inside the window, below the limit
  int bins = 0;
  int at_limit = 0;
  double median_error = 0.0;  ///< of held-out bins' watts, |predicted / measured - 1|
  double bias = 0.0;
  double sigma = 0.0;
  Sourced<Watts> active_floor;
  PerDType<Sourced<JoulesPerFlop>> energy_per_flop;
  Sourced<JoulesPerByte> energy_per_byte;
  PerDType<Sourced<double>> sustained;
  bool known() const { return active_floor.known(); }
};
/// Nothing known when fewer than 10 bins have watts.
PowerFit fit_power(const std::vector<KernelSample>& samples, const DeviceSpec& device);

}  // namespace medley
