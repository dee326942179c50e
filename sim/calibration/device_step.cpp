#include "sim/calibration/device_step.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "sim/cost/step_model.h"

namespace medley {

std::function<DeviceStep(const ServingPoint&)> device_steps(
    const Catalog& catalog, const DeviceSpec& device, const NodeSpec& node,
    const BackendSpec& backend, const Precision& precision,
    std::function<ModelSpec(const std::string&)> model) {
  using Models = std::map<std::pair<std::string, int>, StepModel>;
  const auto models = std::make_shared<Models>();
  return [&catalog, &device, &node, &backend, precision, model = std::move(model),
          models](const ServingPoint& p) {
    const auto key = std::pair(p.model, p.tensor_parallel);
    auto it = models->find(key);
    if (it == models->end()) {
      StepModelInput in;
      in.model = model(p.model);
      in.device = device;
      in.node = node;
      in.backend = backend;
      in.precision = precision;
      in.tensor_parallel = p.tensor_parallel;
      it = models->emplace(key, StepModel(catalog, std::move(in))).first;
    }
    const StepModel& steps = it->second;
    const auto length =
        static_cast<std::int64_t>(std::max(1.0, p.input_tokens + 0.5 * p.output_tokens));
    const auto batch = static_cast<std::size_t>(std::max(1.0, std::round(p.batch)));
    const Features x = make_features(steps.context(), {}, std::vector<std::int64_t>(batch, length));
    const StepCost cost = steps.step(x, static_cast<double>(length));
    return DeviceStep{cost.device_s, cost.dynamic_j / p.tensor_parallel / p.step_s};
  };
}

}  // namespace medley
