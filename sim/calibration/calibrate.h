#pragma once

#include <string>
#include <vector>

#include "hwmodels/calibration.h"
#include "sim/calibration/kernel_fit.h"
#include "sim/calibration/power_fit.h"

namespace medley {

/// What the overlay says about itself.
struct CalibrationLabel {
  std::string date;    ///< YYYY-MM-DD
  std::string source;  ///< what was measured and by whom: "ai-dynamo/aiconfigurator@095f58a, ..."
  std::string command;
  std::string notes;
};

/// Puts fitted ramps and power values into an overlay of `device`, one source per op class
/// (kernels, rows, held-out errors in words). Numbers have four significant digits. Law: the text
/// of the overlay depends on its arguments alone.
Calibration make_calibration(const DeviceSpec& device, const KernelFit& kernels,
                             const PowerFit& power, const CalibrationLabel& label);

}  // namespace medley
