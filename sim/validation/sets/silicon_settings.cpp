#include "sim/validation/sets/silicon_settings.h"

#include <fmt/format.h>

#include <algorithm>

namespace medley {

namespace {

void set(ServingCase& c, const char* key, const std::string& value) {
  c.overrides.push_back(fmt::format("pools.p.{}={}", key, value));
}

void tokens(ServingCase& c, int budget) {
  c.max_num_batched_tokens = budget;
}

bool blackwell(const SiliconRun& run) {
  return run.system.starts_with("b");
}

/// Chunked context is off by default. A preempted request must fit in one step again.
void whole_prompts(const SiliconRun& run, ServingCase& c) {
  const int longest = run.input + run.output + 8;
  set(c, "scheduler", "continuous");
  set(c, "max_model_len", fmt::format("{}", longest));
  tokens(c, std::max(c.max_num_batched_tokens, longest));
}

void minimax_on_vllm(const SiliconRun& run, ServingCase& c) {
  // The first recipe for Blackwell asked for expert parallelism whatever the degree, that of H200
  // still does; a new one for Blackwell came on 2026-04-03.
  const bool first = run.measured() < "2026-04-03";
  if (blackwell(run) && !first) {
    tokens(c, 2 * run.input);
    c.kv_cache_dtype = "fp8";
    return;
  }
  if (run.system == "h100_sxm") {
    c.max_num_seqs = 256;
    return;
  }
  c.expert_parallel = c.tensor_parallel > 1;
  set(c, "gpu_memory_utilization", "0.95");
}

void on_vllm(const SiliconRun& run, ServingCase& c) {
  if (run.model == "minimax-m2.5") return minimax_on_vllm(run, c);
  if (run.model == "gpt-oss-120b" || run.model == "llama-3.1-70b") {
    c.max_num_seqs = blackwell(run) ? 512 : c.concurrency;
    tokens(c, 8192);
    if (blackwell(run) || run.model == "llama-3.1-70b") c.kv_cache_dtype = "fp8";
  }
}

void on_tensorrt(const SiliconRun& run, ServingCase& c) {
  if (run.model == "gpt-oss-120b") {
    tokens(c, 20000);
    if (blackwell(run)) {
      c.kv_cache_dtype = "fp8";
      c.max_num_seqs = 512;
    } else {
      c.max_num_seqs = c.concurrency;
    }
  } else if (run.model.starts_with("deepseek")) {
    tokens(c, std::max(8192, (c.concurrency + run.input + 127) / 64 * 64));
    c.kv_cache_dtype = "fp8";
  } else if (run.model == "llama-3.1-70b") {
    tokens(c, 16384);
    c.kv_cache_dtype = "fp8";
  }
}

void on_sglang(const SiliconRun& run, ServingCase& c) {
  if (!run.model.starts_with("deepseek")) return;
  if (!blackwell(run)) {
    tokens(c, 32768);
    c.max_num_seqs = run.input == 1024 && run.output == 1024 ? 512 : 256;
    set(c, "gpu_memory_utilization", "0.82");
    return;
  }
  c.kv_cache_dtype = "fp8";
  if (run.precision == "fp4") {
    tokens(c, 16384);
    c.max_num_seqs = 256;
    set(c, "gpu_memory_utilization", "0.85");
  } else {
    const bool wide = c.tensor_parallel == 8;
    tokens(c, wide ? 32768 : 8192);
    c.max_num_seqs = wide ? 128 : 32;
    set(c, "gpu_memory_utilization", wide ? "0.82" : "0.95");
  }
}

}  // namespace

std::string SiliconRun::measured() const {
  constexpr std::string_view kField = "measured=";
  const std::size_t at = source.find(kField);
  return at == std::string::npos ? std::string() : source.substr(at + kField.size(), 10);
}

bool SiliconRun::inferencex() const {
  return source.starts_with("db-dump") || source.starts_with("source_file=20");
}

void apply_launch_settings(const SiliconRun& run, ServingCase& c) {
  if (!run.inferencex()) {
    c.max_num_seqs = std::max(128, c.concurrency);
    if (run.engine != "sglang") tokens(c, c.max_num_seqs + run.input + 1500);
    if (run.engine == "trtllm") whole_prompts(run, c);
    return;
  }
  c.max_num_seqs = std::max(256, c.concurrency);
  if (run.engine == "vllm") on_vllm(run, c);
  if (run.engine == "trtllm") {
    on_tensorrt(run, c);
    whole_prompts(run, c);
  }
  if (run.engine == "sglang") on_sglang(run, c);
}

}  // namespace medley
