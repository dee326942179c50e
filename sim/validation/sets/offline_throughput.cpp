#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>

#include "sim/validation/csv_rows.h"
#include "sim/validation/parallel.h"
#include "sim/validation/serving_case.h"
#include "sim/validation/sets/sets.h"

namespace medley {

namespace {

struct Point {
  std::string key, group;
  ServingCase deployment;
  double latency_s = 0.0;
};

const std::map<std::string, std::string>& models() {
  static const std::map<std::string, std::string> names = {
      {"meta-llama/Llama-2-7b-hf", "llama-2-7b"},
      {"mistralai/Mistral-7B-v0.1", "mistral-7b"},
      {"meta-llama/Meta-Llama-3-8B", "llama-3-8b"},
      {"Qwen/Qwen2-7B", "qwen2.5-7b"},  // the same shapes
      {"mistralai/Mixtral-8x7B-v0.1", "mixtral-8x7b"},
      {"meta-llama/Llama-2-70b-hf", "llama-2-70b"},
      {"meta-llama/Meta-Llama-3-70B", "llama-3-70b"},
      {"Qwen/Qwen2-72B", "qwen2.5-72b"}};
  return names;
}
const std::map<std::string, std::string>& nodes() {
  static const std::map<std::string, std::string> names = {{"Nvidia A100 GPU", "8xA100-SXM-40GB"},
                                                           {"Nvidia H100 GPU", "8xH100-SXM"},
                                                           {"AMD MI250 GPU", "4xMI250X"},
                                                           {"Habana Gaudi2", "8xGaudi2"}};
  return names;
}
const std::map<std::string, std::string>& backends() {
  static const std::map<std::string, std::string> names = {
      {"vLLM", "vllm-2024"}, {"TensorRT-LLM", "tensorrt-llm"}, {"Deepspeed", "vllm-2024"}};
  return names;
}

std::optional<Point> point_of(const CsvRows& csv, std::size_t i) {
  const auto model = models().find(csv.text(i, "Model"));
  const auto node = nodes().find(csv.text(i, "Hardware"));
  const auto backend = backends().find(csv.text(i, "Framework"));
  if (model == models().end() || node == nodes().end() || backend == backends().end()) return {};
  if (csv.number(i, "Latency") <= 0.0) return {};
  Point p;
  ServingCase& c = p.deployment;
  c.node = node->second;
  c.model = model->second;
  c.backend = backend->second;
  c.tensor_parallel = csv.integer(i, "Num of Hardware");
  const int length = csv.integer(i, "Input Output Length");
  const int batch = csv.integer(i, "Batch Size");
  c.requests = equal_requests(batch, length, length);
  c.max_num_seqs = 256;
  c.max_num_batched_tokens = 8192;
  c.overrides = {"pools.p.max_model_len=4096"};  // a serial engine's prompt must fit in one step
  if (csv.text(i, "Hardware") == "Habana Gaudi2") c.overrides.push_back("pools.p.dtype=bf16");
  p.latency_s = csv.number(i, "Latency");
  p.key = fmt::format("{}|{}|{}|{}|{}|{}", csv.text(i, "Hardware"), c.tensor_parallel,
                      csv.text(i, "Framework"), csv.text(i, "Model"), length, batch);
  p.group = fmt::format("{}, {}", csv.text(i, "Hardware"), csv.text(i, "Framework"));
  return p;
}

std::vector<ValidationRow> run_offline_throughput(const ValidationContext& context) {
  const CsvRows csv(context.data + "/traces/llm-inference-bench/All_results.csv");
  std::vector<Point> points;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    auto p = point_of(csv, i);
    if (p && seen.insert(p->key).second) points.push_back(std::move(*p));
  }
  std::vector<ValidationRow> rows(points.size());
  for_each_row(context, points.size(), [&](std::size_t i) {
    const Point& p = points[i];
    const ServingOutcome o = run_case(p.deployment);
    ServingCase ideal = p.deployment;
    ideal.backend = "ideal";
    const ServingOutcome naive = run_case(ideal);
    ValidationRow& r = rows[i];
    r.key = p.key;
    r.group = p.group;
    r.basis = "catalogue";
    r.metric = "batch_latency";
    r.unit = "s";
    r.measured = p.latency_s;
    r.predicted = o.duration;
    if (naive.problem.empty()) r.baseline = naive.duration;
    r.half = half_of(p.key);
    r.n = 1;
    r.measured_pct = o.measured_pct;
    r.extrapolated_pct = o.extrapolated_pct;
    r.note = o.problem;
  });
  return rows;
}

}  // namespace

ValidationSet offline_throughput_set() {
  return {"offline_throughput",
          "latency of whole batches, equal input and output: A100, H100, MI250, Gaudi2",
          "argonne-lcf/LLM-Inference-Bench@4211f5d All_results.csv (BSD-3-Clause)",
          "hardware|devices|framework|model|length|batch; of repeated rows the first",
          "plain roofline: datasheet rates, no overhead",
          "",
          {},
          run_offline_throughput};
}

}  // namespace medley
