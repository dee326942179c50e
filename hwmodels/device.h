#pragma once

#include <limits>
#include <string>
#include <vector>

#include "sim/core/op.h"
#include "sim/core/provenance.h"
#include "sim/core/units.h"

namespace medley {

/// Efficiency of a rate as a saturating ramp over the amount of work x of one kernel:
///   e(x) = fraction * x / (x + half)      so      time(x) = (x + half) / (rate * fraction)
/// Time is affine in the work: no cliffs, sums over growing work close exactly.
/// Assumes one kernel alone on the device. Law: time non-decreasing in x; e(x) <= fraction <= 1.
struct Ramp {
  double fraction = 1.0;  ///< of the datasheet rate, reached as x grows
  double half = 0.0;      ///< flops (or bytes) at which half of `fraction` is reached
  /// Work of the kernels it was fitted to: outside it a time is extrapolated (and reported so).
  double low = 0.0;
  double high = std::numeric_limits<double>::infinity();
  /// Compute ramps only, [0, 1]: share of the shorter of a kernel's compute and memory times that
  /// the longer one does not hide. 0: perfect overlap (the roofline), 1: one after the other.
  double serial = 0.0;
};

/// Time of a kernel from its two ramps: max(C, M) + serial min(C, M) = max(C + serial M,
/// M + serial C). Law: between max(C, M) and C + M, non-decreasing and convex in both.
inline double overlapped(double compute, double memory, double serial) {
  return compute > memory ? compute + serial * memory : memory + serial * compute;
}

/// How well one op class uses the two rates of a device.
struct OpEfficiency {
  PerDType<Sourced<Ramp>> compute;  ///< over flops; argument of the ramp: flops of one kernel
  Sourced<Ramp> memory;             ///< over bytes of one kernel
  /// Compute where the operands carry a scale per block (DeepSeek's 128 x 128 fp8): the products
  /// are added up outside the matrix units. Where unknown `compute` holds.
  PerDType<Sourced<Ramp>> compute_block_scaled;
  /// Compute where the weights (GEMMs) or the KV cache (attention) are kept in this narrower format
  /// and widened on the way. Where unknown `compute` of the arithmetic's format holds.
  PerDType<Sourced<Ramp>> compute_by_format;
  /// Memory where the weights (GEMMs) or the KV cache (attention) are kept in this format; where
  /// unknown `memory` holds.
  PerDType<Sourced<Ramp>> memory_by_format;
  /// The most particular ramp that is known.
  const Sourced<Ramp>& compute_of(DType arithmetic, DType stored, bool block_scaled) const;
  const Sourced<Ramp>& memory_of(DType stored) const {
    const Sourced<Ramp>& own = memory_by_format[index(stored)];
    return own.known() ? own : memory;
  }
};

/// Power of one device. Active power while work runs:
///   P = active_floor + sum_d j_flop[d] * flop_rate[d] + j_byte * byte_rate,   P <= limit
/// A binding limit lowers the clock phi in [clock_min, 1] with voltage ratio v(phi) =
/// voltage_floor + (1 - voltage_floor) * phi; dynamic flop energy scales with v^2, compute time
/// with 1/phi, memory time not at all. Below clock_min the work is duty-cycled. Unknown values
/// leave energy blank ("missing:<field>"), they never become zero.
struct PowerSpec {
  Sourced<Watts> limit;         ///< board or module power limit (TDP/TBP), not a consumption
  Sourced<Watts> deep_idle;     ///< no context on the device
  Sourced<Watts> context_idle;  ///< model loaded, nothing running
  Sourced<Watts> active_floor;  ///< clocks up, no work: the P0 of the three-term fit
  PerDType<Sourced<JoulesPerFlop>> energy_per_flop;
  Sourced<JoulesPerByte> energy_per_byte;  ///< device memory traffic, whole path
  Sourced<double> clock_min;               ///< lowest clock over highest, (0, 1]
  Sourced<double> voltage_floor;           ///< v at phi -> 0 of the linear V-f line, [0, 1]
};

/// One accelerator or CPU as the catalogue describes it. Rates are dense peaks.
struct DeviceSpec {
  std::string name;
  std::string vendor;
  std::string kind;  ///< "gpu", "cpu", "npu", "tpu", "pim", "fpga"
  int year = 0;
  std::vector<std::string> aliases;
  std::string file;  ///< where it was read from, for messages
  std::string notes;

  PerDType<Sourced<FlopsPerSec>> peak;  ///< burst: what the units can issue
  PerDType<Sourced<double>>
      sustained;  ///< fraction of peak held at the power limit, where measured
  Sourced<Bytes> memory_capacity;
  Sourced<BytesPerSec> memory_bandwidth;
  Sourced<Bytes> last_level_cache;
  PerOpClass<OpEfficiency> efficiency;
  Sourced<Seconds> launch_stream;  ///< gap before a kernel, launched one by one
  Sourced<Seconds> launch_graph;   ///< the same inside a captured graph
  PowerSpec power;
  int cores = 0;          ///< of a CPU; 0: unknown
  std::string fabric;     ///< catalogue link to peers, or empty
  std::string host_link;  ///< catalogue link to the host, or empty
  Sourced<Usd> capex;
  Sourced<UsdPerSec> rent;
};

/// The dtype whose arithmetic the device would use for `wanted` when it lacks it natively, never
/// narrower. Empty when nothing fits. Kernels for 4- and 6-bit weights that a device has no units
/// for turn them into the 16-bit format of the activations (Marlin, Triton mxfp4), so: fp4, fp6,
/// int4, fp8, int8 -> bf16 -> fp16 -> tf32 -> fp32.
std::optional<DType> compute_fallback(const DeviceSpec& device, DType wanted);

}  // namespace medley
