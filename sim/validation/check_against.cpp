#include "sim/validation/check_against.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/core/error.h"
#include "sim/report/fleet_account.h"
#include "sim/runtime/simulation.h"
#include "sim/validation/check_against_load.h"

namespace medley {

namespace {
/// Distributions of a simulated run.
struct Predicted {
  BenchQuantiles ttft, tpot, itl, e2e;
  double first = 0.0, last = 0.0;  ///< of arrivals, of tokens
  double input = 0.0, output = 0.0;
  std::int64_t finished = 0, refused = 0;
};

Predicted predict(const Scenario& scenario, const RunResult& result) {
  Predicted p;
  std::vector<double> ttft, tpot, e2e;
  p.first = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < result.requests.size(); ++i) {
    const RequestRecord& r = result.requests[i];
    if (r.status != RequestStatus::kFinished) {
      ++p.refused;
      continue;
    }
    ++p.finished;
    p.input += scenario.trace.requests[i].input_tokens;
    p.output += r.output_tokens;
    p.first = std::min(p.first, r.arrival.seconds().value());
    p.last = std::max(p.last, r.last_token.seconds().value());
    const double first = (r.first_token - r.arrival).value();
    const double all = (r.last_token - r.arrival).value();
    ttft.push_back(first);
    e2e.push_back(all);
    if (r.output_tokens > 1) tpot.push_back((all - first) / (r.output_tokens - 1));
  }
  p.ttft = quantiles_of(std::move(ttft));
  p.tpot = quantiles_of(std::move(tpot));
  p.e2e = quantiles_of(std::move(e2e));
  LogHistogram gaps;
  for (const PoolRecord& pool : result.pools) gaps.merge(pool.itl);
  if (gaps.count() > 0) {
    p.itl.mean = gaps.mean();
    p.itl.p50 = gaps.quantile(0.5);
    p.itl.p90 = gaps.quantile(0.9);
    p.itl.p95 = gaps.quantile(0.95);
    p.itl.p99 = gaps.quantile(0.99);
  }
  return p;
}

void add_row(CheckedRun& run, const std::string& metric, const char* unit, double measured,
             double predicted) {
  if (!std::isfinite(measured) || !(measured > 0.0)) return;
  run.rows.push_back({metric, unit, measured, predicted});
}

void add_quantiles(CheckedRun& run, const std::string& name, const BenchQuantiles& m,
                   const BenchQuantiles& p) {
  add_row(run, name + "_mean", "s", m.mean, p.mean);
  add_row(run, name + "_p50", "s", m.p50, p.p50);
  add_row(run, name + "_p90", "s", m.p90, p.p90);
  add_row(run, name + "_p95", "s", m.p95, p.p95);
  add_row(run, name + "_p99", "s", m.p99, p.p99);
}

/// [from, to] of the log that belongs to the run.
std::pair<double, double> log_window(const CheckPower& power, const BenchResult& m,
                                     CheckedRun& run) {
  const double start = power.log->start_s(), end = power.log->end_s();
  if (power.from || power.to) {
    return {start + power.from.value_or(0.0), power.to ? start + *power.to : end};
  }
  const double run_end = m.start_epoch_s + m.duration_s;
  if (m.start_epoch_s < end && run_end > start) {
    run.notes.push_back("power: the run's own time in the log");
    return {m.start_epoch_s, run_end};
  }
  run.notes.push_back("power: mean of the whole log; --power-from and --power-to choose a part");
  return {start, end};
}

void add_power(CheckedRun& run, const CheckPower& power, const LoadedScenario& loaded,
               const RunResult& result, const Predicted& p) {
  if (power.log == nullptr) return;
  const BenchResult& m = run.measured;
  const auto [from, to] = log_window(power, m, run);
  run.measured_watts = power.log->mean_w(from, to);
  if (!run.measured_watts) {
    run.notes.push_back("power: the log has no two readings in that time");
    return;
  }
  const FleetAccount account(loaded.scenario, result);
  const bool server = power.log->scope == PowerScope::kServer;
  Known joules;
  if (server) {
    joules = account.cluster_it_j(p.first, p.last);
  } else {
    for (std::size_t i = 0; i < loaded.scenario.pools.size(); ++i)
      joules += account.pool_devices_j(i, p.first, p.last);
  }
  const auto meters = power.log->series.size();
  if (power.log->scope == PowerScope::kContainer) {
    run.notes.push_back("power: what software attributes to a container is not what devices draw");
  } else if (!server && meters != static_cast<std::size_t>(run.gpus)) {
    run.notes.push_back(
        fmt::format("power: the log has {} meters, the run {} devices", meters, run.gpus));
  }
  if (!joules.known()) {
    run.notes.push_back(
        fmt::format("power: not predicted, {} is not known (--assume-missing fills "
                    "it with a prior)",
                    joules.missing));
  }
  const double seconds = p.last - p.first;
  const double watts = joules.known() ? joules.value / seconds : kNotTold;
  add_row(run, server ? "server_watts" : "watts", "W", *run.measured_watts, watts);
  add_row(run, "joules_per_output_token", "J", *run.measured_watts / m.output_tokens_per_s,
          watts / (p.output / seconds));
}

[[noreturn]] void throw_refused(const BenchResult& measured, const Scenario& scenario) {
  const PoolSpec& pool = scenario.pools.front();
  throw InfeasibleError(fmt::format(
      "{}: no request can be served: prompts and answers of {:.0f} tokens on average, {} takes {}",
      measured.source, measured.mean_input() + measured.mean_output(), pool.model.name,
      pool.max_model_len));
}

void describe(CheckedRun& run, const Scenario& scenario) {
  const PoolSpec& pool = scenario.pools.front();
  run.model = pool.model.name;
  run.device = scenario.nodes[pool.node_group].device.name;
  run.backend = pool.backend.name;
  run.tensor_parallel = pool.tensor_parallel;
  run.pipeline_parallel = pool.pipeline_parallel;
  for (const PoolSpec& p : scenario.pools) run.gpus += p.replicas * p.devices_per_replica();
}

void note_differences(CheckedRun& run, const RunResult& result, const Predicted& p) {
  const BenchResult& m = run.measured;
  if (p.refused > 0) {
    run.notes.push_back(
        fmt::format("{} of {} requests are refused by the simulated server (too long for it)",
                    p.refused, p.refused + p.finished));
  }
  if (m.failed > 0) run.notes.push_back(fmt::format("{} measured requests failed", m.failed));
  if (result.stability == Stability::kSaturated) {
    run.notes.push_back("saturated in the simulation: " + result.stability_reason);
  }
  if (!m.server_side) {
    run.notes.push_back(
        "measured at the client: includes network, tokenising and the client's own delays");
  }
  run.notes.insert(run.notes.end(), m.notes.begin(), m.notes.end());
}

}  // namespace

