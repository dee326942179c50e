#include "sim/serving/kv_pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/core/error.h"

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
  table_id_.assign(64, 0);
  table_entry_.assign(64, kNone);
  append(kNone, blocks);
}

// ---- the table of entries --------------------------------------------------------------------

std::uint32_t KvPool::find(std::uint64_t id) const {
  const std::size_t mask = table_id_.size() - 1;
  for (std::size_t i = home(id);; i = (i + 1) & mask) {
    if (table_entry_[i] == kNone) return kNone;
    if (table_id_[i] == id) return table_entry_[i];
  }
}

std::uint32_t KvPool::insert(std::uint64_t id) {
  if (2 * (table_used_ + 1) > table_id_.size()) grow();
  const std::uint32_t entry = new_entry(id);
  const std::size_t mask = table_id_.size() - 1;
  std::size_t i = home(id);
  while (table_entry_[i] != kNone) i = (i + 1) & mask;
  table_id_[i] = id;
  table_entry_[i] = entry;
  ++table_used_;
  return entry;
}

void KvPool::erase(std::uint64_t id) {
  const std::size_t mask = table_id_.size() - 1;
  std::size_t hole = home(id);
  while (table_id_[hole] != id || table_entry_[hole] == kNone) hole = (hole + 1) & mask;
  // Close the gap: move back what probing would no longer reach.
  for (std::size_t i = (hole + 1) & mask; table_entry_[i] != kNone; i = (i + 1) & mask) {
    if (((i - home(table_id_[i])) & mask) >= ((i - hole) & mask)) {
      table_id_[hole] = table_id_[i];
      table_entry_[hole] = table_entry_[i];
      hole = i;
    }
  }
  table_entry_[hole] = kNone;
  --table_used_;
}

void KvPool::grow() {
  const std::vector<std::uint64_t> ids = std::move(table_id_);
  const std::vector<std::uint32_t> entries = std::move(table_entry_);
  table_id_.assign(ids.size() * 2, 0);
  table_entry_.assign(ids.size() * 2, kNone);
  --table_shift_;
  const std::size_t mask = table_id_.size() - 1;
  for (std::size_t k = 0; k < ids.size(); ++k) {
    if (entries[k] == kNone) continue;
    std::size_t i = home(ids[k]);
    while (table_entry_[i] != kNone) i = (i + 1) & mask;
    table_id_[i] = ids[k];
    table_entry_[i] = entries[k];
  }
}

std::uint32_t KvPool::new_entry(std::uint64_t id) {
  if (spare_entries_.empty()) {
    entries_.push_back({id, 0, 0, kNone});
    return static_cast<std::uint32_t>(entries_.size() - 1);
  }
  const std::uint32_t e = spare_entries_.back();
  spare_entries_.pop_back();
  entries_[e] = {id, 0, 0, kNone};
  return e;
}

void KvPool::drop_entry(std::uint32_t entry) {
  erase(entries_[entry].id);
  spare_entries_.push_back(entry);
}

// ---- the free queue --------------------------------------------------------------------------

std::uint32_t KvPool::new_node() {
  if (spare_nodes_.empty()) {
    nodes_.emplace_back();
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }
  const std::uint32_t n = spare_nodes_.back();
  spare_nodes_.pop_back();
  nodes_[n] = Node{};
  return n;
}

void KvPool::append(std::uint32_t entry, std::int64_t blocks) {
  if (blocks == 0) return;
  if (entry == kNone && tail_ != kNone && nodes_[tail_].entry == kNone) {
    nodes_[tail_].blocks += blocks;
    return;
  }
  const std::uint32_t n = new_node();
  nodes_[n].entry = entry;
  nodes_[n].blocks = blocks;
  nodes_[n].previous = tail_;
  (tail_ == kNone ? head_ : nodes_[tail_].next) = n;
  tail_ = n;
  if (entry != kNone) entries_[entry].node = n;
}

void KvPool::unlink(std::uint32_t node) {
  Node& n = nodes_[node];
  (n.previous == kNone ? head_ : nodes_[n.previous].next) = n.next;
  (n.next == kNone ? tail_ : nodes_[n.next].previous) = n.previous;
  if (n.entry != kNone) entries_[n.entry].node = kNone;
  spare_nodes_.push_back(node);
}

void KvPool::take(std::int64_t count) {
  MEDLEY_CHECK(count <= free_, "KV pool: more blocks taken than are free");
  free_ -= count;
  note_used();
  while (count > 0) {
    Node& n = nodes_[head_];
    const std::int64_t from_here = std::min(count, n.blocks);
    n.blocks -= from_here;
    count -= from_here;
    if (n.entry != kNone) {
      entries_[n.entry].blocks = n.blocks;
      if (n.blocks == 0) {
        const std::uint32_t entry = n.entry;
        unlink(head_);
        drop_entry(entry);
        continue;
      }
    }
    if (n.blocks == 0) unlink(head_);
  }
}

void KvPool::hold(std::uint32_t entry) {
  Entry& e = entries_[entry];
  if (e.holders++ == 0 && e.node != kNone) {
    free_ -= e.blocks;
    unlink(e.node);
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
    if (present > left) {
      free_ += present - left;
      append(kNone, present - left);
    }
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

void KvPool::release(KvLease& lease, std::uint64_t resume_key, std::int64_t own_full) {
  std::int64_t own = lease.own_blocks;
  std::int64_t kept = caching_ && resume_key != 0 ? std::min(own_full, own) : 0;
  if (kept > 0 && find(resume_key) != kNone) kept = 0;
  append(kNone, own - kept);
  if (kept > 0) {
    const std::uint32_t entry = insert(resume_key);
    entries_[entry].blocks = kept;
    append(entry, kept);
  }
  free_ += own;
  for (std::size_t i = lease.entries.size(); i-- > 0;) {
    const std::uint32_t entry = lease.entries[i];
    Entry& e = entries_[entry];
    if (--e.holders > 0) continue;
    free_ += e.blocks;
    if (e.blocks == 0) {
      drop_entry(entry);
    } else {
      append(entry, e.blocks);
    }
  }
  lease.entries.clear();
  lease.own_blocks = lease.shared_blocks = lease.named = 0;
}

}  // namespace medley
