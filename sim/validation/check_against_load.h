#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/scenario/load.h"
#include "sim/validation/check_against.h"
#include "workloads/request.h"

namespace medley {

/// The workload of a measured run, as a scenario states it; used by check_against.cpp only.
struct RebuiltLoad {
  std::string words;                        ///< "10 req/s Poisson", "16 in flight"
  std::optional<double> rate;               ///< open load: offered [1/s]
  std::optional<std::int64_t> concurrency;  ///< closed load: in flight
  std::string arrivals_json;  ///< of a generator or beside a trace; empty: the trace's own times
  std::string input_json, output_json;  ///< numbers or distributions; empty: listed requests
  std::int64_t requests = 0;
  bool listed = false;  ///< lengths are those of the measured requests
  bool drawn = false;   ///< lengths are random: scale them to the measured means
  std::vector<std::string> notes;
};
RebuiltLoad rebuild_load(const BenchResult& measured, const CheckLoad& load);

/// The scenario of a deployment with that workload, ready to run and as files.
struct RebuiltRun {
  RebuiltLoad load;
  LoadedScenario loaded;
  std::string scenario_json;
  std::string trace_csv;  ///< of listed requests; the scenario calls it requests.csv
};
RebuiltRun rebuild_run(const BenchResult& measured, const CheckDeployment& deployment,
                       const CheckLoad& load);

/// The measured requests with their lengths and, where known, times.
Trace listed_trace(const BenchResult& measured, std::size_t most, const std::string& model);

}  // namespace medley
