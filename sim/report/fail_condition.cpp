#include "sim/report/fail_condition.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "sim/core/csv.h"
#include "sim/core/error.h"
#include "sim/report/columns.h"

namespace medley {

namespace {
constexpr const char* kWhere = "--fail-on";
constexpr std::array kOperators = {"<=", ">=", "==", "!=", "<", ">"};
constexpr std::array kParts = {"mean", "median", "std", "min", "p50", "p90", "p95", "p99", "max"};
constexpr std::array kScopes = {"fleet", "pool", "model", "slo_class", "tenant"};

std::string trimmed(std::string text) {
  text.erase(0, text.find_first_not_of(' '));
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

/// Every spelling that would be understood.
std::vector<std::string> known_keys() {
  std::vector<std::string> all = {"stability"};
  for (const MetricInfo& m : report_metrics()) {
    if (!m.distribution) {
      all.emplace_back(m.metric);
      continue;
    }
    for (const char* part : kParts) {
      all.push_back(fmt::format("{}_{}{}", part, m.metric, m.unit == "s" ? "_ms" : ""));
    }
  }
  return all;
}

bool read_metric(const std::string& key, FailCondition& c) {
  const MetricInfo* plain = find_metric(key);
  if (key == "stability" || (plain && !plain->distribution)) {
    c.metric = key;
    c.part = "mean";
    return true;
  }
  for (const char* part : kParts) {
    const std::string prefix = std::string(part) + "_";
    if (!key.starts_with(prefix)) continue;
    std::string metric = key.substr(prefix.size());
    const bool ms = metric.ends_with("_ms");
    if (ms) metric.resize(metric.size() - 3);
    const MetricInfo* info = find_metric(metric);
    if (!info || !info->distribution || ms != (info->unit == "s")) continue;
    c.metric = metric;
    c.part = part == std::string("median") ? "p50" : part;
    c.factor = ms ? 1e3 : 1.0;
    return true;
  }
  return false;
}

void read_left(const std::string& left, FailCondition& c) {
  std::string key = left;
  const std::size_t dot = left.find('.');
  if (dot != std::string::npos) {
    c.scope = left.substr(0, dot);
    const std::size_t last = left.rfind('.');
    if (c.scope != "fleet") c.name = last > dot ? left.substr(dot + 1, last - dot - 1) : "";
    key = left.substr(last + 1);
    const std::vector<std::string> scopes(kScopes.begin(), kScopes.end());
    if (std::find(scopes.begin(), scopes.end(), c.scope) == scopes.end()) {
      throw InputError(kWhere, "", fmt::format("unknown scope \"{}\" in \"{}\"", c.scope, c.text),
                       suggest(c.scope, scopes));
    }
  }
  if (!read_metric(key, c)) {
    throw InputError(kWhere, "", fmt::format("unknown metric \"{}\" in \"{}\"", key, c.text),
                     nearest(key, known_keys()).empty()
                         ? "results/README.md lists them; for example slo_attainment, p99_ttft_ms"
                         : suggest(key, known_keys()));
  }
}

double part_of(const Moments& m, const std::string& part) {
  if (part == "std") return m.std;
  if (part == "min") return m.min;
  if (part == "p50") return m.p50;
  if (part == "p90") return m.p90;
  if (part == "p95") return m.p95;
  if (part == "p99") return m.p99;
  if (part == "max") return m.max;
  return m.mean;
}

bool compare(double value, const std::string& op, double bound) {
  if (op == "<") return value < bound;
  if (op == "<=") return value <= bound;
  if (op == ">") return value > bound;
  if (op == ">=") return value >= bound;
  if (op == "==") return value == bound;
  return value != bound;
}
}  // namespace

FailCondition parse_fail_condition(const std::string& text) {
  FailCondition c;
  c.text = text;
  const std::size_t at = text.find_first_of("<>=!");
  for (const char* op : kOperators) {
    if (at == std::string::npos || !text.substr(at).starts_with(op)) continue;
    c.op = op;
    break;
  }
  if (c.op.empty()) {
    throw InputError(kWhere, "", fmt::format("\"{}\" has no comparison", text),
                     "for example 'slo_attainment<0.99'");
  }
  read_left(trimmed(text.substr(0, at)), c);
  const std::string right = trimmed(text.substr(at + c.op.size()));
  if (c.metric == "stability") {
    const std::vector<std::string> words = {"stable", "saturated", "inconclusive"};
    if ((c.op != "==" && c.op != "!=") ||
        std::find(words.begin(), words.end(), right) == words.end()) {
      throw InputError(kWhere, "", fmt::format("\"{}\" is no condition on stability", text),
                       "for example 'stability==saturated'");
    }
    c.word = right;
    return c;
  }
  const auto [end, error] = std::from_chars(right.data(), right.data() + right.size(), c.bound);
  if (error != std::errc() || end != right.data() + right.size() || std::isnan(c.bound)) {
    throw InputError(kWhere, "", fmt::format("\"{}\" is no number in \"{}\"", right, text),
                     "units are those of results/README.md, ms for _ms keys");
  }
  return c;
}

void check_fail_condition(const FailCondition& c, const Scenario& scenario) {
  std::vector<std::string> names;
  if (c.scope == "pool") {
    for (const PoolSpec& p : scenario.pools) names.push_back(p.name);
  } else if (c.scope == "model") {
    names = scenario.trace.models;
  } else if (c.scope == "slo_class") {
    names = scenario.trace.classes;
  } else if (c.scope == "tenant") {
    names = scenario.trace.tenants;
  } else {
    return;
  }
  if (std::find(names.begin(), names.end(), c.name) == names.end()) {
    throw InputError(kWhere, "", fmt::format("no {} \"{}\" in this run", c.scope, c.name),
                     suggest(c.name, names));
  }
}

FailVerdict judge(const FailCondition& c, const Analysis& a) {
  for (const ScopeSummary& scope : a.scopes()) {
    if (scope.scope != c.scope || (c.scope != "fleet" && scope.name != c.name)) continue;
    if (c.metric == "stability") {
      const std::string_view is = to_string(scope.stability);
      return {(is == c.word) == (c.op == "=="), fmt::format("stability is {}", is)};
    }
    const MetricRow* row = scope.find(c.metric);
    if (!row) {
      return {true, fmt::format("{} is not told for {} {}", c.metric, c.scope, c.name)};
    }
    const double value = part_of(row->moments, c.part) * c.factor;
    if (std::isnan(value)) return {true, fmt::format("it is blank ({})", row->status)};
    return {compare(value, c.op, c.bound), fmt::format("it is {}", number_text(value))};
  }
  return {true, "there is no such scope"};
}

}  // namespace medley
