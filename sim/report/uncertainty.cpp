#include "sim/report/uncertainty.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <mutex>
#include <thread>

#include "sim/core/error.h"
#include "sim/runtime/simulation.h"

namespace medley {

namespace {
ModelBasis basis_of(const Scenario& s, const PoolSpec& pool) {
  if (pool.step_model.kind == StepModelKind::kTables) return ModelBasis::kTables;
  if (pool.step_model.kind == StepModelKind::kConstant) return ModelBasis::kConstant;
  const DeviceSpec& device = s.nodes[pool.node_group].device;
  DType d = pool.precision.activations;
  if (!device.peak[index(d)].known()) d = compute_fallback(device, d).value_or(d);
  return roofline_basis(device, d);
}

/// Metrics that draws keep: tenants may be many and are left out.
std::vector<DrawnMetric> kept_metrics(const Analysis& a) {
  std::vector<DrawnMetric> kept;
  for (const ScopeSummary& scope : a.scopes()) {
    if (scope.scope == "tenant") continue;
    for (const MetricRow& row : scope.rows) {
      kept.push_back({scope.scope, scope.name, row.metric, row.unit, row.distribution});
    }
  }
  return kept;
}

/// The scopes of a draw are those of the nominal run: they come from scenario and trace.
DrawOutcome outcome_of(const Analysis& a, const std::vector<DrawnMetric>& kept) {
  DrawOutcome outcome;
  outcome.stability = a.result().stability;
  outcome.values.reserve(kept.size());
  auto scope = a.scopes().begin();
  for (const DrawnMetric& m : kept) {
    while (scope->scope != m.scope || scope->name != m.name) {
      ++scope;
      MEDLEY_CHECK(scope != a.scopes().end(), "a draw has the scopes of the nominal run");
    }
    const MetricRow* row = scope->find(m.metric);
    const Moments none;
    const Moments& v = row ? row->moments : none;
    outcome.values.push_back({v.mean, v.p50, v.p90, v.p99});
  }
  return outcome;
}

/// Works off draws 1..n from one counter.
class DrawRunner {
 public:
  DrawRunner(const Catalog& catalog, const Analysis& nominal, const DrawOptions& options,
             const std::vector<DrawnMetric>& kept, std::vector<DrawOutcome>& outcomes)
      : catalog_(catalog),
        nominal_(nominal.scenario()),
        options_(options),
        kept_(kept),
        outcomes_(outcomes),
        drawn_(catalog, nominal_, options.seed, options.scale),
        errors_(outcomes.size()) {}

  void run_all() {
    const int threads = std::clamp(options_.threads, 1, std::max(1, options_.draws));
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back([this] { work(); });
    work();
    for (std::thread& t : others) t.join();
    for (const std::exception_ptr& e : errors_) {
      if (e) std::rethrow_exception(e);
    }
  }

 private:
  void work() {
    Scenario mine = nominal_;
    mine.report.chrome_trace = false;
    for (int i = next_++; i <= options_.draws && !stop_; i = next_++) {
      const auto at = static_cast<std::size_t>(i);
      try {
        outcomes_[at] = one(i, mine);
      } catch (...) {
        errors_[at] = std::current_exception();
        stop_ = true;
        return;
      }
      const std::lock_guard<std::mutex> lock(telling_);
      ++done_;
      if (options_.progress) options_.progress(done_, options_.draws);
    }
  }

  DrawOutcome one(int i, Scenario& mine) const {
    DrawOutcome failed;
    try {
      drawn_.apply(i, mine);
      RunHooks hooks;
      hooks.interrupt = options_.interrupt;
      const RunResult result = run(catalog_, mine, hooks);
      if (result.arrived == 0 || result.rejected < result.arrived)
        return outcome_of(Analysis(mine, result), kept_);
      failed.failure = "no request could run";
    } catch (const InfeasibleError& e) {
      failed.failure = e.what();
    }
    failed.values.assign(kept_.size(), {kBlank, kBlank, kBlank, kBlank});
    return failed;
  }

