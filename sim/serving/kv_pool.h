#pragma once

#include <cstdint>
#include <vector>

namespace medley {

class KvBacking;

/// What one request holds of a KvPool.
struct KvLease {
  std::vector<std::uint32_t> entries;  ///< shared prefix entries, in prompt order
  std::int64_t shared_blocks = 0;      ///< of the held entries, as far as this request uses them
  std::int64_t own_blocks = 0;         ///< the others: past the ids, not yet full, or duplicates
  std::int64_t named = 0;              ///< leading blocks whose naming is settled
  std::int64_t blocks() const { return shared_blocks + own_blocks; }
};

/// The paged KV cache of one replica, with prefix caching by block hash as in vLLM V1.
///
/// Blocks are in use, or free. Free ones queue in order of last use; a request that ends returns
/// its blocks last block first, so the tail of a prompt is evicted before its head. A free block
/// keeps its content until it is taken again, and can be hit meanwhile.
///
/// One prefix id stands for `entry_tokens` tokens (a whole number of blocks) and is ONE entry, held
/// or queued as a run of blocks: work per request grows with its ids, not with its blocks. Blocks
/// that no id names (decode output, prompts without ids) can never be hit by another request; they
/// are counted, not tracked.
///
/// Law (INV-4): used + free = total after every call; no block has two owners but shared entries.
class KvPool {
 public:
  /// `entry_tokens` 0: no ids in this workload. Throws InputError when it is no multiple of the
  /// block.
  KvPool(std::int64_t blocks, std::int32_t block_tokens, std::int32_t entry_tokens, bool caching);

  std::int64_t total() const { return total_; }
  std::int64_t free() const { return free_; }
  std::int64_t used() const { return total_ - free_; }
  std::int64_t peak_used() const { return peak_used_; }
  std::int32_t block_tokens() const { return block_tokens_; }
  std::int64_t entry_blocks() const { return entry_blocks_; }
  bool caching() const { return caching_; }
  /// Tiers below: they are offered what is about to be overwritten. They may not call back.
  void set_backing(KvBacking* backing) { backing_ = backing; }
  std::int64_t blocks_for(std::int64_t tokens) const {
    return (tokens + block_tokens_ - 1) / block_tokens_;
  }

  /// The longest cached prefix of a prompt of `tokens` tokens, the first `id_tokens` of them named
  /// by ids[0..count); at most tokens - 1 of them, since the last one must be computed.
  /// `resume_key` names the request's own blocks of an earlier life (preemption), 0: none.
  struct Hit {
    std::int64_t blocks = 0;
    std::int64_t evictable = 0;  ///< of `blocks`, those that count as free now
    std::uint32_t ids = 0;       ///< leading ids found (the last one perhaps in part)
    bool resumed = false;        ///< the request's own entry is part of it
  };
  Hit lookup(const std::uint64_t* ids, std::uint32_t count, std::int64_t id_tokens,
             std::int64_t tokens, std::uint64_t resume_key) const;

  /// Takes the blocks of `hit` for `lease` (which must be empty).
  void acquire(const Hit& hit, const std::uint64_t* ids, std::uint64_t resume_key, KvLease& lease);
  /// Extends `lease` so that it holds blocks for `tokens` tokens of a prompt with these ids; ids
  /// wholly or partly computed become entries others can hit. The caller has checked that
  /// blocks_for(tokens) - lease.blocks() <= free().
  void extend(const std::uint64_t* ids, std::uint32_t count, std::int64_t id_tokens,
              std::int64_t tokens, KvLease& lease);
  /// `count` blocks for decode tokens of some lease (the caller adds them to own_blocks).
  void take(std::int64_t count);
  /// Returns `count` of the lease's own blocks.
  void give_back(std::int64_t count, KvLease& lease);
  /// Returns everything. `resume_key` != 0 and caching: the request's own full blocks stay findable
  /// under that key (`own_full` of them).
  void release(KvLease& lease, std::uint64_t resume_key, std::int64_t own_full);
  /// Names blocks computed past the prompt by the ids that follow it (a session's next turn will
  /// ask for them): ids[0..count) over `tokens` computed tokens.
  void publish(const std::uint64_t* ids, std::uint32_t count, std::int64_t tokens, KvLease& lease);

 private:
  static constexpr std::uint32_t kNone = 0xffffffffU;
  /// A run of blocks under one name, or a run of free blocks without content worth finding. In the
  /// free queue (linked by previous and next) exactly when nobody holds it.
  struct Entry {
    std::uint64_t id = 0;
    std::int64_t blocks = 0;  ///< present, from its first block on
    std::uint32_t holders = 0;
    std::uint32_t previous = kNone, next = kNone;
    bool named = false;
  };
  struct Slot {  ///< of the table; empty when entry is kNone
    std::uint64_t id = 0;
    std::uint32_t entry = kNone;
  };

  void name_blocks(const std::uint64_t* ids, std::uint32_t count, std::int64_t upto,
                   KvLease& lease);
  std::uint32_t find(std::uint64_t id) const;
  std::uint32_t insert(std::uint64_t id);
  void erase(std::uint64_t id);
  void grow();
  std::uint32_t new_entry(std::uint64_t id, bool named);
  void drop_entry(std::uint32_t entry);
  void enqueue(std::uint32_t entry);
  void enqueue_nameless(std::int64_t blocks);
  void unlink(std::uint32_t entry);
  void hold(std::uint32_t entry);
  void note_used() {
    if (used() > peak_used_) peak_used_ = used();
  }

  std::int64_t total_, free_;
  std::int64_t peak_used_ = 0;
  std::int32_t block_tokens_;
  std::int32_t entry_tokens_;
  std::int64_t entry_blocks_;
  bool caching_;
  KvBacking* backing_ = nullptr;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> spare_entries_;
  std::uint32_t head_ = kNone, tail_ = kNone;
  // Open addressing, linear probing, at most half full. Four neighbouring ids share a home line, so
  // the sequential ids of traces lie together without forming long runs.
  std::size_t home(std::uint64_t id) const {
    return static_cast<std::size_t>((((id >> 2) * 0x9e3779b97f4a7c15ULL) >> table_shift_) +
                                    (id & 3)) &
           (table_.size() - 1);
  }
  int table_shift_ = 58;
  std::vector<Slot> table_;
  std::size_t table_used_ = 0;
};

}  // namespace medley
