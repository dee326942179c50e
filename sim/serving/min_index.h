#pragma once

#include <cstdint>
#include <vector>

namespace medley {

/// The smallest of n values that change one at a time: a winner tree, O(log n) per change, O(1) to
/// ask. Equal values go to the one least recently chosen (its stamp), so that ties take turns.
class MinIndex {
 public:
  explicit MinIndex(std::size_t n = 0) : leaves_(1) {
    while (leaves_ < n) leaves_ *= 2;
    size_ = n;
    value_.assign(n, 0.0);
    stamp_.assign(n, 0);
    winner_.assign(2 * leaves_, kNone);
    for (std::size_t i = 0; i < n; ++i) winner_[leaves_ + i] = static_cast<std::uint32_t>(i);
    for (std::size_t i = leaves_; i-- > 1;) play(i);
  }
  void set(std::size_t i, double value) {
    value_[i] = value;
    update(i);
  }
  void add(std::size_t i, double delta) { set(i, value_[i] + delta); }
  /// Notes that `i` was chosen now.
  void touch(std::size_t i) {
    stamp_[i] = ++clock_;
    update(i);
  }
  double value(std::size_t i) const { return value_[i]; }
  std::size_t top() const { return winner_[1]; }
  std::size_t size() const { return size_; }

 private:
  static constexpr std::uint32_t kNone = 0xffffffffU;
  bool less(std::uint32_t a, std::uint32_t b) const {
    if (a == kNone || b == kNone) return b == kNone;
    if (value_[a] != value_[b]) return value_[a] < value_[b];
    return stamp_[a] != stamp_[b] ? stamp_[a] < stamp_[b] : a < b;
  }
  void play(std::size_t node) {
    const std::uint32_t a = winner_[2 * node];
    const std::uint32_t b = winner_[2 * node + 1];
    winner_[node] = less(a, b) ? a : b;
  }
  void update(std::size_t i) {
    for (std::size_t node = (leaves_ + i) / 2; node >= 1; node /= 2) play(node);
  }

  std::size_t leaves_;
  std::size_t size_ = 0;
  std::uint64_t clock_ = 0;
  std::vector<double> value_;
  std::vector<std::uint64_t> stamp_;
  std::vector<std::uint32_t> winner_;
};

}  // namespace medley
