#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hwmodels/backend.h"
#include "hwmodels/device.h"

namespace medley {

/// One end-to-end measurement of a serving engine at a steady batch.
struct ServingPoint {
  std::string model;  ///< zoo name
  int tensor_parallel = 1;
  double batch = 1.0;  ///< sequences decoding together, or the concurrency that was kept
  double input_tokens = 0.0;
  double output_tokens = 1.0;
  double step_s = 0.0;          ///< time per output token
  std::optional<double> watts;  ///< per device, mean while it decodes
  std::string key() const;      ///< identity, for the halves
};

/// Reads the table of points that `medley check-against` writes, or one written by hand: CSV with a
/// header, columns in any order, empty cells where nothing was measured.
///   model, tp, input, output    required: zoo name, tensor-parallel devices, mean tokens
///   concurrency                 sequences in flight; without it tpot_s * output_tok_per_s
///   tpot_s or output_tok_per_s  time per output token; or tokens/s of all (step = batch / rate)
///   watts_per_gpu               optional
///   device, gpus, backend, rate, ttft_s are allowed and not looked at
/// Throws InputError with file and line, all problems at once.
std::vector<ServingPoint> read_points(const std::string& path);

/// What the device alone is predicted to do in the point's median decode step (context = input +
/// half the output).
struct DeviceStep {
  double device_s = 0.0;
  double dynamic_w = 0.0;  ///< energy above the floor over the measured step, per device
};

/// Host time of a backend, and idle powers of the device, from points.
///   serial:      step - device = per_step + per_sequence * batch
///   overlapped:  step          = per_step + per_sequence * batch  where it exceeds the device's
///                time by 5 % (elsewhere the host is hidden and says nothing)
///   watts - dynamic = active_floor * busy + context_idle * (1 - busy), busy = device / step
/// by non-negative least squares, relative to the step (the watts), weights 1/max(|residual|, 2 %)
/// repeatedly. Halves by FNV-1a of the key: 0 fitted, 1 judged.
struct HostFit {
  int rows = 0;               ///< fitted
  int judged = 0;             ///< of the other half
  double median_error = 0.0;  ///< of predicted steps, held-out half
  double bias = 0.0;
  Sourced<Seconds> per_step, per_sequence;
  Sourced<Watts> active_floor, context_idle;  ///< unknown without watts
};
HostFit fit_host(const std::vector<ServingPoint>& points, HostMode mode,
                 const std::function<DeviceStep(const ServingPoint&)>& device);

}  // namespace medley
