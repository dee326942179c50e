#include <algorithm>

#include "sim/core/error.h"
#include "sim/serving/replica.h"

namespace medley {

void Replica::fail(SimTime now, std::vector<Evicted>& out) {
  for (Lane& lane : lanes_) {
    if (lane.busy) stop_lane(lane, now);
  }
  const std::size_t before = out.size();
  evict(out);
  for (std::size_t i = before; i < out.size(); ++i) attributed_j_ += out[i].energy_j;
  clear();
}

/// Whole steps that have ended are taken; the rest of the step under way is lost.
void Replica::stop_lane(Lane& lane, SimTime now) {
  lane.busy = false;
  if (lane.run_steps == 0) {
    lose_mixed_step(lane, now);
    return;
  }
  SimTime from = lane.start;
  if (lanes_.size() == 1 && !config_.shared) {
    std::int64_t done = steps_until(lane, now);
    const auto tick = [&](std::int64_t n) {
      return lane.clock.time(Seconds(run_seconds(lane, n)));
    };
    if (tick(done) > now) --done;
    MEDLEY_CHECK(done < lane.run_steps, "a run that has ended was not completed before a failure");
    if (done > 0) {
      lane.run_steps = done;
      lane.end = from = tick(done);
      finish_decodes(lane);
      lane.last_end = from;
    }
  }
  lose_decode_step(lane, from, now);
}

/// The share of a step's dynamic energy that `from` to `now` is; its floor is paid by the time.
static double share_of_step(SimTime from, SimTime now, double step_s) {
  return step_s > 0.0 ? std::min(1.0, (now - from).value() / step_s) : 0.0;
}

void Replica::emit_lost(const Lane& lane, Advance& a, SimTime from, SimTime now) {
  a.first.step_s = (now - from).value();
  a.start = from;
  a.end = now;
  a.sequences = lane.decoding + lane.joining + lane.chunks;
  advances_.on_advance(a);
}

void Replica::lose_decode_step(Lane& lane, SimTime from, SimTime now) {
  if (now <= from) return;
  ensure_batch(lane);
  const DecodePoint p = lane.batch.at(static_cast<double>(lane.batch_offset));
  const double share = share_of_step(from, now, p.step_s);
  Advance a;
  a.first = {
      0.0, share * p.busy_s, share * p.dynamic_j, share * p.kv_j, share * p.flops, share * p.bytes};
  a.clock = lane.batch.clock();
  a.trust = lane.batch.trust();
  a.extrapolated = lane.batch.extrapolated();
  a.link_bytes = share * lane.batch.link_bytes();
  const double decodes = lane.decoding;
  const double next = static_cast<double>(lane.decode_steps + 1);
  const double per_context = share * lane.batch.kv_j_per_step() / decodes;
  const double contexts = static_cast<double>(lane.context_base) + decodes * next;
  const double floor_j =
      config_.floor_w * (now - from).value() / static_cast<double>(lanes_.size());
  lane.share_j += (a.first.dynamic_j - per_context * contexts + floor_j) / decodes;
  lane.context_j += per_context;
  lane.moment_j += per_context * next;
  emit_lost(lane, a, from, now);
}

void Replica::lose_mixed_step(Lane& lane, SimTime now) {
  if (now <= lane.start) return;
  const StepCost& cost = lane.cost;
  const double share = share_of_step(lane.start, now, cost.step_s);
  Advance a;
  a.first = {0.0,
             share * cost.device_s,
             share * cost.dynamic_j,
             share * cost.kv_j,
             share * cost.flops,
             share * cost.bytes};
  a.clock = cost.clock;
  a.trust = cost.trust;
  a.extrapolated = cost.extrapolated;
  a.link_bytes = share * cost.link_bytes;
  const double floor_j =
      config_.floor_w * (now - lane.start).value() / static_cast<double>(lanes_.size());
  const double tokens = lane.chunk_tokens + static_cast<double>(lane.decoding + lane.joining);
  const double per_token =
      (share * (cost.dynamic_j - cost.kv_j - cost.prefill_j) + floor_j) / tokens;
  double per_context = 0.0;
  if (lane.decoding + lane.joining > 0) {
    const double next = static_cast<double>(lane.decode_steps + 1);
    per_context =
        share * cost.kv_j /
        (static_cast<double>(lane.context_base + lane.joining_context) + lane.decoding * next);
    lane.share_j += per_token;
    lane.context_j += per_context;
    lane.moment_j += per_context * next;
  }
  const double per_pair = lane.chunk_pairs > 0.0 ? share * cost.prefill_j / lane.chunk_pairs : 0.0;
  for (const std::uint32_t slot : lane.prefilling) {
    Sequence& s = sequences_[slot];
    if (s.chunk == 0) continue;
    s.energy_j += per_token * s.chunk + (s.imported ? per_context * static_cast<double>(s.prompt)
                                                    : per_pair * chunk_pairs(s.chunk, s.computed));
  }
  emit_lost(lane, a, lane.start, now);
}

void Replica::evict(std::vector<Evicted>& out) const {
  for (const std::uint32_t slot : running_) {
    const Sequence& s = sequences_[slot];
    const Lane& lane = lanes_[static_cast<std::size_t>(s.lane)];
    Evicted e{s.request, {s.produced, s.last_token}, s.energy_j};
    if (s.decoding) {
      e.streamed.tokens += static_cast<std::int32_t>(lane.decode_steps - s.joined);
      e.streamed.last = lane.last_end;
      e.energy_j += decode_energy(lane, s);
    }
    out.push_back(e);
  }
  for (const Waiting& w : waiting_) {
    Evicted e{w.request, {}, 0.0};
    if (w.slot != kNone) {
      e.streamed = {sequences_[w.slot].produced, sequences_[w.slot].last_token};
      e.energy_j = sequences_[w.slot].energy_j;
    }
    out.push_back(e);
  }
  const auto all_of = [&](const auto& slots) {
    for (const std::uint32_t slot : slots) {
      const Sequence& s = sequences_[slot];
      out.push_back({s.request, {s.produced, s.last_token}, s.energy_j});
    }
  };
  all_of(fetching_);
  all_of(fetched_);
  all_of(exports_);
  all_of(imports_);
}

void Replica::clear() {
  peak_before_ = peak_blocks();
  pool_ = KvPool(config_.blocks, config_.policy.block_size, trace_.hash_block_tokens,
                 config_.policy.prefix_caching);
  pool_.set_backing(backing_);
  for (const Sequence& s : sequences_) {
    if (s.swapped) leave_tiers(s);
  }
  for (Lane& lane : lanes_) {
    lane = Lane{};
    lane.residues.assign(static_cast<std::size_t>(config_.policy.block_size), 0);
  }
  sequences_.clear();
  spare_.clear();
  running_.clear();
  waiting_.clear();
  imports_.clear();
  exports_.clear();
  fetching_.clear();
  fetched_.clear();
  leaving_.clear();
  preempted_now_ = false;
  stage_free_ = pipeline_end_ = SimTime();
}

}  // namespace medley
