#include "sim/runtime/fleet.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "sim/core/error.h"
#include "sim/runtime/stability.h"
#include "sim/scenario/placement.h"
#include "sim/scenario/validate.h"

namespace medley {

namespace {
constexpr std::int64_t kReferenceContext = 1024;

EngineOptions engine_options(const Scenario& scenario, const RunHooks& hooks) {
  EngineOptions options;
  options.tie_seed = scenario.tie_seed;
  options.interrupt = hooks.interrupt;
  return options;
}

double watts_or_zero(const std::optional<Watts>& w) {
  return w ? w->value() : 0.0;
}
}  // namespace

Fleet::Fleet(const Catalog& catalog, const Scenario& scenario, const RunHooks& hooks)
    : scenario_(scenario),
      trace_(scenario.trace),
      hooks_(hooks),
      engine_(engine_options(scenario, hooks)),
      rng_(scenario.seed, "routing"),
      sample_every_(scenario.report.interval) {
  build_pools(catalog);
  build_replicas();
  const RoutingPolicy& policy = scenario.routing;
  const auto* entry = routing_registry().find(policy.name);
  if (entry == nullptr) {
    throw InputError(scenario.file, "/routing/policy",
                     "unknown routing policy \"" + policy.name + "\"",
                     suggest(policy.name, routing_registry().names()));
  }
  std::map<std::string, double> params;
  for (const ParamInfo& p : entry->params) params[p.name] = p.fallback;
  for (const auto& [name, value] : policy.params) params[name] = value;
  router_ = entry->make({units_.size(), &candidates_, &params});

  central_.resize(trace_.models.size());
  expected_.resize(trace_.classes.size());
  expected_at_dispatch_.assign(trace_.requests.size(), 0.0F);
  result_.requests.resize(trace_.requests.size());
  for (std::size_t i = 0; i < trace_.requests.size(); ++i) {
    result_.requests[i].arrival = trace_.requests[i].arrival;
    if (trace_.requests[i].arrival != SimTime::max()) open_requests_ = i + 1;
  }
  engine_.bind<&Fleet::on_event>(*this);
  engine_.add_source(*this);
  engine_.reserve(units_.size() * 2 + 64);
}

void Fleet::build_pools(const Catalog& catalog) {
  const std::vector<MemoryAccount> memory = check_feasible(catalog, scenario_);
  result_.pools.resize(scenario_.pools.size());
  models_.reserve(scenario_.pools.size());
  for (std::size_t p = 0; p < scenario_.pools.size(); ++p) {
    models_.emplace_back(catalog, step_model_input(scenario_, scenario_.pools[p]));
    result_.pools[p].memory = memory[p];
    result_.pools[p].power = models_[p].power();
  }
  for (std::size_t p = 0; p < scenario_.pools.size(); ++p)
    result_.pools[p].profile = profile_pool(p);
}

void Fleet::build_replicas() {
  const Placement placement = place_replicas(scenario_);
  std::size_t count = 0;
  for (const PoolSpec& pool : scenario_.pools) count += static_cast<std::size_t>(pool.replicas);
  units_.resize(count);
  result_.replicas.resize(count);
  const double interval = scenario_.report.interval.value();
  result_.bin = Seconds(interval > 0.0 ? std::min(1.0, interval) : 1.0);
  const SimTime bin = SimTime::from_seconds(result_.bin);

  std::size_t next = 0;
  std::vector<std::vector<std::uint32_t>> replicas_of_pool(scenario_.pools.size());
  for (std::size_t p = 0; p < scenario_.pools.size(); ++p) {
    const PoolSpec& pool = scenario_.pools[p];
    const ReplicaPower& power = result_.pools[p].power;
    ReplicaConfig config;
    config.policy = pool.batching;
    config.blocks = result_.pools[p].memory.blocks;
    config.max_model_len = pool.max_model_len;
    config.lanes = pool.pipeline_parallel;
    config.fast_forward = scenario_.fast_forward;
    config.floor_w = watts_or_zero(power.active_floor) * power.devices;
    for (int i = 0; i < pool.replicas; ++i, ++next) {
      ReplicaRecord& record = result_.replicas[next];
      record.pool = static_cast<std::uint16_t>(p);
      record.replica = static_cast<std::uint32_t>(i);
      record.node = placement.pools[p][static_cast<std::size_t>(i)].node;
      record.first_device = placement.pools[p][static_cast<std::size_t>(i)].first_device;
      record.blocks = config.blocks;
      Unit& unit = units_[next];
      unit.pool = static_cast<std::uint16_t>(p);
      unit.meter = std::make_unique<ReplicaMeter>(
          config.floor_w, watts_or_zero(power.context_idle) * power.devices, config.lanes, bin,
          record, result_.pools[p].itl, scenario_.report.chrome_trace ? &result_.spans : nullptr);
      unit.replica = std::make_unique<Replica>(config, models_[p], trace_,
                                               static_cast<ReplicaListener&>(*this), *unit.meter);
      unit.ends.resize(static_cast<std::size_t>(config.lanes));
      replicas_of_pool[p].push_back(static_cast<std::uint32_t>(next));
    }
  }
  for (const auto& replicas : replicas_of_pool) first_unit_.push_back(replicas.front());
  candidates_.resize(trace_.models.size());
  pools_of_model_.resize(trace_.models.size());
  for (std::size_t m = 0; m < trace_.models.size(); ++m) {
    for (std::size_t p = 0; p < scenario_.pools.size(); ++p) {
      if (scenario_.pools[p].model_name != trace_.models[m]) continue;
      pools_of_model_[m].push_back(static_cast<std::uint16_t>(p));
      candidates_[m].insert(candidates_[m].end(), replicas_of_pool[p].begin(),
                            replicas_of_pool[p].end());
    }
  }
}

PoolProfile Fleet::profile_pool(std::size_t p) const {
  const PoolSpec& pool = scenario_.pools[p];
  const StepModel& model = models_[p];
  const MemoryAccount& memory = result_.pools[p].memory;
  PoolProfile profile;
  const auto decode = [&](std::int64_t n) {
    FeatureBuilder builder(model.context());
    for (std::int64_t i = 0; i < n; ++i) builder.add_decode(kReferenceContext);
    return model.step(builder.features(), static_cast<double>(kReferenceContext));
  };
  const std::int64_t batch = std::max<std::int64_t>(
      1, std::min<std::int64_t>(pool.batching.max_num_seqs, memory.concurrent(kReferenceContext)));
  for (std::int64_t n = 1; n < 2 * batch; n *= 2)
    profile.step_s_at.push_back(decode(std::min(n, batch)).step_s);
  const StepCost full = decode(batch);
  const double n = static_cast<double>(batch);
  profile.decode_tokens_per_s =
      full.step_s > 0.0 ? n / full.step_s : std::numeric_limits<double>::max();
  FeatureBuilder prefill(model.context());
  prefill.add_chunk({pool.batching.max_num_batched_tokens, 0, true});
  const double chunk_s = model.step(prefill.features(), 0.0).step_s;
  profile.prefill_tokens_per_s = chunk_s > 0.0 ? pool.batching.max_num_batched_tokens / chunk_s
                                               : std::numeric_limits<double>::max();
  const NodeGroup& group = scenario_.nodes[pool.node_group];
  const double devices = pool.devices_per_replica();
  if (group.device.rent.known()) {
    profile.usd_per_s = (*group.device.rent).value() * devices;
  } else if (group.type.rent.known() && group.type.devices > 0) {
    profile.usd_per_s = (*group.type.rent).value() * devices / group.type.devices;
  }
  const ReplicaPower& power = result_.pools[p].power;
  if (power.active_floor && power.dynamic_known) {
    profile.joules_per_token =
        (power.active_floor->value() * devices * full.step_s + full.dynamic_j) / n;
  }
  return profile;
}

// ---- events
// --------------------------------------------------------------------------------------

SimTime Fleet::next_time() {
  return cursor_ < open_requests_ ? trace_.requests[cursor_].arrival : SimTime::max();
}

EventBody Fleet::take() {
  return {static_cast<std::uint32_t>(cursor_++), kArrive, 0};
}

void Fleet::on_event(const Event& event) {
  switch (event.body.kind) {
    case kArrive:
      arrive(event.body.entity);
      break;
    case kStepEnd: {
      const std::uint32_t r = event.body.entity;
      acting_ = r;
      units_[r].replica->complete(static_cast<int>(event.body.payload), event.time);
      mark(r);
      if (held_ > 0) pull(r);
      break;
    }
    case kStageFree:
      mark(event.body.entity);
      break;
    default:
      sample();
      break;
  }
  if (engine_.next_time() > engine_.now()) begin_marked();
}

void Fleet::mark(std::uint32_t replica) {
  if (units_[replica].dirty) return;
  units_[replica].dirty = true;
  marked_.push_back(replica);
}

void Fleet::begin_marked() {
  if (marked_.empty()) return;
  if (marked_.size() > 1) std::sort(marked_.begin(), marked_.end());
  for (std::size_t i = 0; i < marked_.size(); ++i) {
    units_[marked_[i]].dirty = false;
    begin_lanes(marked_[i]);
  }
  marked_.clear();
}

void Fleet::begin_lanes(std::uint32_t r) {
  Unit& unit = units_[r];
  acting_ = r;
  const int lanes = unit.replica->lanes();
  for (int lane = 0; lane < lanes; ++lane) {
    if (unit.replica->begin(lane, engine_.now())) {
      unit.ends[static_cast<std::size_t>(lane)] =
          engine_.schedule(unit.replica->end(lane), EventClass::kCompletion, r, kStepEnd,
                           static_cast<std::uint64_t>(lane));
    } else if (lanes > 1 && !unit.replica->busy(lane) && unit.replica->has_work(lane) &&
               unit.replica->stage_free() > engine_.now() && !engine_.pending(unit.wake)) {
      unit.wake =
          engine_.schedule(unit.replica->stage_free(), EventClass::kSchedule, r, kStageFree);
    }
  }
}

PublicRequest Fleet::public_view(std::uint32_t request) const {
  const Request& r = trace_.requests[request];
  PublicRequest view;
  view.id = request;
  view.arrival = engine_.now();
  view.input_tokens = r.input_tokens;
  view.expected_output_tokens = expected_[r.slo_class].mean();
  view.model = r.model;
  view.slo_class = r.slo_class;
  view.tenant = r.tenant;
  view.priority = r.priority;
  view.session = r.session;
  view.hash_ids = trace_.hash_ids.data() + r.hash_begin;
  // Ids past the prompt name output that does not exist yet.
  const std::int32_t g = trace_.hash_block_tokens;
  view.hash_count =
      g > 0 ? std::min(r.hash_count, static_cast<std::uint32_t>((r.input_tokens + g - 1) / g)) : 0;
  return view;
}

void Fleet::arrive(std::uint32_t request) {
  const Request& r = trace_.requests[request];
  result_.requests[request].arrival = engine_.now();
  ++result_.arrived;
  if (candidates_[r.model].empty()) return reject(request, RequestStatus::kRejectedNoModel);
  // Which pools could ever run it.
  const std::vector<std::uint32_t>* candidates = &candidates_[r.model];
  std::size_t accepting = 0;
  bool too_long = false;
  for (const std::uint16_t p : pools_of_model_[r.model]) {
    const Replica& any =
        *units_[*std::find_if(candidates->begin(), candidates->end(), [&](std::uint32_t c) {
           return units_[c].pool == p;
         })].replica;
    const Replica::Verdict verdict = any.judge(r.input_tokens, r.output_tokens);
    accepting += verdict == Replica::Verdict::kAccepted ? 1 : 0;
    too_long = too_long || verdict == Replica::Verdict::kTooLong;
  }
  if (accepting == 0) {
    return reject(request,
                  too_long ? RequestStatus::kRejectedTooLong : RequestStatus::kRejectedNeverFits);
  }
  if (accepting < pools_of_model_[r.model].size()) {
    filtered_.clear();
    for (const std::uint32_t c : *candidates) {
      if (units_[c].replica->judge(r.input_tokens, r.output_tokens) ==
          Replica::Verdict::kAccepted) {
        filtered_.push_back(c);
      }
    }
    candidates = &filtered_;
  }
  if (!central_[r.model].empty()) {  // first come, first served: nobody overtakes the central queue
    hold(request);
    return;
  }
  const std::uint32_t replica = router_->route(public_view(request), *candidates, *this, rng_);
  if (replica == Router::kHold) {
    hold(request);
  } else {
    dispatch(request, replica);
  }
}

void Fleet::reject(std::uint32_t request, RequestStatus status) {
  result_.requests[request].status = status;
  ++result_.rejected;
  count_ended();
  follow_up(request);
}

void Fleet::dispatch(std::uint32_t request, std::uint32_t replica) {
  const Request& r = trace_.requests[request];
  Unit& unit = units_[replica];
  RequestRecord& record = result_.requests[request];
  record.pool = unit.pool;
  record.replica = result_.replicas[replica].replica;
  const double expected = expected_[r.slo_class].mean();
  expected_at_dispatch_[request] = static_cast<float>(expected);
  unit.requests += 1.0;
  unit.tokens +=
      static_cast<double>(r.input_tokens) + static_cast<double>(expected_at_dispatch_[request]);
  unit.prompt_tokens += r.input_tokens;
  load_changed(replica);
  if (unit.replica->enqueue(request, engine_.now())) {
    engine_.reschedule(unit.ends[0], unit.replica->end(0));
  }
  mark(replica);
}

void Fleet::hold(std::uint32_t request) {
  central_[trace_.requests[request].model].push_back(request);
  ++held_;
}

/// Gives a replica that has room what waits centrally.
void Fleet::pull(std::uint32_t replica) {
  for (std::size_t m = 0; m < central_.size(); ++m) {
    while (!central_[m].empty()) {
      const std::uint32_t request = central_[m].front();
      const Request& r = trace_.requests[request];
      const Unit& unit = units_[replica];
      const auto& pools = pools_of_model_[m];
      if (std::find(pools.begin(), pools.end(), unit.pool) == pools.end() ||
          !unit.replica->has_room(r.input_tokens) ||
          unit.replica->judge(r.input_tokens, r.output_tokens) != Replica::Verdict::kAccepted) {
        break;
      }
      central_[m].pop_front();
      --held_;
      dispatch(request, replica);
    }
  }
}

void Fleet::follow_up(std::uint32_t request) {
  const auto& all = trace_.follow_ups;
  auto it = std::lower_bound(all.begin(), all.end(), request,
                             [](const FollowUp& f, std::uint32_t id) { return f.previous < id; });
  for (; it != all.end() && it->previous == request; ++it) {
    engine_.schedule_after(it->delay, EventClass::kArrival, it->next, kArrive);
  }
}

void Fleet::sample() {
  const SimTime now = engine_.now();
  for (std::size_t p = 0; p < scenario_.pools.size(); ++p) {
    PoolSample s;
    s.time = now;
    s.pool = static_cast<std::uint16_t>(p);
    result_.samples.push_back(s);
  }
  const std::size_t first = result_.samples.size() - scenario_.pools.size();
  std::vector<std::int64_t> used(scenario_.pools.size(), 0), total(scenario_.pools.size(), 0);
  for (const Unit& unit : units_) {
    PoolSample& s = result_.samples[first + unit.pool];
    s.running += unit.replica->running();
    s.waiting += unit.replica->waiting();
    s.prompt_tokens += unit.replica->counters().prompt_tokens;
    s.output_tokens += unit.replica->output_tokens(now);
    used[unit.pool] += unit.replica->used_blocks(now);
    total[unit.pool] += unit.replica->total_blocks();
  }
  for (std::size_t p = 0; p < used.size(); ++p) {
    result_.samples[first + p].kv_usage =
        static_cast<double>(used[p]) / static_cast<double>(total[p]);
  }
  for (std::size_t m = 0; m < central_.size(); ++m) {
    if (!central_[m].empty()) {
      result_.samples[first + pools_of_model_[m].front()].waiting +=
          static_cast<std::int32_t>(central_[m].size());
    }
  }
  engine_.schedule_after(sample_every_, EventClass::kSample, 0, kTakeSample);
}

void Fleet::count_ended() {
  ++ended_;
  if (hooks_.progress && ended_ % 4096 == 0) {
    hooks_.progress(static_cast<double>(ended_) / static_cast<double>(trace_.requests.size()),
                    engine_.now());
  }
}

// ---- what replicas say
// ---------------------------------------------------------------------------

void Fleet::on_scheduled(std::uint32_t request, SimTime now, std::int32_t cached_tokens) {
  RequestRecord& record = result_.requests[request];
  record.scheduled = now;
  record.cached_tokens = cached_tokens;
}

void Fleet::on_first_token(std::uint32_t request, SimTime now) {
  result_.requests[request].first_token = now;
  Unit& unit = units_[acting_];
  unit.tokens -= trace_.requests[request].input_tokens;
  unit.prompt_tokens -= trace_.requests[request].input_tokens;
  load_changed(acting_);
}

void Fleet::on_finished(std::uint32_t request, SimTime now, double energy_j) {
  const Request& r = trace_.requests[request];
  RequestRecord& record = result_.requests[request];
  record.last_token = now;
  record.output_tokens = r.output_tokens;
  record.status = RequestStatus::kFinished;
  record.energy_j = energy_j;
  ++result_.finished;
  Unit& unit = units_[acting_];
  unit.requests -= 1.0;
  unit.tokens -= expected_at_dispatch_[request];
  if (unit.requests == 0.0) unit.tokens = unit.prompt_tokens = 0.0;  // no residue of rounding
  load_changed(acting_);
  expected_[r.slo_class].sum += r.output_tokens;
  expected_[r.slo_class].count += 1.0;
  count_ended();
  if (!trace_.follow_ups.empty()) follow_up(request);
}

void Fleet::on_preempted(std::uint32_t request) {
  ++result_.requests[request].preemptions;
}

RouterView::Slo Fleet::slo(std::uint16_t slo_class) const {
  auto it = scenario_.slo.find(trace_.classes[slo_class]);
  if (it == scenario_.slo.end()) it = scenario_.slo.find("default");
  if (it == scenario_.slo.end()) return {};
  Slo s;
  if (it->second.ttft) s.ttft_s = it->second.ttft->value();
  if (it->second.tpot) s.tpot_s = it->second.tpot->value();
  return s;
}

// ---- the run
// ---------------------------------------------------------------------------------------

RunResult Fleet::run() {
  if (sample_every_.value() > 0.0) engine_.schedule(SimTime(), EventClass::kSample, 0, kTakeSample);
  const auto started = std::chrono::steady_clock::now();
  const StopReason reason = engine_.run_until(scenario_.horizon.value_or(SimTime::max()));
  result_.loop_wall_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  if (reason == StopReason::kInterrupted) throw Interrupted("interrupted");
  MEDLEY_CHECK(reason != StopReason::kStalled, engine_.stall_report());
  result_.end = engine_.now();
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
    record.output_tokens = c.output_tokens;
    record.preemptions = c.preemptions;
    record.peak_blocks = unit.replica->peak_blocks();
    record.idle_energy_j = watts_or_zero(power.context_idle) * power.devices *
                           (result_.end.seconds().value() - record.busy_s);
    record.attributed_j += unit.replica->attributed_j();
  }
  result_.fingerprint = engine_.fingerprint().value();
  result_.events = engine_.events_fired();
  for (const RequestRecord& r : result_.requests) {
    const bool came = r.arrival <= result_.end;
    if (r.status == RequestStatus::kUnfinished && came) ++result_.unfinished;
  }
  MEDLEY_CHECK(result_.arrived == result_.finished + result_.rejected + result_.unfinished,
               "INV-1: arrived = finished + rejected + unfinished");
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
      result_.requests[request].energy_j = energy;
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
            std::max<std::int64_t>(1, result_.pools[p].memory.concurrent(kReferenceContext))));
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
