#include "sim/validation/sets/sets.h"

namespace medley {

const std::vector<ValidationSet>& validation_sets() {
  static const std::vector<ValidationSet> sets = {
      serving_requests_set(), parallel_plans_set(),     silicon_sample_set(), rate_sweep_set(),
      sglang_h200_set(),      offline_throughput_set(), splitwise_set(),      ml_energy_set(),
      token_power_set(),      kernel_power_set(),       node_watts_set(),     cap_sweep_set(),
      collectives_set(),      colocation_set(),
  };
  return sets;
}

}  // namespace medley