CheckedRun check_against(const BenchResult& measured, const CheckDeployment& deployment,
                         const CheckLoad& load, const CheckPower& power) {
  const RebuiltRun rebuilt = rebuild_run(measured, deployment, load);
  const LoadedScenario& loaded = rebuilt.loaded;
  const RunResult result = medley::run(*loaded.catalog, loaded.scenario);
  const Predicted p = predict(loaded.scenario, result);
  CheckedRun run;
  run.measured = measured;
  run.load = rebuilt.load.words;
  run.rate = rebuilt.load.rate;
  run.concurrency = rebuilt.load.concurrency;
  run.notes = rebuilt.load.notes;
  describe(run, loaded.scenario);
  run.scenario_json = rebuilt.scenario_json;
  run.trace_csv = rebuilt.trace_csv;
  if (p.finished == 0) throw_refused(measured, loaded.scenario);
  add_quantiles(run, "ttft", measured.ttft, p.ttft);
  add_quantiles(run, "tpot", measured.tpot, p.tpot);
  add_quantiles(run, "itl", measured.itl, p.itl);
  add_quantiles(run, "e2e", measured.e2e, p.e2e);
  const double seconds = p.last - p.first;
  add_row(run, "output_tokens_per_s", "1/s", measured.output_tokens_per_s, p.output / seconds);
  add_row(run, "tokens_per_s", "1/s", measured.tokens_per_s, (p.input + p.output) / seconds);
  add_row(run, "requests_per_s", "1/s", measured.requests_per_s,
          static_cast<double>(p.finished) / seconds);
  add_power(run, power, loaded, result, p);
  note_differences(run, result, p);
  return run;
}

}  // namespace medley
