#pragma once

#include <string>

#include "sim/validation/serving_case.h"

namespace medley {

/// What the sample says of a run, in its own words.
struct SiliconRun {
  std::string source;     ///< column silicon_data_source
  std::string system;     ///< "h100_sxm", ...
  std::string engine;     ///< "vllm", "sglang", "trtllm"
  std::string model;      ///< zoo name
  std::string precision;  ///< "fp8", "fp4", "bf16" or empty
  int input = 0;          ///< stated prompt tokens
  int output = 0;
  std::string measured() const;  ///< "2026-03-25"; empty where the source does not tell
  /// A sweep of SemiAnalysis' InferenceX (nightly runs, exported as dated files or a dump).
  bool inferencex() const;
};

/// Lengths of the requests and the engine's launch arguments, as the two origins of the sample
/// publish them; what they leave to the engine's defaults is left to ours.
///
/// InferenceX (SemiAnalysisAI/InferenceX, benchmarks/*.sh as of 2025-10, 2026-03-25, 2026-04-06 and
/// 2026-04-27): prompts and outputs uniform in [0.8, 1] of the stated lengths, 10 requests per
/// user, all users at once after a warm-up. Arguments by model, engine and device.
/// AIConfigurator's own comparison (ai-dynamo/aiconfigurator, eval/benchmarks and
/// generator/rule_plugin of 2026-01): every request has the stated lengths, 10 per user;
/// max_num_tokens = largest batch (128 unless more are asked for) + prompt + 1500, prefills of
/// TensorRT-LLM not chunked.
/// Not rebuilt: CUDA graph sizes, stream intervals (the first token is sent at once by all three
/// engines), fused all-reduces.
void apply_launch_settings(const SiliconRun& run, ServingCase& deployment);

}  // namespace medley
