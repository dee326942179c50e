#include "sim/serving/replica.h"

#include <algorithm>

#include "sim/core/error.h"

namespace medley {

Replica::Replica(const ReplicaConfig& config, const StepModel& model, const Trace& trace,
                 ReplicaListener& listener, AdvanceListener& advances)
    : config_(config),
      model_(model),
      trace_(trace),
      listener_(listener),
      advances_(advances),
      pool_(config.blocks, config.policy.block_size, trace.hash_block_tokens,
            config.policy.prefix_caching),
      context_(model.context()),
      lanes_(static_cast<std::size_t>(config.lanes)) {
  // A step must have a token for every running sequence.
  config_.policy.max_num_seqs =
      std::min(config_.policy.max_num_seqs, config_.policy.max_num_batched_tokens);
  if (config_.lanes > 1) config_.fast_forward = false;
  for (Lane& lane : lanes_)
    lane.residues.assign(static_cast<std::size_t>(config.policy.block_size), 0);
}

Replica::Verdict Replica::judge(std::int64_t input_tokens, std::int64_t output_tokens) const {
  const std::int64_t all = input_tokens + output_tokens;
  if (config_.max_model_len > 0 && all > config_.max_model_len) return Verdict::kTooLong;
  // The last token's keys and values are never stored.
  return pool_.blocks_for(all - 1) > pool_.total() ? Verdict::kNeverFits : Verdict::kAccepted;
}

std::uint32_t Replica::prompt_ids(const Request& r) const {
  const std::int32_t g = trace_.hash_block_tokens;
  if (g == 0) return 0;
  return std::min(r.hash_count, static_cast<std::uint32_t>((r.input_tokens + g - 1) / g));
}

void Replica::push_waiting(Waiting w) {
  if (config_.policy.admission == AdmissionOrder::kFcfs) {
    w.slot == kNone ? waiting_.push_back(w) : waiting_.push_front(w);
    return;
  }
  const auto before = [&](const Waiting& a, const Waiting& b) {
    const Request& x = trace_.requests[a.request];
    const Request& y = trace_.requests[b.request];
    return x.priority != y.priority ? x.priority < y.priority : a.request < b.request;
  };
  waiting_.insert(std::upper_bound(waiting_.begin(), waiting_.end(), w, before), w);
}

bool Replica::enqueue(std::uint32_t request, SimTime now, Streamed streamed) {
  Waiting w{request, kNone};
  if (streamed.tokens > 0) {
    w.slot = new_slot();
    Sequence& s = sequences_[w.slot];
    s.request = request;
    s.produced = streamed.tokens;
    s.last_token = streamed.last;
    s.moved = true;
  }
  if (config_.policy.admission == AdmissionOrder::kFcfs) {
    waiting_.push_back(w);
  } else {
    push_waiting(w);
  }
  if (lanes_.size() > 1 || waiting_.front().request != request) return false;
  Lane& lane = lanes_.front();
  return lane.busy && lane.run_steps > 1 && could_admit_head() && cut_run(lane, now);
}

bool Replica::fits_now(const Waiting& w, std::int64_t reserved, KvPool::Hit& hit) const {
  const Request& r = trace_.requests[w.request];
  const bool resumed = w.slot != kNone;
  const std::int64_t prompt = r.input_tokens + (resumed ? sequences_[w.slot].produced : 0);
  const std::int64_t named = std::min<std::int64_t>(
      r.input_tokens, std::int64_t{prompt_ids(r)} * trace_.hash_block_tokens);
  hit = pool_.lookup(ids_of(r), prompt_ids(r), named, prompt, resumed ? resume_key(w.request) : 0);
  return pool_.blocks_for(prompt) - hit.blocks + hit.evictable <= pool_.free() - reserved;
}

bool Replica::could_admit_head() const {
  if (waiting_.empty() || running() >= config_.policy.max_num_seqs) return false;
  if (config_.policy.scheduler == SchedulerKind::kStatic && !running_.empty()) return false;
  KvPool::Hit hit;
  return fits_now(waiting_.front(), 0, hit);
}

bool Replica::has_room(std::int64_t input_tokens) const {
  if (!waiting_.empty() || !imports_.empty() || !fetched_.empty() ||
      running() >= config_.policy.max_num_seqs) {
    return false;
  }
  if (config_.policy.scheduler == SchedulerKind::kStatic && !running_.empty()) return false;
  return pool_.blocks_for(input_tokens) <= pool_.free();
}

bool Replica::has_work(int lane) const {
  const Lane& l = lanes_[static_cast<std::size_t>(lane)];
  return l.decoding > 0 || !l.prefilling.empty() || !waiting_.empty() || !imports_.empty() ||
         !fetched_.empty();
}

bool Replica::begin(int lane_index, SimTime now) {
  Lane& lane = lanes_[static_cast<std::size_t>(lane_index)];
  if (lane.busy || !has_work(lane_index)) return false;
  if (lanes_.size() > 1 && stage_free_ > now) return false;
  if (lanes_.size() > 1 || config_.shared || lane.end != now || lane.last_end != now)
    lane.clock = LocalClock(now);
  if (lane.timed < now) {
    lane.time[TimeShares::kStall] += (now - lane.timed).value();
    lane.timed = now;
  }
  if (!plan(lane, lane_index, now)) return false;
  lane.start = now;
  lane.busy = true;
  lane.chunk_tokens + lane.joining > 0 ? start_mixed(lane) : start_decodes(lane);
  if (config_.handoff != Handoff::kNone && lane.chunk_tokens > 0) announce_chunks(lane);
  return true;
}

void Replica::complete(int lane_index, SimTime now) {
  Lane& lane = lanes_[static_cast<std::size_t>(lane_index)];
  MEDLEY_CHECK(lane.busy && lane.end == now,
               "a replica's step ends at another time than announced");
  lane.busy = false;
  lane.timed = now;
  if (lane.run_steps > 0) {
    finish_decodes(lane);
    finish_due(lane, now);
  } else {
    finish_mixed(lane, now);
  }
  lane.last_end = now;
  if (!leaving_.empty()) let_leaving_go(lane, now);
  if (lane.decode_steps > (std::int64_t{1} << 16) || (lane.decoding == 0 && lane.decode_steps > 0))
    rebase(lane);
}

// ---- what the next step contains --------------------------------------------------------------

bool Replica::plan(Lane& lane, int lane_index, SimTime now) {
  preempted_now_ = false;
  lane.chunk_tokens = lane.chunk_ends = lane.chunks = 0;
  lane.joining = 0;
  lane.joining_context = lane.joining_window = lane.joining_longest = 0;
  lane.chunk_pairs = lane.chunk_context = lane.chunk_pairs_window = lane.chunk_context_window = 0.0;
  std::int64_t reserved = new_blocks(lane, 1);
  if (reserved > pool_.free()) {
    if (!make_room(lane, lane_index)) return false;
    reserved = new_blocks(lane, 1);
  }
  // Whole prompts do not compete with decodes for the token budget; chunks do.
  const bool chunked = config_.policy.scheduler == SchedulerKind::kChunked;
  std::int64_t budget = config_.policy.max_num_batched_tokens - (chunked ? lane.decoding : 0);
  plan_prefills(lane, budget, reserved);
  // Blocks held for prompts on their way may have cost the last one its place: they go on then.
  if (running_.empty()) preempted_now_ = false;
  const bool closed = config_.policy.scheduler == SchedulerKind::kStatic && !running_.empty();
  if (!preempted_now_ && !imports_.empty()) admit_imports(lane, lane_index, now, budget);
  if (!preempted_now_ && !closed) {
    if (!fetched_.empty()) admit_fetched(lane, lane_index, now, budget);
    while ((budget > 0 || config_.policy.scheduler == SchedulerKind::kStatic) &&
           !waiting_.empty() && running() < config_.policy.max_num_seqs &&
           admit_head(lane, lane_index, now, budget, reserved)) {
    }
  }
  if (lane.chunk_tokens + lane.joining > 0) {
    pool_.take(reserved);
    lane.batch_left = 0;
  }
  return lane.chunk_tokens + lane.joining + lane.decoding > 0;
}

/// Preempts from the tail until the lane's decodes find room. False when nobody
/// of this lane is left to go (pipeline: the others are in flight).
bool Replica::make_room(Lane& lane, int lane_index) {
  while (new_blocks(lane, 1) > pool_.free()) {
    const std::uint32_t slot = victim(lane_index);
    if (slot == kNone) return false;
    preempt(slot);
  }
  return true;
}

void Replica::plan_prefills(Lane& lane, std::int64_t& budget, std::int64_t& reserved) {
  for (std::size_t i = 0; i < lane.prefilling.size(); ++i) {
    const std::uint32_t slot = lane.prefilling[i];
    Sequence& s = sequences_[slot];
    const std::int64_t left = s.prompt - s.computed;
    const std::int64_t chunk =
        config_.policy.scheduler == SchedulerKind::kChunked ? std::min(left, budget) : left;
    s.chunk = 0;
    if (chunk <= 0) continue;
    const Request& r = trace_.requests[s.request];
    const std::int64_t upto = s.computed + chunk;
    bool gone = false;
    while (pool_.blocks_for(upto) - s.lease.blocks() + reserved > pool_.free()) {
      const std::uint32_t other = victim(s.lane);
      gone = other == slot || other == kNone;
      if (other == kNone) break;
      preempt(other);
      reserved = new_blocks(lane, 1);
      if (gone) break;
    }
    if (gone) {
      --i;  // this slot left the list (or waits for another lane): look at what follows
      if (preempted_now_) continue;
      return;
    }
    pool_.extend(ids_of(r), prompt_ids(r), r.input_tokens, upto, s.lease);
    set_chunk(lane, s, chunk);
    budget -= chunk;
  }
}

bool Replica::admit_head(Lane& lane, int lane_index, SimTime now, std::int64_t& budget,
                         std::int64_t reserved) {
  const Waiting w = waiting_.front();
  KvPool::Hit hit;
  if (!fits_now(w, reserved, hit)) return false;
  const Request& r = trace_.requests[w.request];
  const bool resumed = w.slot != kNone;
  const std::int64_t prompt = r.input_tokens + (resumed ? sequences_[w.slot].produced : 0);
  const std::int64_t cached = hit.blocks * pool_.block_tokens();
  if (backing_ && start_fetch(w, hit, prompt)) return true;
  const std::int64_t left = prompt - cached;
  std::int64_t chunk = left;
  if (config_.policy.scheduler == SchedulerKind::kChunked) {
    chunk = std::min(left, budget);
  } else if (config_.policy.scheduler == SchedulerKind::kContinuous && left > budget &&
             lane.chunk_tokens > 0) {
    return false;  // a prompt longer than the whole budget is the only one of its step
  }
  waiting_.pop_front();
  const std::uint32_t slot = resumed ? w.slot : new_slot();
  Sequence& s = sequences_[slot];
  s.request = w.request;
  s.lane = static_cast<std::int16_t>(lane_index);
  s.priority = r.priority;
  s.prompt = static_cast<std::int32_t>(prompt);
  s.computed = static_cast<std::int32_t>(cached);
  pool_.acquire(hit, ids_of(r), resume_key(w.request), s.lease);
  pool_.extend(ids_of(r), prompt_ids(r), r.input_tokens, cached + chunk, s.lease);
  lane.prefilling.push_back(slot);
  running_.push_back(slot);
  board(s, now);
  set_chunk(lane, s, chunk);
  budget -= chunk;
  if (resumed) {
    counters_.recomputed_tokens += left;
  } else {
    counters_.prompt_tokens += left;
    counters_.cached_tokens += cached;
    listener_.on_scheduled(w.request, now, static_cast<std::int32_t>(cached));
  }
  return true;
}

void Replica::set_chunk(Lane& lane, Sequence& s, std::int64_t tokens) {
  s.chunk = static_cast<std::int32_t>(tokens);
  lane.chunk_tokens += s.chunk;
  lane.chunks += 1;
  lane.chunk_ends += s.computed + s.chunk == s.prompt ? 1 : 0;
  lane.chunk_pairs += chunk_pairs(tokens, s.computed);
  lane.chunk_context += chunk_context(tokens, s.computed);
  lane.chunk_pairs_window += chunk_pairs(tokens, s.computed, context_.window);
  lane.chunk_context_window += chunk_context(tokens, s.computed, context_.window);
}

// ---- preemption --------------------------------------------------------------------------------

void Replica::board(Sequence& s, SimTime now) {
  if (s.left > SimTime()) s.time[TimeShares::kStall] += (now - s.left).value();
  s.left = SimTime();
  MEDLEY_CHECK(!s.aboard, "a sequence comes aboard twice");
  s.aboard = true;
  s.time.add(lanes_[static_cast<std::size_t>(s.lane)].time, -1.0);
}

void Replica::alight(Sequence& s) {
  MEDLEY_CHECK(s.aboard, "a sequence leaves a batch it never joined");
  s.aboard = false;
  s.time.add(lanes_[static_cast<std::size_t>(s.lane)].time);
}

std::uint32_t Replica::victim(int lane_index) const {
  std::uint32_t chosen = kNone;
  for (std::size_t i = running_.size(); i-- > 0;) {
    const Sequence& s = sequences_[running_[i]];
    if (s.lane != lane_index) continue;
    if (config_.policy.admission == AdmissionOrder::kFcfs) return running_[i];
    if (chosen == kNone || s.priority > sequences_[chosen].priority) chosen = running_[i];
  }
  return chosen;
}

void Replica::preempt(std::uint32_t slot) {
  Sequence& s = sequences_[slot];
  Lane& lane = lanes_[static_cast<std::size_t>(s.lane)];
  std::int64_t stored = s.computed;
  if (s.decoding) {
    stored = s.base + lane.decode_steps;
    s.energy_j += decode_energy(lane, s);
    s.produced += static_cast<std::int32_t>(lane.decode_steps - s.joined);
    s.last_token = lane.last_end;
    leave_decode(lane, s);
  } else {
    lane.prefilling.erase(std::find(lane.prefilling.begin(), lane.prefilling.end(), slot));
  }
  const std::int64_t own_full = stored / pool_.block_tokens() - s.lease.shared_blocks;
  if (backing_ && own_full > 0) {
    s.swapped = true;
    if (write_through_) backing_->computed(resume_key(s.request), own_full);
  }
  pool_.release(s.lease, resume_key(s.request), std::max<std::int64_t>(0, own_full));
  s.again = true;
  s.leaving = false;
  s.computed = 0;
  s.imported = false;
  s.left = lane.timed;
  alight(s);
  remove_running(slot);
  ++counters_.preemptions;
  preempted_now_ = true;
  listener_.on_preempted(s.request);
  push_waiting({s.request, slot});
}

std::uint32_t Replica::new_slot() {
  if (spare_.empty()) {
    sequences_.emplace_back();
    return static_cast<std::uint32_t>(sequences_.size() - 1);
  }
  const std::uint32_t slot = spare_.back();
  spare_.pop_back();
  Sequence& s = sequences_[slot];
  KvLease lease = std::move(s.lease);  // keeps its capacity
  s = Sequence{};
  s.lease = std::move(lease);
  return slot;
}

void Replica::remove_running(std::uint32_t slot) {
  running_.erase(std::find(running_.begin(), running_.end(), slot));
}

// ---- what an observer may ask ------------------------------------------------------------------

std::int64_t Replica::used_blocks(SimTime now) const {
  std::int64_t used = pool_.used();
  for (const Lane& lane : lanes_) {
    if (!lane.busy || lane.run_steps == 0) continue;
    const std::int64_t done = std::max<std::int64_t>(0, steps_until(lane, now) - 1);
    used += new_blocks(lane, std::min(done + 1, lane.run_steps));
  }
  return used;
}

std::int64_t Replica::output_tokens(SimTime now) const {
  std::int64_t tokens = counters_.output_tokens;
  for (const Lane& lane : lanes_) {
    if (!lane.busy || lane.run_steps == 0) continue;
    tokens += std::max<std::int64_t>(0, steps_until(lane, now) - 1) * lane.decoding;
  }
  return tokens;
}

void Replica::settle(std::vector<std::pair<std::uint32_t, double>>& energies) const {
  for (const std::uint32_t slot : running_) {
    const Sequence& s = sequences_[slot];
    const Lane& lane = lanes_[static_cast<std::size_t>(s.lane)];
    energies.emplace_back(s.request, s.energy_j + (s.decoding ? decode_energy(lane, s) : 0.0));
  }
  for (const Waiting& w : waiting_) {
    if (w.slot != kNone) energies.emplace_back(w.request, sequences_[w.slot].energy_j);
  }
  for (const std::uint32_t slot : exports_) {
    energies.emplace_back(sequences_[slot].request, sequences_[slot].energy_j);
  }
  for (const std::uint32_t slot : fetching_) {
    energies.emplace_back(sequences_[slot].request, sequences_[slot].energy_j);
  }
  for (const std::uint32_t slot : fetched_) {
    energies.emplace_back(sequences_[slot].request, sequences_[slot].energy_j);
  }
}

void Replica::progress(SimTime now,
                       std::vector<std::pair<std::uint32_t, std::int32_t>>& tokens) const {
  for (const std::uint32_t slot : running_) {
    const Sequence& s = sequences_[slot];
    const Lane& lane = lanes_[static_cast<std::size_t>(s.lane)];
    std::int64_t produced = s.produced;
    if (s.decoding) {
      produced += lane.decode_steps - s.joined;
      if (lane.busy && lane.run_steps > 0)
        produced += std::max<std::int64_t>(0, steps_until(lane, now) - 1);
    }
    tokens.emplace_back(s.request, static_cast<std::int32_t>(produced));
  }
  for (const Waiting& w : waiting_) {
    tokens.emplace_back(w.request, w.slot == kNone ? 0 : sequences_[w.slot].produced);
  }
  for (const std::uint32_t slot : exports_) {
    tokens.emplace_back(sequences_[slot].request, sequences_[slot].produced);
  }
  for (const std::uint32_t slot : imports_) {
    tokens.emplace_back(sequences_[slot].request, sequences_[slot].produced);
  }
  for (const std::uint32_t slot : fetching_) {
    tokens.emplace_back(sequences_[slot].request, sequences_[slot].produced);
  }
  for (const std::uint32_t slot : fetched_) {
    tokens.emplace_back(sequences_[slot].request, sequences_[slot].produced);
  }
}

}  // namespace medley
