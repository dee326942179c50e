#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace medley {

/// Which part a measured row belongs to. Parameters are fitted on kFit rows and judged on kReport
/// rows; a set that fitted nothing reports every row.
enum class Half : std::uint8_t { kFit, kReport };
std::string_view to_string(Half half);  ///< "fit", "report"

/// Bit 0 of the 64-bit FNV-1a of the row's key: 0 is the fit half, 1 the reported one.
Half half_of(std::string_view key);

/// One measured figure and what the simulator says.
struct ValidationRow {
  std::string key;    ///< identity of the measured point; decides its half
  std::string group;  ///< what the summary gathers: "H100, vllm", "Llama-3.1-70B", ...
  std::string basis;  ///< what the prediction rests on: "tables", "catalogue", "calibrated"
  std::string metric;
  std::string unit;
  double measured = 0.0;
  double predicted = 0.0;          ///< NaN: no prediction, `note` says why
  std::optional<double> baseline;  ///< the set's naive model (plain roofline, TDP, ...)
  Half half = Half::kReport;
  double measured_pct = 0.0;        ///< share of simulated time resting on measured parameters [%]
  double extrapolated_pct = 0.0;    ///< share spent outside the range of its calibration [%]
  std::optional<double> low, high;  ///< 90 % interval of the prediction, where drawn
  int n = 0;                        ///< requests, samples behind the figure
  std::string note;                 ///< "saturated", "infeasible: ...", ...
  bool predicted_known() const { return predicted == predicted; }
  double error_pct() const { return 100.0 * (predicted / measured - 1.0); }
};

/// What we hold a group of rows to. `statistic`: "bias_pct", "median_pct", "p90_pct", "mape_pct",
/// "max_pct" (upper bounds on the absolute value) or "tau" (lower bound). An empty group means
/// every row of the metric; an empty basis every basis.
struct Target {
  std::string metric, basis, group, statistic;
  double limit = 0.0;
};

struct ValidationSummary {
  std::string set, basis, group, metric;
  Half half = Half::kReport;
  int n = 0;                           ///< rows with a prediction
  int failed = 0;                      ///< rows without one
  double bias_pct = 0.0;               ///< mean signed error
  double median_pct = 0.0;             ///< median of absolute errors
  double p90_pct = 0.0;                ///< 90th percentile of absolute errors
  double mape_pct = 0.0;               ///< mean of absolute errors
  double max_pct = 0.0;                ///< largest absolute error
  std::optional<double> tau;           ///< Kendall's tau-b of predicted against measured
  std::optional<double> baseline_pct;  ///< median absolute error of the naive model
  std::optional<double> coverage_pct;  ///< measured inside [low, high]
  double extrapolated_pct = 0.0;       ///< mean over rows
  std::optional<Target> target;        ///< the first that names this line
  bool met = true;
};

struct ValidationContext {
  std::string data;  ///< absolute folder of the measured data
  unsigned threads = 1;
  int draws = 0;  ///< parameter draws per row for intervals; 0: none
  std::function<void(std::size_t done, std::size_t all)> progress;
};

/// One set of measurements. Each lives in a file of its own under sets/ and is named once in
/// registry.cpp.
struct ValidationSet {
  std::string name;
  std::string summary;   ///< one line
  std::string source;    ///< of the measurements
  std::string key;       ///< how a row's key is made
  std::string baseline;  ///< the naive model beside it; empty: none
  std::string peers;     ///< what others publish on the same data; empty: nothing known
  std::vector<Target> targets;
  std::vector<ValidationRow> (*run)(const ValidationContext&);
  /// Kendall's tau over all groups counts pairs inside a group only (plans of one workload).
  bool rank_within_groups = false;
};
const std::vector<ValidationSet>& validation_sets();
/// Throws InputError with a suggestion.
const ValidationSet& validation_set(std::string_view name);

/// Runs a set. Throws InputError where its data is not there.
std::vector<ValidationRow> run_validation(const ValidationSet& set,
                                          const ValidationContext& context);

/// One line per (basis, metric, half) over all groups (group "all"), then one per group.
std::vector<ValidationSummary> summarise(const ValidationSet& set,
                                         const std::vector<ValidationRow>& rows);

/// Kendall's tau-b of `a` against `b` over the pairs of equal `group` (empty: all pairs); absent
/// where no pair is ordered.
std::optional<double> kendall_tau(const std::vector<double>& a, const std::vector<double>& b,
                                  const std::vector<std::string>& group = {});

std::string validation_csv(const std::vector<ValidationRow>& rows);
std::string validation_summary_csv(const std::vector<ValidationSummary>& rows);
/// Markdown table of the "all" lines of the reported half.
std::string validation_markdown(const std::vector<ValidationSummary>& rows);

}  // namespace medley
