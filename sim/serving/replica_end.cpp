#include <algorithm>

#include "sim/core/error.h"
#include "sim/serving/replica.h"
#include "sim/serving/replica_detail.h"

namespace medley {

void Replica::finish_decodes(Lane& lane) {
  const std::int64_t steps = lane.run_steps;
  const double n = static_cast<double>(steps);
  const double pairs = n * (n - 1.0) / 2.0;  // sum of 0 .. steps - 1
  const double seconds = run_seconds(lane, steps);
  Advance a;
  a.steps = steps;
  a.clock = lane.batch.clock();
  a.trust = lane.batch.trust();
  a.extrapolated = lane.batch.extrapolated();
  a.link_bytes = lane.batch.link_bytes();
  double dynamic_j = 0.0, busy = 0.0, memory = 0.0;
  if (config_.fast_forward) {
    a.first = lane.line.first;
    a.slope = lane.line.slope;
    dynamic_j = n * a.first.dynamic_j + pairs * a.slope.dynamic_j;
    busy = n * a.first.busy_s + pairs * a.slope.busy_s;
    memory = n * a.first.memory_s + pairs * a.slope.memory_s;
  } else {
    a.points = lane.points.data();
    a.first = lane.points.front();
    for (std::int64_t i = 0; i < steps; ++i) {
      dynamic_j += a.points[i].dynamic_j;
      busy += a.points[i].busy_s;
      memory += a.points[i].memory_s;
    }
  }
  // Pipeline lanes wait for each other: the floor is paid for the wall time of the step.
  double wall = seconds;
  if (lanes_.size() > 1 || config_.shared) {
    wall = (lane.end - lane.start).value();
    a.first.step_s = wall;
    a.points = nullptr;
  }
  count_time(lane, seconds, busy, memory, n * lane.batch.link_s(), n * lane.batch.launch_s(), wall);

  // Attribution: decode attention by context at its growth per token, the rest per sequence.
  const double decodes = lane.decoding;
  const double next = static_cast<double>(lane.decode_steps + 1);
  const double per_context = lane.batch.kv_j_per_step() / decodes;
  const double contexts =
      n * (static_cast<double>(lane.context_base) + decodes * next) + decodes * pairs;
  const double floor_j = config_.floor_w * wall / static_cast<double>(lanes_.size());
  lane.share_j += (dynamic_j - per_context * contexts + floor_j) / decodes;
  lane.context_j += per_context * n;
  lane.moment_j += per_context * (n * next + pairs);
  emit(lane, a);

  const std::int64_t blocks = new_blocks(lane, steps);
  if (blocks > 0) pool_.take(blocks);
  if (lanes_.size() == 1) lane.clock.advance(Seconds(seconds));
  lane.decode_steps += steps;
  lane.batch_left -= steps;
  lane.batch_offset += steps;
  counters_.steps += steps;
  counters_.output_tokens += steps * lane.decoding;
}

void Replica::finish_mixed(Lane& lane, SimTime now) {
  const StepCost& cost = lane.cost;
  Advance a;
  a.first = {cost.step_s, cost.device_s, cost.dynamic_j, cost.kv_j,
             cost.flops,  cost.bytes,    cost.memory_s};
  if (lanes_.size() > 1 || config_.shared) a.first.step_s = (lane.end - lane.start).value();
  count_time(lane, cost.step_s, cost.device_s, cost.memory_s, cost.link_s, cost.launch_s,
             a.first.step_s);
  a.link_bytes = cost.link_bytes;
  a.trust = cost.trust;
  a.extrapolated = cost.extrapolated;
  a.clock = cost.clock;
  a.prompt_tokens = lane.chunk_tokens;

  const double floor_j = config_.floor_w * a.first.step_s / static_cast<double>(lanes_.size());
  const double tokens = lane.chunk_tokens + static_cast<double>(lane.decoding + lane.joining);
  const double per_token = (cost.dynamic_j - cost.kv_j - cost.prefill_j + floor_j) / tokens;
  double per_context = 0.0;
  if (lane.decoding + lane.joining > 0) {
    const double next = static_cast<double>(lane.decode_steps + 1);
    per_context = cost.kv_j / (static_cast<double>(lane.context_base + lane.joining_context) +
                               lane.decoding * next);
    lane.share_j += per_token;
    lane.context_j += per_context;
    lane.moment_j += per_context * next;
    lane.decode_steps += 1;
    counters_.output_tokens += lane.decoding;
  }
  emit(lane, a);
  if (lanes_.size() == 1) lane.clock.advance(Seconds(cost.step_s));
  ++counters_.steps;
  lane.batch_left = 0;

  const double per_pair = lane.chunk_pairs > 0.0 ? cost.prefill_j / lane.chunk_pairs : 0.0;
  finish_due(lane, now);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < lane.prefilling.size(); ++i) {
    const std::uint32_t slot = lane.prefilling[i];
    Sequence& s = sequences_[slot];
    if (s.chunk > 0) {
      s.energy_j +=
          per_token * s.chunk + (s.imported ? per_context * static_cast<double>(s.prompt)
                                            : per_pair * chunk_pairs(s.chunk, s.computed));
      s.computed += s.chunk;
      s.chunk = 0;
      if (write_through_) write_through(s, s.computed);
    }
    if (s.computed == s.prompt) {
      end_prefill(lane, slot, now);
    } else {
      lane.prefilling[kept++] = slot;
    }
  }
  lane.prefilling.resize(kept);
}

