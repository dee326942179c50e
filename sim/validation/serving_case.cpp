#include "sim/validation/serving_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/core/error.h"
#include "sim/report/fleet_account.h"
#include "sim/report/statistics.h"
#include "sim/report/uncertainty.h"
#include "sim/runtime/simulation.h"

namespace medley {

namespace {

/// Of an open-loop run, left out at each end of the steady part.
constexpr double kRamp = 0.1;

std::string document_of(const ServingCase& c) {
  nlohmann::ordered_json pool = {{"node", "n"},
                                 {"model", c.model},
                                 {"backend", c.backend},
                                 {"replicas", c.replicas},
                                 {"tensor_parallel_size", c.tensor_parallel},
                                 {"pipeline_parallel_size", c.pipeline_parallel},
                                 {"enable_expert_parallel", c.expert_parallel},
                                 {"enable_prefix_caching", c.prefix_caching}};
  if (!c.quantization.empty()) pool["quantization"] = c.quantization;
  if (!c.kv_cache_dtype.empty()) pool["kv_cache_dtype"] = c.kv_cache_dtype;
  if (c.max_num_seqs > 0) pool["max_num_seqs"] = c.max_num_seqs;
  if (c.max_num_batched_tokens > 0) pool["max_num_batched_tokens"] = c.max_num_batched_tokens;
  nlohmann::ordered_json document = {{"schema", "medley.scenario/1"}, {"name", "validation"}};
  document["cluster"]["nodes"]["n"] = {{"type", c.node}, {"count", 1}};
  document["pools"]["p"] = pool;
  document["workload"]["generate"] = {{"arrivals", {{"process", "constant"}, {"rate", "1 req/s"}}},
                                      {"input_tokens", 1},
                                      {"output_tokens", 1},
                                      {"requests", 1}};
  return document.dump();
}

Trace trace_of(const ServingCase& c, const std::string& model) {
  Trace trace;
  trace.models = {model};
  trace.classes = {"default"};
  trace.tenants = {"default"};
  const std::size_t open = c.concurrency > 0 ? static_cast<std::size_t>(c.concurrency) : SIZE_MAX;
  for (std::size_t i = 0; i < c.requests.size(); ++i) {
    Request r;
    r.arrival = i >= open           ? SimTime::max()
                : c.concurrency > 0 ? SimTime()
                                    : SimTime::from_seconds(Seconds(c.requests[i].arrival_s));
    r.input_tokens = c.requests[i].input;
    r.output_tokens = c.requests[i].output;
    r.row = static_cast<std::uint32_t>(i);
    trace.requests.push_back(r);
    if (i >= open) {
      trace.follow_ups.push_back(
          {static_cast<std::uint32_t>(i - open), static_cast<std::uint32_t>(i), Seconds(0.0)});
    }
  }
  if (c.concurrency == 0) {
    std::stable_sort(trace.requests.begin(), trace.requests.end(),
                     [](const Request& a, const Request& b) { return a.arrival < b.arrival; });
  }
  return trace;
}

/// [from, to) of the steady part in seconds.
std::pair<double, double> steady_part(const ServingCase& c, const RunResult& result) {
  std::vector<double> starts, ends;
  for (const RequestRecord& r : result.requests) {
    starts.push_back(r.arrival.seconds().value());
    ends.push_back(r.last_token.seconds().value());
  }
  std::sort(starts.begin(), starts.end());
  std::sort(ends.begin(), ends.end());
  const std::size_t n = starts.size();
  const auto users = static_cast<std::size_t>(c.concurrency);
  if (users > 0 && n > 2 * users) {
    // From the first hand-over to the last.
    return {starts[users], starts[n - 1]};
  }
  const double first = starts.front();
  const double length = ends.back() - first;
  if (users > 0) return {first, first + length};
  return {first + kRamp * length, first + (1.0 - kRamp) * length};
}

double output_within(const RequestRecord& r, double from, double to) {
  const double a = r.first_token.seconds().value();
  const double b = r.last_token.seconds().value();
  if (b <= from || a >= to) return 0.0;
  if (b <= a) return r.output_tokens;
  return r.output_tokens * (std::min(b, to) - std::max(a, from)) / (b - a);
}

void fill_rates(const ServingCase& c, const Scenario& scenario, const RunResult& result,
                ServingOutcome& o) {
  double input = 0.0;
  double output = 0.0;
  double first = INFINITY;
  double last = 0.0;
  double present = 0.0;
  double in_steady = 0.0;
  const auto [from, to] = steady_part(c, result);
  for (std::size_t i = 0; i < result.requests.size(); ++i) {
    const RequestRecord& r = result.requests[i];
    input += scenario.trace.requests[i].input_tokens;
    output += r.output_tokens;
    first = std::min(first, r.arrival.seconds().value());
    last = std::max(last, r.last_token.seconds().value());
    in_steady += output_within(r, from, to);
    present += std::max(0.0, std::min(r.last_token.seconds().value(), to) -
                                 std::max(r.scheduled.seconds().value(), from));
  }
  o.duration = last - first;
  o.output_tokens_per_s = output / o.duration;
  o.tokens_per_s = (input + output) / o.duration;
  o.requests_per_s = static_cast<double>(result.requests.size()) / o.duration;
  o.output_rate_steady = in_steady / (to - from);
  o.batch_mean = present / (to - from);
  const FleetAccount account(scenario, result);
  const Known joules = account.pool_devices_j(0, from, to);
  o.watts = joules.known() ? joules.value / (to - from) : kBlank;
  const Known node = account.node_j(account.nodes().front(), from, to);
  o.node_watts = node.known() ? node.value / (to - from) : kBlank;
  o.joules_per_output_token = joules.known() ? joules.value / in_steady : kBlank;
}

ServingOutcome outcome_of(const ServingCase& c, const Scenario& scenario, const RunResult& result) {
  ServingOutcome o;
  for (const RequestRecord& r : result.requests) {
    if (r.status != RequestStatus::kFinished) {
      o.problem = fmt::format("a request is {}", to_string(r.status));
      return o;
    }
    const double ttft = (r.first_token - r.arrival).value();
    const double e2e = (r.last_token - r.arrival).value();
    o.ttft.push_back(ttft);
    o.e2e.push_back(e2e);
    if (r.output_tokens > 1) o.tpot.push_back((e2e - ttft) / (r.output_tokens - 1));
  }
  const auto fill = [](std::vector<double> v, double& mean, double& p50, double& p99) {
    const Moments m = moments_of(v);
    mean = m.mean;
    p50 = m.p50;
    p99 = m.p99;
  };
  fill(o.ttft, o.ttft_mean, o.ttft_p50, o.ttft_p99);
  fill(o.tpot, o.tpot_mean, o.tpot_p50, o.tpot_p99);
  fill(o.e2e, o.e2e_mean, o.e2e_p50, o.e2e_p99);
  o.itl_p50 = moments_of(result.pools[0].itl).p50;
  fill_rates(c, scenario, result, o);
  double busy = 0.0;
  double sure = 0.0;
  double outside = 0.0;
  double flops = 0.0;
  double bytes = 0.0;
  double stepping = 0.0;
  for (const ReplicaRecord& r : result.replicas) {
    for (const double t : r.trust_s) busy += t;
    sure += r.trust_s[static_cast<int>(Provenance::kMeasured)];
    outside += r.extrapolated_s;
    flops += r.flops;
    bytes += r.bytes;
    stepping += r.busy_s;
  }
  o.measured_pct = busy > 0.0 ? 100.0 * sure / busy : 0.0;
  o.extrapolated_pct = busy > 0.0 ? 100.0 * outside / busy : 0.0;
  const double replicas = static_cast<double>(result.replicas.size());
  if (stepping > 0.0) {
    o.flops_per_s = flops / (stepping / replicas);
    o.bytes_per_s = bytes / (stepping / replicas);
    o.busy_share = stepping / replicas / o.duration;
  }
  o.saturated = result.stability == Stability::kSaturated;
  return o;
}

void add_spreads(const ServingCase& c, const LoadedScenario& loaded, int draws,
                 ServingOutcome& nominal) {
  const DrawnScenario drawn(*loaded.catalog, loaded.scenario, 1);
  std::vector<double> ttft, tpot, e2e, watts;
  for (int i = 1; i <= draws; ++i) {
    Scenario copy = loaded.scenario;
    drawn.apply(i, copy);
    try {
      const ServingOutcome o = outcome_of(c, copy, medley::run(*loaded.catalog, copy));
      if (!o.problem.empty()) continue;
      ttft.push_back(o.ttft_mean);
      tpot.push_back(o.tpot_mean);
      e2e.push_back(o.e2e_mean);
      if (o.watts == o.watts) watts.push_back(o.watts);
    } catch (const InfeasibleError&) {  // this draw has no room: not part of the interval
    }
  }
  const auto spread = [](std::vector<double>& values) {
    const Interval interval = interval_of(values);
    return interval.known() ? Spread{interval.p5, interval.p95} : Spread{};
  };
  nominal.ttft_spread = spread(ttft);
  nominal.tpot_spread = spread(tpot);
  nominal.e2e_spread = spread(e2e);
  nominal.watts_spread = spread(watts);
}

std::string first_problem(const InputError& e) {
  return e.problems().empty() ? std::string(e.what()) : e.problems().front().message;
}

}  // namespace

ServingOutcome run_case(const ServingCase& c, int draws) {
  ServingOutcome failed;
  try {
    LoadOptions options;
    options.path = "validation.json";
    options.text = document_of(c);
    options.overrides = c.overrides;
    options.assume_missing = c.assume_missing;
    options.build_trace = false;
    LoadedScenario loaded = load_with_catalog(options);
    loaded.scenario.trace = trace_of(c, loaded.scenario.pools[0].model_name);
    const RunResult result = medley::run(*loaded.catalog, loaded.scenario);
    ServingOutcome nominal = outcome_of(c, loaded.scenario, result);
    if (draws > 0 && nominal.problem.empty()) add_spreads(c, loaded, draws, nominal);
    return nominal;
  } catch (const InfeasibleError& e) {
    failed.problem = e.what();
  } catch (const InputError& e) {
    failed.problem = first_problem(e);
  }
  return failed;
}

std::vector<CaseRequest> equal_requests(int n, std::int32_t input, std::int32_t output) {
  return std::vector<CaseRequest>(static_cast<std::size_t>(n), CaseRequest{0.0, input, output});
}

}  // namespace medley
