#include "sim/engine/fluid_timers.h"

namespace medley {

void FluidTimers::set(std::uint32_t id, FineTime time) {
  const std::uint32_t p = position(id);
  if (p == kNowhere) {
    heap_.emplace_back();
    sift_up(heap_.size() - 1, {time, id});
  } else if (time < heap_[p].time) {
    sift_up(p, {time, id});
  } else {
    sift_down(p, {time, id});
  }
}

void FluidTimers::set_unordered(std::uint32_t id, FineTime time) {
  std::uint32_t& p = position(id);
  if (p == kNowhere) {
    p = static_cast<std::uint32_t>(heap_.size());
    heap_.push_back({time, id});
  } else {
    heap_[p].time = time;
  }
}

void FluidTimers::restore() {
  if (heap_.size() < 2) return;
  for (std::size_t p = (heap_.size() - 2) / 4 + 1; p-- > 0;) sift_down(p, heap_[p]);
}

void FluidTimers::erase(std::uint32_t id) {
  const std::uint32_t p = position(id);
  if (p == kNowhere) return;
  position(id) = kNowhere;
  const Entry last = heap_.back();
  heap_.pop_back();
  if (p == heap_.size()) return;
  if (p > 0 && less(last, heap_[(p - 1) / 4])) {
    sift_up(p, last);
  } else {
    sift_down(p, last);
  }
}

void FluidTimers::sift_up(std::size_t p, Entry e) {
  while (p > 0) {
    const std::size_t parent = (p - 1) / 4;
    if (!less(e, heap_[parent])) break;
    place(p, heap_[parent]);
    p = parent;
  }
  place(p, e);
}

void FluidTimers::sift_down(std::size_t p, Entry e) {
  const std::size_t size = heap_.size();
  for (;;) {
    const std::size_t first = 4 * p + 1;
    if (first >= size) break;
    const std::size_t stop = first + 4 < size ? first + 4 : size;
    std::size_t least = first;
    for (std::size_t child = first + 1; child < stop; ++child) {
      least = less(heap_[child], heap_[least]) ? child : least;
    }
    if (!less(heap_[least], e)) break;
    place(p, heap_[least]);
    p = least;
  }
  place(p, e);
}

}  // namespace medley
