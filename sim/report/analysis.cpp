#include "sim/report/analysis.h"

#include <algorithm>
#include <cmath>

#include "sim/report/summary_builder.h"

namespace medley {

const MetricRow* ScopeSummary::find(std::string_view metric) const {
  for (const MetricRow& row : rows) {
    if (row.metric == metric) return &row;
  }
  return nullptr;
}

double ScopeSummary::value(std::string_view metric) const {
  const MetricRow* row = find(metric);
  return row ? row->moments.mean : kBlank;
}

Analysis::Analysis(const Scenario& scenario, const RunResult& result) : account_(scenario, result) {
  check_conservation(scenario, result);
  for (const std::string& name : scenario.trace.classes) {
    auto it = scenario.slo.find(name);
    if (it == scenario.slo.end()) it = scenario.slo.find("default");
    slo_of_class_.push_back(it == scenario.slo.end() ? nullptr : &it->second);
  }
  find_window();
  find_measured();
  find_trust();
  price_requests();
  summarize();
}

void Analysis::find_window() {
  const Scenario& s = scenario();
  const double end = account_.run_s();
  window_.from = std::min(s.measure.warmup.seconds().value(), end);
  window_.whole_run = window_.from == 0.0 && !s.measure.window;
  if (s.measure.window) {
    window_.to = std::min(window_.from + s.measure.window->value(), end);
    return;
  }
  window_.to = end;
  if (result().unfinished > 0) return;
  SimTime last;
  for (const RequestRecord& r : result().requests) {
    if (r.status == RequestStatus::kFinished) last = std::max(last, r.last_token);
  }
  if (last.seconds().value() > window_.from) window_.to = last.seconds().value();
}

void Analysis::find_trust() {
  double busy = 0.0;
  double joules = 0.0;
  for (std::size_t r = 0; r < result().replicas.size(); ++r) {
    const ReplicaRecord& replica = result().replicas[r];
    const double devices = scenario().pools[replica.pool].device_share();
    for (int c = 0; c < kProvenanceClasses; ++c) {
      trust_.time[c] += replica.trust_s[c] * devices;
      busy += replica.trust_s[c] * devices;
    }
    if (!account_.pools()[replica.pool].dynamic_known) continue;
    const double energy = replica.active_energy_j + replica.idle_energy_j;
    trust_.energy[static_cast<std::size_t>(account_.pools()[replica.pool].provenance)] += energy;
    joules += energy;
  }
  for (double& share : trust_.time) share = busy > 0.0 ? share / busy : 0.0;
  for (double& share : trust_.energy) share = joules > 0.0 ? share / joules : 0.0;
}

bool Analysis::arrived(std::size_t request) const {
  return result().requests[request].arrival <= result().end;
}

void Analysis::find_measured() {
  const MeasureSpec& measure = scenario().measure;
  const SimTime end =
      measure.window ? SimTime::after(measure.warmup, *measure.window) : SimTime::max();
  measured_.resize(result().requests.size());
  for (std::size_t i = 0; i < measured_.size(); ++i) {
    const SimTime arrival = result().requests[i].arrival;
    measured_[i] = arrived(i) && arrival >= measure.warmup && arrival < end;
  }
}

RequestTimes Analysis::times(std::size_t request) const {
  const RequestRecord& r = result().requests[request];
  RequestTimes t;
  const bool finished = r.status == RequestStatus::kFinished;
  const bool begun = finished || r.output_tokens > 0;
  if (begun || r.scheduled > SimTime()) {
    t.queue = (r.scheduled - r.arrival).value();
  }
  if (begun) {
    t.prefill = (r.first_token - r.scheduled).value();
    t.kv_transfer = t.decode_queue = 0.0;
    if (!result().handoffs.empty() && handed_over(result().handoffs[request])) {
      const HandoffRecord& h = result().handoffs[request];
      t.prefill = (h.prefilled - r.scheduled).value();
      t.kv_transfer = (h.arrived - h.prefilled).value();
      t.decode_queue = h.joined > SimTime() ? (h.joined - h.arrived).value() : kBlank;
    }
    t.ttft = (r.first_token - r.arrival).value();
  }
  if (finished) {
    t.e2e = (r.last_token - r.arrival).value();
    if (r.output_tokens > 1) {
      t.tpot = (r.last_token - r.first_token).value() / (r.output_tokens - 1);
    }
  }
  return t;
}

double Analysis::time_in(std::size_t request, int part) const {
  const RequestRecord& r = result().requests[request];
  if (r.status != RequestStatus::kFinished) return kBlank;
  constexpr double kRounding = 1e-12;  // of differences of running sums
  const double s = r.time.seconds[part];
  return std::abs(s) < kRounding ? 0.0 : s;
}

const SloSpec* Analysis::slo_of(std::size_t request) const {
  return slo_of_class_[scenario().trace.requests[request].slo_class];
}

SloVerdict Analysis::slo(std::size_t request) const {
  const SloSpec* slo = slo_of(request);
  if (!slo || (!slo->ttft && !slo->tpot && !slo->e2e)) return SloVerdict::kNone;
  const RequestRecord& r = result().requests[request];
  const RequestTimes t = times(request);
  const auto over = [](double value, const std::optional<Seconds>& most) {
    return most && value > most->value();  // false where undefined
  };
  if (r.status == RequestStatus::kFinished) {
    const bool missed = over(t.ttft, slo->ttft) || over(t.tpot, slo->tpot) || over(t.e2e, slo->e2e);
    return missed ? SloVerdict::kMissed : SloVerdict::kMet;
  }
  if (r.status != RequestStatus::kUnfinished) return SloVerdict::kMissed;
  const double waited = (result().end - r.arrival).value();
  const double ttft = std::isnan(t.ttft) ? waited : t.ttft;
  return over(ttft, slo->ttft) || over(waited, slo->e2e) ? SloVerdict::kMissed
                                                         : SloVerdict::kUnknown;
}

double Analysis::energy_j(std::size_t request) const {
  const RequestRecord& r = result().requests[request];
  if (r.pool >= account_.pools().size()) return 0.0;  // never reached a device
  return account_.pools()[r.pool].dynamic_known ? r.energy_j : kBlank;
}

double Analysis::weight_in(std::size_t i, std::size_t pool) const {
  const Request& request = scenario().trace.requests[i];
  const RequestRecord& r = result().requests[i];
  const bool known = account_.pools()[pool].dynamic_known;
  const HandoffRecord* h = result().handoffs.empty() ? nullptr : &result().handoffs[i];
  const bool split = h && h->prefill_pool != 0xffff && h->prefill_pool != r.pool;
  const double prompt = request.input_tokens - r.cached_tokens;
  if (split && pool == h->prefill_pool) return known ? h->prefill_energy_j : prompt;
  if (pool != r.pool) return 0.0;
  const double elsewhere = split ? h->prefill_energy_j : 0.0;
  return known ? r.energy_j - elsewhere : (split ? 0.0 : prompt) + r.output_tokens;
}

void Analysis::price_requests() {
  const std::size_t pools = scenario().pools.size();
  pool_cost_.resize(pools);
  pool_weight_.resize(pools);
  for (std::size_t p = 0; p < pools; ++p) {
    pool_cost_[p] = account_.pool_usd(p, 0.0, account_.run_s()).or_blank();
  }
  for (std::size_t i = 0; i < result().requests.size(); ++i) {
    const RequestRecord& r = result().requests[i];
    if (r.pool >= pools) continue;
    pool_weight_[r.pool] += weight_in(i, r.pool);
    const std::size_t other = prefill_pool(i);
    if (other < pools) pool_weight_[other] += weight_in(i, other);
  }
}

/// The pool that prefilled it for another; pools.size() or more: none.
std::size_t Analysis::prefill_pool(std::size_t request) const {
  if (result().handoffs.empty()) return 0xffff;
  const std::size_t p = result().handoffs[request].prefill_pool;
  return p == result().requests[request].pool ? 0xffff : p;
}

double Analysis::cost_usd(std::size_t request) const {
  const RequestRecord& r = result().requests[request];
  if (r.pool >= pool_cost_.size()) return 0.0;
  const auto part = [&](std::size_t pool) {
    if (!(pool_weight_[pool] > 0.0)) return kBlank;
    return pool_cost_[pool] * (weight_in(request, pool) / pool_weight_[pool]);
  };
  const std::size_t other = prefill_pool(request);
  return other < pool_cost_.size() ? part(r.pool) + part(other) : part(r.pool);
}

void Analysis::summarize() {
  scopes_ = SummaryBuilder(*this).build();
}

}  // namespace medley
