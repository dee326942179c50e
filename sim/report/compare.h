#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/report/uncertainty.h"

namespace medley {

/// A metric that comparisons show, of the whole fleet.
struct ComparedMetric {
  const char* name;    ///< "ttft_p99_ms"
  const char* title;   ///< "TTFT p99 ms"
  const char* metric;  ///< of summary.csv
  DrawStatistic statistic;
  double factor;      ///< from the metric's unit to the shown one
  const char* unit;   ///< shown
  bool lower_better;  ///< less is better
};
const std::vector<ComparedMetric>& compared_metrics();

/// One scenario that has run. Pointers outlive the comparison.
struct Candidate {
  std::string label;                   ///< "A", "B", ...
  std::string file;                    ///< as the user named it
  const Analysis* analysis = nullptr;  ///< of the nominal parameters
  const Uncertainty* draws = nullptr;  ///< nullptr: none were run
};

/// How one candidate fares against another over draws 1..n in which both ran and have a value.
///   better = (draws in which it is strictly better + ties / 2) / pairs
/// where a tie is equal to 1e-4 of the first value: a candidate against itself is at one half.
/// Draws are paired: one index draws equal parts alike in all candidates, and what they share
/// cancels.
struct PairedShare {
  int pairs = 0;
  int ties = 0;
  double better = kBlank;  ///< NaN without pairs
  Interval difference;     ///< of value / first value - 1
};
PairedShare paired_share(const Uncertainty& first, const Uncertainty& other,
                         const ComparedMetric& metric);

/// Value of a metric under the nominal parameters, in its shown unit; NaN where blank.
double nominal_value(const Candidate& candidate, const ComparedMetric& metric);

/// What stands beside a candidate's numbers: "saturated" and "inconclusive" runs are no answers.
std::string comparison_mark(const Candidate& candidate);

/// For people: metrics down, candidates across with their difference to the first, and with draws
/// "B cheaper in n % of draws" and the like. At least two candidates.
std::string compare_table(const std::vector<Candidate>& candidates);
/// One row per candidate and metric (results/README.md lists the columns).
std::string compare_csv(const std::vector<Candidate>& candidates);
std::string compare_json(const std::vector<Candidate>& candidates);

/// Where the candidates' requests differ, so that their numbers answer different questions; empty
/// where they do not.
std::vector<std::string> workload_differences(const std::vector<Candidate>& candidates);

}  // namespace medley
