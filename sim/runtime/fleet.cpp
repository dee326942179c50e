#include "sim/runtime/fleet.h"

#include <algorithm>

#include "sim/core/error.h"

namespace medley {

// ---- events ----

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
      if (units_[r].role == PoolRole::kDecode) pair_waiting(units_[r].pool);
      if (units_[r].draining) note_drained(r);
      break;
    }
    case kJoin:
      join(event.body.entity, static_cast<std::uint32_t>(event.body.payload), SimTime());
      break;
    case kFailure:
      on_failure_event();
      break;
    case kNetwork:
      transport_->on_event();
      break;
    case kLoadWeights:
      start_load(event.body.entity);
      break;
    case kReady:
      on_ready(event.body.entity);
      break;
    case kMigrate:
      look_for_migrations();
      break;
    case kDrain:
      drain(event.body.entity);
      break;
    case kBegin:
      begin_marked();
      break;
    case kStageFree:
      mark(event.body.entity);
      break;
    default:
      sample();
      break;
  }
  end_event();
}

/// Steps begin when everything of the instant has happened: now, or in an event behind the others.
void Fleet::end_event() {
  if (retry_pairing_) pair_all_waiting();
  if (!marked_.empty() && engine_.next_time() > engine_.now()) {
    begin_marked();
    if (retry_pairing_) pair_all_waiting();  // a step that preempted gave blocks back elsewhere
  }
  if (!marked_.empty() && !engine_.pending(begin_)) {
    begin_ = engine_.schedule(engine_.now(), EventClass::kSchedule, 0, kBegin);
  }
  settle_transport();
}

void Fleet::mark(std::uint32_t replica) {
  if (units_[replica].dirty) return;
  units_[replica].dirty = true;
  marked_.push_back(replica);
}

