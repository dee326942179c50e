#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace medley {

/// One level of KV storage below a replica's own blocks: whole prefix entries (one id of the trace
/// each, or the blocks of a preempted request), present from their first block on. Bookkeeping
/// only: who moves bytes calls it.
///
/// An entry is coming (its room is taken, its bytes are under way: no hit yet), present, or present
/// and being read. Present entries that nobody reads leave in order of last use when room is
/// needed. Copies: recalling an entry does not take it away.
///
/// Law (INV-4): used() = sum of blocks of all entries, coming ones included, <= capacity() after
/// every call; what is coming or being read is never evicted.
class KvTier {
 public:
  struct Piece {
    std::uint64_t id = 0;
    std::int64_t blocks = 0;
  };
  explicit KvTier(std::int64_t capacity_blocks) : capacity_(capacity_blocks) {}

  std::int64_t capacity() const { return capacity_; }
  std::int64_t used() const { return used_; }
  std::int64_t peak() const { return peak_; }
  /// Blocks of `id` that could be read now.
  std::int64_t find(std::uint64_t id) const;
  /// Blocks of `id` that are here or coming.
  std::int64_t known(std::uint64_t id) const;
  /// Counts as a use.
  void touch(std::uint64_t id);
  /// Takes room so that `id` may grow to `blocks` (> known(id), nothing of it coming); what has to
  /// go for that is appended to `evicted`. False, with nothing changed: there is no such room.
  bool reserve(std::uint64_t id, std::int64_t blocks, std::vector<Piece>& evicted);
  /// What reserve took room for is there.
  void arrived(std::uint64_t id);
  /// It never will be: the room is free again.
  void cancel(std::uint64_t id);
  void hold(std::uint64_t id);     ///< being read; find(id) > 0
  void release(std::uint64_t id);  ///< one reader less; counts as a use
  /// Gone, as soon as nothing of it moves.
  void erase(std::uint64_t id);
  void clear();  ///< erases everything

 private:
  static constexpr std::uint32_t kNone = 0xffffffffU;
  struct Entry {
    std::uint64_t id = 0;
    std::int64_t blocks = 0;  ///< present
    std::int64_t coming = 0;
    std::uint32_t readers = 0;
    std::uint32_t previous = kNone, next = kNone;
    bool queued = false;  ///< evictable
    bool dead = false;    ///< erased while it moved
  };
  std::uint32_t index_of(std::uint64_t id) const;
  void settle(std::uint32_t entry);
  void unlink(std::uint32_t entry);
  void drop(std::uint32_t entry);

  std::int64_t capacity_;
  std::int64_t used_ = 0, peak_ = 0;
  std::int64_t evictable_ = 0;  ///< blocks in the queue
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> spare_;
  std::unordered_map<std::uint64_t, std::uint32_t> index_;  ///< looked up, never iterated
  std::uint32_t head_ = kNone, tail_ = kNone;               ///< least, most recently used
};

}  // namespace medley