/// Times of one advance as if alone, and how long it really took.
void Replica::count_time(Lane& lane, double seconds, double busy, double memory, double link,
                         double launch, double wall) {
  lane.time[TimeShares::kCompute] += busy - memory - link - launch;
  lane.time[TimeShares::kMemory] += memory;
  lane.time[TimeShares::kLink] += link;
  lane.time[TimeShares::kHost] += seconds - busy + launch;
  lane.time[TimeShares::kContention] += wall - seconds - lane.pipeline_s;
  lane.time[TimeShares::kStall] += lane.pipeline_s;
}

void Replica::emit(Lane& lane, const Advance& advance) {
  Advance a = advance;
  a.start = lane.start;
  a.end = lane.end;
  a.sequences = lane.decoding + lane.joining + lane.chunks;
  a.token_gaps = lane.decoding;
  a.gap_s = a.first.step_s;
  if (lane.start != lane.last_end || lanes_.size() > 1 || config_.shared)
    a.gap_s = (lane.end - lane.last_end).value();
  advances_.on_advance(a);
}

void Replica::end_prefill(Lane& lane, std::uint32_t slot, SimTime now) {
  Sequence& s = sequences_[slot];
  const Request& r = trace_.requests[s.request];
  s.imported = false;
  if (config_.handoff == Handoff::kDecodeToken ||
      (config_.handoff == Handoff::kPrefillToken && r.output_tokens - s.produced > 1)) {
    remove_running(slot);
    exports_.push_back(slot);
    alight(s);
    listener_.on_time(s.request, s.time);
  }
  if (config_.handoff == Handoff::kDecodeToken) return listener_.on_prefilled(s.request, slot, now);
  ++counters_.output_tokens;
  if (s.produced == 0) {
    listener_.on_first_token(s.request, now);
  } else {
    advances_.on_long_gap((now - s.last_token).value());
    if (s.moved) listener_.on_resumed(s.request, now);
    s.moved = false;
  }
  s.produced += 1;
  s.last_token = now;
  if (s.produced >= r.output_tokens) {
    finish(slot, now);
  } else if (config_.handoff == Handoff::kPrefillToken) {
    listener_.on_prefilled(s.request, slot, now);
  } else {
    join_decode(lane, slot);
  }
}

void Replica::join_decode(Lane& lane, std::uint32_t slot) {
  Sequence& s = sequences_[slot];
  const Request& r = trace_.requests[s.request];
  const std::int64_t block = config_.policy.block_size;
  s.decoding = true;
  s.joined = lane.decode_steps;
  s.base = s.prompt - lane.decode_steps;
  s.finish = lane.decode_steps + (r.output_tokens - s.produced);
  s.share_mark = lane.share_j;
  s.context_mark = lane.context_j;
  s.moment_mark = lane.moment_j;
  lane.finishes.push_back({s.finish, slot});
  std::push_heap(lane.finishes.begin(), lane.finishes.end(), kLater);
  if (lane.decoding == 0 || s.base > lane.max_base) {
    lane.max_base = s.base;
    lane.max_stale = lane.max_stale && lane.decoding > 0;
  }
  lane.context_base += s.base;
  ++lane.residues[residue(s.base, block)];
  if (context_.window > 0) {
    s.window_at = context_.window - 1 - s.base;
    s.below_window = s.window_at > lane.decode_steps;
    if (s.below_window) {
      lane.window_base += s.base;
      ++lane.window_below;
      lane.windows.push_back({s.window_at, slot});
      std::push_heap(lane.windows.begin(), lane.windows.end(), kLater);
    }
  }
  ++lane.decoding;
  lane.batch_left = 0;
}

