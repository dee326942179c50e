#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hwmodels/draw.h"
#include "sim/report/analysis.h"

namespace medley {

/// Parameter draws of one scenario (hwmodels/draw.h).
/// Law: apply(0) is the nominal scenario but for links that are resolved.
class DrawnScenario {
 public:
  /// Keeps a reference to `nominal` and the catalogue's priors; looks links up here, so that
  /// `apply` and the runs that follow may happen on many threads.
  DrawnScenario(const Catalog& catalog, const Scenario& nominal, std::uint64_t seed,
                double scale = 1.0);
  /// Puts the hardware, backends and model factors of draw `index` into a copy of the nominal
  /// scenario. Routers see the drawn devices, as a controller would have measured them.
  void apply(int index, Scenario& copy) const;

 private:
  const DrawPriors& priors_;
  const Scenario& nominal_;
  std::uint64_t seed_;
  double scale_;
  std::vector<std::optional<LinkSpec>> links_;  ///< by node group
};

struct DrawOptions {
  int draws = 0;
  std::uint64_t seed = 1;  ///< of the parameters, apart from the scenario's own
  double scale = 1.0;      ///< multiplies every error
  int threads = 1;
  const std::atomic<bool>* interrupt = nullptr;
  std::function<void(int done, int total)> progress;  ///< one call at a time, from any thread
};

/// What is kept of a metric of one draw's run.
enum class DrawStatistic : std::uint8_t { kMean, kP50, kP90, kP99 };
inline constexpr int kDrawStatistics = 4;

struct DrawnMetric {
  std::string scope;  ///< "fleet", "pool", "model", "slo_class"
  std::string name;
  std::string metric;
  std::string unit;
  bool distribution = false;
};

/// Over the draws that ran; NaN where none has a value.
struct Interval {
  double p5 = kBlank, p50 = kBlank, p95 = kBlank;
  bool known() const { return p5 == p5; }
};

/// Sorts the values.
Interval interval_of(std::vector<double>& values);

/// The run of one draw: values in the order of Uncertainty::metrics().
struct DrawOutcome {
  std::string failure;  ///< empty: it ran
  Stability stability = Stability::kStable;
  std::vector<std::array<double, kDrawStatistics>> values;
  double value(std::size_t metric, DrawStatistic s) const {
    return values[metric][static_cast<std::size_t>(s)];
  }
};

/// Metrics over the parameter draws of one scenario.
///   interval: 5th, 50th and 95th percentile over draws 1..n that ran (linear between order
///   statistics). It covers the uncertainty of parameters and the common form error of the step
///   model as hwmodels/draw.h states them; the workload and its seed are the same in every draw.
class Uncertainty {
 public:
  Uncertainty(std::vector<DrawnMetric> metrics, std::vector<DrawOutcome> outcomes,
              std::uint64_t seed);

  std::uint64_t seed() const { return seed_; }
  int draws() const { return static_cast<int>(outcomes_.size()) - 1; }
  int failed() const;     ///< could not run: infeasible, or no request fitted
  int saturated() const;  ///< ran, but saturated
  const std::vector<DrawnMetric>& metrics() const { return metrics_; }
  /// 0: the nominal parameters; 1..draws().
  const std::vector<DrawOutcome>& outcomes() const { return outcomes_; }
  std::optional<std::size_t> find(std::string_view scope, std::string_view name,
                                  std::string_view metric) const;
  Interval interval(std::size_t metric, DrawStatistic s) const {
    return intervals_[metric][static_cast<std::size_t>(s)];
  }
  /// Blank where the metric is not kept.
  Interval interval(const ScopeSummary& scope, std::string_view metric, DrawStatistic s) const;

 private:
  std::vector<DrawnMetric> metrics_;
  std::vector<DrawOutcome> outcomes_;
  std::vector<std::array<Interval, kDrawStatistics>> intervals_;
  std::uint64_t seed_;
};

/// Runs `options.draws` draws in parallel, one `run` each, and keeps their metrics alone: memory is
/// one run per thread. `nominal` is the analysis of the nominal run. The result does not depend on
/// the number of threads. Throws Interrupted.
Uncertainty run_draws(const Catalog& catalog, const Analysis& nominal, const DrawOptions& options);

/// Table for the terminal: key metrics of fleet and pools as "nominal [5 %, 95 %]".
std::string uncertainty_table(const Analysis& nominal, const Uncertainty& u);
/// "12.3 [11.0, 14.1]", or the value alone where the interval is blank.
std::string with_interval(double value, const Interval& interval, double factor = 1.0);

}  // namespace medley
