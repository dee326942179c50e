#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/core/error.h"
#include "sim/core/json_reader.h"
#include "sim/core/rng.h"
#include "sim/core/text_file.h"
#include "sim/validation/parallel.h"
#include "sim/validation/serving_case.h"
#include "sim/validation/sets/sets.h"

namespace medley {

namespace {

struct Line {
  double rate = 0.0;  ///< 0: all at once
  int completed = 0;
  int input = 0, output = 0;  ///< means actually sent and received
  bool full_length = false;   ///< range ratio 1: every request has the stated lengths
  double e2e_mean = 0.0, ttft_p50 = 0.0, itl_p50 = 0.0, throughput = 0.0;
  std::string key;
};

std::vector<Line> read_lines(const std::string& path, const std::string& name) {
  std::vector<Line> lines;
  LineReader reader(path);
  std::string_view text;
  while (reader.next(text)) {
    if (text.empty()) continue;
    std::string fixed(text);  // the tool writes a bare Infinity
    const std::size_t at = fixed.find("Infinity");
    if (at != std::string::npos) fixed.replace(at, 8, "0");
    const auto row = parse_json(fixed, fmt::format("{}:{}", path, reader.line_number()));
    Line l;
    l.rate = row.at("request_rate").get<double>();
    l.completed = row.at("completed").get<int>();
    l.input = row.at("total_input_tokens").get<int>() / l.completed;
    l.output = row.at("total_output_tokens").get<int>() / l.completed;
    l.full_length = row.at("random_range_ratio").get<double>() == 1.0;
    l.e2e_mean = row.at("mean_e2e_latency_ms").get<double>() / 1e3;
    l.ttft_p50 = row.at("median_ttft_ms").get<double>() / 1e3;
    l.itl_p50 = row.at("median_itl_ms").get<double>() / 1e3;
    l.throughput = row.at("output_throughput").get<double>();
    l.key =
        fmt::format("{}|rate {}|n {}|in {}|out {}", name, l.rate, l.completed, l.input, l.output);
    lines.push_back(std::move(l));
  }
  return lines;
}

/// Lengths uniform in [1, 2 mean] where the tool drew them so; Poisson arrivals.
std::vector<CaseRequest> requests_of(const Line& l) {
  Rng arrivals(1, l.key + "/arrivals");
  Rng lengths(1, l.key + "/lengths");
  std::vector<CaseRequest> requests;
  double at = 0.0;
  const auto draw = [&](int mean) {
    return l.full_length ? mean
                         : static_cast<std::int32_t>(std::max(1.0, 2.0 * mean * lengths.uniform()));
  };
  for (int i = 0; i < l.completed; ++i) {
    const std::int32_t input = draw(l.input);
    requests.push_back({at, input, std::max(1, draw(l.output))});
    if (l.rate > 0.0) at += arrivals.exponential(1.0 / l.rate);
  }
  return requests;
}

std::vector<ValidationRow> run_sglang_h200(const ValidationContext& context) {
  const std::string folder = context.data + "/traces/tool-outputs/sglang_bench_h200/";
  std::vector<Line> lines = read_lines(folder + "llama_3_3_70b_online_output.jsonl", "online");
  for (Line& l : read_lines(folder + "llama_3_3_70b_offline_output.jsonl", "offline")) {
    lines.push_back(std::move(l));
  }
  constexpr std::size_t kMetrics = 4;
  std::vector<ValidationRow> rows(kMetrics * lines.size());
  for_each_row(context, lines.size(), [&](std::size_t i) {
    const Line& l = lines[i];
    ServingCase c;
    c.node = "8xH200-SXM";
    c.model = "llama-3.3-70b";
    c.backend = "sglang";
    c.tensor_parallel = 4;
    c.max_num_seqs = 4096;
    c.requests = requests_of(l);
    const ServingOutcome o = run_case(c);
    c.backend = "ideal";
    const ServingOutcome naive = run_case(c);
    const auto add = [&](std::size_t m, const char* metric, const char* unit, double measured,
                         double predicted, double baseline) {
      ValidationRow& r = rows[kMetrics * i + m];
      r.key = l.key;
      r.group = l.rate > 0.0 ? "online" : "offline";
      r.basis = "catalogue";
      r.metric = metric;
      r.unit = unit;
      r.measured = measured;
      r.predicted = predicted;
      r.baseline = baseline;
      r.n = l.completed;
      r.measured_pct = o.measured_pct;
      r.extrapolated_pct = o.extrapolated_pct;
      r.note = !o.problem.empty() ? o.problem : o.saturated ? "saturated" : "";
    };
    add(0, "e2e_mean", "s", l.e2e_mean, o.e2e_mean, naive.e2e_mean);
    add(1, "ttft_p50", "s", l.ttft_p50, o.ttft_p50, naive.ttft_p50);
    add(2, "itl_p50", "s", l.itl_p50, o.itl_p50, naive.itl_p50);
    add(3, "output_tokens_per_s", "1/s", l.throughput, o.output_tokens_per_s,
        naive.output_tokens_per_s);
  });
  return rows;
}

}  // namespace

ValidationSet sglang_h200_set() {
  return {"sglang_h200",
          "SGLang bench sweeps of late 2024, Llama-3.3-70B bf16 TP4 on H200: online and offline",
          "datacrunch-research/h200-benchmarks@c091ef5 (MIT)",
          "mode|rate|requests|mean lengths; nothing is fitted, every row is reported",
          "plain roofline: datasheet rates, no overhead",
          "",
          {{"e2e_mean", "", "online", "median_pct", 8.0},
           {"ttft_p50", "", "online", "median_pct", 15.0},
           {"itl_p50", "", "online", "median_pct", 8.0}},
          run_sglang_h200};
}

}  // namespace medley