/// Takes a sequence out of the decode batch and gives its lease the blocks it has opened there.
void Replica::leave_decode(Lane& lane, Sequence& s) {
  const std::int64_t block = config_.policy.block_size;
  lane.context_base -= s.base;
  --lane.residues[residue(s.base, block)];
  if (s.below_window) {
    lane.window_base -= s.base;
    --lane.window_below;
    s.below_window = false;
  }
  lane.max_stale = lane.max_stale || s.base == lane.max_base;
  --lane.decoding;
  lane.batch_left = 0;
  s.lease.own_blocks += pool_.blocks_for(s.base + lane.decode_steps) - s.lease.blocks();
  s.decoding = false;
  s.finish = -1;
}

double Replica::decode_energy(const Lane& lane, const Sequence& s) const {
  return (lane.share_j - s.share_mark) +
         static_cast<double>(s.base) * (lane.context_j - s.context_mark) +
         (lane.moment_j - s.moment_mark);
}

void Replica::finish_due(Lane& lane, SimTime now) {
  while (!lane.finishes.empty()) {
    const Due due = lane.finishes.front();
    const Sequence& s = sequences_[due.slot];
    const bool live =
        s.decoding && s.finish == due.at && &lanes_[static_cast<std::size_t>(s.lane)] == &lane;
    if (live && due.at > lane.decode_steps) return;
    std::pop_heap(lane.finishes.begin(), lane.finishes.end(), kLater);
    lane.finishes.pop_back();
    if (!live) continue;
    MEDLEY_CHECK(due.at == lane.decode_steps, "a decode run went past a sequence's last token");
    finish(due.slot, now);
  }
}

void Replica::finish(std::uint32_t slot, SimTime now) {
  Sequence& s = sequences_[slot];
  Lane& lane = lanes_[static_cast<std::size_t>(s.lane)];
  const Request& r = trace_.requests[s.request];
  std::int64_t stored = s.prompt;
  if (s.decoding) {
    stored = s.base + lane.decode_steps;
    s.energy_j += decode_energy(lane, s);
    leave_decode(lane, s);
  }
  if (r.hash_count > prompt_ids(r)) pool_.publish(ids_of(r), r.hash_count, stored, s.lease);
  if (write_through_) write_through(s, stored);
  if (s.swapped) leave_tiers(s);
  pool_.release(s.lease, 0, 0);
  remove_running(slot);
  spare_.push_back(slot);
  attributed_j_ += s.energy_j;
  alight(s);
  listener_.on_time(s.request, s.time);
  listener_.on_finished(s.request, now, s.energy_j);
}

/// Starts the decode counter and the attribution sums afresh, so that their rounding stays bounded
/// however long a replica is busy.
void Replica::rebase(Lane& lane) {
  const std::int64_t shift = lane.decode_steps;
  const std::int64_t block = config_.policy.block_size;
  const auto lane_index = static_cast<std::int16_t>(&lane - lanes_.data());
  lane.finishes.clear();
  lane.windows.clear();
  std::fill(lane.residues.begin(), lane.residues.end(), 0);
  for (const std::uint32_t slot : running_) {
    Sequence& s = sequences_[slot];
    if (s.lane != lane_index) continue;
    s.time.add(lane.time);  // the sums start afresh below
    if (!s.decoding) continue;
    s.energy_j += decode_energy(lane, s);
    s.produced += static_cast<std::int32_t>(shift - s.joined);
    s.joined = 0;
    s.base += shift;
    s.finish -= shift;
    s.window_at -= shift;
    s.share_mark = s.context_mark = s.moment_mark = 0.0;
    ++lane.residues[residue(s.base, block)];
    lane.finishes.push_back({s.finish, slot});
    if (s.below_window) lane.windows.push_back({s.window_at, slot});
  }
  std::make_heap(lane.finishes.begin(), lane.finishes.end(), kLater);
  std::make_heap(lane.windows.begin(), lane.windows.end(), kLater);
  lane.context_base += lane.decoding * shift;
  lane.window_base += lane.window_below * shift;
  lane.max_base += shift;
  lane.share_j = lane.context_j = lane.moment_j = 0.0;
  lane.time = {};
  lane.decode_steps = 0;
}

}  // namespace medley
