#include "sim/report/summary_builder.h"

#include <algorithm>
#include <cmath>

namespace medley {

SummaryBuilder::SummaryBuilder(const Analysis& analysis)
    : a_(analysis), scenario_(analysis.scenario()), result_(analysis.result()) {}

void SummaryBuilder::make_groupings() {
  const Trace& trace = scenario_.trace;
  groupings_.push_back({"fleet", {"fleet"}, [](std::size_t) { return 0U; }, 0});
  std::vector<std::string> pools;
  for (const PoolSpec& p : scenario_.pools) pools.push_back(p.name);
  groupings_.push_back({"pool", pools,
                        [this](std::size_t i) {
                          const std::uint16_t p = result_.requests[i].pool;
                          return p < scenario_.pools.size() ? std::uint32_t{p} : kNobody;
                        },
                        0});
  groupings_.push_back({"model", trace.models,
                        [&trace](std::size_t i) { return std::uint32_t{trace.requests[i].model}; },
                        0});
  groupings_.push_back(
      {"slo_class", trace.classes,
       [&trace](std::size_t i) { return std::uint32_t{trace.requests[i].slo_class}; }, 0});
  groupings_.push_back({"tenant", trace.tenants,
                        [&trace](std::size_t i) { return std::uint32_t{trace.requests[i].tenant}; },
                        0});
  for (Grouping& g : groupings_) {
    g.first = scopes_.size();
    for (std::size_t i = 0; i < g.names.size(); ++i) {
      ScopeSummary scope;
      scope.scope = g.scope;
      scope.name = g.names[i];
      scope.stability = g.scope == "pool" ? result_.pools[i].stability : result_.stability;
      scopes_.push_back(std::move(scope));
    }
  }
  tallies_.resize(scopes_.size());
}

std::vector<ScopeSummary> SummaryBuilder::build() {
  make_groupings();
  count_requests();
  for (std::size_t s = 0; s < scopes_.size(); ++s) {
    add_request_numbers(s);
    add_rates(s);
  }
  add_distribution("ttft", "s", [this](std::size_t i) { return a_.times(i).ttft; });
  add_distribution("tpot", "s", [this](std::size_t i) { return a_.times(i).tpot; });
  add_gaps();
  add_distribution("e2el", "s", [this](std::size_t i) { return a_.times(i).e2e; });
  add_distribution("queue", "s", [this](std::size_t i) { return a_.times(i).queue; });
  add_distribution("prefill", "s", [this](std::size_t i) { return a_.times(i).prefill; });
  add_distribution("kv_transfer", "s", [this](std::size_t i) { return a_.times(i).kv_transfer; });
  add_distribution("decode_queue", "s", [this](std::size_t i) { return a_.times(i).decode_queue; });
  constexpr const char* kParts[TimeShares::kParts] = {
      "time_compute", "time_memory", "time_link", "time_host", "time_contention", "time_stall"};
  for (int part = 0; part < TimeShares::kParts; ++part) {
    add_distribution(kParts[part], "s",
                     [this, part](std::size_t i) { return a_.time_in(i, part); });
  }
  const auto positive = [](double v) { return v > 0.0 ? v : kBlank; };
  add_distribution("recall", "s",
                   [&](std::size_t i) { return positive(result_.requests[i].recall_s); });
  add_distribution("migration_stop", "s",
                   [&](std::size_t i) { return positive(result_.requests[i].migration_s); });
  const auto finished = [this](std::size_t i) {
    return result_.requests[i].status == RequestStatus::kFinished;
  };
  add_distribution("input_tokens", "token", [&](std::size_t i) {
    return finished(i) ? scenario_.trace.requests[i].input_tokens : kBlank;
  });
  add_distribution("output_tokens", "token", [&](std::size_t i) {
    return finished(i) ? result_.requests[i].output_tokens : kBlank;
  });
  add_distribution("request_energy", "J",
                   [&](std::size_t i) { return finished(i) ? a_.energy_j(i) : kBlank; });
  add_distribution("request_cost", "USD",
                   [&](std::size_t i) { return finished(i) ? a_.cost_usd(i) : kBlank; });
  add_fleet_numbers();
  for (std::size_t p = 0; p < scenario_.pools.size(); ++p) add_pool_numbers(p);
  return std::move(scopes_);
}

std::string SummaryBuilder::base_status(const ScopeSummary& scope) const {
  if (result_.stability == Stability::kSaturated || scope.stability == Stability::kSaturated) {
    return "saturated";
  }
  return scope.stability == Stability::kInconclusive ? "inconclusive" : "ok";
}

MetricRow& SummaryBuilder::push(std::size_t scope, std::string metric, std::string unit) {
  MetricRow row;
  row.metric = std::move(metric);
  row.unit = std::move(unit);
  row.status = base_status(scopes_[scope]);
  scopes_[scope].rows.push_back(std::move(row));
  return scopes_[scope].rows.back();
}

void SummaryBuilder::number(std::size_t scope, std::string metric, std::string unit, double value,
                            std::int64_t count) {
  MetricRow& row = push(scope, std::move(metric), std::move(unit));
  row.moments.count = count;
  row.moments.mean = value;
  if (std::isnan(value)) row.status = "empty";
}

void SummaryBuilder::number(std::size_t scope, std::string metric, std::string unit,
                            const Known& value) {
  MetricRow& row = push(scope, std::move(metric), std::move(unit));
  row.moments.count = 1;
  row.moments.mean = value.or_blank();
  if (!value.known()) {
    row.status = value.status();
  } else if (std::isnan(value.value)) {
    row.status = "empty";
  }
}

void SummaryBuilder::count_requests() {
  for (std::size_t i = 0; i < result_.requests.size(); ++i) {
    if (!a_.arrived(i)) continue;
    Tally one;
    if (a_.measured(i)) count_request(i, one);
    count_in_window(i, one);
    for (const Grouping& g : groupings_) {
      const std::uint32_t member = g.of(i);
      if (member == kNobody) continue;
      Tally& t = tallies_[g.first + member];
      t.requests += one.requests, t.completed += one.completed, t.rejected += one.rejected;
      t.unfinished += one.unfinished, t.preemptions += one.preemptions;
      t.tier_tokens += one.tier_tokens, t.migrations += one.migrations;
      t.input_tokens += one.input_tokens, t.output_tokens += one.output_tokens;
      t.cached_tokens += one.cached_tokens, t.started_input_tokens += one.started_input_tokens;
      t.with_slo += one.with_slo, t.met += one.met;
      t.ttft_judged += one.ttft_judged, t.ttft_met += one.ttft_met;
      t.tpot_judged += one.tpot_judged, t.tpot_met += one.tpot_met;
      t.e2e_judged += one.e2e_judged, t.e2e_met += one.e2e_met;
      t.has_slo = t.has_slo || one.has_slo;
      t.finished_in += one.finished_in, t.good_in += one.good_in;
      t.prompt_tokens_in += one.prompt_tokens_in, t.output_tokens_in += one.output_tokens_in;
    }
  }
}

void SummaryBuilder::count_request(std::size_t i, Tally& t) const {
  const RequestRecord& r = result_.requests[i];
  const std::int32_t input = scenario_.trace.requests[i].input_tokens;
  t.requests = 1;
  t.preemptions = r.preemptions;
  t.migrations = r.migrations;
  if (!std::isnan(a_.times(i).queue)) {
    t.cached_tokens = r.cached_tokens;
    t.tier_tokens = r.tier_cached_tokens;
    t.started_input_tokens = input;
  }
  if (r.status == RequestStatus::kFinished) {
    t.completed = 1;
    t.input_tokens = input;
    t.output_tokens = r.output_tokens;
  } else if (r.status == RequestStatus::kUnfinished) {
    t.unfinished = 1;
  } else {
    t.rejected = 1;
  }
  const SloVerdict verdict = a_.slo(i);
  t.with_slo = verdict == SloVerdict::kMet || verdict == SloVerdict::kMissed ? 1 : 0;
  t.met = verdict == SloVerdict::kMet ? 1 : 0;
  count_objectives(i, t);
}

void SummaryBuilder::count_objectives(std::size_t i, Tally& t) const {
  const SloSpec* slo = a_.slo_of(i);
  if (!slo || result_.requests[i].status != RequestStatus::kFinished) return;
  const RequestTimes times = a_.times(i);
  const auto judge = [](const std::optional<Seconds>& most, double value, std::int64_t& judged,
                        std::int64_t& met) {
    if (!most || std::isnan(value)) return;
    judged = 1;
    met = value <= most->value() ? 1 : 0;
  };
  judge(slo->ttft, times.ttft, t.ttft_judged, t.ttft_met);
  judge(slo->tpot, times.tpot, t.tpot_judged, t.tpot_met);
  judge(slo->e2e, times.e2e, t.e2e_judged, t.e2e_met);
}

void SummaryBuilder::count_in_window(std::size_t i, Tally& t) const {
  const RequestRecord& r = result_.requests[i];
  const MeasuredWindow& w = a_.window();
  const SloVerdict verdict = a_.slo(i);
  t.has_slo = verdict != SloVerdict::kNone;
  if (r.output_tokens == 0) return;
  const auto inside = [&](double at) { return at >= w.from && at <= w.to; };
  const bool finished = r.status == RequestStatus::kFinished;
  const double first = r.first_token.seconds().value();
  const double last = finished ? r.last_token.seconds().value() : a_.account().run_s();
  if (finished && inside(last)) {
    t.finished_in = 1.0;
    if (verdict == SloVerdict::kMet || verdict == SloVerdict::kNone) t.good_in = 1.0;
  }
  if (inside(first)) {
    t.prompt_tokens_in = scenario_.trace.requests[i].input_tokens;
    t.output_tokens_in = 1.0;
  }
  const double overlap = std::min(last, w.to) - std::max(first, w.from);
  if (r.output_tokens > 1 && last > first && overlap > 0.0) {
    t.output_tokens_in += (r.output_tokens - 1) * (overlap / (last - first));
  } else if (r.output_tokens > 1 && last == first && inside(first)) {
    t.output_tokens_in += r.output_tokens - 1;
  }
}

void SummaryBuilder::add_moments(std::size_t scope, const std::string& metric,
                                 const std::string& unit, const Moments& moments) {
  MetricRow& row = push(scope, metric, unit);
  row.distribution = true;
  row.moments = moments;
  if (moments.count == 0) row.status = "empty";
}

void SummaryBuilder::add_distribution(const std::string& metric, const std::string& unit,
                                      const std::function<double(std::size_t)>& value) {
  std::vector<double> values(result_.requests.size(), kBlank);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (a_.measured(i)) values[i] = value(i);
  }
  const Moments* whole = nullptr;
  Moments fleet;
  for (const Grouping& g : groupings_) {
    if (whole && g.names.size() == 1 && g.scope != "pool") {  // everybody's name
      add_moments(g.first, metric, unit, *whole);
      continue;
    }
    std::vector<std::vector<double>> members(g.names.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isnan(values[i])) continue;
      const std::uint32_t member = g.of(i);
      if (member != kNobody) members[member].push_back(values[i]);
    }
    for (std::size_t m = 0; m < members.size(); ++m) {
      add_moments(g.first + m, metric, unit, moments_of(members[m]));
    }
    if (!whole) {
      fleet = scopes_[g.first].rows.back().moments;
      whole = &fleet;
    }
  }
}

}  // namespace medley
