#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/measure/bench_result.h"
#include "sim/measure/power_log.h"

namespace medley {

/// What served the requests of a measured run, in the words of `medley check-against`.
struct CheckDeployment {
  std::string scenario;  ///< a file whose workload is replaced; else the fields below
  std::string node;      ///< catalogue node type, or
  std::string device;    ///< a device by itself,
  int gpus = 0;          ///< so many of it; 0: one replica's worth
  std::string model;     ///< empty: as the measured file names it
  std::string backend = "vllm-2026";
  int tensor_parallel = 1;
  int pipeline_parallel = 1;
  int replicas = 0;  ///< 0: 1 with a node, as many as fit with a device
  std::vector<std::string> sets, catalog_dirs, zoo_dirs;  ///< the pool is called "server"
  bool assume_missing = false;
};

/// What measured files leave out of the load, and what the user knows better. Lengths are written
/// "512", "uniform:1:1024", "exponential:300", "lognormal:<mean>:<cv>".
struct CheckLoad {
  std::string input, output;          ///< empty: from the file
  std::optional<double> range_ratio;  ///< of random data sets, as the file's tool means it
  std::optional<std::int64_t> requests;
  std::optional<double> rate;  ///< infinite: all at once
  std::optional<std::int64_t> concurrency;
  std::uint64_t seed = 1;
};

/// A power log and the part of it that belongs to the run [s from the log's start]. Without a part,
/// the run's own time where both clocks are Unix time and overlap, else the whole log.
struct CheckPower {
  const PowerLog* log = nullptr;
  std::optional<double> from, to;
};

/// One metric of one measured run.
struct CheckRow {
  std::string metric;  ///< "ttft_mean", "tpot_p50", "output_tokens_per_s", "watts", ...
  std::string unit;
  double measured = 0.0;
  double predicted = 0.0;
  double error_pct() const { return 100.0 * (predicted / measured - 1.0); }
};

/// One measured run beside its simulation.
struct CheckedRun {
  BenchResult measured;
  std::string load;                         ///< "10 req/s Poisson", "16 in flight", ...
  std::optional<double> rate;               ///< of an open load [1/s]
  std::optional<std::int64_t> concurrency;  ///< of a closed one
  std::string model, device;
  int gpus = 0, tensor_parallel = 1, pipeline_parallel = 1;
  std::string backend;
  std::vector<CheckRow> rows;
  std::optional<double> measured_watts;  ///< mean over the run, all meters together
  std::vector<std::string> notes;        ///< how the run was rebuilt, what is not alike
  std::string scenario_json;             ///< the rebuilt scenario
  std::string trace_csv;  ///< its requests, where the scenario names "requests.csv"; else empty
};

/// Rebuilds the workload of a measured run and simulates it.
///   Lengths: of each request where the file lists them; else the user's distribution; else uniform
///   as the tool's random data set draws them; else every request has the mean length.
///   Random lengths are scaled so that their mean is the measured one.
///   Arrivals: as listed; else Poisson (gamma where burstiness says so, even where the tool spaces
///   evenly) at the offered rate, which the whole run meets exactly; else a closed loop with a
///   shared queue at the concurrency. A rate with a limit on requests in flight is a closed loop
///   where the limit binds: sent below 97 % of the rate, or rate x latency within 10 % of the limit
///   (Little's law). Times: the simulator's are the engine's own, without client, network and
///   detokenisation. Power: mean of the pool's devices over the run; of server logs, with the rest
///   of the server.
/// Throws InputError (deployment or load missing or wrong), InfeasibleError.
CheckedRun check_against(const BenchResult& measured, const CheckDeployment& deployment,
                         const CheckLoad& load, const CheckPower& power = {});

/// One line per metric over all runs.
struct CheckSummary {
  std::string metric, unit;
  int n = 0;
  double bias_pct = 0.0;      ///< mean signed error
  double median_pct = 0.0;    ///< median of absolute errors
  double p90_pct = 0.0;       ///< 90th percentile of absolute errors
  std::optional<double> tau;  ///< Kendall's tau-b of predicted against measured
};
std::vector<CheckSummary> summarise_checks(const std::vector<CheckedRun>& runs);

std::string checks_csv(const std::vector<CheckedRun>& runs);
std::string check_summary_csv(const std::vector<CheckSummary>& summary);

/// The end-to-end points that `medley calibrate --points` takes (sim/calibration/points.h): model,
/// device, mean lengths, load and what was measured, of one replica. Concurrency is blank where all
/// requests came at once or by a rate.
std::string check_points_csv(const std::vector<CheckedRun>& runs);

}  // namespace medley
