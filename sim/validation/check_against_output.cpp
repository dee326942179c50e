#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/core/csv.h"
#include "sim/report/statistics.h"
#include "sim/validation/check_against.h"
#include "sim/validation/validation.h"

namespace medley {

namespace {
std::string figure(double value) {
  return std::isfinite(value) ? fmt::format("{:.6g}", value) : "";
}

double mean_or_median(const BenchQuantiles& q) {
  return std::isfinite(q.mean) ? q.mean : q.p50;
}

/// Metrics in the order in which they first appear.
std::vector<std::string> metrics_of(const std::vector<CheckedRun>& runs) {
  std::vector<std::string> names;
  for (const CheckedRun& run : runs) {
    for (const CheckRow& row : run.rows) {
      if (std::find(names.begin(), names.end(), row.metric) == names.end())
        names.push_back(row.metric);
    }
  }
  return names;
}

CheckSummary summary_of(const std::string& metric, const std::vector<CheckedRun>& runs) {
  CheckSummary s;
  s.metric = metric;
  std::vector<double> measured, predicted, errors;
  for (const CheckedRun& run : runs) {
    for (const CheckRow& row : run.rows) {
      if (row.metric != metric || !std::isfinite(row.error_pct())) continue;
      s.unit = row.unit;
      measured.push_back(row.measured);
      predicted.push_back(row.predicted);
      errors.push_back(std::abs(row.error_pct()));
      s.bias_pct += row.error_pct();
    }
  }
  s.n = static_cast<int>(errors.size());
  if (s.n == 0) return s;
  s.bias_pct /= s.n;
  std::sort(errors.begin(), errors.end());
  s.median_pct = sorted_quantile(errors, 0.5);
  s.p90_pct = sorted_quantile(errors, 0.9);
  s.tau = kendall_tau(measured, predicted);
  return s;
}
}  // namespace

std::vector<CheckSummary> summarise_checks(const std::vector<CheckedRun>& runs) {
  std::vector<CheckSummary> all;
  for (const std::string& metric : metrics_of(runs)) {
    CheckSummary s = summary_of(metric, runs);
    if (s.n > 0) all.push_back(std::move(s));
  }
  return all;
}

std::string checks_csv(const std::vector<CheckedRun>& runs) {
  CsvWriter csv({"source", "point", "tool", "load", "model", "device", "gpus", "tp", "pp",
                 "backend", "n", "metric", "unit", "measured", "predicted", "error_pct"});
  for (const CheckedRun& run : runs) {
    for (const CheckRow& row : run.rows) {
      csv.field(run.measured.source).field(run.measured.label).field(run.measured.tool);
      csv.field(run.load).field(run.model).field(run.device).field(run.gpus);
      csv.field(run.tensor_parallel).field(run.pipeline_parallel).field(run.backend);
      csv.field(run.measured.completed).field(row.metric).field(row.unit);
      csv.field(figure(row.measured)).field(figure(row.predicted));
      csv.field(std::isfinite(row.error_pct()) ? fmt::format("{:.2f}", row.error_pct()) : "");
      csv.end_row();
    }
  }
  return csv.take();
}

std::string check_summary_csv(const std::vector<CheckSummary>& summary) {
  CsvWriter csv({"metric", "n", "bias_pct", "median_abs_pct", "p90_abs_pct", "kendall_tau"});
  for (const CheckSummary& s : summary) {
    csv.field(s.metric).field(s.n).field(fmt::format("{:.2f}", s.bias_pct));
    csv.field(fmt::format("{:.2f}", s.median_pct)).field(fmt::format("{:.2f}", s.p90_pct));
    csv.field(s.tau ? fmt::format("{:.3f}", *s.tau) : "");
    csv.end_row();
  }
  return csv.take();
}

std::string check_points_csv(const std::vector<CheckedRun>& runs) {
  CsvWriter csv({"model", "device", "gpus", "tp", "backend", "input", "output", "concurrency",
                 "rate", "ttft_s", "tpot_s", "output_tok_per_s", "watts_per_gpu"});
  for (const CheckedRun& run : runs) {
    const BenchResult& m = run.measured;
    const int each = std::max(1, run.tensor_parallel * run.pipeline_parallel);
    const double replicas = std::max(1.0, static_cast<double>(run.gpus) / each);
    csv.field(run.model).field(run.device).field(each).field(run.tensor_parallel);
    csv.field(run.backend).field(figure(m.mean_input())).field(figure(m.mean_output()));
    const bool kept = run.concurrency && *run.concurrency < m.completed;  // not all at once
    csv.field(kept ? figure(static_cast<double>(*run.concurrency) / replicas) : "");
    csv.field(run.rate ? figure(*run.rate / replicas) : "");
    csv.field(figure(mean_or_median(m.ttft))).field(figure(mean_or_median(m.tpot)));
    csv.field(figure(m.output_tokens_per_s / replicas));
    csv.field(run.measured_watts ? figure(*run.measured_watts / std::max(1, run.gpus)) : "");
    csv.end_row();
  }
  return csv.take();
}

}  // namespace medley
