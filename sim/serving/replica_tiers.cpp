#include <algorithm>

#include "sim/core/error.h"
#include "sim/serving/replica.h"

namespace medley {

void Replica::set_backing(KvBacking* backing, bool write_through) {
  backing_ = backing;
  write_through_ = write_through;
  pool_.set_backing(backing);
}

/// What the tiers have of a prompt beyond `hit`, in `parts_`: it must go on without a gap.
void Replica::find_parts(const Waiting& w, const KvPool::Hit& hit, std::int64_t prompt) {
  parts_.clear();
  const Request& r = trace_.requests[w.request];
  const std::int64_t most = (prompt - 1) / pool_.block_tokens();
  const std::int64_t named =
      std::min(most, std::min<std::int64_t>(
                         r.input_tokens, std::int64_t{prompt_ids(r)} * trace_.hash_block_tokens) /
                         pool_.block_tokens());
  std::int64_t at = std::min(hit.blocks, named);
  while (at < named) {
    const std::int64_t k = at / pool_.entry_blocks();
    const std::int64_t first = at - k * pool_.entry_blocks();
    const std::uint64_t id = ids_of(r)[k];
    const std::int64_t upto =
        std::min({backing_->find(id), pool_.entry_blocks(), named - k * pool_.entry_blocks()});
    if (upto <= first) return;
    parts_.push_back({id, first, upto - first});
    at += upto - first;
    if (upto < pool_.entry_blocks()) break;
  }
  if (at < named || w.slot == kNone || !sequences_[w.slot].swapped) return;
  // Its own blocks of an earlier life go on where the named ones end.
  const std::int64_t first = std::max<std::int64_t>(0, hit.blocks - named);
  const std::int64_t upto = std::min(backing_->find(resume_key(w.request)), most - named);
  if (upto > first) parts_.push_back({resume_key(w.request), first, upto - first});
}

/// Time of prefilling `tokens` after `prior` ones, in steps of the token budget, alone.
double Replica::recompute_seconds(std::int64_t tokens, std::int64_t prior) const {
  double seconds = 0.0;
  while (tokens > 0) {
    const std::int64_t chunk =
        config_.policy.scheduler == SchedulerKind::kChunked
            ? std::min<std::int64_t>(tokens, config_.policy.max_num_batched_tokens)
            : tokens;
    FeatureBuilder features(context_);
    features.add_chunk({chunk, prior, false});
    seconds += model_.step(features.features(), 0.0).step_s;
    tokens -= chunk;
    prior += chunk;
  }
  return seconds;
}

/// The head of the waiting queue fits. True: its KV is on its way from a tier, and it has left the
/// queue with blocks for its whole prompt.
bool Replica::start_fetch(const Waiting& w, const KvPool::Hit& hit, std::int64_t prompt) {
  find_parts(w, hit, prompt);
  if (parts_.empty()) return false;
  std::int64_t blocks = 0;
  for (const KvBacking::Part& part : parts_) blocks += part.blocks;
  const std::int64_t cached = hit.blocks * pool_.block_tokens();
  const std::int64_t tokens = blocks * pool_.block_tokens();
  if (backing_->compares() && !backing_->worth(parts_, recompute_seconds(tokens, cached))) {
    return false;
  }
  waiting_.pop_front();
  const Request& r = trace_.requests[w.request];
  const std::uint32_t slot = w.slot != kNone ? w.slot : new_slot();
  Sequence& s = sequences_[slot];
  s.request = w.request;
  s.again = s.again || w.slot != kNone;
  s.priority = r.priority;
  s.prompt = static_cast<std::int32_t>(prompt);
  s.computed = static_cast<std::int32_t>(cached + tokens);
  backing_->fetch(slot, w.request, s.again, parts_);  // first: it holds what is to be read
  pool_.acquire(hit, ids_of(r), resume_key(w.request), s.lease);
  pool_.extend(ids_of(r), 0, 0, prompt, s.lease);  // named when they are here
  fetching_.push_back(slot);
  counters_.recalled_tokens += tokens;
  return true;
}

bool Replica::fetched(std::uint32_t slot, SimTime now) {
  const auto it = std::find(fetching_.begin(), fetching_.end(), slot);
  MEDLEY_CHECK(it != fetching_.end(), "fetched a sequence that did not ask for it");
  fetching_.erase(it);
  Sequence& s = sequences_[slot];
  const Request& r = trace_.requests[s.request];
  pool_.extend(ids_of(r), prompt_ids(r), r.input_tokens, s.computed, s.lease);
  fetched_.push_back(slot);
  if (lanes_.size() > 1 || running() >= config_.policy.max_num_seqs) return false;
  if (config_.policy.scheduler == SchedulerKind::kStatic && !running_.empty()) return false;
  return cut_run(lanes_.front(), now);
}

void Replica::admit_fetched(Lane& lane, int lane_index, SimTime now, std::int64_t& budget) {
  while (!fetched_.empty() && running() < config_.policy.max_num_seqs) {
    const std::uint32_t slot = fetched_.front();
    Sequence& s = sequences_[slot];
    const std::int64_t left = s.prompt - s.computed;
    std::int64_t chunk = left;
    if (config_.policy.scheduler == SchedulerKind::kChunked) {
      chunk = std::min(left, budget);
      if (chunk <= 0) return;
    } else if (config_.policy.scheduler == SchedulerKind::kContinuous && left > budget &&
               lane.chunk_tokens > 0) {
      return;
    }
    fetched_.pop_front();
    const Request& r = trace_.requests[s.request];
    s.lane = static_cast<std::int16_t>(lane_index);
    const std::int64_t cached = s.computed;
    pool_.extend(ids_of(r), prompt_ids(r), r.input_tokens, cached + chunk, s.lease);
    lane.prefilling.push_back(slot);
    running_.push_back(slot);
    board(s, now);
    set_chunk(lane, s, chunk);
    budget -= chunk;
    if (s.again) {
      counters_.recomputed_tokens += left;
    } else {
      counters_.prompt_tokens += left;
      counters_.cached_tokens += cached;
      listener_.on_scheduled(s.request, now, static_cast<std::int32_t>(cached));
    }
  }
}

/// Offers the ids that `stored` tokens cover and that have not been offered yet; the last one in
/// part once nothing more of it comes.
void Replica::write_through(Sequence& s, std::int64_t stored) {
  const Request& r = trace_.requests[s.request];
  const bool ended = stored > s.prompt || s.produced >= r.output_tokens;
  const std::uint32_t ids = ended ? r.hash_count : prompt_ids(r);
  std::int64_t tokens =
      std::min<std::int64_t>(stored, std::int64_t{ids} * trace_.hash_block_tokens);
  if (r.hash_count == prompt_ids(r)) tokens = std::min<std::int64_t>(tokens, r.input_tokens);
  const std::int64_t blocks = tokens / std::max(1, pool_.block_tokens());
  while (static_cast<std::uint32_t>(s.written) < ids) {
    const std::int64_t here =
        std::min(pool_.entry_blocks(), blocks - s.written * pool_.entry_blocks());
    if (here <= 0 || (here < pool_.entry_blocks() && stored < s.prompt)) return;
    backing_->computed(ids_of(r)[s.written], here);
    if (here < pool_.entry_blocks()) return;
    ++s.written;
  }
}

void Replica::leave_tiers(const Sequence& s) {
  backing_->forget(resume_key(s.request));
}

}  // namespace medley
