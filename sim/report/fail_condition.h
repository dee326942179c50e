#pragma once

#include <string>
#include <string_view>

#include "sim/report/analysis.h"

namespace medley {

/// A condition on the result that makes a run fail: "slo_attainment<0.99",
/// "p99_ttft_ms>500", "pool.chat.mean_tpot_ms >= 40", "stability==saturated".
///   [<scope>.<name>.]<metric> <op> <number>     op: < <= > >= == !=
/// Metrics are those of summary.csv; distributions need one of mean_ median_ std_ min_ p50_ p90_
/// p95_ p99_ max_ in front and, in seconds, take _ms behind. Without a scope the fleet is meant.
struct FailCondition {
  std::string text;
  std::string scope = "fleet";
  std::string name;
  std::string metric;  ///< of summary.csv, or "stability"
  std::string part;    ///< "mean", "p99", ...
  double factor = 1.0;
  std::string op;
  double bound = 0.0;
  std::string word;  ///< right side of a stability condition
};

/// Throws InputError with a suggestion when it cannot be read or names an unknown metric.
FailCondition parse_fail_condition(const std::string& text);
/// The same for a scope that this run does not have.
void check_fail_condition(const FailCondition& condition, const Scenario& scenario);

struct FailVerdict {
  bool holds = false;
  std::string why;  ///< the value found; a blank value holds, since nobody can vouch for it
};
FailVerdict judge(const FailCondition& condition, const Analysis& analysis);

}  // namespace medley