void Fleet::begin_marked() {
  if (failures_ && failures_->due <= engine_.now()) apply_failures();
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
  if (unit.loading) return;
  acting_ = r;
  const int lanes = unit.replica->lanes();
  for (int lane = 0; lane < lanes; ++lane) {
    if (unit.replica->begin(lane, engine_.now())) {
      if (unit.shared) {
        begin_shared(r, lane);
        continue;
      }
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

/// Whether the replica could ever run it; one that prefills only needs a decode replica that could.
Replica::Verdict Fleet::judge_at(std::uint32_t unit, const Request& r) const {
  if (units_[unit].role != PoolRole::kPrefill) {
    return units_[unit].replica->judge(r.input_tokens, r.output_tokens);
  }
  const Replica::Verdict own = units_[unit].replica->judge(r.input_tokens, 1);
  if (own != Replica::Verdict::kAccepted) return own;
  Replica::Verdict best = Replica::Verdict::kTooLong;
  for (const std::uint32_t d : decode_candidates_[r.model]) {
    const Replica::Verdict v = units_[d].replica->judge(r.input_tokens, r.output_tokens);
    if (v == Replica::Verdict::kAccepted) return v;
    if (v == Replica::Verdict::kNeverFits) best = v;
  }
  return best;
}

void Fleet::arrive(std::uint32_t request) {
  result_.requests[request].arrival = engine_.now();
  ++result_.arrived;
  route_request(request);
}

void Fleet::route_request(std::uint32_t request) {
  const Request& r = trace_.requests[request];
  if (candidates_[r.model].empty()) return reject(request, RequestStatus::kRejectedNoModel);
  // Which pools could ever run it.
  const std::vector<std::uint32_t>* candidates = &candidates_[r.model];
  std::size_t accepting = 0;
  bool too_long = false;
  for (const std::uint16_t p : pools_of_model_[r.model]) {
    const Replica::Verdict verdict =
        judge_at(*std::find_if(candidates->begin(), candidates->end(),
                               [&](std::uint32_t c) { return units_[c].pool == p; }),
                 r);
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
      if (judge_at(c, r) == Replica::Verdict::kAccepted) filtered_.push_back(c);
    }
    candidates = &filtered_;
  }
  if (failures_ && failures_->down > 0 && !(candidates = healthy_of(request, *candidates))) return;
  if (closed_units_ > 0) candidates = open_of(*candidates);
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
  if (unit.role == PoolRole::kPrefill) {
    result_.handoffs[request].prefill_pool = unit.pool;
    result_.handoffs[request].prefill_replica = record.replica;
  }
  const double expected = expected_[r.slo_class].mean();
  expected_at_dispatch_[request] = static_cast<float>(expected);
  unit.requests += 1.0;
  unit.tokens += static_cast<double>(prompt_of(request));
  if (unit.role == PoolRole::kUnified) unit.tokens += expected_at_dispatch_[request];
  unit.prompt_tokens += prompt_of(request);
  load_changed(replica);
  if (unit.replica->enqueue(request, engine_.now(), kept(request))) {
    engine_.reschedule(unit.ends[0], unit.replica->end(0));
  }
  mark(replica);
  arm_migration();
}

void Fleet::hold(std::uint32_t request) {
  central_[trace_.requests[request].model].push_back(request);
  ++held_;
}

/// Gives a replica that has room what waits centrally.
void Fleet::pull(std::uint32_t replica) {
  if (!takes(replica)) return;
  for (std::size_t m = 0; m < central_.size(); ++m) {
    while (!central_[m].empty()) {
      const std::uint32_t request = central_[m].front();
      const Request& r = trace_.requests[request];
      const Unit& unit = units_[replica];
      const auto& pools = pools_of_model_[m];
      if (std::find(pools.begin(), pools.end(), unit.pool) == pools.end() ||
          !unit.replica->has_room(r.input_tokens) ||
          judge_at(replica, r) != Replica::Verdict::kAccepted) {
        break;
      }
      central_[m].pop_front();
      --held_;
      dispatch(request, replica);
    }
  }
}

void Fleet::follow_up(std::uint32_t request) {
  // A client sees the end of a request once it has left the front end.
  const RequestRecord& record = result_.requests[request];
  const Seconds seen = record.status == RequestStatus::kFinished
                           ? units_[acting_].front_end(trace_.requests[request])
                           : Seconds(0.0);
  const auto& all = trace_.follow_ups;
  auto it = std::lower_bound(all.begin(), all.end(), request,
                             [](const FollowUp& f, std::uint32_t id) { return f.previous < id; });
  for (; it != all.end() && it->previous == request; ++it) {
    if (it->loop > 0) continue;
    engine_.schedule_after(seen + it->delay, EventClass::kArrival, it->next, kArrive);
  }
  if (const FollowUp* f = loops_.next(request)) {
    engine_.schedule_after(seen + f->delay, EventClass::kArrival, f->next, kArrive);
  }
}

void Fleet::sample() {
  take_sample();
  engine_.schedule_after(sample_every_, EventClass::kSample, 0, kTakeSample);
}

void Fleet::take_sample() {
  constexpr std::size_t kMostSamples = 20'000'000;
  if (result_.samples.size() > kMostSamples) {
    throw InputError(scenario_.file, "/report/interval",
                     "is too short for so long a run: over 20 million samples",
                     "choose a longer interval");
  }
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
    const std::size_t held = central_[m].size() + (failures_ ? failures_->waiting[m].size() : 0);
    if (held > 0) {
      result_.samples[first + pools_of_model_[m].front()].waiting +=
          static_cast<std::int32_t>(held);
    }
  }
}

void Fleet::count_ended() {
  ++ended_;
  if (failures_ && ended_ == static_cast<std::int64_t>(trace_.requests.size())) {
    failures_->stopped = true;
    engine_.cancel(failures_->event);
  }
  if (hooks_.progress && ended_ % 4096 == 0) {
    hooks_.progress(static_cast<double>(ended_) / static_cast<double>(trace_.requests.size()),
                    engine_.now());
  }
}

// ---- what replicas say ----

void Fleet::on_scheduled(std::uint32_t request, SimTime now, std::int32_t cached_tokens) {
  RequestRecord& record = result_.requests[request];
  const bool moved = record.migrations > 0;  // it may come here again
  if (units_[acting_].role == PoolRole::kDecode) {
    SimTime& joined = result_.handoffs[request].joined;
    if (!moved || joined == SimTime()) joined = now;
    return;
  }
  if (moved && record.scheduled > SimTime()) return;
  record.scheduled = now;
  record.cached_tokens = cached_tokens;
}

void Fleet::on_first_token(std::uint32_t request, SimTime now) {
  Unit& unit = units_[acting_];
  result_.requests[request].first_token =
      SimTime::after(now, unit.front_end(trace_.requests[request]));
  on_resumed(request, now);
}

/// Its prompt is computed.
void Fleet::on_resumed(std::uint32_t request, SimTime) {
  Unit& unit = units_[acting_];
  if (unit.role != PoolRole::kUnified) return;
  unit.tokens -= prompt_of(request);
  unit.prompt_tokens -= prompt_of(request);
  load_changed(acting_);
}

void Fleet::on_finished(std::uint32_t request, SimTime now, double energy_j) {
  const Request& r = trace_.requests[request];
  RequestRecord& record = result_.requests[request];
  record.last_token = SimTime::after(now, units_[acting_].front_end(r));
  record.output_tokens = r.output_tokens;
  record.time[TimeShares::kHost] += units_[acting_].front_end(r).value();
  record.status = RequestStatus::kFinished;
  record.energy_j += energy_j;
  ++result_.finished;
  Unit& unit = units_[acting_];
  if (MigrationState* m = move_of(request)) cancel_move(*m);
  unit.requests -= 1.0;
  if (unit.role == PoolRole::kPrefill) {  // one output token: nothing to hand over
    unit.tokens -= prompt_of(request);
    unit.prompt_tokens -= prompt_of(request);
    if (HandoffState* h = handoff_of(request)) drop_handoff(*h);
  } else {
    unit.tokens -= expected_at_dispatch_[request];
  }
  if (unit.requests == 0.0) unit.tokens = unit.prompt_tokens = 0.0;  // no residue of rounding
  load_changed(acting_);
  expected_[r.slo_class].sum += r.output_tokens;
  expected_[r.slo_class].count += 1.0;
  count_ended();
  if (!trace_.follow_ups.empty()) follow_up(request);
}

void Fleet::on_preempted(std::uint32_t request) {
  ++result_.requests[request].preemptions;
  if (MigrationState* m = move_of(request)) cancel_move(*m);
  if (units_[acting_].role == PoolRole::kPrefill) {
    if (HandoffState* h = handoff_of(request)) drop_handoff(*h);
  }
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

}  // namespace medley
