#include "sim/serving/kv_pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/core/error.h"
#include "sim/serving/kv_backing.h"

namespace medley {

KvPool::KvPool(std::int64_t blocks, std::int32_t block_tokens, std::int32_t entry_tokens,
               bool caching)
    : total_(blocks),
      free_(blocks),
      block_tokens_(block_tokens),
      entry_tokens_(entry_tokens),
      entry_blocks_(entry_tokens / block_tokens),
      caching_(caching) {
  if (caching && entry_tokens > 0 && entry_tokens % block_tokens != 0) {
    throw InputError(
        "", "/pools/block_size",
        fmt::format(
            "block_size {} does not divide the {} tokens that one prefix id of the trace covers",
            block_tokens, entry_tokens),
        "choose a divisor, or switch enable_prefix_caching off");
  }
  table_.resize(64);
  enqueue_nameless(blocks);
}

// ---- the table of names ------------------------------------------------------------------------

std::uint32_t KvPool::find(std::uint64_t id) const {
  const std::size_t mask = table_.size() - 1;
  for (std::size_t i = home(id);; i = (i + 1) & mask) {
    if (table_[i].entry == kNone || table_[i].id == id) return table_[i].entry;
  }
}

std::uint32_t KvPool::insert(std::uint64_t id) {
  if (2 * (table_used_ + 1) > table_.size()) grow();
  const std::uint32_t entry = new_entry(id, true);
  const std::size_t mask = table_.size() - 1;
  std::size_t i = home(id);
  while (table_[i].entry != kNone) i = (i + 1) & mask;
  table_[i] = {id, entry};
  ++table_used_;
  return entry;
}

void KvPool::erase(std::uint64_t id) {
  const std::size_t mask = table_.size() - 1;
  std::size_t hole = home(id);
  while (table_[hole].id != id || table_[hole].entry == kNone) hole = (hole + 1) & mask;
  // Close the gap: move back what probing would no longer reach.
  for (std::size_t i = (hole + 1) & mask; table_[i].entry != kNone; i = (i + 1) & mask) {
    if (((i - home(table_[i].id)) & mask) >= ((i - hole) & mask)) {
      table_[hole] = table_[i];
      hole = i;
    }
  }
  table_[hole].entry = kNone;
  --table_used_;
}

void KvPool::grow() {
  const std::vector<Slot> old = std::move(table_);
  table_.assign(old.size() * 2, Slot{});
  --table_shift_;
  const std::size_t mask = table_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.entry == kNone) continue;
    std::size_t i = home(slot.id);
    while (table_[i].entry != kNone) i = (i + 1) & mask;
    table_[i] = slot;
  }
}

std::uint32_t KvPool::new_entry(std::uint64_t id, bool named) {
  std::uint32_t e = static_cast<std::uint32_t>(entries_.size());
  if (spare_entries_.empty()) {
    entries_.emplace_back();
  } else {
    e = spare_entries_.back();
    spare_entries_.pop_back();
  }
  entries_[e] = {id, 0, 0, kNone, kNone, named};
  return e;
}

void KvPool::drop_entry(std::uint32_t entry) {
  if (entries_[entry].named) erase(entries_[entry].id);
  spare_entries_.push_back(entry);
}

// ---- the free queue ----------------------------------------------------------------------------

void KvPool::enqueue(std::uint32_t entry) {
  entries_[entry].previous = tail_;
  entries_[entry].next = kNone;
  (tail_ == kNone ? head_ : entries_[tail_].next) = entry;
  tail_ = entry;
}

void KvPool::enqueue_nameless(std::int64_t blocks) {
  if (blocks == 0) return;
  if (tail_ == kNone || entries_[tail_].named) enqueue(new_entry(0, false));
  entries_[tail_].blocks += blocks;
}

void KvPool::unlink(std::uint32_t entry) {
  const Entry& e = entries_[entry];
  (e.previous == kNone ? head_ : entries_[e.previous].next) = e.next;
  (e.next == kNone ? tail_ : entries_[e.next].previous) = e.previous;
}

void KvPool::take(std::int64_t count) {
  MEDLEY_CHECK(count <= free_, "KV pool: more blocks taken than are free");
  free_ -= count;
  note_used();
  while (count > 0) {
    const std::uint32_t first = head_;
    Entry& e = entries_[first];
    if (backing_ && e.named) backing_->evicted(e.id, e.blocks);
    const std::int64_t from_here = std::min(count, e.blocks);
    e.blocks -= from_here;
    count -= from_here;
    if (e.blocks == 0) {
      unlink(first);
      drop_entry(first);
    }
  }
}

void KvPool::hold(std::uint32_t entry) {
  Entry& e = entries_[entry];
  if (e.holders++ == 0) {
    free_ -= e.blocks;
    unlink(entry);
    note_used();
  }
}

// ---- leases ----------------------------------------------------------------------------------

