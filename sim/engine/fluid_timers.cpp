#include "sim/engine/fluid_timers.h"

namespace medley {

void FluidTimers::set(std::uint32_t id, FineTime time) {
  const PackedKey key = key_of(time);
  const std::uint32_t p = position(id);
  if (p != kNowhere) {
    if (key < key_at(p)) {
      sift_up(p, key, id);
    } else {
      sift_down(p, key, id);
    }
  } else if (hole_) {
    hole_ = false;
    ++size_;
    sift_down(kRoot, key, id);
  } else {
    append(kNoKey, id);
    sift_up(end() - 1, key, id);
  }
}

void FluidTimers::set_unordered(std::uint32_t id, FineTime time) {
  if (hole_) settle();
  const std::uint32_t p = position(id);
  if (p == kNowhere) {
    append(key_of(time), id);
  } else {
    key_at(p) = key_of(time);
  }
}

void FluidTimers::restore() {
  if (hole_) settle();
  for (std::uint32_t p = (end() >> 2) + 2; p >= kRoot; --p) {
    if (p < end()) sift_down(p, key_at(p), ids_[p]);
  }
}

void FluidTimers::erase(std::uint32_t id) {
  const std::uint32_t p = position(id);
  if (p == kNowhere) return;
  position(id) = kNowhere;
  --size_;
  if (p == kRoot) {
    key_at(kRoot) = 0;
    hole_ = true;
  } else {
    remove_at(p);
  }
}

void FluidTimers::append(PackedKey key, std::uint32_t id) {
  const std::uint32_t p = end();
  ++size_;
  if (p >> 2 == lines_.size()) {
    lines_.push_back(Line{{kNoKey, kNoKey, kNoKey, kNoKey}});
    ids_.resize(lines_.size() * 4);
  }
  place(p, key, id);
}

void FluidTimers::settle() {
  hole_ = false;
  remove_at(kRoot);
}

// The last fills the gap at p, which is counted no more.
void FluidTimers::remove_at(std::uint32_t p) {
  const std::uint32_t last = end();
  const PackedKey moved = key_at(last);
  const std::uint32_t id = ids_[last];
  key_at(last) = kNoKey;
  if (p == last) return;
  if (p != kRoot && moved < key_at((p >> 2) + 2)) {
    sift_up(p, moved, id);
  } else {
    sift_down(p, moved, id);
  }
}

void FluidTimers::sift_up(std::uint32_t p, PackedKey key, std::uint32_t id) {
  while (p != kRoot) {
    const std::uint32_t parent = (p >> 2) + 2;
    const PackedKey above = key_at(parent);
    if (above <= key) break;
    place(p, above, ids_[parent]);
    p = parent;
  }
  place(p, key, id);
}

void FluidTimers::sift_down(std::uint32_t p, PackedKey key, std::uint32_t id) {
  const std::uint32_t stop = end();
  for (;;) {
    const std::uint32_t children = (p - 2) * 4;
    if (children >= stop) break;
    const auto [least, child] = least_of_4(lines_[p - 2].key);
    if (key <= least) break;
    place(p, least, ids_[children + child]);
    p = children + child;
  }
  place(p, key, id);
}

}  // namespace medley
