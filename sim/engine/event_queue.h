#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/engine/event.h"

namespace medley {

/// The pending events, smallest (time, EventClass, sequence) first; sequence counts pushes and
/// reschedules, so ties are served first in, first out.
///
/// A 4-ary array heap whose entries are the packed keys themselves:
///
///     time 64 | class 3 | sequence 37 | slot 24        (128 bits, compared as one integer)
///
/// The four children of a node share a cache line and the smallest is found without a branch.
/// Bodies live in a slab that never moves; slot -> heap position makes cancel and reschedule
/// O(log n) without lazy deletion. Push, pop, cancel and reschedule allocate nothing once the
/// arrays have grown to the largest number of events ever pending.
///
/// Cost: log4(n) levels. Measured against a radix heap, pairing heap and std containers; the
/// figures and the program are tools/bench/bench_engine.cpp.
/// Limits: 2^24 events pending; times in [0, SimTime::max()). Sequences are renumbered in order
/// every 2^37 pushes, so a run may be of any length.
class EventQueue {
 public:
  __extension__ using Key = unsigned __int128;
  /// Greater than every key in use: what `top_key` says of an empty queue.
  static constexpr Key kNoKey = ~Key{0};
  static constexpr std::size_t kMaxPending = std::size_t{1} << 24;

  /// With a seed, events of equal (time, class) come in an order drawn from the seed instead of
  /// first in, first out: a model whose results then change depends on accidental order.
  explicit EventQueue(std::optional<std::uint64_t> tie_seed = std::nullopt);

  EventHandle push(SimTime time, EventClass cls, const EventBody& body);
  /// Removes and returns the first event; the queue must not be empty.
  Event pop();
  /// False when the event has already fired or been cancelled.
  bool cancel(EventHandle handle);
  /// Moves a pending event to another time, as if cancelled and pushed again: it goes behind the
  /// events already pending at that (time, class). False as for cancel.
  bool reschedule(EventHandle handle, SimTime time);

  bool pending(EventHandle handle) const;
  /// Time of a pending event; nullopt once it fired or was cancelled.
  std::optional<SimTime> time_of(EventHandle handle) const;
  std::optional<EventClass> class_of(EventHandle handle) const;

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  void reserve(std::size_t events);

  /// Key of the first event, kNoKey when empty. Keys of different queues compare by (time, class).
  Key top_key() const { return hole_ ? top_below_hole() : lines_[0].key[kRoot]; }
  /// The smallest key that an event of this (time, class) can have.
  static constexpr Key first_key(SimTime time, EventClass cls) {
    return Key{static_cast<std::uint64_t>(time.ns())} << 64 | Key{static_cast<std::uint8_t>(cls)}
                                                                  << kClassShift;
  }
  static constexpr SimTime key_time(Key key) {
    return SimTime::from_ns(static_cast<std::int64_t>(key >> 64));
  }
  static constexpr EventClass key_class(Key key) {
    return static_cast<EventClass>(static_cast<std::uint64_t>(key) >> kClassShift);
  }

  static constexpr std::uint64_t kSequenceLimit = std::uint64_t{1} << 37;

 private:
  friend struct EventQueueTestAccess;
  static constexpr unsigned kSlotBits = 24;
  static constexpr unsigned kClassShift = 61;
  static constexpr std::uint32_t kSlotMask = (1U << kSlotBits) - 1;
  // Heap positions start at 3, so that the children of position p are the four keys of cache line
  // p - 2 and the parent of a position in line l is l + 2. Keys at and past the end are kNoKey.
  static constexpr std::uint32_t kRoot = 3;

  struct alignas(64) Line {
    Key key[4];
  };
  struct Slot {
    std::uint32_t position;  // in the heap; of a free slot: the next free one
    std::uint32_t generation;
  };

  Key& key_at(std::uint32_t p) { return lines_[p >> 2].key[p & 3]; }
  Key key_at(std::uint32_t p) const { return lines_[p >> 2].key[p & 3]; }
  static std::uint32_t slot_of(Key key) { return static_cast<std::uint32_t>(key) & kSlotMask; }
  std::uint32_t end() const { return size_ + kRoot + (hole_ ? 1U : 0U); }
  Key top_below_hole() const;
  void settle();
  Key make_key(SimTime time, EventClass cls, std::uint32_t slot);
  std::uint64_t next_order();
  std::uint64_t permuted(std::uint64_t sequence) const;
  std::uint32_t take_slot();
  void release_slot(std::uint32_t slot);
  void add_slots();
  void place(std::uint32_t p, Key key);
  void sift_up(std::uint32_t p, Key key);
  void sift_down(std::uint32_t p, Key key);
  void remove_at(std::uint32_t p);
  void renumber();

  std::vector<Line> lines_;
  std::vector<Slot> slots_;
  std::vector<EventBody> bodies_;  // by slot
  std::uint32_t size_ = 0;
  std::uint32_t free_slot_ = EventHandle::kNone;
  std::uint64_t next_sequence_ = 0;
  std::uint64_t tie_seed_ = 0;
  bool permute_ties_ = false;
  // After a pop the root stays open, as key 0, below every other. An event that schedules one
  // successor, the common case, then costs one descent and no climb.
  bool hole_ = false;
};

}  // namespace medley
