#pragma once

#include <map>
#include <string>
#include <vector>

#include "hwmodels/catalog.h"
#include "sim/core/error.h"
#include "sim/cost/step_model.h"
#include "sim/scenario/scenario.h"
#include "workloads/model.h"
#include "workloads/workload_spec.h"

namespace medley {

/// Cross-field rules that need the resolved pools: devices of each group suffice and can be placed,
/// memory and bandwidth of the devices used are known. Problems carry pointers into
/// `scenario.file`.
void validate_hardware(const Scenario& scenario, Problems& problems);

/// Every model that a source of the workload names is served by a pool.
void validate_models(const Scenario& scenario, const WorkloadSpec& workload, const ModelZoo& zoo,
                     Problems& problems);
/// The same for the requests of the built trace; `trace.models` become the pools' `model_name`s
/// (names and aliases of one model are one entry, requests renumbered).
void match_models(Scenario& scenario, const ModelZoo& zoo, Problems& problems);
/// Every class with objectives occurs in the built trace.
void validate_classes(const Scenario& scenario, Problems& problems);

/// What is unknown of power and price, with the line that supplies it.
std::vector<std::string> missing_value_warnings(const Scenario& scenario);
/// What was filled with class priors (node group -> fields), as far as a pool needs it.
std::vector<std::string> assumed_value_warnings(
    const Scenario& scenario, const std::map<std::string, std::vector<std::string>>& assumed);

/// Memory of one replica of each pool. Throws InfeasibleError (a model that does not fit), naming
/// every such pool.
std::vector<MemoryAccount> check_feasible(const Catalog& catalog, const Scenario& scenario);

/// The device as a replica of `pool` has it: with sharing a part of its memory, price and floor
/// (two busy replicas together pay the whole floor, one alone pays less: an under-estimate of at
/// most (1 - fraction) (floor - idle)); a MIG slice has that part of the rates and of the power
/// limit too.
DeviceSpec device_of(const Scenario& scenario, const PoolSpec& pool);

/// What decides the cost of a step of `pool`.
StepModelInput step_model_input(const Scenario& scenario, const PoolSpec& pool);

}  // namespace medley
