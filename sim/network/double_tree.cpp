#include <algorithm>
#include <bit>

#include "sim/network/algorithms.h"
#include "sim/network/closed_forms.h"

namespace medley {

namespace {

/// Two binary trees over n nodes in which (almost) every node is a leaf of one. Tree 0 numbers its
/// nodes 1..n in order, so that odd numbers are leaves and a node's height is its trailing zeros;
/// tree 1 is its mirror image for even n, itself moved on by one for odd n.
/// Source: Sanders, Speck, Traeff, Two-tree algorithms for full bandwidth broadcast, reduction and
/// scan, Parallel Computing 35 (2009); the numbering by trailing zeros is a Fenwick tree's.
class TreePair {
 public:
  explicit TreePair(std::uint32_t n) : n_(n) {}
  static constexpr std::uint32_t kNone = 0xffffffffU;

  std::uint32_t root(std::uint32_t t) const { return node(t, std::bit_floor(n_)); }
  std::uint32_t parent(std::uint32_t t, std::uint32_t v) const {
    std::uint32_t j = number(t, v);
    if (j == std::bit_floor(n_)) return kNone;
    do {
      const std::uint32_t b = j & (~j + 1);
      j = (j ^ b) | (b << 1);
    } while (j > n_);
    return node(t, j);
  }
  /// Child 0 or 1.
  std::uint32_t child(std::uint32_t t, std::uint32_t v, std::uint32_t which) const {
    const std::uint32_t j = number(t, v);
    std::uint32_t b = (j & (~j + 1)) / 2;
    if (b == 0) return kNone;
    if (which == 0) return node(t, j - b);
    std::uint32_t c = j + b;
    while (c > n_) {
      b = (c & (~c + 1)) / 2;
      if (b == 0) return kNone;
      c -= b;
    }
    return node(t, c);
  }
  std::uint32_t height() const { return static_cast<std::uint32_t>(std::bit_width(n_)) - 1; }

 private:
  std::uint32_t number(std::uint32_t t, std::uint32_t v) const {
    if (t == 0) return v + 1;
    return n_ % 2 == 0 ? n_ - v : (v + 1) % n_ + 1;
  }
  std::uint32_t node(std::uint32_t t, std::uint32_t j) const {
    if (t == 0) return j - 1;
    return n_ % 2 == 0 ? n_ - j : (j + n_ - 2) % n_;
  }
  std::uint32_t n_;
};

/// Lanes: (tree, node, up or down), between the node and its parent.
class DoubleTreeProgram final : public CollectiveProgram {
 public:
  DoubleTreeProgram(std::uint32_t ranks, std::uint32_t chunks, double bytes)
      : n_(ranks), k_(chunks), bytes_(bytes), trees_(ranks) {
    std::vector<std::uint32_t> in(n_, 0), out(n_, 0);
    for (std::uint32_t l = 0; l < lanes(); ++l) {
      const CollectiveLane lane_l = lane(l);
      if (lane_l.messages == 0) continue;
      ++out[lane_l.from];
      ++in[lane_l.to];
    }
    for (std::uint32_t r = 0; r < n_; ++r) streams_ = std::max({streams_, in[r], out[r]});
  }
  std::uint32_t lanes() const override { return 4 * n_; }
  CollectiveLane lane(std::uint32_t l) const override {
    const std::uint32_t v = l / 2 % n_;
    const std::uint32_t p = trees_.parent(l / 2 / n_, v);
    if (p == TreePair::kNone) return {v, v, 0};
    return l % 2 == 0 ? CollectiveLane{v, p, k_} : CollectiveLane{p, v, k_};
  }
  double bytes(std::uint32_t, std::uint32_t) const override { return 0.5 * bytes_ / k_; }
  bool need(std::uint32_t l, std::uint32_t i, std::uint32_t k, LaneNeed& out) const override {
    const std::uint32_t t = l / 2 / n_;
    std::uint32_t v = l / 2 % n_;
    if (l % 2 == 1) {
      v = trees_.parent(t, v);
      if (v != trees_.root(t)) {
        out = {2 * (t * n_ + v) + 1, i + 1, false};
        return k == 0;
      }
    }
    // From all children of v: those that exist, in order.
    for (std::uint32_t which = 0; which < 2; ++which) {
      const std::uint32_t c = trees_.child(t, v, which);
      if (c == TreePair::kNone || k-- > 0) continue;
      out = {2 * (t * n_ + c), i + 1, false};
      return true;
    }
    return false;
  }
  double lane_share() const override { return 1.0 / streams_; }
  double closed_form(const LinkModel& m) const override {
    return tree_time(2 * trees_.height(), streams_, k_, bytes_, m);
  }
  double traffic() const override { return 2.0 * (n_ - 1) * bytes_; }

 private:
  std::uint32_t n_, k_;
  double bytes_;
  TreePair trees_;
  std::uint32_t streams_ = 1;
};

/// The root feeds the roots of two trees over the others. Lane (tree, node): into the node.
class TreeBroadcastProgram final : public CollectiveProgram {
 public:
  TreeBroadcastProgram(std::uint32_t ranks, std::uint32_t root, std::uint32_t chunks, double bytes)
      : n_(ranks), root_(root), k_(chunks), bytes_(bytes), trees_(ranks - 1) {}
  std::uint32_t lanes() const override { return 2 * (n_ - 1); }
  CollectiveLane lane(std::uint32_t l) const override {
    const std::uint32_t v = l % (n_ - 1);
    const std::uint32_t p = trees_.parent(l / (n_ - 1), v);
    return {p == TreePair::kNone ? root_ : rank(p), rank(v), k_};
  }
  double bytes(std::uint32_t, std::uint32_t) const override { return 0.5 * bytes_ / k_; }
  bool need(std::uint32_t l, std::uint32_t i, std::uint32_t k, LaneNeed& out) const override {
    const std::uint32_t t = l / (n_ - 1);
    const std::uint32_t p = trees_.parent(t, l % (n_ - 1));
    if (k > 0 || p == TreePair::kNone) return false;
    out = {t * (n_ - 1) + p, i + 1, false};
    return true;
  }
  double lane_share() const override { return 0.5; }
  double closed_form(const LinkModel& m) const override {
    return tree_time(trees_.height() + 1, 2, k_, bytes_, m);
  }
  double traffic() const override { return (n_ - 1) * bytes_; }

 private:
  std::uint32_t rank(std::uint32_t v) const { return (root_ + 1 + v) % n_; }
  std::uint32_t n_, root_, k_;
  double bytes_;
  TreePair trees_;
};

bool tree_supports(const CollectiveShape& s) {
  return s.kind == CollectiveKind::kAllReduce || s.kind == CollectiveKind::kBroadcast;
}

std::unique_ptr<CollectiveProgram> make_tree(const CollectiveShape& s) {
  const std::uint32_t k = s.chunks ? s.chunks : default_chunks(0.5 * s.bytes);
  if (s.kind == CollectiveKind::kBroadcast) {
    return std::make_unique<TreeBroadcastProgram>(s.ranks, s.root, k, s.bytes);
  }
  return std::make_unique<DoubleTreeProgram>(s.ranks, k, s.bytes);
}

}  // namespace

CollectiveAlgorithm double_tree_algorithm() {
  return {"double_tree", "two binary trees with half of the payload each, pipelined", tree_supports,
          false, make_tree};
}

}  // namespace medley
