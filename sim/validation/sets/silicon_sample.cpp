#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>

#include "sim/core/rng.h"
#include "sim/validation/csv_rows.h"
#include "sim/validation/parallel.h"
#include "sim/validation/serving_case.h"
#include "sim/validation/sets/sets.h"
#include "sim/validation/sets/silicon_settings.h"

namespace medley {

namespace {

struct Point {
  std::string id, group;
  ServingCase deployment;
  double ttft_s = 0.0, tpot_s = 0.0;
};

/// Catalogue names of what the sample calls by other ones.
const std::map<std::string, std::string>& models() {
  static const std::map<std::string, std::string> names = {
      {"Qwen/Qwen3-32B", "qwen3-32b"},
      {"Qwen/Qwen3-235B-A22B-FP8", "qwen3-235b-a22b"},
      {"meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"},
      {"nvidia/Llama-3.1-8B-Instruct-FP8", "llama-3.1-8b"},
      {"meta-llama/Llama-3.1-70B", "llama-3.1-70b"},
      {"openai/gpt-oss-120b", "gpt-oss-120b"},
      {"MiniMaxAI/MiniMax-M2.5", "minimax-m2.5"},
      {"deepseek-ai/DeepSeek-R1", "deepseek-r1"},
      {"deepseek-ai/DeepSeek-V3", "deepseek-v3"}};
  return names;
}
const std::map<std::string, std::string>& nodes() {
  static const std::map<std::string, std::string> names = {{"h100_sxm", "8xH100-SXM"},
                                                           {"h200_sxm", "8xH200-SXM"},
                                                           {"b200_sxm", "8xB200-SXM"},
                                                           {"b300_sxm", "8xB300-SXM"}};
  return names;
}

std::string quantization_of(const std::string& precision, const std::string& model) {
  if (model == "gpt-oss-120b") return "";  // ships in mxfp4
  if (precision == "fp8") return "fp8";
  if (precision == "fp4") return "nvfp4";
  return precision.empty() || precision == "bf16" ? "none" : "?";
}

/// vLLM schedules asynchronously from 0.14 on. Rows without a version are of late 2025.
std::string vllm_of(const std::string& version) {
  if (version.empty()) return "vllm-2025";
  if (!version.starts_with("0.")) return "vllm-2026";  // nightlies of 2026
  return std::atoi(version.c_str() + 2) < 14 ? "vllm-2025" : "vllm-2026";
}

/// Ten requests a user: of lengths uniform in [0.8, 1] of the stated ones (InferenceX) or all
/// alike.
std::vector<CaseRequest> requests_of(const std::string& id, int concurrency,
                                     const SiliconRun& run) {
  const int n = std::clamp(10 * concurrency, 32, 5120);
  Rng rng(1, id);
  const auto length = [&](int stated) {
    return run.inferencex() ? static_cast<std::int32_t>(rng.uniform(0.8, 1.0) * stated) : stated;
  };
  std::vector<CaseRequest> requests;
  for (int i = 0; i < n; ++i) {
    const std::int32_t in = length(run.input);
    requests.push_back({0.0, std::max(1, in), std::max(2, length(run.output))});
  }
  return requests;
}

/// The users at once: stated in the source's note, else the batch column.
int concurrency_of(const CsvRows& csv, std::size_t i) {
  constexpr std::string_view kField = "silicon_concurrency=";
  const std::string& source = csv.text(i, "silicon_data_source");
  const std::size_t at = source.find(kField);
  return at == std::string::npos ? csv.integer(i, "batch_size")
                                 : std::atoi(source.c_str() + at + kField.size());
}

/// Absent: the row is of a kind that is not simulated (left out, not failed).
std::optional<Point> point_of(const CsvRows& csv, std::size_t i) {
  const auto model = models().find(csv.text(i, "model_path"));
  const auto node = nodes().find(csv.text(i, "system"));
  const std::string& dp = csv.text(i, "attention_dp_size");
  if (csv.text(i, "mode") != "agg" || model == models().end() || node == nodes().end()) return {};
  if (!(dp.empty() || dp == "0" || dp == "1") || csv.integer(i, "pp_size") != 1) return {};
  Point p;
  ServingCase& c = p.deployment;
  c.tensor_parallel = csv.integer(i, "tp_size");
  const int ep = csv.blank(i, "moe_ep_size") ? 1 : std::max(1, csv.integer(i, "moe_ep_size"));
  // Of mixed expert splits the sample's columns do not say how many devices there are.
  if (c.tensor_parallel > 8 || (ep > 1 && ep != c.tensor_parallel)) return {};
  c.quantization = quantization_of(csv.text(i, "precision"), model->second);
  if (c.quantization == "?") return {};
  c.expert_parallel = ep > 1;
  c.node = node->second;
  c.model = model->second;
  const std::string& engine = csv.text(i, "backend");
  c.backend = engine == "vllm"     ? vllm_of(csv.text(i, "backend_version"))
              : engine == "trtllm" ? "tensorrt-llm"
                                   : "sglang";
  c.concurrency = concurrency_of(csv, i);
  p.id = csv.text(i, "id");
  const SiliconRun run = {csv.text(i, "silicon_data_source"),
                          csv.text(i, "system"),
                          engine,
                          c.model,
                          csv.text(i, "precision"),
                          csv.integer(i, "isl"),
                          csv.integer(i, "osl")};
  c.requests = requests_of(p.id, c.concurrency, run);
  apply_launch_settings(run, c);
  p.group = fmt::format("{}, {}, {}", csv.text(i, "system"), engine, c.model);
  p.ttft_s = csv.number(i, "silicon_ttft_ms") / 1e3;
  p.tpot_s = csv.number(i, "silicon_tpot_ms") / 1e3;
  return p;
}

std::vector<ValidationRow> run_silicon_sample(const ValidationContext& context) {
  const CsvRows csv(context.data + "/serving/aiconfigurator/silicon_sample.csv");
  std::vector<Point> points;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    if (auto p = point_of(csv, i)) points.push_back(std::move(*p));
  }
  std::vector<ValidationRow> rows(2 * points.size());
  for_each_row(context, points.size(), [&](std::size_t i) {
    const Point& p = points[i];
    const ServingOutcome o = run_case(p.deployment, context.draws);
    ServingCase ideal = p.deployment;
    ideal.backend = "ideal";
    const ServingOutcome naive = run_case(ideal);
    for (const bool tpot : {false, true}) {
      ValidationRow& r = rows[2 * i + (tpot ? 1 : 0)];
      r.key = p.id;
      r.group = p.group;
      r.basis = "catalogue";
      r.metric = tpot ? "tpot_mean" : "ttft_mean";
      r.unit = "s";
      r.measured = tpot ? p.tpot_s : p.ttft_s;
      r.predicted = tpot ? o.tpot_mean : o.ttft_mean;
      if (naive.problem.empty()) r.baseline = tpot ? naive.tpot_mean : naive.ttft_mean;
      const Spread& spread = tpot ? o.tpot_spread : o.ttft_spread;
      r.low = spread.low;
      r.high = spread.high;
      r.half = half_of(p.id);
      r.n = static_cast<int>(p.deployment.requests.size());
      r.measured_pct = o.measured_pct;
      r.extrapolated_pct = o.extrapolated_pct;
      r.note = o.problem;
      if (naive.problem.empty() && p.tpot_s < naive.tpot_mean) {
        r.predicted = kBlank;
        r.note = "left out: faster than datasheet rates allow, not run as described";
      }
    }
  });
  return rows;
}

}  // namespace

ValidationSet silicon_sample_set() {
  return {"silicon_sample",
          "closed-loop TTFT and TPOT against concurrency: vLLM, SGLang, TensorRT-LLM on H100..B300",
          "ai-dynamo/aiconfigurator@095f58a silicon_sample.csv (Apache-2.0)",
          "the sample's id",
          "plain roofline: datasheet rates, no overhead",
          "",
          {{"ttft_mean", "", "", "median_pct", 15.0}, {"tpot_mean", "", "", "median_pct", 8.0}},
          run_silicon_sample};
}

}  // namespace medley
