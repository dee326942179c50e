#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/report/columns.h"
#include "sim/report/table_file.h"
#include "sim/report/writers.h"

namespace medley {

using Json = nlohmann::ordered_json;

namespace {
void add_intervals(TableFile& out, const ScopeSummary& scope, const MetricRow& row,
                   const Uncertainty* u) {
  const auto at = u ? u->find(scope.scope, scope.name, row.metric) : std::nullopt;
  const auto of = [&](DrawStatistic s) { return at ? u->interval(*at, s) : Interval{}; };
  const Interval mean = of(DrawStatistic::kMean);
  const Interval p50 = of(DrawStatistic::kP50);
  const Interval p99 = of(DrawStatistic::kP99);
  out.number(mean.p5).number(mean.p50).number(mean.p95);
  out.number(p50.p5).number(p50.p95).number(p99.p5).number(p99.p95);
}
}  // namespace

void write_summary_csv(const Analysis& a, const std::string& path, const Uncertainty* u) {
  TableFile out("summary.csv", path);
  for (const ScopeSummary& scope : a.scopes()) {
    for (const MetricRow& row : scope.rows) {
      const Moments& m = row.moments;
      out.text(scope.scope).text(scope.name).text(row.metric).text(row.unit).integer(m.count);
      out.number(m.mean).number(m.std).number(m.min).number(m.p50).number(m.p90).number(m.p95);
      out.number(m.p99).number(m.max).number(m.lo90).number(m.hi90).text(row.status);
      add_intervals(out, scope, row, u);
      out.end_row();
    }
  }
  out.close();
}

namespace {
Json number_or_null(double value) {
  if (std::isnan(value)) return nullptr;
  constexpr double kExactIntegers = 9007199254740992.0;
  if (std::abs(value) < kExactIntegers && value == std::floor(value)) {
    return static_cast<std::int64_t>(value);
  }
  return value;
}

Json scaled_or_null(double value, double factor) {
  return std::isnan(value) ? Json(nullptr) : Json(value * factor);
}

/// {mean,median,std,p90,p95,p99}_<metric>_ms, as serving benchmarks name them; other units keep
/// their unit in the key.
void add_distribution(Json& out, const MetricRow& row) {
  constexpr double kMs = 1e3;
  const bool time = row.unit == "s";
  const std::string key = row.metric + (time ? "_ms" : "");
  const double factor = time ? kMs : 1.0;
  const Moments& m = row.moments;
  out["mean_" + key] = scaled_or_null(m.mean, factor);
  out["median_" + key] = scaled_or_null(m.p50, factor);
  out["std_" + key] = scaled_or_null(m.std, factor);
  out["p90_" + key] = scaled_or_null(m.p90, factor);
  out["p95_" + key] = scaled_or_null(m.p95, factor);
  out["p99_" + key] = scaled_or_null(m.p99, factor);
  out["max_" + key] = scaled_or_null(m.max, factor);
}

/// "draws": {"mean_ttft_ms": {"p5": ..., "p50": ..., "p95": ...}, ...}, keys as beside it.
void add_draws(Json& out, const ScopeSummary& scope, const Uncertainty& u) {
  constexpr double kMs = 1e3;
  Json draws = Json::object();
  const auto add = [&](const std::string& key, const Interval& i, double factor) {
    if (!i.known()) return;
    draws[key] = {{"p5", i.p5 * factor}, {"p50", i.p50 * factor}, {"p95", i.p95 * factor}};
  };
  for (const MetricRow& row : scope.rows) {
    const auto at = u.find(scope.scope, scope.name, row.metric);
    if (!at) continue;
    if (!row.distribution) {
      add(row.metric, u.interval(*at, DrawStatistic::kMean), 1.0);
      continue;
    }
    const bool time = row.unit == "s";
    const std::string key = row.metric + (time ? "_ms" : "");
    const double factor = time ? kMs : 1.0;
    add("mean_" + key, u.interval(*at, DrawStatistic::kMean), factor);
    add("median_" + key, u.interval(*at, DrawStatistic::kP50), factor);
    add("p90_" + key, u.interval(*at, DrawStatistic::kP90), factor);
    add("p99_" + key, u.interval(*at, DrawStatistic::kP99), factor);
  }
  if (!draws.empty()) out["draws"] = std::move(draws);
}

void add_scope(Json& out, const ScopeSummary& scope, const Uncertainty* u) {
  out["stability"] = to_string(scope.stability);
  Json missing = Json::object();
  for (const MetricRow& row : scope.rows) {
    if (row.distribution) {
      add_distribution(out, row);
    } else {
      out[row.metric] = number_or_null(row.moments.mean);
    }
    if (row.status.starts_with("missing:")) missing[row.metric] = row.status.substr(8);
  }
  if (!missing.empty()) out["missing"] = std::move(missing);
  if (u) add_draws(out, scope, *u);
}
}  // namespace

std::string summary_json(const Analysis& a, const Uncertainty* u) {
  Json out = Json::object();
  out["schema"] = "medley.summary/1";
  out["scenario"] = a.scenario().name;
  add_scope(out, a.fleet(), u);
  out["failed"] = out["rejected"].get<std::int64_t>() + out["unfinished"].get<std::int64_t>();
  for (const char* group : {"pool", "model", "slo_class", "tenant"}) {
    Json members = Json::object();
    for (const ScopeSummary& scope : a.scopes()) {
      if (scope.scope == group) add_scope(members[scope.name], scope, u);
    }
    out[std::string(group) == "slo_class" ? "slo_classes" : std::string(group) + "s"] =
        std::move(members);
  }
  return out.dump(2) + "\n";
}

std::string columns_json() {
  Json out = Json::object();
  out["schema"] = "medley.columns/1";
  for (const ReportFile& f : report_files()) {
    out["files"].push_back({{"file", f.name}, {"schema", f.schema}, {"content", f.content}});
  }
  for (const ColumnInfo& c : report_columns()) {
    out["columns"].push_back(
        {{"file", c.file}, {"column", c.column}, {"unit", c.unit}, {"definition", c.definition}});
  }
  for (const MetricInfo& m : report_metrics()) {
    out["metrics"].push_back({{"metric", m.metric},
                              {"unit", m.unit},
                              {"distribution", m.distribution},
                              {"definition", m.definition}});
  }
  return out.dump(2) + "\n";
}

}  // namespace medley
