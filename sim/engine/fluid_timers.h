#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/core/fine_time.h"
#include "sim/engine/packed_key.h"

namespace medley {

/// Next completion of every running activity and every lone bottleneck. Ids below kShared are
/// activities, the others resources.
///
/// A 4-ary array heap with handles on exact times, laid out as in EventQueue: whole nanoseconds and
/// the bits of the fraction packed into one key, the four children of a node in one cache line, and
/// an open root after the first has been taken out, so that "one ends, one starts" is one descent.
/// Law: top_time() is the least of the times set. Nothing is promised about ties.
class FluidTimers {
 public:
  static constexpr std::uint32_t kShared = 0x80000000U;

  FluidTimers() : lines_(2, Line{{kNoKey, kNoKey, kNoKey, kNoKey}}), ids_(8, 0) {}
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  /// FineTime::max() when empty.
  FineTime top_time() const { return size_ == 0 ? FineTime::max() : time_of(key_at(top_place())); }
  std::uint32_t top() const { return ids_[top_place()]; }
  void add_activity() { position_[0].push_back(kNowhere); }
  void add_resource() { position_[1].push_back(kNowhere); }

  /// Sets or moves. `time` >= 0.
  void set(std::uint32_t id, FineTime time);
  /// As set, but the heap is out of order until restore(): for many at once.
  void set_unordered(std::uint32_t id, FineTime time);
  void restore();
  /// Nothing happens when it is not set.
  void erase(std::uint32_t id);

 private:
  static constexpr std::uint32_t kNowhere = 0xffffffffU;
  static constexpr PackedKey kNoKey = ~PackedKey{0};
  // Positions start at 3, so that the children of position p are the four keys of line p - 2 and
  // the parent of a position in line l is l + 2. Keys at and past the end are kNoKey.
  static constexpr std::uint32_t kRoot = 3;
  struct alignas(64) Line {
    PackedKey key[4];
  };
  struct Parts {
    std::int64_t ns;
    double fraction;
  };
  static_assert(sizeof(Parts) == sizeof(FineTime));

  static PackedKey key_of(FineTime t) {
    return PackedKey{static_cast<std::uint64_t>(t.whole_ns())} << 64 |
           std::bit_cast<std::uint64_t>(t.fraction_ns());
  }
  static FineTime time_of(PackedKey key) {
    return std::bit_cast<FineTime>(Parts{static_cast<std::int64_t>(key >> 64),
                                         std::bit_cast<double>(static_cast<std::uint64_t>(key))});
  }
  PackedKey& key_at(std::uint32_t p) { return lines_[p >> 2].key[p & 3]; }
  PackedKey key_at(std::uint32_t p) const { return lines_[p >> 2].key[p & 3]; }
  std::uint32_t end() const { return size_ + kRoot + (hole_ ? 1U : 0U); }
  std::uint32_t top_place() const {
    return hole_ ? 4 + least_of_4(lines_[kRoot - 2].key).index : kRoot;
  }
  std::uint32_t& position(std::uint32_t id) { return position_[id >> 31][id & ~kShared]; }
  void place(std::uint32_t p, PackedKey key, std::uint32_t id) {
    key_at(p) = key;
    ids_[p] = id;
    position(id) = p;
  }
  void append(PackedKey key, std::uint32_t id);
  void remove_at(std::uint32_t p);
  void settle();
  void sift_up(std::uint32_t p, PackedKey key, std::uint32_t id);
  void sift_down(std::uint32_t p, PackedKey key, std::uint32_t id);

  std::vector<Line> lines_;
  std::vector<std::uint32_t> ids_;          // by place
  std::vector<std::uint32_t> position_[2];  // of activities, of resources
  std::uint32_t size_ = 0;
  bool hole_ = false;  // at the root, as key 0; not counted
};

}  // namespace medley
