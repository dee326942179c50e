#include <algorithm>
#include <cmath>

#include "sim/core/error.h"
#include "sim/serving/replica.h"
#include "sim/serving/replica_detail.h"

namespace medley {

namespace {
/// A decode batch keeps the clock of its first step at most this long.
constexpr std::int64_t kLongestRun = 512;
}  // namespace

Features Replica::features(Lane& lane) const {
  const double decodes = lane.decoding;
  const double tokens = decodes + lane.joining;
  const double next = static_cast<double>(lane.decode_steps + 1);
  Features x{};
  at(x, Feature::kOne) = 1.0;
  at(x, Feature::kTokens) = lane.chunk_tokens + tokens;
  at(x, Feature::kLogits) = lane.chunk_ends + tokens;
  at(x, Feature::kChunkTokens) = lane.chunk_tokens;
  at(x, Feature::kChunkPairs) = lane.chunk_pairs;
  at(x, Feature::kChunkContext) = lane.chunk_context;
  at(x, Feature::kChunkPairsWindow) = lane.chunk_pairs_window;
  at(x, Feature::kChunkContextWindow) = lane.chunk_context_window;
  at(x, Feature::kDecodes) = tokens;
  at(x, Feature::kDecodeContext) = static_cast<double>(lane.context_base) + decodes * next +
                                   static_cast<double>(lane.joining_context);
  at(x, Feature::kDecodeContextWindow) =
      context_.window == 0
          ? at(x, Feature::kDecodeContext)
          : static_cast<double>(lane.window_base) + lane.window_below * next +
                static_cast<double>(context_.window) * (lane.decoding - lane.window_below) +
                static_cast<double>(lane.joining_window);
  at(x, Feature::kExpertsHit) =
      context_.experts > 0
          ? experts_hit(at(x, Feature::kTokens), context_.experts, context_.experts_per_token)
          : 0.0;
  at(x, Feature::kSequences) = lane.chunks + tokens;
  at(x, Feature::kHasChunks) = lane.chunks > 0 ? 1.0 : 0.0;
  at(x, Feature::kHasDecodes) = tokens > 0.0 ? 1.0 : 0.0;
  return x;
}

std::int64_t Replica::max_context(Lane& lane) const {
  if (lane.decoding == 0) return lane.joining_longest;
  if (lane.max_stale) {
    const auto lane_index = static_cast<std::int16_t>(&lane - lanes_.data());
    lane.max_base = INT64_MIN;
    for (const std::uint32_t slot : running_) {
      const Sequence& s = sequences_[slot];
      if (s.decoding && s.lane == lane_index) lane.max_base = std::max(lane.max_base, s.base);
    }
    lane.max_stale = false;
  }
  return std::max(lane.max_base + lane.decode_steps + 1, lane.joining_longest);
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
    lane.batch_left = 0;
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

void Replica::ensure_batch(Lane& lane) {
  if (lane.batch_left > 0) return;
  lane.batch = model_.decode_batch(features(lane), static_cast<double>(max_context(lane)),
                                   lane.window_below);
  lane.batch_left = kLongestRun;
  lane.batch_offset = 0;
}

/// How many decode steps can be taken at once from here.
std::int64_t Replica::run_limit(const Lane& lane, std::int64_t most) const {
  most = std::min(most, lane.finishes.front().at - lane.decode_steps);
  // The front may be stale; a shorter run is still exact.
  if (!lane.windows.empty()) {
    most = std::min(most, std::max<std::int64_t>(1, lane.windows.front().at - lane.decode_steps));
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
  if (!config_.fast_forward) return lane.ends_s[static_cast<std::size_t>(steps - 1)];
  const double n = static_cast<double>(steps);
  return n * lane.line.first.step_s + lane.line.slope.step_s * (n * (n - 1.0) / 2.0);
}

/// The first step of the run under way that ends at or after `now`, counted from 1.
std::int64_t Replica::steps_until(const Lane& lane, SimTime now) const {
  if (lane.run_steps <= 1) return lane.run_steps;
  const double ahead = (now - lane.start).value();
  // A guess from the sum of step times, then corrected to the rounded ticks.
  double guess = 0.0;
  if (config_.fast_forward) {
    const double first = lane.line.first.step_s;
    const double slope = lane.line.slope.step_s;
    const double b = first - slope / 2.0;
    guess = slope > 0.0 ? (std::sqrt(b * b + 2.0 * slope * ahead) - b) / slope : ahead / first;
  } else {
    const auto end = lane.ends_s.begin() + lane.run_steps;
    guess = static_cast<double>(std::lower_bound(lane.ends_s.begin(), end, ahead) -
                                lane.ends_s.begin());
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
  ensure_batch(lane);
  std::int64_t most = lane.batch_left;
  if (config_.fast_forward) {
    lane.line = lane.batch.line(static_cast<double>(lane.batch_offset));
    most = std::min(most, lane.line.steps);
  }
  // A step that preempted admits nobody, the next one may; lanes of a pipeline see each other's
  // steps.
  lane.run_steps =
      preempted_now_ || lanes_.size() > 1 || config_.shared ? 1 : run_limit(lane, most);
  if (!config_.fast_forward) {
    lane.points.clear();
    lane.ends_s.clear();
    double end = 0.0;
    for (std::int64_t i = 0; i < lane.run_steps; ++i) {
      lane.points.push_back(lane.batch.at(static_cast<double>(lane.batch_offset + i)));
      end += lane.points.back().step_s;
      lane.ends_s.push_back(end);
    }
  }
  lane.alone_s = run_seconds(lane, lane.run_steps);
  lane.end = lane.clock.time(Seconds(lane.alone_s));
  if (lanes_.size() > 1) enter_pipeline(lane, lane.batch.stage_s());
}

void Replica::start_mixed(Lane& lane) {
  pass_windows(lane);
  lane.run_steps = 0;
  lane.cost = model_.step(features(lane), static_cast<double>(max_context(lane)));
  lane.alone_s = lane.cost.step_s;
  lane.end = lane.clock.time(Seconds(lane.cost.step_s));
  if (lanes_.size() > 1) enter_pipeline(lane, lane.cost.stage_s);
}

/// The step takes its place behind the one before: see the class comment.
void Replica::enter_pipeline(Lane& lane, double slowest_stage_s) {
  const Seconds stage(slowest_stage_s);
  const SimTime alone = lane.end;
  lane.end = std::max(lane.end, SimTime::after(pipeline_end_, stage));
  lane.pipeline_s = (lane.end - alone).value();
  stage_free_ = SimTime::after(lane.start, stage);
  pipeline_end_ = lane.end;
}

// ---- steps that others slow down ----------------------------------------------------------------

StepUse Replica::use(int lane_index) {
  Lane& lane = lanes_[static_cast<std::size_t>(lane_index)];
  if (lane.run_steps == 0) {
    return model_.use(features(lane), static_cast<double>(max_context(lane)), lane.cost);
  }
  StepCost cost;
  const DecodePoint p = lane.batch.at(static_cast<double>(lane.batch_offset));
  cost.step_s = p.step_s;
  cost.device_s = p.busy_s;
  cost.host_floor_s = lane.batch.host_floor_s();
  cost.clock = lane.batch.clock();
  return model_.use(features(lane), static_cast<double>(max_context(lane)), cost);
}

Seconds Replica::pipeline_wait(int lane_index) const {
  const Lane& lane = lanes_[static_cast<std::size_t>(lane_index)];
  if (lanes_.size() == 1) return Seconds(0.0);
  return Seconds(std::max(0.0, (lane.end - lane.start).value() - lane.alone_s));
}

void Replica::set_end(int lane_index, SimTime end) {
  Lane& lane = lanes_[static_cast<std::size_t>(lane_index)];
  lane.end = end;
  if (lanes_.size() > 1 && end > pipeline_end_) pipeline_end_ = end;
}

}  // namespace medley
