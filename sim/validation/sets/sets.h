#pragma once

#include "sim/validation/validation.h"

namespace medley {

// One per file sets/<name>.cpp; registered in registry.cpp.
ValidationSet serving_requests_set();
ValidationSet parallel_plans_set();
ValidationSet silicon_sample_set();
ValidationSet rate_sweep_set();
ValidationSet sglang_h200_set();
ValidationSet offline_throughput_set();
ValidationSet splitwise_set();
ValidationSet ml_energy_set();
ValidationSet token_power_set();
ValidationSet kernel_power_set();
ValidationSet node_watts_set();
ValidationSet cap_sweep_set();
ValidationSet collectives_set();
ValidationSet colocation_set();

}  // namespace medley
