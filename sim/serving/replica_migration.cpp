#include <algorithm>

#include "sim/core/error.h"
#include "sim/serving/replica.h"

namespace medley {

Replica::Decoding Replica::state_of(std::uint32_t slot, SimTime now) const {
  const Sequence& s = sequences_[slot];
  const Lane& lane = lanes_[static_cast<std::size_t>(s.lane)];
  std::int64_t done = lane.decode_steps;
  if (lane.busy && lane.run_steps > 0) {
    done += std::max<std::int64_t>(0, steps_until(lane, now) - 1);
  }
  return {slot, s.request, s.base + done, static_cast<std::int32_t>(s.produced + done - s.joined)};
}

void Replica::decoding(SimTime now, std::vector<Decoding>& out) const {
  out.clear();
  for (const std::uint32_t slot : running_) {
    if (sequences_[slot].decoding && !sequences_[slot].leaving) out.push_back(state_of(slot, now));
  }
}

Replica::Decoding Replica::decoding(std::uint32_t slot, SimTime now) const {
  MEDLEY_CHECK(sequences_[slot].decoding, "asked after a sequence that does not decode");
  return state_of(slot, now);
}

bool Replica::leave(std::uint32_t slot, SimTime now) {
  Sequence& s = sequences_[slot];
  Lane& lane = lanes_[static_cast<std::size_t>(s.lane)];
  MEDLEY_CHECK(s.decoding && !s.leaving, "only a decoding sequence leaves");
  if (!lane.busy) {
    let_go(slot, now);
    return false;
  }
  s.leaving = true;
  leaving_.push_back(slot);
  return cut_run(lane, now);
}

void Replica::let_leaving_go(Lane& lane, SimTime now) {
  const auto index = static_cast<std::int16_t>(&lane - lanes_.data());
  std::vector<std::uint32_t> others;
  std::vector<std::uint32_t> leaving = std::move(leaving_);
  for (const std::uint32_t slot : leaving) {
    const Sequence& s = sequences_[slot];
    if (!s.leaving || !s.decoding) continue;  // it ended, or was preempted
    if (s.lane == index) {
      let_go(slot, now);
    } else {
      others.push_back(slot);
    }
  }
  leaving_ = std::move(others);
}

void Replica::let_go(std::uint32_t slot, SimTime now) {
  Sequence& s = sequences_[slot];
  Lane& lane = lanes_[static_cast<std::size_t>(s.lane)];
  const std::int64_t stored = s.base + lane.decode_steps;
  s.energy_j += decode_energy(lane, s);
  s.produced += static_cast<std::int32_t>(lane.decode_steps - s.joined);
  s.joined = lane.decode_steps;
  s.last_token = lane.last_end;
  s.leaving = false;
  leave_decode(lane, s);
  remove_running(slot);
  exports_.push_back(slot);
  alight(s);
  listener_.on_time(s.request, s.time);
  listener_.on_left(s.request, slot, stored, s.produced, now);
}

bool Replica::grow_import(std::uint32_t slot, std::int32_t produced) {
  Sequence& s = sequences_[slot];
  const Request& r = trace_.requests[s.request];
  const std::int64_t prompt = std::int64_t{r.input_tokens} + produced;
  const std::int64_t more = pool_.blocks_for(prompt) - s.lease.blocks();
  if (more > 0 && more > pool_.free() - blocks_under_way() - running()) return false;
  pool_.extend(ids_of(r), 0, 0, prompt, s.lease);
  s.prompt = static_cast<std::int32_t>(prompt);
  s.produced = produced;
  return true;
}

void Replica::settle_import(std::uint32_t slot, std::int32_t produced, SimTime left) {
  Sequence& s = sequences_[slot];
  const std::int64_t prompt = std::int64_t{trace_.requests[s.request].input_tokens} + produced;
  const std::int64_t spare = s.lease.blocks() - pool_.blocks_for(prompt);
  MEDLEY_CHECK(spare >= 0, "an import has too few blocks");
  if (spare > 0) pool_.give_back(spare, s.lease);
  s.left = left;
  s.prompt = static_cast<std::int32_t>(prompt);
  s.produced = produced;
}

void Replica::stay(std::uint32_t slot) {
  sequences_[slot].leaving = false;
}

void Replica::take_back(std::uint32_t slot) {
  const auto it = std::find(exports_.begin(), exports_.end(), slot);
  MEDLEY_CHECK(it != exports_.end(), "took back a sequence that has not left");
  exports_.erase(it);
  Sequence& s = sequences_[slot];
  const std::int64_t stored =
      std::int64_t{trace_.requests[s.request].input_tokens} + s.produced - 1;
  const std::int64_t own_full = stored / pool_.block_tokens() - s.lease.shared_blocks;
  pool_.release(s.lease, resume_key(s.request), std::max<std::int64_t>(0, own_full));
  s.again = true;
  s.computed = 0;
  s.left = s.last_token;
  s.time = TimeShares();  // told when it left
  push_waiting({s.request, slot});
}

void Replica::withdraw(std::vector<std::uint32_t>& requests) {
  std::deque<Waiting> kept;
  for (const Waiting& w : waiting_) {
    if (w.slot == kNone) {
      requests.push_back(w.request);
    } else {
      kept.push_back(w);
    }
  }
  waiting_ = std::move(kept);
}

}  // namespace medley
