#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/core/fine_time.h"

namespace medley {

/// Next completion of every running activity and every shared bottleneck: a 4-ary heap with
/// handles on exact times. Ids below kShared are activities, the others resources.
/// Law: top_time() is the least of the times set. Nothing is promised about ties.
class FluidTimers {
 public:
  static constexpr std::uint32_t kShared = 0x80000000U;

  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  FineTime top_time() const { return heap_.empty() ? FineTime::max() : heap_[0].time; }
  std::uint32_t top() const { return heap_[0].id; }
  void add_activity() { position_[0].push_back(kNowhere); }
  void add_resource() { position_[1].push_back(kNowhere); }

  /// Sets or moves.
  void set(std::uint32_t id, FineTime time);
  /// As set, but the heap is out of order until restore(): for many at once.
  void set_unordered(std::uint32_t id, FineTime time);
  void restore();
  /// Nothing happens when it is not set.
  void erase(std::uint32_t id);

 private:
  static constexpr std::uint32_t kNowhere = 0xffffffffU;
  struct Entry {
    FineTime time;
    std::uint32_t id;
  };
  static bool less(const Entry& a, const Entry& b) {
    return (a.time.whole_ns() < b.time.whole_ns()) |
           ((a.time.whole_ns() == b.time.whole_ns()) &
            (a.time.fraction_ns() < b.time.fraction_ns()));
  }
  std::uint32_t& position(std::uint32_t id) { return position_[id >> 31][id & ~kShared]; }
  void place(std::size_t p, const Entry& e) {
    heap_[p] = e;
    position(e.id) = static_cast<std::uint32_t>(p);
  }
  void sift_up(std::size_t p, Entry e);
  void sift_down(std::size_t p, Entry e);

  std::vector<Entry> heap_;
  std::vector<std::uint32_t> position_[2];  // of activities, of resources
};

}  // namespace medley
