#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "sim/validation/csv_rows.h"
#include "sim/validation/parallel.h"
#include "sim/validation/serving_case.h"
#include "sim/validation/sets/sets.h"

namespace medley {

namespace {

/// The prompts are short instructions; their length is not in the data (assumed).
constexpr std::int32_t kPrompt = 40;
constexpr double kTdpW = 400.0;
constexpr double kMaxOutputShare = 2.0;

struct Point {
  std::string key;
  ServingCase deployment;
  double watts = 0.0;
};

std::optional<Point> point_of(const CsvRows& csv, std::size_t i) {
  static const std::map<std::string, std::string> models = {{"Llama-3.1-8B", "llama-3.1-8b"},
                                                            {"Llama-3.2-3B", "llama-3.2-3b"}};
  const auto model = models.find(csv.text(i, "model"));
  if (csv.text(i, "engine") != "vllm" || model == models.end()) return {};
  if (csv.blank(i, "gpu0_power_watts") || csv.blank(i, "gpu1_power_watts")) return {};
  const int responses = csv.integer(i, "responses");
  const double seconds = csv.number(i, "duration");
  // The other card idles near 60 W: one card serves. Runs below 2 s are mostly start and end.
  if (seconds < 2.0 || responses < 1 || csv.number(i, "gpu1_power_watts") > 80.0) return {};
  Point p;
  ServingCase& c = p.deployment;
  c.node = "2xH100-NVL";
  c.model = model->second;
  c.backend = "vllm-2025";
  c.max_num_seqs = csv.integer(i, "batch_size");
  const double mean = csv.number(i, "total_output_tokens") / responses;
  // Lengths run from short answers to the limit: evenly between 0 and twice the mean.
  for (int k = 0; k < responses; ++k) {
    c.requests.push_back(
        {0.0, kPrompt,
         std::max(2, static_cast<int>(kMaxOutputShare * mean * (k + 0.5) / responses))});
  }
  p.key = fmt::format("{}|seqs {}|limit {}|n {}|{}", csv.text(i, "model"), c.max_num_seqs,
                      csv.text(i, "file_tokens_or_samples"), responses, csv.text(i, "date"));
  p.watts = csv.number(i, "gpu0_power_watts");
  return p;
}

std::vector<ValidationRow> run_token_power(const ValidationContext& context) {
  const CsvRows csv(context.data + "/energy/tokenpowerbench/results_flat.csv");
  std::vector<Point> points;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    if (auto p = point_of(csv, i)) points.push_back(std::move(*p));
  }
  std::vector<ValidationRow> rows(points.size());
  for_each_row(context, points.size(), [&](std::size_t i) {
    const Point& p = points[i];
    const ServingOutcome o = run_case(p.deployment);
    ValidationRow& r = rows[i];
    r.key = p.key;
    r.group = p.deployment.model;
    r.basis = "catalogue";
    r.metric = "watts";
    r.unit = "W";
    r.measured = p.watts;
    r.predicted = o.watts;
    r.baseline = kTdpW;
    r.n = static_cast<int>(p.deployment.requests.size());
    r.measured_pct = o.measured_pct;
    r.extrapolated_pct = o.extrapolated_pct;
    r.note = o.problem;
  });
  return rows;
}

}  // namespace

ValidationSet token_power_set() {
  return {"token_power",
          "GPU watts of batches on one H100 NVL, vLLM, Llama 3.1 8B and 3.2 3B",
          "TokenPowerBench results (MIT)",
          "model|max_num_seqs|output limit|requests|date; nothing is fitted on this set",
          "TDP as power",
          "",
          {{"watts", "", "", "mape_pct", 7.0}},
          run_token_power};
}

}  // namespace medley