KvPool::Hit KvPool::lookup(const std::uint64_t* ids, std::uint32_t count, std::int64_t id_tokens,
                           std::int64_t tokens, std::uint64_t resume_key) const {
  Hit hit;
  if (!caching_) return hit;
  const std::int64_t most = (tokens - 1) / block_tokens_;
  const std::int64_t named = std::min(most, id_tokens / block_tokens_);
  for (std::uint32_t i = 0; i < count && hit.blocks < named; ++i) {
    const std::uint32_t entry = find(ids[i]);
    if (entry == kNone || entries_[entry].blocks == 0) break;
    const Entry& e = entries_[entry];
    hit.blocks += std::min(e.blocks, named - hit.blocks);
    // Taking an entry takes all its blocks off the free queue, also those past the hit.
    hit.evictable += e.holders == 0 ? e.blocks : 0;
    hit.ids = i + 1;
    if (e.blocks < entry_blocks_) break;
  }
  // The request's own blocks continue exactly where the blocks named by ids end.
  if (resume_key != 0 && hit.blocks == named && named < most) {
    if (const std::uint32_t entry = find(resume_key); entry != kNone) {
      hit.resumed = true;
      hit.blocks += std::min(entries_[entry].blocks, most - named);
      hit.evictable += entries_[entry].blocks;
    }
  }
  return hit;
}

void KvPool::acquire(const Hit& hit, const std::uint64_t* ids, std::uint64_t resume_key,
                     KvLease& lease) {
  std::int64_t left = hit.blocks;
  for (std::uint32_t i = 0; i < hit.ids; ++i) {
    const std::uint32_t entry = find(ids[i]);
    hold(entry);
    lease.entries.push_back(entry);
    const std::int64_t used_here = std::min(entries_[entry].blocks, left);
    lease.shared_blocks += used_here;
    left -= used_here;
  }
  lease.named = lease.shared_blocks;
  if (hit.resumed) {
    // Back into private ownership: nobody else can name these blocks.
    const std::uint32_t entry = find(resume_key);
    hold(entry);
    const std::int64_t present = entries_[entry].blocks;
    lease.own_blocks += left;
    free_ += present - left;
    enqueue_nameless(present - left);
    drop_entry(entry);
  }
}

void KvPool::extend(const std::uint64_t* ids, std::uint32_t count, std::int64_t id_tokens,
                    std::int64_t tokens, KvLease& lease) {
  const std::int64_t fresh = blocks_for(tokens) - lease.blocks();
  if (fresh > 0) {
    take(fresh);
    lease.own_blocks += fresh;
  }
  if (caching_ && count > 0)
    name_blocks(ids, count, std::min(tokens, id_tokens) / block_tokens_, lease);
}

void KvPool::publish(const std::uint64_t* ids, std::uint32_t count, std::int64_t tokens,
                     KvLease& lease) {
  if (!caching_ || count == 0) return;
  name_blocks(ids, count,
              std::min<std::int64_t>(tokens, std::int64_t{count} * entry_tokens_) / block_tokens_,
              lease);
}

/// Turns the lease's own blocks [named, upto) into blocks of the entries their ids name, where the
/// name is free; others stay its own (somebody else's copy has the name).
void KvPool::name_blocks(const std::uint64_t* ids, std::uint32_t count, std::int64_t upto,
                         KvLease& lease) {
  while (lease.named < upto) {
    const std::int64_t k = lease.named / entry_blocks_;
    if (k >= count) return;
    const std::int64_t end = std::min((k + 1) * entry_blocks_, upto);
    const std::int64_t adding = end - lease.named;
    const std::int64_t offset = lease.named - k * entry_blocks_;
    std::uint32_t entry = find(ids[k]);
    const bool held = entry != kNone && !lease.entries.empty() && lease.entries.back() == entry;
    const bool fresh = entry == kNone && offset == 0;
    if (fresh) {
      entry = insert(ids[k]);
      entries_[entry].holders = 1;
      lease.entries.push_back(entry);
    }
    if (fresh || (held && entries_[entry].blocks == offset)) {
      entries_[entry].blocks += adding;
      lease.shared_blocks += adding;
      lease.own_blocks -= adding;
    }
    lease.named = end;
  }
}

void KvPool::give_back(std::int64_t count, KvLease& lease) {
  MEDLEY_CHECK(count <= lease.own_blocks, "KV pool: more blocks given back than owned");
  lease.own_blocks -= count;
  free_ += count;
  enqueue_nameless(count);
}

void KvPool::release(KvLease& lease, std::uint64_t resume_key, std::int64_t own_full) {
  std::int64_t own = lease.own_blocks;
  std::int64_t kept = caching_ && resume_key != 0 ? std::min(own_full, own) : 0;
  if (kept > 0 && find(resume_key) != kNone) kept = 0;
  enqueue_nameless(own - kept);
  if (kept > 0) {
    const std::uint32_t entry = insert(resume_key);
    entries_[entry].blocks = kept;
    enqueue(entry);
  }
  free_ += own;
  for (std::size_t i = lease.entries.size(); i-- > 0;) {
    const std::uint32_t entry = lease.entries[i];
    Entry& e = entries_[entry];
    if (--e.holders > 0) continue;
    free_ += e.blocks;
    e.blocks == 0 ? drop_entry(entry) : enqueue(entry);
  }
  lease.entries.clear();
  lease.own_blocks = lease.shared_blocks = lease.named = 0;
}

}  // namespace medley
