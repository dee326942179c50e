#include "sim/engine/event_queue.h"

#include <algorithm>

#include "sim/core/error.h"
#include "sim/engine/packed_key.h"

namespace medley {

namespace {
constexpr std::uint64_t kSequenceMask = EventQueue::kSequenceLimit - 1;
constexpr std::uint32_t kPrefetchFrom = 1U << 14;  // below, the heap sits in L2

std::uint64_t splitmix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}
}  // namespace

EventQueue::EventQueue(std::optional<std::uint64_t> tie_seed)
    : tie_seed_(splitmix(tie_seed.value_or(0))), permute_ties_(tie_seed.has_value()) {
  lines_.assign(2, Line{{kNoKey, kNoKey, kNoKey, kNoKey}});
}

void EventQueue::reserve(std::size_t events) {
  MEDLEY_CHECK(events <= kMaxPending, "more events pending than the queue can number (2^24)");
  lines_.reserve((events + kRoot + 3) / 4);
  slots_.reserve(events);
  bodies_.reserve(events);
}

EventHandle EventQueue::push(SimTime time, EventClass cls, const EventBody& body) {
  // One unsigned comparison refuses negative times and SimTime::max(), which means never.
  MEDLEY_CHECK(static_cast<std::uint64_t>(time.ns()) < INT64_MAX, "event time out of range");
  const std::uint32_t slot = take_slot();
  bodies_[slot] = body;
  const Key key = make_key(time, cls, slot);
  const std::uint32_t p = end();
  ++size_;
  if (hole_) {
    hole_ = false;
    sift_down(kRoot, key);
    return EventHandle(slot, slots_[slot].generation);
  }
  if ((p & 3) == 0 && p >> 2 == lines_.size()) {
    lines_.push_back(Line{{kNoKey, kNoKey, kNoKey, kNoKey}});
  }
  sift_up(p, key);
  return EventHandle(slot, slots_[slot].generation);
}

Event EventQueue::pop() {
  MEDLEY_CHECK(size_ != 0, "pop from an empty event queue");
  if (hole_) settle();
  const Key key = key_at(kRoot);
  const std::uint32_t slot = slot_of(key);
  Event event{key_time(key), key_class(key), bodies_[slot]};
  release_slot(slot);
  key_at(kRoot) = 0;
  hole_ = true;
  --size_;
  return event;
}

EventQueue::Key EventQueue::top_below_hole() const {
  return least_of_4(lines_[kRoot - 2].key).key;
}

void EventQueue::settle() {
  ++size_;
  hole_ = false;
  remove_at(kRoot);
}

bool EventQueue::cancel(EventHandle handle) {
  if (!pending(handle)) return false;
  const std::uint32_t p = slots_[handle.slot_].position;
  release_slot(handle.slot_);
  remove_at(p);
  return true;
}

bool EventQueue::reschedule(EventHandle handle, SimTime time) {
  if (!pending(handle)) return false;
  MEDLEY_CHECK(static_cast<std::uint64_t>(time.ns()) < INT64_MAX, "event time out of range");
  const std::uint64_t order = next_order();  // may renumber, so before the position is read
  const std::uint32_t p = slots_[handle.slot_].position;
  const Key old = key_at(p);
  const Key key = first_key(time, key_class(old)) | Key{order << kSlotBits | handle.slot_};
  if (key < old) {
    sift_up(p, key);
  } else {
    sift_down(p, key);
  }
  return true;
}

bool EventQueue::pending(EventHandle handle) const {
  return handle.slot_ < slots_.size() && slots_[handle.slot_].generation == handle.generation_;
}

std::optional<SimTime> EventQueue::time_of(EventHandle handle) const {
  if (!pending(handle)) return std::nullopt;
  return key_time(key_at(slots_[handle.slot_].position));
}

std::optional<EventClass> EventQueue::class_of(EventHandle handle) const {
  if (!pending(handle)) return std::nullopt;
  return key_class(key_at(slots_[handle.slot_].position));
}

