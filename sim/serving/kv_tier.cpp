#include "sim/serving/kv_tier.h"

#include <algorithm>

#include "sim/core/error.h"

namespace medley {

std::uint32_t KvTier::index_of(std::uint64_t id) const {
  const auto it = index_.find(id);
  return it == index_.end() ? kNone : it->second;
}

std::int64_t KvTier::find(std::uint64_t id) const {
  const std::uint32_t e = index_of(id);
  return e == kNone || entries_[e].dead ? 0 : entries_[e].blocks;
}

std::int64_t KvTier::known(std::uint64_t id) const {
  const std::uint32_t e = index_of(id);
  return e == kNone ? 0 : entries_[e].blocks + entries_[e].coming;
}

/// To the end of the queue, out of it, or gone, as its state wants.
void KvTier::settle(std::uint32_t entry) {
  unlink(entry);
  Entry& e = entries_[entry];
  if (e.coming > 0 || e.readers > 0) return;
  if (e.dead || e.blocks == 0) return drop(entry);
  e.previous = tail_;
  e.next = kNone;
  (tail_ == kNone ? head_ : entries_[tail_].next) = entry;
  tail_ = entry;
  e.queued = true;
  evictable_ += e.blocks;
}

void KvTier::unlink(std::uint32_t entry) {
  Entry& e = entries_[entry];
  if (!e.queued) return;
  (e.previous == kNone ? head_ : entries_[e.previous].next) = e.next;
  (e.next == kNone ? tail_ : entries_[e.next].previous) = e.previous;
  e.queued = false;
  evictable_ -= e.blocks;
}

void KvTier::drop(std::uint32_t entry) {
  used_ -= entries_[entry].blocks;
  index_.erase(entries_[entry].id);
  entries_[entry] = Entry{};
  spare_.push_back(entry);
}

void KvTier::touch(std::uint64_t id) {
  const std::uint32_t e = index_of(id);
  if (e != kNone && entries_[e].queued) settle(e);
}

bool KvTier::reserve(std::uint64_t id, std::int64_t blocks, std::vector<Piece>& evicted) {
  std::uint32_t e = index_of(id);
  const std::int64_t have = e == kNone ? 0 : entries_[e].blocks;
  MEDLEY_CHECK(e == kNone || entries_[e].coming == 0, "KV tier: an entry comes twice");
  MEDLEY_CHECK(blocks > have, "KV tier: room for what is there");
  const std::int64_t more = blocks - have;
  const std::int64_t own = e != kNone && entries_[e].queued ? have : 0;  // it stays itself
  if (used_ - (evictable_ - own) + more > capacity_) return false;
  if (e != kNone) unlink(e);
  while (used_ + more > capacity_) {
    const std::uint32_t oldest = head_;
    evicted.push_back({entries_[oldest].id, entries_[oldest].blocks});
    unlink(oldest);
    drop(oldest);
  }
  if (e == kNone) {
    if (spare_.empty()) {
      e = static_cast<std::uint32_t>(entries_.size());
      entries_.emplace_back();
    } else {
      e = spare_.back();
      spare_.pop_back();
    }
    entries_[e].id = id;
    index_[id] = e;
  }
  entries_[e].coming = more;
  used_ += more;
  peak_ = std::max(peak_, used_);
  return true;
}

void KvTier::arrived(std::uint64_t id) {
  const std::uint32_t e = index_of(id);
  MEDLEY_CHECK(e != kNone && entries_[e].coming > 0, "KV tier: nothing was coming");
  entries_[e].blocks += entries_[e].coming;
  entries_[e].coming = 0;
  settle(e);
}

void KvTier::cancel(std::uint64_t id) {
  const std::uint32_t e = index_of(id);
  MEDLEY_CHECK(e != kNone && entries_[e].coming > 0, "KV tier: nothing was coming");
  used_ -= entries_[e].coming;
  entries_[e].coming = 0;
  settle(e);
}

void KvTier::hold(std::uint64_t id) {
  const std::uint32_t e = index_of(id);
  MEDLEY_CHECK(e != kNone && entries_[e].blocks > 0, "KV tier: nothing to read");
  unlink(e);
  ++entries_[e].readers;
}

void KvTier::release(std::uint64_t id) {
  const std::uint32_t e = index_of(id);
  MEDLEY_CHECK(e != kNone && entries_[e].readers > 0, "KV tier: released more than held");
  --entries_[e].readers;
  settle(e);
}

void KvTier::erase(std::uint64_t id) {
  const std::uint32_t e = index_of(id);
  if (e == kNone) return;
  entries_[e].dead = true;
  settle(e);
}

void KvTier::clear() {
  for (std::uint32_t e = 0; e < entries_.size(); ++e) {
    if (entries_[e].blocks + entries_[e].coming == 0) continue;  // spare
    entries_[e].dead = true;
    settle(e);
  }
}

}  // namespace medley
