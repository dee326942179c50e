#include <algorithm>
#include <chrono>

#include "sim/core/error.h"
#include "sim/runtime/fleet.h"
#include "sim/runtime/stability.h"

namespace medley {

RunResult Fleet::run() {
  if (sample_every_.value() > 0.0) engine_.schedule(SimTime(), EventClass::kSample, 0, kTakeSample);
  const auto started = std::chrono::steady_clock::now();
  const StopReason reason = engine_.run_until(scenario_.horizon.value_or(SimTime::max()));
  result_.loop_wall_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  if (reason == StopReason::kInterrupted) throw Interrupted("interrupted");
  MEDLEY_CHECK(reason != StopReason::kStalled, engine_.stall_report());
  result_.end = engine_.now();
  for (const RequestRecord& r : result_.requests) {
    if (r.status == RequestStatus::kFinished) result_.end = std::max(result_.end, r.last_token);
  }
  if (!result_.samples.empty() && result_.samples.back().time < result_.end) take_sample();
  finish_run();
  return std::move(result_);
}

void Fleet::finish_run() {
  settle_unfinished();
  for (std::size_t r = 0; r < units_.size(); ++r) {
    const Unit& unit = units_[r];
    ReplicaRecord& record = result_.replicas[r];
    const ReplicaPower& power = result_.pools[unit.pool].power;
    const ReplicaCounters& c = unit.replica->counters();
    record.steps = c.steps;
    record.prompt_tokens = c.prompt_tokens;
    record.recomputed_tokens = c.recomputed_tokens;
    record.cached_tokens = c.cached_tokens;
    record.recalled_tokens = c.recalled_tokens;
    record.output_tokens = c.output_tokens;
    record.preemptions = c.preemptions;
    record.peak_blocks = unit.replica->peak_blocks();
    record.idle_energy_j = watts_or_zero(power.context_idle) * power.devices *
                           (result_.end.seconds().value() - record.busy_s);
    record.attributed_j += unit.replica->attributed_j();
    if (player_ && unit.shared) {
      const StepPlayer::Waits& waits = player_->waits(static_cast<std::uint32_t>(r));
      record.shared = true;
      record.waited_device_s = waits.device_s;
      record.waited_link_s = waits.link_s;
    }
  }
  if (transport_) {
    result_.transfers = true;
    result_.links = transport_->links();
  }
  if (tiers_) result_.tiers = tiers_->records();
  if (failures_) finish_failures();
  result_.fingerprint = engine_.fingerprint().value();
  result_.events = engine_.events_fired();
  for (const RequestRecord& r : result_.requests) {
    const bool came = r.arrival <= engine_.now();  // answers may reach users after the horizon
    if (r.status == RequestStatus::kUnfinished && came) ++result_.unfinished;
  }
  MEDLEY_CHECK(result_.arrived == result_.finished + result_.rejected + result_.lost +
                                      result_.shed + result_.unfinished,
               "INV-1: arrived = finished + rejected + lost + shed + unfinished");
  judge();
}

/// Requests on board at the horizon keep the tokens and energy they have had. A step cut by the
/// horizon counts as not taken.
void Fleet::settle_unfinished() {
  std::vector<std::pair<std::uint32_t, double>> energies;
  std::vector<std::pair<std::uint32_t, std::int32_t>> tokens;
  for (std::size_t r = 0; r < units_.size(); ++r) {
    energies.clear();
    tokens.clear();
    units_[r].replica->settle(energies);
    units_[r].replica->progress(result_.end, tokens);
    for (const auto& [request, energy] : energies) {
      result_.requests[request].energy_j += energy;
      if (units_[r].role == PoolRole::kPrefill)
        result_.handoffs[request].prefill_energy_j += energy;
      result_.replicas[r].attributed_j += energy;
    }
    for (const auto& [request, count] : tokens) result_.requests[request].output_tokens = count;
  }
}

void Fleet::judge() {
  const SimTime from = scenario_.measure.warmup;
  SimTime to = from;
  for (const RequestRecord& r : result_.requests) {
    if (r.arrival != SimTime::max()) to = std::max(to, std::min(r.arrival, result_.end));
  }
  if (scenario_.measure.window) to = std::min(to, SimTime::after(from, *scenario_.measure.window));
  double fleet_batch = 0.0;
  bool any_saturated = false, any_unclear = false;
  for (std::size_t p = 0; p < scenario_.pools.size(); ++p) {
    const PoolSpec& pool = scenario_.pools[p];
    const double batch =
        static_cast<double>(pool.replicas) *
        static_cast<double>(std::min<std::int64_t>(
            pool.batching.max_num_seqs,
            std::max<std::int64_t>(
                1, result_.pools[p].memory.concurrent(PoolProfile::kReferenceContext))));
    fleet_batch += batch;
    const StabilityVerdict v =
        judge_stability(result_.requests, static_cast<std::uint16_t>(p), from, to, batch);
    result_.pools[p].stability = v.stability;
    result_.pools[p].stability_reason = v.reason;
    result_.pools[p].backlog_slope = v.slope_per_s;
    any_saturated = any_saturated || v.stability == Stability::kSaturated;
  }
  const StabilityVerdict v = judge_stability(result_.requests, 0xffff, from, to, fleet_batch);
  any_unclear = v.stability == Stability::kInconclusive;
  result_.stability_reason = v.reason;
  result_.stability = any_saturated || v.stability == Stability::kSaturated ? Stability::kSaturated
                      : any_unclear ? Stability::kInconclusive
                                    : Stability::kStable;
  for (std::size_t p = 0; any_saturated && p < result_.pools.size(); ++p) {
    if (result_.pools[p].stability == Stability::kSaturated) {
      result_.stability_reason =
          "pool " + scenario_.pools[p].name + ": " + result_.pools[p].stability_reason;
      break;
    }
  }
}

RunResult run(const Catalog& catalog, const Scenario& scenario, const RunHooks& hooks) {
  return Fleet(catalog, scenario, hooks).run();
}

}  // namespace medley
