#include <algorithm>

#include "sim/core/error.h"
#include "sim/serving/replica.h"

namespace medley {

/// Blocks that runs under way have yet to open.
std::int64_t Replica::blocks_under_way() const {
  std::int64_t count = 0;
  for (const Lane& lane : lanes_) {
    if (lane.busy && lane.run_steps > 0) count += new_blocks(lane, lane.run_steps);
  }
  return count;
}

/// Ends the run under way with the step at hand. True when that is earlier than planned.
bool Replica::cut_run(Lane& lane, SimTime now) {
  if (!lane.busy || lane.run_steps <= 1) return false;
  const std::int64_t steps = steps_until(lane, now);
  if (steps >= lane.run_steps) return false;
  lane.run_steps = steps;
  lane.end = lane.clock.time(Seconds(run_seconds(lane, steps)));
  return true;
}

bool Replica::import_fits(std::uint32_t request, std::int32_t produced, KvPool::Hit& hit) const {
  const Request& r = trace_.requests[request];
  const std::int64_t prompt = r.input_tokens + produced;
  const std::int64_t named = std::min<std::int64_t>(
      r.input_tokens, std::int64_t{prompt_ids(r)} * trace_.hash_block_tokens);
  hit = pool_.lookup(ids_of(r), prompt_ids(r), named, prompt, 0);
  const std::int64_t wanted = pool_.blocks_for(prompt) - hit.blocks + hit.evictable;
  if (pool_.used() == 0) return wanted <= pool_.free();  // an empty replica takes what fits at all
  return wanted <= pool_.free() - blocks_under_way() - running();
}

std::optional<Replica::Import> Replica::reserve_import(std::uint32_t request,
                                                       std::int32_t produced) {
  const Request& r = trace_.requests[request];
  const std::int64_t prompt = r.input_tokens + produced;
  KvPool::Hit hit;
  if (!import_fits(request, produced, hit)) return std::nullopt;
  Import import;
  import.slot = new_slot();
  import.cached_tokens = hit.blocks * pool_.block_tokens();
  Sequence& s = sequences_[import.slot];
  s.request = request;
  s.priority = r.priority;
  s.prompt = static_cast<std::int32_t>(prompt);
  s.produced = produced;
  pool_.acquire(hit, ids_of(r), 0, s.lease);
  pool_.extend(ids_of(r), prompt_ids(r), r.input_tokens, prompt, s.lease);
  return import;
}

void Replica::cancel_import(std::uint32_t slot) {
  pool_.release(sequences_[slot].lease, 0, 0);
  spare_.push_back(slot);
}

bool Replica::enqueue_import(std::uint32_t slot, SimTime last_token, SimTime now) {
  sequences_[slot].last_token = last_token;
  imports_.push_back(slot);
  if (lanes_.size() > 1 || running() >= config_.policy.max_num_seqs) return false;
  return cut_run(lanes_.front(), now);
}

void Replica::admit_imports(Lane& lane, int lane_index, SimTime now, std::int64_t& budget) {
  while (!imports_.empty() && budget > 0 && running() < config_.policy.max_num_seqs) {
    const std::uint32_t slot = imports_.front();
    imports_.pop_front();
    Sequence& s = sequences_[slot];
    s.lane = static_cast<std::int16_t>(lane_index);
    s.imported = true;
    s.computed = s.prompt - 1;
    s.chunk = 1;
    lane.prefilling.push_back(slot);
    running_.push_back(slot);
    board(s, now);
    lane.joining += 1;
    lane.joining_context += s.prompt;
    lane.joining_window +=
        context_.window > 0 ? std::min<std::int64_t>(s.prompt, context_.window) : s.prompt;
    lane.joining_longest = std::max<std::int64_t>(lane.joining_longest, s.prompt);
    --budget;
    listener_.on_scheduled(s.request, now, 0);
  }
}

void Replica::announce_chunks(const Lane& lane) {
  for (const std::uint32_t slot : lane.prefilling) {
    const Sequence& s = sequences_[slot];
    if (s.chunk > 0) listener_.on_chunk(s.request, s.computed, s.chunk, lane.start, lane.end);
  }
}

double Replica::release_export(std::uint32_t slot) {
  Sequence& s = sequences_[slot];
  const auto it = std::find(exports_.begin(), exports_.end(), slot);
  MEDLEY_CHECK(it != exports_.end(), "released a prompt that was not handed off");
  exports_.erase(it);
  pool_.release(s.lease, 0, 0);
  spare_.push_back(slot);
  attributed_j_ += s.energy_j;
  return s.energy_j;
}

}  // namespace medley
