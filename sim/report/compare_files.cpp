#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/core/csv.h"
#include "sim/report/columns.h"
#include "sim/report/compare.h"
#include "sim/report/text_table.h"

namespace medley {

using Json = nlohmann::ordered_json;

namespace {
constexpr double kPercent = 100.0;

Interval interval_of_metric(const Candidate& c, const ComparedMetric& m) {
  Interval i = c.draws ? c.draws->interval(c.analysis->fleet(), m.metric, m.statistic) : Interval{};
  i.p5 *= m.factor, i.p50 *= m.factor, i.p95 *= m.factor;
  return i;
}

double difference(double value, double first) {
  return first != 0.0 ? value / first - 1.0 : kBlank;
}

PairedShare share_of(const Candidate& first, const Candidate& c, const ComparedMetric& m) {
  return first.draws && c.draws ? paired_share(*first.draws, *c.draws, m) : PairedShare{};
}

std::string percent_difference(double share) {
  constexpr double kShownAsZero = 0.0005;
  if (std::isnan(share)) return "-";
  return std::abs(share) < kShownAsZero ? "0.0 %" : fmt::format("{:+.1f} %", kPercent * share);
}

std::string head(const Candidate& c) {
  const Scenario& s = c.analysis->scenario();
  std::string text = fmt::format("{}: {} ({}, hash {})", c.label, c.file, s.name, s.hash8);
  const std::string mark = comparison_mark(c);
  if (!mark.empty())
    text += fmt::format("  ** {}: {}", mark, c.analysis->result().stability_reason);
  if (c.draws && c.draws->failed() > 0) {
    text += fmt::format("  {} of {} draws could not run", c.draws->failed(), c.draws->draws());
  }
  if (c.draws && c.draws->saturated() > 0) {
    text += fmt::format("  {} of {} draws saturated", c.draws->saturated(), c.draws->draws());
  }
  return text + "\n";
}

const ComparedMetric& metric_named(std::string_view name) {
  const auto& all = compared_metrics();
  std::size_t i = 0;
  while (i + 1 < all.size() && all[i].name != name) ++i;
  return all[i];
}

/// "B against A, over 100 paired draws: cheaper in 73 %, lower energy in 40 %, faster in 88 %".
std::string verdict(const Candidate& first, const Candidate& c) {
  struct Word {
    const char* word;
    const char* metric;
  };
  constexpr Word kWords[] = {
      {"cheaper", "usd_per_mtok"}, {"lower energy", "j_per_tok"}, {"faster", "e2e_p50_ms"}};
  std::string text;
  int pairs = 0;
  for (const Word& w : kWords) {
    const ComparedMetric& m = metric_named(w.metric);
    const PairedShare share = share_of(first, c, m);
    if (share.pairs == 0) continue;
    pairs = share.pairs;
    text += fmt::format("{}{} in {:.0f} % of draws ({}{})", text.empty() ? "" : ", ", w.word,
                        kPercent * share.better, m.title,
                        share.ties > 0 ? fmt::format("; {} ties count half", share.ties) : "");
  }
  return text.empty() ? ""
                      : fmt::format("{} against {}, {} paired draws: {} {}\n", c.label, first.label,
                                    pairs, c.label, text);
}
}  // namespace

std::string compare_table(const std::vector<Candidate>& candidates) {
  const Candidate& first = candidates.front();
  std::vector<TextTable::Column> columns = {{"metric", "", TextTable::Align::kLeft}};
  for (const Candidate& c : candidates) {
    const std::string mark = comparison_mark(c);
    columns.push_back({mark.empty() ? c.label : fmt::format("{} ({})", c.label, mark), "",
                       TextTable::Align::kRight});
    if (&c == &first) continue;
    columns.push_back({fmt::format("{} / {}", c.label, first.label), "", TextTable::Align::kRight});
    if (c.draws) columns.push_back({c.label + " better", "", TextTable::Align::kRight});
  }
  TextTable table(std::move(columns));
  for (const ComparedMetric& m : compared_metrics()) {
    std::vector<std::string> row = {m.title};
    const double base = nominal_value(first, m);
    for (const Candidate& c : candidates) {
      const double value = nominal_value(c, m);
      row.push_back(with_interval(value, interval_of_metric(c, m)));
      if (&c == &first) continue;
      row.push_back(percent_difference(difference(value, base)));
      if (!c.draws) continue;
      const double better = share_of(first, c, m).better;
      row.push_back(std::isnan(better) ? "-" : fmt::format("{:.0f} %", kPercent * better));
    }
    table.add(std::move(row));
  }
  std::string text;
  for (const Candidate& c : candidates) text += head(c);
  text += "\n" + table.aligned();
  if (first.draws) {
    text += fmt::format(
        "\nvalue [5 %, 95 %] over {} parameter draws (seed {}), the same for all candidates; "
        "better: share of draws\n",
        first.draws->draws(), first.draws->seed());
    for (std::size_t i = 1; i < candidates.size(); ++i) text += verdict(first, candidates[i]);
  }
  return text;
}

std::string compare_csv(const std::vector<Candidate>& candidates) {
  std::vector<std::string_view> header;
  for (const ColumnInfo& c : report_columns()) {
    if (c.file == "compare.csv") header.emplace_back(c.column);
  }
  CsvWriter csv(header);
  const Candidate& first = candidates.front();
  for (const Candidate& c : candidates) {
    for (const ComparedMetric& m : compared_metrics()) {
      const double value = nominal_value(c, m);
      const Interval i = interval_of_metric(c, m);
      const PairedShare share = &c == &first ? PairedShare{} : share_of(first, c, m);
      csv.field(c.label).field(c.analysis->scenario().name).field(c.analysis->scenario().hash8);
      csv.field(m.name).field(m.unit);
      csv.field(value);
      csv.field(&c == &first ? kBlank : kPercent * difference(value, nominal_value(first, m)));
      csv.field(i.p5).field(i.p50).field(i.p95);
      csv.field(kPercent * share.difference.p5).field(kPercent * share.difference.p95);
      csv.field(kPercent * share.better);
      if (c.draws) {
        csv.field(share.pairs);
      } else {
        csv.blank();
      }
      csv.field(to_string(c.analysis->result().stability)).end_row();
    }
  }
  return csv.take();
}

std::string compare_json(const std::vector<Candidate>& candidates) {
  const Candidate& first = candidates.front();
  const auto number = [](double v) { return std::isnan(v) ? Json(nullptr) : Json(v); };
  Json out = Json::object();
  out["schema"] = "medley.compare/1";
  out["draws"] = first.draws ? Json(first.draws->draws()) : Json(nullptr);
  out["draw_seed"] = first.draws ? Json(first.draws->seed()) : Json(nullptr);
  out["workload_differences"] = workload_differences(candidates);
  for (const Candidate& c : candidates) {
    Json one = {{"label", c.label},
                {"scenario", c.analysis->scenario().name},
                {"hash", c.analysis->scenario().hash8},
                {"stability", to_string(c.analysis->result().stability)},
                {"stability_reason", c.analysis->result().stability_reason}};
    if (c.draws) {
      one["failed_draws"] = c.draws->failed();
      one["saturated_draws"] = c.draws->saturated();
    }
    for (const ComparedMetric& m : compared_metrics()) {
      const double value = nominal_value(c, m);
      Json& metric = one["metrics"][m.name];
      metric = {{"unit", m.unit}, {"value", number(value)}};
      if (&c != &first) {
        metric["difference_pct"] = number(kPercent * difference(value, nominal_value(first, m)));
      }
      if (!c.draws) continue;
      const Interval i = interval_of_metric(c, m);
      metric["p5"] = number(i.p5), metric["p50"] = number(i.p50), metric["p95"] = number(i.p95);
      if (&c == &first) continue;
      const PairedShare share = share_of(first, c, m);
      metric["difference_p5_pct"] = number(kPercent * share.difference.p5);
      metric["difference_p95_pct"] = number(kPercent * share.difference.p95);
      metric["better_pct"] = number(kPercent * share.better);
      metric["pairs"] = share.pairs;
      metric["ties"] = share.ties;
    }
    out["candidates"].push_back(std::move(one));
  }
  return out.dump(2) + "\n";
}

}  // namespace medley