EventQueue::Key EventQueue::make_key(SimTime time, EventClass cls, std::uint32_t slot) {
  return first_key(time, cls) | Key{next_order() << kSlotBits | slot};
}

std::uint64_t EventQueue::next_order() {
  if (next_sequence_ == kSequenceLimit) [[unlikely]]
    renumber();
  const std::uint64_t sequence = next_sequence_++;
  return permute_ties_ ? permuted(sequence) : sequence;
}

// A bijection of 37-bit integers (odd multiplications, xor-shifts), so permuted keys stay unique.
std::uint64_t EventQueue::permuted(std::uint64_t sequence) const {
  std::uint64_t x = (sequence ^ tie_seed_) & kSequenceMask;
  for (int round = 0; round < 3; ++round) {
    x = (x * 0x9e3779b97f4a7c15U + tie_seed_) & kSequenceMask;
    x ^= x >> 19;
  }
  return x;
}

// Pending events take sequences 0.. in their present order, from which a sorted array is the heap.
void EventQueue::renumber() {
  if (hole_) settle();
  std::vector<Key> keys(size_);
  for (std::uint32_t i = 0; i < size_; ++i) keys[i] = key_at(kRoot + i);
  std::sort(keys.begin(), keys.end());
  const auto rewrite = [](Key key, std::uint64_t order) {
    const Key kept = key & (~Key{0} << kClassShift | kSlotMask);
    return kept | Key{order << kSlotBits};
  };
  for (std::uint32_t i = 0; i < size_; ++i) {
    keys[i] = rewrite(keys[i], permute_ties_ ? permuted(i) : i);
  }
  if (permute_ties_) std::sort(keys.begin(), keys.end());
  for (std::uint32_t i = 0; i < size_; ++i) place(kRoot + i, keys[i]);
  next_sequence_ = size_;
}

std::uint32_t EventQueue::take_slot() {
  if (free_slot_ == EventHandle::kNone) [[unlikely]]
    add_slots();
  const std::uint32_t slot = free_slot_;
  free_slot_ = slots_[slot].position;
  return slot;
}

void EventQueue::release_slot(std::uint32_t slot) {
  ++slots_[slot].generation;
  slots_[slot].position = free_slot_;
  free_slot_ = slot;
}

void EventQueue::add_slots() {
  MEDLEY_CHECK(slots_.size() < kMaxPending,
               "more events pending than the queue can number (2^24); trace arrivals belong in an "
               "ArrivalSource");
  free_slot_ = static_cast<std::uint32_t>(slots_.size());
  slots_.push_back(Slot{EventHandle::kNone, 0});
  bodies_.emplace_back();
}

void EventQueue::place(std::uint32_t p, Key key) {
  key_at(p) = key;
  slots_[slot_of(key)].position = p;
}

void EventQueue::sift_up(std::uint32_t p, Key key) {
  while (p != kRoot) {
    const std::uint32_t parent = (p >> 2) + 2;
    const Key above = key_at(parent);
    if (above < key) break;
    place(p, above);
    p = parent;
  }
  place(p, key);
}

void EventQueue::sift_down(std::uint32_t p, Key key) {
  const std::uint32_t stop = end();
  const bool prefetch = size_ >= kPrefetchFrom;
  const Line* lines = lines_.data();
  for (;;) {
    const std::uint32_t children = (p - 2) * 4;
    if (children >= stop) break;
    if (prefetch && children * 4 < stop) {
      for (std::uint32_t i = 0; i < 4; ++i) __builtin_prefetch(lines + (children - 2 + i));
    }
    const auto [least, child] = least_of_4(lines[p - 2].key);
    if (key < least) break;
    place(p, least);
    p = children + child;
  }
  place(p, key);
}

// The last key fills the gap at p.
void EventQueue::remove_at(std::uint32_t p) {
  const std::uint32_t last = end() - 1;
  const Key moved = key_at(last);
  key_at(last) = kNoKey;
  --size_;
  if (p == last) return;
  if (p != kRoot && moved < key_at((p >> 2) + 2)) {
    sift_up(p, moved);
  } else {
    sift_down(p, moved);
  }
}

}  // namespace medley
