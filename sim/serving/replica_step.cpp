#include <algorithm>
#include <cmath>

#include "sim/core/error.h"
#include "sim/serving/replica.h"

namespace medley {

namespace {
/// A decode run keeps the clock of its first step at most this long.
constexpr std::int64_t kLongestLine = 512;

std::size_t residue(std::int64_t value, std::int64_t modulus) {
  const std::int64_t r = value % modulus;
  return static_cast<std::size_t>(r < 0 ? r + modulus : r);
}
constexpr auto kLater = [](const auto& a, const auto& b) { return a > b; };
}  // namespace

Features Replica::features(Lane& lane) const {
  const double decodes = lane.decoding;
  const double next = static_cast<double>(lane.decode_steps + 1);
  Features x{};
  at(x, Feature::kOne) = 1.0;
  at(x, Feature::kTokens) = lane.chunk_tokens + decodes;
  at(x, Feature::kLogits) = lane.chunk_ends + decodes;
  at(x, Feature::kChunkTokens) = lane.chunk_tokens;
  at(x, Feature::kChunkPairs) = lane.chunk_pairs;
  at(x, Feature::kChunkContext) = lane.chunk_context;
  at(x, Feature::kChunkPairsWindow) = lane.chunk_pairs_window;
  at(x, Feature::kChunkContextWindow) = lane.chunk_context_window;
  at(x, Feature::kDecodes) = decodes;
  at(x, Feature::kDecodeContext) = static_cast<double>(lane.context_base) + decodes * next;
  at(x, Feature::kDecodeContextWindow) =
      context_.window == 0
          ? at(x, Feature::kDecodeContext)
          : static_cast<double>(lane.window_base) + lane.window_below * next +
                static_cast<double>(context_.window) * (lane.decoding - lane.window_below);
  at(x, Feature::kExpertsHit) =
      context_.experts > 0
          ? experts_hit(at(x, Feature::kTokens), context_.experts, context_.experts_per_token)
          : 0.0;
  at(x, Feature::kSequences) = lane.chunks + decodes;
  at(x, Feature::kHasChunks) = lane.chunks > 0 ? 1.0 : 0.0;
  at(x, Feature::kHasDecodes) = lane.decoding > 0 ? 1.0 : 0.0;
  return x;
}

std::int64_t Replica::max_context(Lane& lane) const {
  if (lane.decoding == 0) return 0;
  if (lane.max_stale) {
    const auto lane_index = static_cast<std::int16_t>(&lane - lanes_.data());
    lane.max_base = INT64_MIN;
    for (const std::uint32_t slot : running_) {
      const Sequence& s = sequences_[slot];
      if (s.decoding && s.lane == lane_index) lane.max_base = std::max(lane.max_base, s.base);
    }
    lane.max_stale = false;
  }
  return lane.max_base + lane.decode_steps + 1;
}

/// Sequences whose window has filled stop growing their windowed context.
void Replica::pass_windows(Lane& lane) {
  while (!lane.windows.empty() && lane.windows.front().at <= lane.decode_steps) {
    const Due due = lane.windows.front();
    std::pop_heap(lane.windows.begin(), lane.windows.end(), kLater);
    lane.windows.pop_back();
    Sequence& s = sequences_[due.slot];
    if (!s.below_window || s.window_at != due.at) continue;
    s.below_window = false;
    lane.window_base -= s.base;
    --lane.window_below;
    lane.line_left = 0;
  }
}

/// Blocks that the coming `steps` decode steps need: a sequence opens a block when the tokens it
/// has stored fill its blocks exactly.
std::int64_t Replica::new_blocks(const Lane& lane, std::int64_t steps) const {
  if (lane.decoding == 0) return 0;
  const std::int64_t block = config_.policy.block_size;
  std::int64_t count = steps / block * lane.decoding;
  for (std::int64_t i = 0; i < steps % block; ++i) {
    count += lane.residues[residue(-(lane.decode_steps + i), block)];
  }
  return count;
}

void Replica::ensure_line(Lane& lane) {
  if (lane.line_left > 0) return;
  lane.line =
      model_.decode_line(features(lane), static_cast<double>(max_context(lane)), lane.window_below);
  lane.line_left = std::min(lane.line.steps, kLongestLine);
  lane.line_offset = 0;
}

/// How many decode steps can be taken at once from here.
std::int64_t Replica::run_limit(Lane& lane) const {
  std::int64_t most = std::min(lane.line_left, lane.finishes.front().at - lane.decode_steps);
  for (const Due& due : lane.windows) {
    // The heap's front may be stale; a shorter run is still exact.
    most = std::min(most, std::max<std::int64_t>(1, due.at - lane.decode_steps));
    break;
  }
  const std::int64_t block = config_.policy.block_size;
  if ((most / block + 1) * lane.decoding <= pool_.free()) return most;
  std::int64_t low = 1, high = most;  // one step was planned for
  while (low < high) {
    const std::int64_t middle = (low + high + 1) / 2;
    if (new_blocks(lane, middle) <= pool_.free()) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

double Replica::run_seconds(const Lane& lane, std::int64_t steps) const {
  const double n = static_cast<double>(steps);
  const double first =
      lane.line.step_s + lane.line.step_slope * static_cast<double>(lane.line_offset);
  if (!config_.fast_forward || lanes_.size() > 1) return lane.cost.step_s;
  return n * first + lane.line.step_slope * (n * (n - 1.0) / 2.0);
}

/// The first step of the run under way that ends at or after `now`, counted from 1.
std::int64_t Replica::steps_until(const Lane& lane, SimTime now) const {
  if (lane.run_steps <= 1) return lane.run_steps;
  const double first = run_seconds(lane, 1);
  const double slope = lane.line.step_slope;
  const double ahead = (now - lane.start).value();
  // n first + slope n (n - 1) / 2 = ahead, then corrected to the rounded ticks.
  double guess = ahead / first;
  if (slope > 0.0) {
    const double b = first - slope / 2.0;
    guess = (std::sqrt(b * b + 2.0 * slope * ahead) - b) / slope;
  }
  std::int64_t steps =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(guess), 1, lane.run_steps);
  const auto tick = [&](std::int64_t n) { return lane.clock.time(Seconds(run_seconds(lane, n))); };
  while (steps < lane.run_steps && tick(steps) < now) ++steps;
  while (steps > 1 && tick(steps - 1) >= now) --steps;
  return steps;
}

// ---- starting ----------------------------------------------------------------------------------

void Replica::start_decodes(Lane& lane) {
  pass_windows(lane);
  ensure_line(lane);
  if (config_.fast_forward) {
    // A step that preempted admits nobody; the next one may.
    lane.run_steps = preempted_now_ ? 1 : run_limit(lane);
  } else {
    lane.run_steps = 1;
    lane.cost = model_.step_at_clock(features(lane), static_cast<double>(max_context(lane)),
                                     lane.line.clock);
  }
  if (lanes_.size() > 1) {
    const SimTime earliest = SimTime::after(pipeline_end_, Seconds(lane.cost.stage_s));
    lane.end = std::max(SimTime::after(lane.start, Seconds(lane.cost.step_s)), earliest);
    stage_free_ = SimTime::after(lane.start, Seconds(lane.cost.stage_s));
    pipeline_end_ = lane.end;
    return;
  }
  lane.end = lane.clock.time(Seconds(run_seconds(lane, lane.run_steps)));
}

void Replica::start_mixed(Lane& lane) {
  pass_windows(lane);
  lane.run_steps = 0;
  lane.cost = model_.step(features(lane), static_cast<double>(max_context(lane)));
  lane.end = lane.clock.time(Seconds(lane.cost.step_s));
  if (lanes_.size() > 1) {
    lane.end = std::max(lane.end, SimTime::after(pipeline_end_, Seconds(lane.cost.stage_s)));
    stage_free_ = SimTime::after(lane.start, Seconds(lane.cost.stage_s));
    pipeline_end_ = lane.end;
  }
}

// ---- ending ------------------------------------------------------------------------------------

void Replica::finish_decodes(Lane& lane) {
  const std::int64_t steps = lane.run_steps;
  const double n = static_cast<double>(steps);
  const double pairs = n * (n - 1.0) / 2.0;  // sum of 0 .. steps - 1
  const double offset = static_cast<double>(lane.line_offset);
  const DecodeLine& line = lane.line;
  Advance a;
  double kv_first = line.kv_j + line.kv_slope * offset;
  if (config_.fast_forward) {
    a.first_s = line.step_s + line.step_slope * offset;
    a.slope_s = line.step_slope;
    a.busy_s = n * (line.busy_s + line.busy_slope * offset) + line.busy_slope * pairs;
    a.dynamic_j = line.dynamic_j + line.dynamic_slope * offset;
    a.dynamic_slope = line.dynamic_slope;
    a.flops = n * (line.flops + line.flops_slope * offset) + line.flops_slope * pairs;
    a.bytes = n * (line.bytes + line.bytes_slope * offset) + line.bytes_slope * pairs;
    a.link_bytes = n * line.link_bytes;
    a.trust = line.trust;
  } else {
    a.first_s = lane.cost.step_s;
    a.busy_s = lane.cost.device_s;
    a.dynamic_j = lane.cost.dynamic_j;
    a.flops = lane.cost.flops;
    a.bytes = lane.cost.bytes;
    a.link_bytes = lane.cost.link_bytes;
    a.trust = lane.cost.trust;
    kv_first = lane.cost.kv_j;
  }
  a.clock = line.clock;
  a.steps = steps;

  // Attribution: decode attention by context (slope per context token), the rest per token.
  const double decodes = lane.decoding;
  const double per_context = line.kv_slope / decodes;
  const double context =
      static_cast<double>(lane.context_base) + decodes * static_cast<double>(lane.decode_steps + 1);
  const double seconds = run_seconds(lane, steps);
  const double kv_equal = n * (kv_first - per_context * context);
  const double slope_other = a.dynamic_slope - (config_.fast_forward ? line.kv_slope : 0.0);
  const double other = n * (a.dynamic_j - kv_first) + slope_other * pairs;
  // Pipeline lanes wait for each other: the floor is paid for the wall time of the step.
  const double wall = lanes_.size() > 1 ? (lane.end - lane.start).value() : seconds;
  const double floor_j = config_.floor_w * wall / static_cast<double>(lanes_.size());
  lane.share_j += (other + kv_equal + floor_j) / decodes;
  lane.context_j += per_context * n;
  lane.moment_j += per_context * (n * static_cast<double>(lane.decode_steps + 1) + pairs);
  emit(lane, a);

  const std::int64_t blocks = new_blocks(lane, steps);
  if (blocks > 0) pool_.take(blocks);
  if (lanes_.size() == 1) lane.clock.advance(Seconds(seconds));
  lane.decode_steps += steps;
  lane.line_left -= steps;
  lane.line_offset += steps;
  counters_.steps += steps;
  counters_.output_tokens += steps * lane.decoding;
}

void Replica::finish_mixed(Lane& lane, int lane_index, SimTime now) {
  const StepCost& cost = lane.cost;
  Advance a;
  a.first_s = cost.step_s;
  a.busy_s = cost.device_s;
  a.dynamic_j = cost.dynamic_j;
  a.flops = cost.flops;
  a.bytes = cost.bytes;
  a.link_bytes = cost.link_bytes;
  a.trust = cost.trust;
  a.clock = cost.clock;
  a.prompt_tokens = lane.chunk_tokens;

  const double wall = lanes_.size() > 1 ? (lane.end - lane.start).value() : cost.step_s;
  const double floor_j = config_.floor_w * wall / static_cast<double>(lanes_.size());
  const double tokens = lane.chunk_tokens + static_cast<double>(lane.decoding);
  const double per_token = (cost.dynamic_j - cost.kv_j - cost.prefill_j + floor_j) / tokens;
  if (lane.decoding > 0) {
    const double next = static_cast<double>(lane.decode_steps + 1);
    const double per_context =
        cost.kv_j / (static_cast<double>(lane.context_base) + lane.decoding * next);
    lane.share_j += per_token;
    lane.context_j += per_context;
    lane.moment_j += per_context * next;
    lane.decode_steps += 1;
    counters_.output_tokens += lane.decoding;
  }
  emit(lane, a);
  if (lanes_.size() == 1) lane.clock.advance(Seconds(cost.step_s));
  ++counters_.steps;
  lane.line_left = 0;

  const double per_pair = lane.chunk_pairs > 0.0 ? cost.prefill_j / lane.chunk_pairs : 0.0;
  finish_due(lane, now);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < lane.prefilling.size(); ++i) {
    const std::uint32_t slot = lane.prefilling[i];
    Sequence& s = sequences_[slot];
    if (s.chunk > 0) {
      s.energy_j += per_token * s.chunk + per_pair * chunk_pairs(s.chunk, s.computed);
      s.computed += s.chunk;
      s.chunk = 0;
    }
    if (s.computed == s.prompt) {
      end_prefill(lane, slot, now);
    } else {
      lane.prefilling[kept++] = slot;
    }
  }
  lane.prefilling.resize(kept);
  (void)lane_index;
}

void Replica::emit(Lane& lane, const Advance& advance) {
  Advance a = advance;
  a.start = lane.start;
  a.end = lane.end;
  a.sequences = lane.decoding + lane.chunks;
  a.token_gaps = lane.decoding;
  a.gap_s = a.first_s;
  if (lane.start != lane.last_end || lanes_.size() > 1)
    a.gap_s = (lane.end - lane.last_end).value();
  advances_.on_advance(a);
}

void Replica::end_prefill(Lane& lane, std::uint32_t slot, SimTime now) {
  Sequence& s = sequences_[slot];
  const Request& r = trace_.requests[s.request];
  ++counters_.output_tokens;
  if (s.produced == 0) {
    listener_.on_first_token(s.request, now);
  } else {
    advances_.on_long_gap((now - s.last_token).value());
  }
  s.produced += 1;
  s.last_token = now;
  if (s.produced >= r.output_tokens) {
    finish(slot, now);
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
  lane.line_left = 0;
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
  lane.line_left = 0;
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
  pool_.release(s.lease, 0, 0);
  remove_running(slot);
  spare_.push_back(slot);
  attributed_j_ += s.energy_j;
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
    if (!s.decoding || s.lane != lane_index) continue;
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
  lane.decode_steps = 0;
}

}  // namespace medley
