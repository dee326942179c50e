#include <algorithm>

#include "sim/runtime/fleet.h"

namespace medley {

// ---- prompts between replicas
// --------------------------------------------------------------------

void Fleet::fail_handoffs(std::uint32_t u, std::uint32_t failure) {
  for (HandoffState& h : handoffs_) {
    if (h.request == HandoffState::kNone) continue;
    if (h.prefill_unit == u) {
      drop_handoff(h);
    } else if (h.decode_unit == u) {
      ++result_.failures[failure].requests_hit;
      unpair(h);
    }
  }
}

/// The decode replica is gone; the prefill replica still has the prompt and sends it to another.
void Fleet::unpair(HandoffState& h) {
  for (const TransferHandle flow : h.flows) transport_->cancel(flow);
  h.flows.clear();
  h.paced.clear();
  h.flows_left = 0;
  h.decode_unit = h.import_slot = HandoffState::kNone;
  h.cached = h.sent = 0;
  RequestRecord& record = result_.requests[h.request];
  record.pool = units_[h.prefill_unit].pool;
  record.replica = result_.replicas[h.prefill_unit].replica;
  result_.handoffs[h.request].paired = SimTime();
  if (!h.prefilled) return;
  h.queued = true;
  unpaired_[trace_.requests[h.request].model].push_back(handoff_of_request_[h.request]);
  retry_pairing_ = true;
}

/// KV is there, the request not yet: its way to the replica ends.
void Fleet::fail_joins(std::uint32_t u, std::uint32_t failure) {
  auto& joins = failures_->joins;
  for (std::size_t i = 0; i < joins.size();) {
    if (joins[i].unit != u) {
      ++i;
      continue;
    }
    engine_.cancel(joins[i].event);
    const Replica::Evicted e{joins[i].request, kept(joins[i].request), 0.0};
    keep_energy(u, e);
    failures_->stranded.push_back({e, failure});
    joins.erase(joins.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

SimTime Fleet::joined(std::uint32_t unit, std::uint32_t slot, SimTime last_token) {
  auto& joins = failures_->joins;
  const auto it = std::find_if(joins.begin(), joins.end(), [&](const FailureControl::Join& j) {
    return j.unit == unit && j.slot == slot;
  });
  if (it == joins.end()) return last_token;
  const Replica::Streamed before = kept(it->request);
  joins.erase(it);
  return before.tokens > 0 ? before.last : last_token;
}

// ---- requests
// ------------------------------------------------------------------------------------

/// Energy of a life that has ended stays with the request, and with the pools that spent it.
void Fleet::keep_energy(std::uint32_t u, const Replica::Evicted& e) {
  const Unit& unit = units_[u];
  result_.requests[e.request].energy_j += e.energy_j;
  double here = e.energy_j;
  if (!result_.handoffs.empty()) {
    HandoffRecord& h = result_.handoffs[e.request];
    if (unit.role == PoolRole::kDecode) {
      result_.earlier.push_back({e.request, h.prefill_pool, h.prefill_energy_j});
    } else {
      here += h.prefill_energy_j;
    }
    h = HandoffRecord{};
  }
  if (here != 0.0) result_.earlier.push_back({e.request, unit.pool, here});
}

/// What was on board of the replicas that failed, in order of requests: to others, or lost.
void Fleet::settle_stranded() {
  FailureControl& f = *failures_;
  std::sort(f.stranded.begin(), f.stranded.end(), [](const Stranded& a, const Stranded& b) {
    return a.request.request < b.request.request;
  });
  for (const Stranded& s : f.stranded) {
    const std::uint32_t request = s.request.request;
    RequestRecord& record = result_.requests[request];
    FailureRecord& failure = result_.failures[s.failure];
    ++failure.requests_hit;
    record.output_tokens = s.request.streamed.tokens;
    if (!f.spec.retry || record.retries >= f.spec.max_retries) {
      ++failure.lost;
      give_up(request, RequestStatus::kLost);
      continue;
    }
    ++record.retries;
    f.kept[request] = f.spec.keep_output ? s.request.streamed : Replica::Streamed();
    record.output_tokens = f.kept[request].tokens;
    if (record.output_tokens == 0) {
      record.scheduled = record.first_token = SimTime();
      record.tier_cached_tokens = 0;
    }
    route_request(request);
    record.status == RequestStatus::kShed ? ++failure.shed : ++failure.retried;
  }
  f.stranded.clear();
}

void Fleet::give_up(std::uint32_t request, RequestStatus status) {
  result_.requests[request].status = status;
  ++(status == RequestStatus::kShed ? result_.shed : result_.lost);
  count_ended();
  follow_up(request);
}

bool Fleet::sheds(std::uint32_t request) const {
  const FailureControl& f = *failures_;
  const Request& r = trace_.requests[request];
  if (!f.spec.shed || f.down_of_model[r.model] == 0 || r.priority <= f.spec.shed->below_priority) {
    return false;
  }
  double outstanding = static_cast<double>(central_[r.model].size() + f.waiting[r.model].size());
  double healthy = 0.0;
  for (const std::uint32_t u : candidates_[r.model]) {
    outstanding += units_[u].requests;
    healthy += units_[u].up ? 1.0 : 0.0;
  }
  return healthy == 0.0 || outstanding > f.spec.shed->above * healthy;
}

/// The candidates that are up; null: the request was shed, or waits until one is.
const std::vector<std::uint32_t>* Fleet::healthy_of(std::uint32_t request,
                                                    const std::vector<std::uint32_t>& candidates) {
  FailureControl& f = *failures_;
  if (sheds(request)) {
    give_up(request, RequestStatus::kShed);
    return nullptr;
  }
  f.healthy.clear();
  for (const std::uint32_t u : candidates) {
    if (units_[u].up) f.healthy.push_back(u);
  }
  if (f.healthy.empty()) {
    f.waiting[trace_.requests[request].model].push_back(request);
    return nullptr;
  }
  return f.healthy.size() == candidates.size() ? &candidates : &f.healthy;
}

/// Held requests go on when somebody can take them again, and make room for others meanwhile.
void Fleet::release_waiting() {
  FailureControl& f = *failures_;
  std::vector<std::uint32_t> again;
  for (std::size_t m = 0; m < f.waiting.size() && f.came_up; ++m) {
    again.insert(again.end(), f.waiting[m].begin(), f.waiting[m].end());
    f.waiting[m].clear();
  }
  for (std::size_t m = 0; m < central_.size() && f.went_down; ++m) {
    if (f.down_of_model[m] == 0 || central_[m].empty()) continue;
    std::deque<std::uint32_t> kept_here;
    for (const std::uint32_t request : central_[m]) {
      const bool possible =
          std::any_of(candidates_[m].begin(), candidates_[m].end(), [&](std::uint32_t u) {
            return units_[u].up &&
                   judge_at(u, trace_.requests[request]) == Replica::Verdict::kAccepted;
          });
      if (possible) {
        kept_here.push_back(request);
      } else {
        f.waiting[m].push_back(request);
        --held_;
      }
    }
    central_[m].swap(kept_here);
  }
  for (const std::uint32_t request : again) route_request(request);
  for (std::uint32_t u = 0; u < units_.size() && held_ > 0; ++u) {
    if (units_[u].role != PoolRole::kDecode) pull(u);
  }
}

// ---- the account
// -----------------------------------------------------------------------------------

/// Devices of a replica that is down draw deep idle, or nothing, until repaired.
void Fleet::finish_failures() {
  const bool off = scenario_.failures.power == FailureSpec::Power::kOff;
  const std::int64_t bin_ns = SimTime::from_seconds(result_.bin).ns();
  for (ReplicaRecord& record : result_.replicas) {
    PoolRecord& pool = result_.pools[record.pool];
    const double below =
        (off ? 0.0 : watts_or_zero(pool.power.deep_idle)) - watts_or_zero(pool.power.context_idle);
    const double watts = below * pool.power.devices;
    for (const Outage& outage : record.outages) {
      const SimTime repaired = std::min(outage.repaired, result_.end);
      record.down_s += (repaired - outage.down).value();
      record.unavailable_s += (std::min(outage.ready, result_.end) - outage.down).value();
      for (std::int64_t at = outage.down.ns(); at < repaired.ns();) {
        const std::int64_t bin = at / bin_ns;
        const std::int64_t next = std::min((bin + 1) * bin_ns, repaired.ns());
        auto& bins = record.extra_energy_j;
        if (bins.size() <= static_cast<std::size_t>(bin)) {
          bins.resize(static_cast<std::size_t>(bin) + 1, 0.0);
        }
        bins[static_cast<std::size_t>(bin)] += watts * (static_cast<double>(next - at) * 1e-9);
        at = next;
      }
    }
    record.idle_energy_j += watts * record.down_s;
    const bool unknown = !off && record.down_s > 0.0 && !pool.power.deep_idle;
    if (unknown && pool.power.dynamic_known) {
      pool.power.dynamic_known = false;
      pool.power.missing.insert(pool.power.missing.begin(), "power.deep_idle");
    }
  }
}

}  // namespace medley
