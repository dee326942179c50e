#include "sim/network/delay_queue.h"

#include <algorithm>
#include <tuple>

namespace medley {

namespace {
bool delay_later(const DelayQueue::Entry& a, const DelayQueue::Entry& b) {
  return std::tie(a.time, a.order) > std::tie(b.time, b.order);
}
}  // namespace

void DelayQueue::Ring::push(const Entry& e) {
  if (count == entries.size()) {
    std::vector<Entry> larger(std::max<std::size_t>(16, 2 * entries.size()));
    for (std::size_t i = 0; i < count; ++i) larger[i] = entries[(head + i) & (count - 1)];
    entries.swap(larger);
    head = 0;
  }
  entries[(head + count) & (entries.size() - 1)] = e;
  ++count;
}

void DelayQueue::push(FineTime now, double delay_s, std::uint32_t slot, std::uint32_t generation) {
  const Entry e{now.after(delay_s), order_++, slot, generation};
  std::size_t c = 0;
  while (c < rings_.size() && rings_[c].delay_s != delay_s) ++c;
  if (c == rings_.size() && c < kClasses) rings_.push_back({delay_s, {}, 0, 0});
  if (c < rings_.size()) {
    rings_[c].push(e);
  } else {
    heap_.push_back(e);
    std::push_heap(heap_.begin(), heap_.end(), delay_later);
  }
  if (size_++ == 0 || e.time < next_) find_next();
}

DelayQueue::Entry DelayQueue::pop() {
  Entry e;
  if (next_ring_ < rings_.size()) {
    e = rings_[next_ring_].front();
    rings_[next_ring_].pop();
  } else {
    std::pop_heap(heap_.begin(), heap_.end(), delay_later);
    e = heap_.back();
    heap_.pop_back();
  }
  --size_;
  find_next();
  return e;
}

void DelayQueue::find_next() {
  const Entry* best = heap_.empty() ? nullptr : &heap_.front();
  next_ring_ = rings_.size();
  for (std::size_t c = 0; c < rings_.size(); ++c) {
    if (rings_[c].count == 0) continue;
    const Entry& e = rings_[c].front();
    if (best == nullptr || delay_later(*best, e)) {
      best = &e;
      next_ring_ = c;
    }
  }
  next_ = best == nullptr ? FineTime::max() : best->time;
}

}  // namespace medley
