#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/fine_time.h"

namespace medley {

/// What waits for a fixed delay, in order of (end, push). As `now` never goes back, entries of
/// equal delay end in the order they came: one ring buffer per distinct delay, constant time for
/// the few latencies that a topology has; beyond kClasses of them a binary heap.
class DelayQueue {
 public:
  struct Entry {
    FineTime time;
    std::uint64_t order = 0;
    std::uint32_t slot = 0;
    std::uint32_t generation = 0;
  };

  /// `now` >= every `now` before; `delay_s` >= 0.
  void push(FineTime now, double delay_s, std::uint32_t slot, std::uint32_t generation);
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  /// FineTime::max() when empty.
  FineTime next_time() const { return next_; }
  /// The first entry; not empty.
  Entry pop();

 private:
  static constexpr std::size_t kClasses = 24;
  struct Ring {
    double delay_s = 0.0;
    std::vector<Entry> entries;  // a power of two of them
    std::size_t head = 0, count = 0;

    const Entry& front() const { return entries[head]; }
    void push(const Entry& e);
    void pop() {
      head = (head + 1) & (entries.size() - 1);
      --count;
    }
  };
  void find_next();

  std::vector<Ring> rings_;
  std::vector<Entry> heap_;
  FineTime next_ = FineTime::max();
  std::size_t next_ring_ = 0;  // rings_.size(): the heap
  std::size_t size_ = 0;
  std::uint64_t order_ = 0;
};

}  // namespace medley
