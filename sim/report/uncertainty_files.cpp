#include <fmt/format.h>

#include <cmath>

#include "sim/report/run_table.h"
#include "sim/report/table_file.h"
#include "sim/report/text_table.h"
#include "sim/report/uncertainty.h"
#include "sim/report/writers.h"

namespace medley {

void write_uncertainty_csv(const Uncertainty& u, const std::string& path) {
  TableFile out("uncertainty.csv", path);
  for (std::size_t i = 0; i < u.outcomes().size(); ++i) {
    const DrawOutcome& outcome = u.outcomes()[i];
    const auto draw = static_cast<std::int64_t>(i);
    if (!outcome.failure.empty()) {
      out.integer(draw).text("fleet").text("fleet").blank().blank();
      out.blank().blank().blank().blank().text("infeasible");
      out.end_row();
      continue;
    }
    for (std::size_t m = 0; m < u.metrics().size(); ++m) {
      const DrawnMetric& metric = u.metrics()[m];
      const auto& values = outcome.values[m];
      if (std::isnan(values[0])) continue;
      out.integer(draw).text(metric.scope).text(metric.name).text(metric.metric).text(metric.unit);
      for (const double v : values) out.number(v);
      out.text(to_string(outcome.stability));
      out.end_row();
    }
  }
  out.close();
}

std::string with_interval(double value, const Interval& interval, double factor) {
  const std::string shown = short_number(value * factor);
  if (!interval.known()) return shown;
  return fmt::format("{} [{}, {}]", shown, short_number(interval.p5 * factor),
                     short_number(interval.p95 * factor));
}

namespace {
struct Shown {
  const char* title;
  const char* metric;
  DrawStatistic statistic;
  double factor;
};
constexpr double kMs = 1e3, kPercent = 1e2;
constexpr Shown kShown[] = {
    {"TTFT p50 ms", "ttft", DrawStatistic::kP50, kMs},
    {"TTFT p99 ms", "ttft", DrawStatistic::kP99, kMs},
    {"TPOT p50 ms", "tpot", DrawStatistic::kP50, kMs},
    {"tok/s", "output_throughput", DrawStatistic::kMean, 1.0},
    {"SLO %", "slo_attainment", DrawStatistic::kMean, kPercent},
    {"J/tok", "energy_per_output_token", DrawStatistic::kMean, 1.0},
    {"W", "mean_power_site", DrawStatistic::kMean, 1.0},
    {"USD/Mtok", "cost_per_million_output_tokens", DrawStatistic::kMean, 1.0},
};
}  // namespace

std::string uncertainty_table(const Analysis& nominal, const Uncertainty& u) {
  std::vector<TextTable::Column> columns = {{"pool", "", TextTable::Align::kLeft}};
  for (const Shown& s : kShown) columns.push_back({s.title, "", TextTable::Align::kRight});
  TextTable table(std::move(columns));
  const auto add = [&](const ScopeSummary& scope) {
    std::vector<std::string> row = {scope.name};
    for (const Shown& s : kShown) {
      const auto at = u.find(scope.scope, scope.name, s.metric);
      row.push_back(at ? with_interval(u.outcomes()[0].value(*at, s.statistic),
                                       u.interval(*at, s.statistic), s.factor)
                       : "-");
    }
    table.add(std::move(row));
  };
  for (std::size_t p = 0; p < nominal.scenario().pools.size(); ++p) add(nominal.pool(p));
  table.rule();
  add(nominal.fleet());
  std::string text =
      fmt::format("\nnominal [5 %, 95 %] over {} parameter draws (seed {}", u.draws(), u.seed());
  if (u.failed() > 0) text += fmt::format("; {} could not run and do not count", u.failed());
  if (u.saturated() > 0) text += fmt::format("; {} saturated", u.saturated());
  return text + ")\n" + table.aligned();
}

}  // namespace medley
