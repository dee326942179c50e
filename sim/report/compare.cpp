#include "sim/report/compare.h"

#include <fmt/format.h>

#include <cmath>

#include "sim/core/error.h"

namespace medley {

namespace {
constexpr double kMs = 1e3;
constexpr double kTie = 1e-4;
constexpr double kKwhPerJoule = 1.0 / 3.6e6;

struct Tokens {
  std::int64_t requests = 0, input = 0, output = 0;
  bool operator==(const Tokens&) const = default;
};
Tokens tokens_of(const Trace& trace) {
  Tokens t;
  for (const Request& r : trace.requests) {
    ++t.requests;
    t.input += r.input_tokens;
    t.output += r.output_tokens;
  }
  return t;
}
}  // namespace

const std::vector<ComparedMetric>& compared_metrics() {
  using S = DrawStatistic;
  static const std::vector<ComparedMetric> kAll = {
      {"goodput", "goodput req/s", "request_goodput", S::kMean, 1.0, "request/s", false},
      {"slo_attainment", "SLO share", "slo_attainment", S::kMean, 1.0, "1", false},
      {"ttft_p50_ms", "TTFT p50 ms", "ttft", S::kP50, kMs, "ms", true},
      {"ttft_p99_ms", "TTFT p99 ms", "ttft", S::kP99, kMs, "ms", true},
      {"tpot_p50_ms", "TPOT p50 ms", "tpot", S::kP50, kMs, "ms", true},
      {"tpot_p99_ms", "TPOT p99 ms", "tpot", S::kP99, kMs, "ms", true},
      {"e2e_p50_ms", "E2E p50 ms", "e2el", S::kP50, kMs, "ms", true},
      {"e2e_p99_ms", "E2E p99 ms", "e2el", S::kP99, kMs, "ms", true},
      {"output_tok_s", "tok/s", "output_throughput", S::kMean, 1.0, "token/s", false},
      {"j_per_tok", "J/tok", "energy_per_output_token", S::kMean, 1.0, "J/token", true},
      {"mean_w", "mean W", "mean_power_site", S::kMean, 1.0, "W", true},
      {"usd_per_mtok", "USD/Mtok", "cost_per_million_output_tokens", S::kMean, 1.0, "USD", true},
      {"energy_kwh", "energy kWh", "energy_site", S::kMean, kKwhPerJoule, "kWh", true},
      {"cost_usd", "cost USD", "cost", S::kMean, 1.0, "USD", true},
  };
  return kAll;
}

PairedShare paired_share(const Uncertainty& first, const Uncertainty& other,
                         const ComparedMetric& metric) {
  PairedShare share;
  const auto a = first.find("fleet", "fleet", metric.metric);
  const auto b = other.find("fleet", "fleet", metric.metric);
  if (!a || !b) return share;
  MEDLEY_CHECK(first.seed() == other.seed() && first.draws() == other.draws(),
               "paired draws are the same draws");
  double wins = 0.0;
  std::vector<double> differences;
  for (std::size_t i = 1; i < first.outcomes().size(); ++i) {
    const double x = first.outcomes()[i].value(*a, metric.statistic);
    const double y = other.outcomes()[i].value(*b, metric.statistic);
    if (std::isnan(x) || std::isnan(y)) continue;
    ++share.pairs;
    if (x != 0.0) differences.push_back(y / x - 1.0);
    if (std::abs(y - x) <= kTie * std::abs(x)) {
      ++share.ties;
      wins += 0.5;
    } else if ((y < x) == metric.lower_better) {
      wins += 1.0;
    }
  }
  if (share.pairs > 0) share.better = wins / share.pairs;
  share.difference = interval_of(differences);
  return share;
}

double nominal_value(const Candidate& candidate, const ComparedMetric& metric) {
  const MetricRow* row = candidate.analysis->fleet().find(metric.metric);
  if (row == nullptr) return kBlank;
  const Moments& m = row->moments;
  const double value = metric.statistic == DrawStatistic::kP50   ? m.p50
                       : metric.statistic == DrawStatistic::kP90 ? m.p90
                       : metric.statistic == DrawStatistic::kP99 ? m.p99
                                                                 : m.mean;
  return value * metric.factor;
}

std::string comparison_mark(const Candidate& candidate) {
  const Stability s = candidate.analysis->result().stability;
  return s == Stability::kStable ? "" : std::string(to_string(s));
}

std::vector<std::string> workload_differences(const std::vector<Candidate>& candidates) {
  std::vector<std::string> lines;
  const Candidate& first = candidates.front();
  const Tokens a = tokens_of(first.analysis->scenario().trace);
  for (const Candidate& c : candidates) {
    const Tokens b = tokens_of(c.analysis->scenario().trace);
    if (a == b) continue;
    lines.push_back(fmt::format(
        "{} and {} serve different workloads: {} requests of {} + {} tokens against {} of {} + {}",
        first.label, c.label, a.requests, a.input, a.output, b.requests, b.input, b.output));
  }
  return lines;
}

}  // namespace medley
