#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/report/statistics.h"
#include "sim/validation/csv_rows.h"
#include "sim/validation/parallel.h"
#include "sim/validation/serving_case.h"
#include "sim/validation/sets/sets.h"

namespace medley {

namespace {

using Shape = std::tuple<std::string, std::string, int, int, int, int>;

ServingCase case_of(const Shape& shape) {
  const auto& [model, hardware, tp, prompt, batch, tokens] = shape;
  ServingCase c;
  c.node = hardware == "a100-80gb" ? "8xA100-SXM-80GB" : "8xH100-SXM";
  c.model = model == "llama2-70b" ? "llama-2-70b" : "bloom-176b";
  c.backend = "vllm-2024";
  c.tensor_parallel = tp;
  c.requests = equal_requests(batch, prompt, tokens);
  c.max_num_batched_tokens = std::max(8192, prompt * batch);
  c.max_num_seqs = 256;
  c.overrides = {"pools.p.max_model_len=8192"};
  return c;
}

/// Repeats of one shape, by median.
std::vector<ValidationRow> run_splitwise(const ValidationContext& context) {
  const CsvRows csv(context.data + "/serving/splitwise-sim/perf_model.csv");
  std::map<Shape, std::pair<std::vector<double>, std::vector<double>>> measured;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    if (csv.text(i, "hardware") == "h100-80gb-pcap") continue;  // 1.3 times another row
    const Shape shape{csv.text(i, "model"),
                      csv.text(i, "hardware"),
                      csv.integer(i, "tensor_parallel"),
                      csv.integer(i, "prompt_size"),
                      csv.integer(i, "batch_size"),
                      csv.integer(i, "token_size")};
    measured[shape].first.push_back(csv.number(i, "prompt_time") / 1e3);
    measured[shape].second.push_back(csv.number(i, "token_time") / 1e3);
  }
  std::vector<Shape> shapes;
  for (const auto& [shape, times] : measured) shapes.push_back(shape);
  std::vector<ValidationRow> rows(2 * shapes.size());
  for_each_row(context, shapes.size(), [&](std::size_t i) {
    const auto& [model, hardware, tp, prompt, batch, tokens] = shapes[i];
    const ServingCase deployment = case_of(shapes[i]);
    const ServingOutcome o = run_case(deployment);
    ServingCase ideal = deployment;
    ideal.backend = "ideal";
    const ServingOutcome naive = run_case(ideal);
    for (const bool token : {false, true}) {
      ValidationRow& r = rows[2 * i + (token ? 1 : 0)];
      r.key = fmt::format("{}|{}|tp{}|{}|b{}|{}", model, hardware, tp, prompt, batch, tokens);
      r.group = fmt::format("{}, {}, TP{}", hardware, model, tp);
      r.basis = "catalogue";
      r.metric = token ? "token_time" : "prompt_time";
      r.unit = "s";
      r.n = static_cast<int>(measured[shapes[i]].first.size());
      r.measured = moments_of(token ? measured[shapes[i]].second : measured[shapes[i]].first).p50;
      r.predicted = token ? o.tpot_mean : o.ttft_mean;
      if (naive.problem.empty()) r.baseline = token ? naive.tpot_mean : naive.ttft_mean;
      r.half = half_of(r.key);
      r.measured_pct = o.measured_pct;
      r.extrapolated_pct = o.extrapolated_pct;
      r.note = o.problem;
    }
  });
  return rows;
}

}  // namespace

ValidationSet splitwise_set() {
  return {"splitwise",
          "prefill and decode time of static batches, Llama-2-70B and BLOOM-176B on A100 and H100",
          "Mutinifni/splitwise-sim@8f99e7dc perf_model.csv (MIT), without its capped-H100 rows",
          "model|hardware|tp|prompt|batch|tokens",
          "plain roofline: datasheet rates, no overhead",
          "",
          {},
          run_splitwise};
}

}  // namespace medley
