#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "sim/core/csv.h"
#include "sim/report/statistics.h"
#include "sim/validation/validation.h"

namespace medley {

namespace {

using Rows = std::vector<const ValidationRow*>;

double mean(const std::vector<double>& v) {
  double sum = 0.0;
  for (const double x : v) sum += x;
  return v.empty() ? kBlank : sum / static_cast<double>(v.size());
}

double sorted_at(std::vector<double> v, double p) {
  std::sort(v.begin(), v.end());
  return sorted_quantile(v, p);
}

double statistic(const ValidationSummary& s, const std::string& name) {
  if (name == "bias_pct") return std::fabs(s.bias_pct);
  if (name == "median_pct") return s.median_pct;
  if (name == "p90_pct") return s.p90_pct;
  if (name == "max_pct") return s.max_pct;
  if (name == "tau") return s.tau.value_or(-1.0);
  return s.mape_pct;
}

void judge(const ValidationSet& set, ValidationSummary& s) {
  if (s.half != Half::kReport) return;
  const std::string group = s.group == "all" ? "" : s.group;
  for (const Target& t : set.targets) {
    if (t.metric != s.metric || t.group != group || (!t.basis.empty() && t.basis != s.basis))
      continue;
    s.target = t;
    const double value = statistic(s, t.statistic);
    s.met = s.n > 0 && (t.statistic == "tau" ? value >= t.limit : value <= t.limit);
    return;
  }
}

ValidationSummary summary_of(const Rows& rows, bool within_groups) {
  ValidationSummary s;
  std::vector<double> error, absolute, baseline, measured, predicted, outside;
  std::vector<std::string> groups;
  int inside = 0;
  int drawn = 0;
  for (const ValidationRow* r : rows) {
    if (!r->predicted_known()) {
      ++s.failed;
      continue;
    }
    ++s.n;
    error.push_back(r->error_pct());
    absolute.push_back(std::fabs(r->error_pct()));
    measured.push_back(r->measured);
    predicted.push_back(r->predicted);
    if (within_groups) groups.push_back(r->group);
    outside.push_back(r->extrapolated_pct);
    if (r->baseline) baseline.push_back(std::fabs(100.0 * (*r->baseline / r->measured - 1.0)));
    if (r->low && r->high) {
      ++drawn;
      if (r->measured >= *r->low && r->measured <= *r->high) ++inside;
    }
  }
  if (s.n == 0) return s;
  s.bias_pct = mean(error);
  s.mape_pct = mean(absolute);
  s.median_pct = sorted_at(absolute, 0.5);
  s.p90_pct = sorted_at(absolute, 0.9);
  s.max_pct = sorted_at(absolute, 1.0);
  s.tau = kendall_tau(measured, predicted, groups);
  s.extrapolated_pct = mean(outside);
  if (!baseline.empty()) s.baseline_pct = sorted_at(baseline, 0.5);
  if (drawn > 0) s.coverage_pct = 100.0 * inside / drawn;
  return s;
}

std::string number(double x) {
  return std::isfinite(x) ? fmt::format("{:.6g}", x) : "";
}
std::string percent(double x) {
  return std::isfinite(x) ? fmt::format("{:.2f}", x) : "";
}

}  // namespace

std::optional<double> kendall_tau(const std::vector<double>& a, const std::vector<double>& b,
                                  const std::vector<std::string>& group) {
  double agree = 0.0, only_a = 0.0, only_b = 0.0;
  double pairs = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = i + 1; j < a.size(); ++j) {
      if (!group.empty() && group[i] != group[j]) continue;
      const double x = a[i] - a[j];
      const double y = b[i] - b[j];
      if (x == 0.0 && y == 0.0) continue;
      if (x == 0.0) {
        ++only_b;
      } else if (y == 0.0) {
        ++only_a;
      } else {
        agree += x * y > 0.0 ? 1.0 : -1.0;
        ++pairs;
      }
    }
  }
  const double n = std::sqrt((pairs + only_a) * (pairs + only_b));
  if (n < 1.0) return std::nullopt;
  return agree / n;
}

