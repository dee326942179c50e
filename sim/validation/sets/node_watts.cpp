#include <fmt/format.h>

#include "sim/core/rng.h"
#include "sim/validation/csv_rows.h"
#include "sim/validation/parallel.h"
#include "sim/validation/serving_case.h"
#include "sim/validation/sets/sets.h"

namespace medley {

namespace {

/// One MLPerf Inference benchmark: its model and the mean lengths of its data set.
struct Benchmark {
  const char* name;
  const char* model;
  int tensor_parallel;
  std::int32_t input, output;
};
constexpr Benchmark kBenchmarks[] = {{"llama2-70b-99", "llama-2-70b", 1, 294, 294},
                                     {"mixtral-8x7b", "mixtral-8x7b", 1, 330, 145},
                                     {"llama3.1-8b", "llama-3.1-8b", 1, 778, 128},
                                     {"llama3.1-405b", "llama-3.1-405b", 8, 9400, 684}};

struct Point {
  std::string key, group;
  ServingCase deployment;
  double watts = 0.0, naive = 0.0;
};

ServingCase case_of(const Benchmark& b, bool hopper, const std::string& key) {
  ServingCase c;
  c.node = hopper ? "8xH200-SXM" : "8xB200-SXM";
  c.model = b.model;
  c.backend = "tensorrt-llm";
  c.quantization = hopper ? "fp8" : "nvfp4";
  c.kv_cache_dtype = "fp8";
  c.tensor_parallel = b.tensor_parallel;
  c.replicas = 8 / b.tensor_parallel;
  c.max_num_seqs = b.input > 4000 ? 256 : 1024;
  c.concurrency = c.max_num_seqs * c.replicas;
  Rng rng(1, key);
  for (int i = 0; i < 3 * c.concurrency; ++i) {
    c.requests.push_back({0.0, static_cast<std::int32_t>(rng.uniform(0.3, 1.7) * b.input) + 1,
                          static_cast<std::int32_t>(rng.uniform(0.3, 1.7) * b.output) + 2});
  }
  return c;
}

std::vector<ValidationRow> run_node_watts(const ValidationContext& context) {
  const CsvRows csv(context.data + "/energy/mlperf-inference/power_runs_v4.1_v5.1.csv");
  std::vector<Point> points;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    for (const Benchmark& b : kBenchmarks) {
      if (csv.text(i, "benchmark") != b.name) continue;
      const bool hopper = csv.text(i, "system").starts_with("H200");
      Point p;
      p.key = fmt::format("{}|{}|{}", csv.text(i, "system"), b.name, csv.text(i, "scenario"));
      p.group = hopper ? "8xH200, MaxQ" : "8xB200";
      p.deployment = case_of(b, hopper, p.key);
      p.watts = csv.number(i, "avg_system_power_w");
      p.naive = (hopper ? 700.0 : 1000.0) * 8.0 + 2000.0;
      points.push_back(std::move(p));
    }
  }
  std::vector<ValidationRow> rows(points.size());
  for_each_row(context, points.size(), [&](std::size_t i) {
    const Point& p = points[i];
    const ServingOutcome o = run_case(p.deployment);
    ValidationRow& r = rows[i];
    r.key = p.key;
    r.group = p.group;
    r.basis = "catalogue";
    r.metric = "node_watts";
    r.unit = "W";
    r.measured = p.watts;
    r.predicted = o.node_watts;
    r.baseline = p.naive;
    r.n = static_cast<int>(p.deployment.requests.size());
    r.measured_pct = o.measured_pct;
    r.extrapolated_pct = o.extrapolated_pct;
    r.note = o.problem;
  });
  return rows;
}

}  // namespace

ValidationSet node_watts_set() {
  return {"node_watts",
          "whole-node AC watts under full LLM load: MLPerf Inference power runs, 8xH200 and 8xB200",
          "MLPerf Inference v4.1 and v5.1 power submissions (Apache-2.0)",
          "system|benchmark|scenario; nothing is fitted. The H200 runs are MaxQ: power-capped at a "
          "level the submission does not state",
          "TDP of the GPUs and 2 kW",
          "",
          {{"node_watts", "", "8xB200", "mape_pct", 8.0},
           {"node_watts", "", "8xH200, MaxQ", "mape_pct", 8.0}},
          run_node_watts};
}

}  // namespace medley
