#pragma once

#include <functional>
#include <string>

#include "hwmodels/catalog.h"
#include "sim/calibration/points.h"
#include "workloads/model.h"
#include "workloads/step_ops.h"

namespace medley {

/// The step model's prediction for points: `model` finds a model by name. Decode steps of p.batch
/// (rounded, at least 1) sequences of input + output / 2 tokens; device time and dynamic power
/// alone. The catalogue, device, node and backend must outlive the function. It throws InputError
/// for unknown models and InfeasibleError for plans that cannot run.
std::function<DeviceStep(const ServingPoint&)> device_steps(
    const Catalog& catalog, const DeviceSpec& device, const NodeSpec& node,
    const BackendSpec& backend, const Precision& precision,
    std::function<ModelSpec(const std::string&)> model);

}  // namespace medley
