#include "sim/validation/sets/sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "sim/core/csv.h"
#include "sim/core/error.h"
#include "sim/core/json_reader.h"
#include "sim/core/text_file.h"
#include "sim/report/statistics.h"
#include "sim/runtime/simulation.h"
#include "sim/scenario/load.h"

namespace medley {

/// serving_requests: the engine's settings are the published ones; measured times count from vLLM's
/// queued time.
///   tables:    step times from kernel profiles of the same card (one layer, eager); host overhead
///   0
///              (asynchronous scheduling hides it); skew alpha as published with the profile.
///   catalogue: nothing but the catalogue entries of device and backend.
namespace {

namespace fs = std::filesystem;

struct MeasuredRun {
  const char* name;
  const char* folder;  ///< of the measured run and its profile
  const char* node;    ///< catalogue node type
  int max_num_seqs;
  int blocks;          ///< as vLLM reported; 0: not recorded, from the memory account
  double decode_skew;  ///< published with the profile; 0 where its fit is disabled
};
constexpr MeasuredRun kRuns[] = {
    {"RTX 4090, Llama-3.1-8B", "RTX4090", "1xrtx-4090", 256, 2588, 0.0},
    {"RTX PRO 6000, Llama-3.1-8B", "RTXPRO6000", "1xrtx-pro-6000", 128, 0, 0.0543},
};

/// Per-request times, measured or simulated, in order of request.
struct Times {
  std::vector<double> ttft, tpot, latency;
  void add(double first, double last, int output) {
    ttft.push_back(first);
    latency.push_back(last);
    if (output > 1) tpot.push_back((last - first) / (output - 1));
  }
};

Times read_measured(const std::string& path) {
  Times times;
  LineReader reader(path);
  std::string_view line;
  while (reader.next(line)) {
    if (line.empty()) continue;
    const nlohmann::ordered_json row =
        parse_json(line, fmt::format("{}:{}", path, reader.line_number()));
    const double queued = row.at("queued_ts").get<double>();
    times.add(row.at("first_token_ts").get<double>() - queued,
              row.at("last_token_ts").get<double>() - queued, row.at("output_toks").get<int>());
  }
  return times;
}

LoadedScenario scenario_of(const MeasuredRun& run, bool tables, const std::string& data) {
  nlohmann::ordered_json pool = {{"node", "n"},
                                 {"model", "llama-3.1-8b"},
                                 {"backend", "vllm-2026"},
                                 {"replicas", 1},
                                 {"max_num_seqs", run.max_num_seqs},
                                 {"max_num_batched_tokens", 2048},
                                 {"max_model_len", 32768},
                                 {"block_size", 16},
                                 {"enable_prefix_caching", true}};
  if (run.blocks > 0) pool["num_gpu_blocks_override"] = run.blocks;
  if (tables) {
    pool["step_model"] = {
        {"kind", "tables"},
        {"tables", fmt::format("{}/serving/LLMServingSim/v2-profiles/{}/meta-llama/"
                               "Llama-3.1-8B/bf16/tp1",
                               data, run.folder)},
        {"decode_skew", run.decode_skew}};
    pool["backend_overrides"] = {{"host_per_step", "0 s"},
                                 {"host_per_sequence", "0 s"},
                                 {"sync_per_step", "0 s"},
                                 {"sync_per_sequence", "0 s"},
                                 {"request_overhead", "0 s"}};
  } else {  // times count from the queue inside the engine
    pool["backend_overrides"] = {{"request_overhead", "0 s"}};
  }
  const std::string trace = data +
                            "/traces/llmservingsim-vllm-measured/"
                            "workload_sharegpt-llama-3.1-8b-300-sps10.notokens.jsonl";
  nlohmann::ordered_json document = {{"schema", "medley.scenario/1"}, {"name", "validation"}};
  document["cluster"]["nodes"]["n"] = {{"type", run.node}, {"count", 1}};
  document["pools"]["p"] = pool;
  document["workload"]["sources"]["measured"] = {
      {"model", "llama-3.1-8b"},
      {"trace",
       {{"file", trace},
        {"columns", {{"hash_ids", {{"name", "hash_ids_blk16"}}}}},
        {"hash_block_tokens", 16}}}};
  LoadOptions options;
  options.path = "validation.json";
  options.text = document.dump();
  return load_with_catalog(options);
}

void compare(const MeasuredRun& run, bool tables, const Times& measured, const Times& simulated,
             std::vector<ValidationRow>& rows) {
  const auto add = [&](const char* metric, std::vector<double> m, std::vector<double> s, double p) {
    std::sort(m.begin(), m.end());
    std::sort(s.begin(), s.end());
    const auto value = [&](std::vector<double>& v) {
      return p < 0.0 ? moments_of(v).mean : sorted_quantile(v, p);
    };
    ValidationRow row;
    row.key = fmt::format("{}|{}", run.folder, metric);
    row.group = run.name;
    row.basis = tables ? "tables" : "catalogue";
    row.metric = metric;
    row.unit = "s";
    row.measured = value(m);
    row.predicted = value(s);
    row.n = static_cast<int>(m.size());
    if (tables) row.measured_pct = 100.0;
    rows.push_back(std::move(row));
  };
  add("ttft_mean", measured.ttft, simulated.ttft, -1.0);
  add("tpot_mean", measured.tpot, simulated.tpot, -1.0);
  add("latency_mean", measured.latency, simulated.latency, -1.0);
  add("latency_p50", measured.latency, simulated.latency, 0.5);
  add("latency_p99", measured.latency, simulated.latency, 0.99);
}

std::vector<ValidationRow> run_serving_requests(const ValidationContext& context) {
  const std::string& data = context.data;
  std::vector<ValidationRow> rows;
  for (const MeasuredRun& run : kRuns) {
    const Times measured = read_measured(
        fmt::format("{}/serving/LLMServingSim/v2-vllm-ground-truth/{}/Llama-3.1-8B/requests.jsonl",
                    data, run.folder));
    for (const bool tables : {true, false}) {
      const LoadedScenario loaded = scenario_of(run, tables, data);
      const RunResult result = medley::run(*loaded.catalog, loaded.scenario);
      MEDLEY_CHECK(result.requests.size() == measured.ttft.size(),
                   "the measured run and its workload differ in length");
      Times simulated;
      for (std::size_t i = 0; i < result.requests.size(); ++i) {
        const RequestRecord& r = result.requests[i];
        simulated.add((r.first_token - r.arrival).value(), (r.last_token - r.arrival).value(),
                      loaded.scenario.trace.requests[i].output_tokens);
      }
      compare(run, tables, measured, simulated, rows);
    }
  }
  return rows;
}

}  // namespace

ValidationSet serving_requests_set() {
  return {"serving_requests",
          "300 requests at 10/s on real vLLM 0.19.0: RTX 4090 and RTX PRO 6000, Llama-3.1-8B bf16",
          "casys-kaist/LLMServingSim@5daddb21 (MIT)",
          "device|metric; nothing is fitted, every row is reported",
          "",
          "LLMServingSim 2.0 on the same two runs: RTX 4090 +0.6/+0.2/+0.5 % of mean "
          "TTFT/TPOT/latency, "
          "RTX PRO 6000 -4.0/-1.0/-1.8 %",
          {{"ttft_mean", "tables", "", "max_pct", 2.0},
           {"tpot_mean", "tables", "", "max_pct", 2.0},
           {"latency_mean", "tables", "", "max_pct", 2.0},
           {"latency_p50", "tables", "", "max_pct", 3.0},
           {"latency_p99", "tables", "", "max_pct", 3.0},
           {"ttft_mean", "catalogue", "", "median_pct", 15.0},
           {"tpot_mean", "catalogue", "", "median_pct", 8.0},
           {"latency_mean", "catalogue", "", "median_pct", 8.0}},
          run_serving_requests};
}

}  // namespace medley