std::vector<ValidationSummary> summarise(const ValidationSet& set,
                                         const std::vector<ValidationRow>& rows) {
  // (metric order of first appearance is lost on purpose: lines are sorted by name)
  std::map<std::tuple<bool, std::string, std::string, std::string, Half>, Rows> lines;
  for (const ValidationRow& r : rows) {
    lines[{false, "all", r.basis, r.metric, r.half}].push_back(&r);
    lines[{true, r.group, r.basis, r.metric, r.half}].push_back(&r);
  }
  std::vector<ValidationSummary> all;
  for (const auto& [key, members] : lines) {
    ValidationSummary s = summary_of(members, set.rank_within_groups);
    s.set = set.name;
    s.group = std::get<1>(key);
    s.basis = std::get<2>(key);
    s.metric = std::get<3>(key);
    s.half = std::get<4>(key);
    judge(set, s);
    all.push_back(std::move(s));
  }
  return all;
}

std::string validation_csv(const std::vector<ValidationRow>& rows) {
  CsvWriter csv({"key", "group", "basis", "metric", "unit", "measured", "predicted", "error_pct",
                 "baseline", "half", "measured_parameters_pct", "extrapolated_pct", "draw_p5",
                 "draw_p95", "n", "note"});
  for (const ValidationRow& r : rows) {
    csv.field(r.key).field(r.group).field(r.basis).field(r.metric).field(r.unit);
    csv.field(number(r.measured)).field(number(r.predicted));
    csv.field(r.predicted_known() ? percent(r.error_pct()) : "");
    csv.field(r.baseline ? number(*r.baseline) : "").field(std::string(to_string(r.half)));
    csv.field(fmt::format("{:.1f}", r.measured_pct))
        .field(fmt::format("{:.1f}", r.extrapolated_pct));
    csv.field(r.low ? number(*r.low) : "").field(r.high ? number(*r.high) : "");
    csv.field(r.n).field(r.note).end_row();
  }
  return csv.take();
}

std::string validation_summary_csv(const std::vector<ValidationSummary>& rows) {
  CsvWriter csv({"set", "basis", "group", "metric", "half", "n", "failed", "bias_pct", "median_pct",
                 "p90_pct", "mape_pct", "max_pct", "kendall_tau", "baseline_median_pct",
                 "coverage_pct", "extrapolated_pct", "target", "limit", "met"});
  for (const ValidationSummary& s : rows) {
    csv.field(s.set).field(s.basis).field(s.group).field(s.metric);
    csv.field(std::string(to_string(s.half))).field(s.n).field(s.failed);
    const bool any = s.n > 0;
    for (const double x : {s.bias_pct, s.median_pct, s.p90_pct, s.mape_pct, s.max_pct})
      csv.field(any ? percent(x) : "");
    csv.field(s.tau ? fmt::format("{:.3f}", *s.tau) : "");
    csv.field(s.baseline_pct ? percent(*s.baseline_pct) : "");
    csv.field(s.coverage_pct ? percent(*s.coverage_pct) : "");
    csv.field(any ? fmt::format("{:.1f}", s.extrapolated_pct) : "");
    csv.field(s.target ? s.target->statistic : "");
    csv.field(s.target ? fmt::format("{:g}", s.target->limit) : "");
    csv.field(s.target ? (s.met ? "yes" : "no") : "").end_row();
  }
  return csv.take();
}

std::string validation_markdown(const std::vector<ValidationSummary>& rows) {
  std::string out =
      "| set | basis | metric | n | bias % | median % | p90 % | tau | naive median % | target | "
      "met "
      "|\n|---|---|---|---:|---:|---:|---:|---:|---:|---|---|\n";
  for (const ValidationSummary& s : rows) {
    if (s.half != Half::kReport || (s.group != "all" && !s.target)) continue;
    out += fmt::format(
        "| {} | {} | {}{} | {} | {} | {} | {} | {} | {} | {} | {} |\n", s.set, s.basis, s.metric,
        s.group == "all" ? "" : " (" + s.group + ")", s.n,
        s.n > 0 ? fmt::format("{:+.1f}", s.bias_pct) : "-",
        s.n > 0 ? fmt::format("{:.1f}", s.median_pct) : "-",
        s.n > 0 ? fmt::format("{:.1f}", s.p90_pct) : "-",
        s.tau ? fmt::format("{:.2f}", *s.tau) : "-",
        s.baseline_pct ? fmt::format("{:.0f}", *s.baseline_pct) : "-",
        s.target ? fmt::format("{} {} {:g}", s.target->statistic,
                               s.target->statistic == "tau" ? ">=" : "<=", s.target->limit)
                 : "-",
        s.target ? (s.met ? "yes" : "no") : "-");
  }
  return out;
}

}  // namespace medley