  const Catalog& catalog_;
  const Scenario& nominal_;
  const DrawOptions& options_;
  const std::vector<DrawnMetric>& kept_;
  std::vector<DrawOutcome>& outcomes_;
  DrawnScenario drawn_;
  std::vector<std::exception_ptr> errors_;
  std::atomic<int> next_{1};
  std::atomic<bool> stop_{false};
  std::mutex telling_;
  int done_ = 0;
};

}  // namespace

Interval interval_of(std::vector<double>& values) {
  constexpr double kLow = 0.05, kMiddle = 0.5, kHigh = 0.95;
  std::sort(values.begin(), values.end());
  return {sorted_quantile(values, kLow), sorted_quantile(values, kMiddle),
          sorted_quantile(values, kHigh)};
}

DrawnScenario::DrawnScenario(const Catalog& catalog, const Scenario& nominal, std::uint64_t seed,
                             double scale)
    : priors_(catalog.priors().uncertainty), nominal_(nominal), seed_(seed), scale_(scale) {
  for (const NodeGroup& group : nominal.nodes) {
    const LinkSpec* link = joining_link(catalog, group.type);
    links_.push_back(link ? std::optional<LinkSpec>(*link) : std::nullopt);
  }
}

void DrawnScenario::apply(int index, Scenario& copy) const {
  const ParameterDraw draw(priors_, seed_, index, scale_);
  for (std::size_t g = 0; g < nominal_.nodes.size(); ++g) {
    const NodeGroup& from = nominal_.nodes[g];
    NodeGroup& to = copy.nodes[g];
    to.device = draw.device(from.device);
    to.type = draw.node(from.type, links_[g] ? &*links_[g] : nullptr);
    if (from.cpu) to.cpu = draw.device(*from.cpu);
  }
  for (std::size_t p = 0; p < nominal_.pools.size(); ++p) {
    const PoolSpec& from = nominal_.pools[p];
    PoolSpec& to = copy.pools[p];
    to.backend = draw.backend(from.backend);
    if (from.backend.ideal()) continue;  // a bound has no error of form
    to.step_model.time_factor =
        from.step_model.time_factor *
        draw.model_factor(basis_of(nominal_, from), nominal_.nodes[from.node_group].device.name);
  }
}

Uncertainty::Uncertainty(std::vector<DrawnMetric> metrics, std::vector<DrawOutcome> outcomes,
                         std::uint64_t seed)
    : metrics_(std::move(metrics)), outcomes_(std::move(outcomes)), seed_(seed) {
  intervals_.resize(metrics_.size());
  std::vector<double> values;
  for (std::size_t m = 0; m < metrics_.size(); ++m) {
    for (std::size_t s = 0; s < kDrawStatistics; ++s) {
      values.clear();
      for (std::size_t i = 1; i < outcomes_.size(); ++i) {
        const double v = outcomes_[i].values[m][s];
        if (!std::isnan(v)) values.push_back(v);
      }
      intervals_[m][s] = interval_of(values);
    }
  }
}

int Uncertainty::failed() const {
  return static_cast<int>(std::count_if(outcomes_.begin() + 1, outcomes_.end(),
                                        [](const auto& o) { return !o.failure.empty(); }));
}

int Uncertainty::saturated() const {
  return static_cast<int>(std::count_if(outcomes_.begin() + 1, outcomes_.end(), [](const auto& o) {
    return o.failure.empty() && o.stability == Stability::kSaturated;
  }));
}

std::optional<std::size_t> Uncertainty::find(std::string_view scope, std::string_view name,
                                             std::string_view metric) const {
  for (std::size_t m = 0; m < metrics_.size(); ++m) {
    const DrawnMetric& d = metrics_[m];
    if (d.metric == metric && d.name == name && d.scope == scope) return m;
  }
  return std::nullopt;
}

Interval Uncertainty::interval(const ScopeSummary& scope, std::string_view metric,
                               DrawStatistic s) const {
  const auto at = find(scope.scope, scope.name, metric);
  return at ? interval(*at, s) : Interval{};
}

Uncertainty run_draws(const Catalog& catalog, const Analysis& nominal, const DrawOptions& options) {
  MEDLEY_CHECK(options.draws >= 0, "a number of draws is not negative");
  std::vector<DrawnMetric> kept = kept_metrics(nominal);
  std::vector<DrawOutcome> outcomes(static_cast<std::size_t>(options.draws) + 1);
  outcomes[0] = outcome_of(nominal, kept);
  DrawRunner(catalog, nominal, options, kept, outcomes).run_all();
  return Uncertainty(std::move(kept), std::move(outcomes), options.seed);
}

}  // namespace medley
