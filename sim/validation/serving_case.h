#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/report/statistics.h"
#include "sim/scenario/load.h"
#include "sim/validation/validation.h"

namespace medley {

/// One request of a measured run.
struct CaseRequest {
  double arrival_s = 0.0;  ///< ignored in a closed loop
  std::int32_t input = 0;
  std::int32_t output = 0;
};

/// A serving deployment and its load, as a validation set states it.
struct ServingCase {
  std::string node;  ///< catalogue node type
  std::string model;
  std::string backend;
  std::string quantization;    ///< empty: the model's own
  std::string kv_cache_dtype;  ///< empty: auto
  int tensor_parallel = 1;
  int pipeline_parallel = 1;
  int replicas = 1;
  bool expert_parallel = false;
  int max_num_seqs = 0;            ///< 0: the backend's default
  int max_num_batched_tokens = 0;  ///< likewise
  bool prefix_caching = false;     ///< random prompts share nothing
  std::vector<CaseRequest> requests;
  int concurrency = 0;                 ///< closed loop of so many users; 0: open, by arrival
  std::vector<std::string> overrides;  ///< further `--set` lines
  bool assume_missing = false;         ///< energy wanted where the catalogue lacks power values
};

/// 90 % interval over parameter draws; empty where none were made.
struct Spread {
  std::optional<double> low, high;
};

/// What the run gave. Times in seconds, NaN where nothing is known.
struct ServingOutcome {
  std::string problem;  ///< why there is no answer; empty: there is one
  double ttft_mean = kBlank, ttft_p50 = kBlank, ttft_p99 = kBlank;
  double tpot_mean = kBlank, tpot_p50 = kBlank, tpot_p99 = kBlank;
  double e2e_mean = kBlank, e2e_p50 = kBlank, e2e_p99 = kBlank;
  double itl_p50 = kBlank;   ///< median gap between tokens
  double duration = kBlank;  ///< first arrival to last token
  double output_tokens_per_s = kBlank, tokens_per_s = kBlank, requests_per_s = kBlank;
  double watts = kBlank;  ///< mean of all assigned devices together over the steady part
  double flops_per_s = kBlank, bytes_per_s = kBlank;  ///< all devices, mean over the busy time
  double busy_share = kBlank;                         ///< of the duration, mean over replicas
  double node_watts = kBlank;                         ///< AC, the whole first node
  double joules_per_output_token = kBlank;
  double output_rate_steady = kBlank;  ///< output tokens per second over the steady part
  double batch_mean = kBlank;          ///< admitted sequences, mean over the steady part
  double measured_pct = 0.0, extrapolated_pct = 0.0;
  Spread ttft_spread, tpot_spread, e2e_spread, watts_spread;  ///< of the means
  bool saturated = false;
  std::vector<double> ttft, tpot, e2e;  ///< by request
};

/// Loads the deployment, replays the requests and sums up. Infeasible deployments come back as a
/// `problem`; errors of the catalogue do too.
///   Steady part: from the time the `concurrency`-th request starts until the last `concurrency`
///   requests remain (closed loop), the middle 80 % otherwise.
/// `draws` > 0: the means' 90 % intervals over so many parameter draws (hwmodels/draw.h), seed 1.
ServingOutcome run_case(const ServingCase& deployment, int draws = 0);

/// `n` equal requests.
std::vector<CaseRequest> equal_requests(int n, std::int32_t input, std::int32_t output);

}  // namespace medley
