#include <algorithm>
#include <limits>

#include "sim/core/error.h"
#include "sim/runtime/fleet.h"

namespace medley {

void Fleet::build_handoff(const Catalog& catalog) {
  const std::size_t pools = scenario_.pools.size();
  if (std::none_of(scenario_.pools.begin(), scenario_.pools.end(),
                   [](const PoolSpec& p) { return p.role == PoolRole::kPrefill; })) {
    return;
  }
  decode_candidates_.resize(trace_.models.size());
  for (std::size_t m = 0; m < trace_.models.size(); ++m) {
    for (std::uint32_t u = 0; u < units_.size(); ++u) {
      if (units_[u].role == PoolRole::kDecode &&
          scenario_.pools[units_[u].pool].model_name == trace_.models[m]) {
        decode_candidates_[m].push_back(u);
      }
    }
  }
  kv_paths_.resize(pools * pools);
  for (std::size_t p = 0; p < pools; ++p) {
    for (std::size_t d = 0; d < pools; ++d) {
      const PoolSpec& from = scenario_.pools[p];
      const PoolSpec& to = scenario_.pools[d];
      if (from.role == PoolRole::kPrefill && to.role == PoolRole::kDecode &&
          from.model_name == to.model_name) {
        kv_paths_[p * pools + d] = kv_paths(from, to);
      }
    }
  }
  pairing_ =
      make_router(scenario_.kv_transfer.pairing, "/kv_transfer/pairing/policy", decode_candidates_);
  need_transport(catalog);
  unpaired_.resize(trace_.models.size());
  handoff_of_request_.assign(trace_.requests.size(), HandoffState::kNone);
  result_.handoffs.resize(trace_.requests.size());
}

HandoffState* Fleet::handoff_of(std::uint32_t request) {
  const std::uint32_t h = handoff_of_request_[request];
  return h == HandoffState::kNone ? nullptr : &handoffs_[h];
}

std::uint32_t Fleet::open_handoff(std::uint32_t request) {
  std::uint32_t index = static_cast<std::uint32_t>(handoffs_.size());
  if (spare_handoffs_.empty()) {
    handoffs_.emplace_back();
  } else {
    index = spare_handoffs_.back();
    spare_handoffs_.pop_back();
  }
  HandoffState& h = handoffs_[index];
  h.request = request;
  h.prefill_unit = acting_;
  h.prompt = prompt_of(request);
  handoff_of_request_[request] = index;
  return index;
}

/// Takes blocks for the prompt at a decode replica. False when none has room now.
bool Fleet::pair(HandoffState& h) {
  const Request& r = trace_.requests[h.request];
  const std::int32_t produced =
      kept(h.request).tokens +
      (scenario_.kv_transfer.first_token == Handoff::kPrefillToken ? 1 : 0);
  with_room_.clear();
  for (const std::uint32_t d : decode_candidates_[r.model]) {
    const Replica& replica = *units_[d].replica;
    if (takes(d) && replica.import_room(h.request, produced) &&
        replica.judge(r.input_tokens, r.output_tokens) == Replica::Verdict::kAccepted) {
      with_room_.push_back(d);
    }
  }
  if (with_room_.empty()) return false;
  const std::uint32_t chosen = pairing_->route(public_view(h.request), with_room_, *this, rng_);
  MEDLEY_CHECK(chosen != Router::kHold, "the pairing policy held a prompt back");
  Unit& unit = units_[chosen];
  const auto import = unit.replica->reserve_import(h.request, produced);
  MEDLEY_CHECK(import.has_value(), "a decode replica has no room after all");
  h.decode_unit = chosen;
  h.import_slot = import->slot;
  h.cached = std::min(import->cached_tokens, h.prompt);
  h.sent = h.cached;
  unit.requests += 1.0;
  unit.tokens += expected_at_dispatch_[h.request];
  load_changed(chosen);
  HandoffRecord& record = result_.handoffs[h.request];
  record.paired = engine_.now();
  result_.requests[h.request].pool = unit.pool;
  result_.requests[h.request].replica = result_.replicas[chosen].replica;
  return true;
}

/// A decode replica of `pool` may have room again.
void Fleet::pair_waiting(std::uint16_t pool) {
  for (std::size_t m = 0; m < unpaired_.size(); ++m) {
    auto& queue = unpaired_[m];
    if (queue.empty() || trace_.models[m] != scenario_.pools[pool].model_name) continue;
    while (!queue.empty()) {
      HandoffState& h = handoffs_[queue.front()];
      if (!pair(h)) break;
      h.queued = false;
      queue.pop_front();
      send(h, h.prompt, 0.0, true);
    }
  }
}

void Fleet::pair_all_waiting() {
  retry_pairing_ = false;
  for (std::size_t p = 0; p < scenario_.pools.size(); ++p) {
    if (scenario_.pools[p].role == PoolRole::kDecode) pair_waiting(static_cast<std::uint16_t>(p));
  }
}

/// Sends the KV of what lies between the tokens sent and `upto`. `pace_s` > 0: a step of that
/// length computes it layer by layer; layer l of L is there after l/L of the step. As a fluid: it
/// starts after the first layer and runs at no more than the step's own pace until the step ends.
/// With a link faster than the pace the last byte arrives one layer's transfer after the step; with
/// a slower one the link alone decides. Both as a layer-by-layer pipeline would have it.
void Fleet::send(HandoffState& h, std::int64_t upto, double pace_s, bool last) {
  const std::int64_t from = std::max(h.sent, h.cached);
  const double tokens = static_cast<double>(std::max<std::int64_t>(0, upto - from));
  h.sent = std::max(h.sent, upto);
  const Unit& source = units_[h.prefill_unit];
  const Unit& sink = units_[h.decode_unit];
  const PoolSpec& pool = scenario_.pools[source.pool];
  HandoffRecord& record = result_.handoffs[h.request];
  const std::uint32_t index = handoff_of_request_[h.request];
  for (const KvPath& path : kv_paths_[source.pool * scenario_.pools.size() + sink.pool]) {
    const double bytes = tokens * path.bytes_per_token + (last ? path.bytes_per_sequence : 0.0);
    if (bytes <= 0.0) continue;
    TransportFlow flow;
    DevicePlace place = source.place;
    place.device += static_cast<std::uint32_t>(path.from);
    flow.from = transport_->vertex(place);
    place = sink.place;
    place.device += static_cast<std::uint32_t>(path.to);
    flow.to = transport_->vertex(place);
    flow.bytes = bytes;
    flow.hash = h.request;
    flow.tag = index;
    flow.kind = TrafficKind::kKvTransfer;
    if (pace_s > 0.0) {
      flow.delay_s = pace_s / pool.model.total_layers();
      flow.bound = bytes / pace_s;
    }
    record.bytes += bytes;
    ++h.flows_left;
    const TransferHandle id = transport_->start(flow);
    h.flows.push_back(id);
    if (pace_s > 0.0) h.paced.push_back(id);
  }
  if (h.prefilled && h.flows_left == 0) deliver(h);
}

/// The step that paced flows has ended: the link alone bounds them now.
void Fleet::release_pace(HandoffState& h) {
  for (const TransferHandle flow : h.paced) {
    transport_->set_bound(flow, std::numeric_limits<double>::infinity());
  }
  h.paced.clear();
}

void Fleet::on_chunk(std::uint32_t request, std::int64_t prior, std::int64_t tokens, SimTime start,
                     SimTime end) {
  const std::uint32_t index = handoff_of_request_[request] == HandoffState::kNone
                                  ? open_handoff(request)
                                  : handoff_of_request_[request];
  HandoffState& h = handoffs_[index];
  const auto overlap = scenario_.kv_transfer.overlap;
  release_pace(h);
  h.computed = prior;
  if (overlap == KvTransferSpec::Overlap::kNone) return;
  // Nobody overtakes prompts that wait for a decode replica.
  if (h.decode_unit == HandoffState::kNone &&
      (!unpaired_[trace_.requests[request].model].empty() || !pair(h))) {
    return;
  }
  if (prior > h.sent) send(h, prior, 0.0, false);
  if (overlap == KvTransferSpec::Overlap::kLayer) {
    const bool last = prior + tokens >= h.prompt;
    send(h, prior + tokens, (end - start).value(), last);
  }
}

void Fleet::on_prefilled(std::uint32_t request, std::uint32_t slot, SimTime now) {
  Unit& unit = units_[acting_];
  const Request& r = trace_.requests[request];
  unit.requests -= 1.0;
  unit.tokens -= prompt_of(request);
  unit.prompt_tokens -= prompt_of(request);
  if (unit.requests == 0.0) unit.tokens = unit.prompt_tokens = 0.0;
  load_changed(acting_);
  HandoffState& h = handoffs_[handoff_of_request_[request]];
  release_pace(h);
  h.export_slot = slot;
  h.prefilled = true;
  h.computed = h.prompt;
  HandoffRecord& record = result_.handoffs[request];
  record.prefilled = now;
  if (h.decode_unit == HandoffState::kNone) {
    auto& queue = unpaired_[r.model];
    if (!queue.empty() || !pair(h)) {
      h.queued = true;
      queue.push_back(handoff_of_request_[request]);
      return;
    }
  }
  if (h.sent < h.prompt) {
    send(h, h.prompt, 0.0, true);
  } else if (h.flows_left == 0) {
    deliver(h);
  }
}

void Fleet::on_handoff_arrived(std::uint64_t tag) {
  HandoffState& h = handoffs_[tag];
  if (--h.flows_left > 0) return;
  h.flows.clear();
  h.paced.clear();
  if (h.prefilled && h.sent >= h.prompt) deliver(h);
}

/// All KV of the prompt is at the decode replica.
void Fleet::deliver(HandoffState& h) {
  const SimTime now = engine_.now();
  HandoffRecord& record = result_.handoffs[h.request];
  record.arrived = now;
  record.prefill_energy_j = units_[h.prefill_unit].replica->release_export(h.export_slot);
  RequestRecord& request = result_.requests[h.request];
  request.energy_j += record.prefill_energy_j;
  mark(h.prefill_unit);
  // The router hands the request on when the prefill engine has answered: its front end counts too,
  // unless the client gets the first token from there.
  const bool answers = scenario_.kv_transfer.first_token == Handoff::kDecodeToken;
  const SimTime answered =
      answers ? SimTime::after(record.prefilled,
                               units_[h.prefill_unit].front_end(trace_.requests[h.request]))
              : now;
  if (answered > now) {
    const EventHandle event =
        engine_.schedule(answered, EventClass::kArrival, h.decode_unit, kJoin, h.import_slot);
    if (failures_) failures_->joins.push_back({h.decode_unit, h.import_slot, h.request, event});
  } else {
    const Replica::Streamed before = kept(h.request);
    join(h.decode_unit, h.import_slot,
         answers && before.tokens > 0 ? before.last : record.prefilled);
  }
  close_handoff(h);
}

void Fleet::join(std::uint32_t unit, std::uint32_t slot, SimTime last_token) {
  Unit& sink = units_[unit];
  if (failures_) last_token = joined(unit, slot, last_token);
  if (sink.replica->enqueue_import(slot, last_token, engine_.now())) {
    engine_.reschedule(sink.ends[0], sink.replica->end(0));
  }
  mark(unit);
}

void Fleet::close_handoff(HandoffState& h) {
  const std::uint32_t index = handoff_of_request_[h.request];
  handoff_of_request_[h.request] = HandoffState::kNone;
  std::vector<TransferHandle> flows = std::move(h.flows), paced = std::move(h.paced);
  flows.clear();
  paced.clear();
  h = HandoffState{};
  h.flows = std::move(flows);  // keep their capacity
  h.paced = std::move(paced);
  spare_handoffs_.push_back(index);
}

/// The prompt is lost before it was handed over (preempted, its replica failed), or needs no decode
/// replica.
void Fleet::drop_handoff(HandoffState& h) {
  if (h.queued) {
    auto& queue = unpaired_[trace_.requests[h.request].model];
    queue.erase(std::find(queue.begin(), queue.end(), handoff_of_request_[h.request]));
  }
  for (const TransferHandle flow : h.flows) transport_->cancel(flow);
  if (h.decode_unit != HandoffState::kNone) {
    Unit& unit = units_[h.decode_unit];
    unit.replica->cancel_import(h.import_slot);
    retry_pairing_ = true;
    unit.requests -= 1.0;
    unit.tokens -= expected_at_dispatch_[h.request];
    load_changed(h.decode_unit);
  }
  RequestRecord& record = result_.requests[h.request];
  record.pool = units_[h.prefill_unit].pool;
  record.replica = result_.replicas[h.prefill_unit].replica;
  close_handoff(h);
}

}  // namespace medley
