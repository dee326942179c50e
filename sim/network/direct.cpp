#include <algorithm>
#include <limits>

#include "sim/network/algorithms.h"
#include "sim/network/closed_forms.h"

namespace medley {

namespace {

/// Each rank to each other: lane (phase, rank, distance 1..n-1), `window` of them at a time.
/// Two phases (two-shot): reduce-scatter, then all-gather of a rank that has all its pieces.
class DirectProgram final : public CollectiveProgram {
 public:
  DirectProgram(const CollectiveShape& s, std::uint32_t phases, double bytes)
      : n_(s.ranks), phases_(phases), window_(std::max(1U, s.window)), bytes_(bytes) {
    if (s.kind == CollectiveKind::kAllToAll && s.matrix != nullptr) matrix_ = *s.matrix;
  }
  std::uint32_t lanes() const override { return phases_ * n_ * (n_ - 1); }
  CollectiveLane lane(std::uint32_t l) const override {
    const std::uint32_t r = l / (n_ - 1) % n_;
    return {r, (r + 1 + l % (n_ - 1)) % n_, 1};
  }
  double bytes(std::uint32_t l, std::uint32_t) const override {
    if (matrix_.empty()) return bytes_;
    const CollectiveLane a = lane(l);
    return matrix_[static_cast<std::size_t>(a.from) * n_ + a.to];
  }
  bool need(std::uint32_t l, std::uint32_t, std::uint32_t k, LaneNeed& out) const override {
    const std::uint32_t distance = l % (n_ - 1) + 1;
    if (distance > window_) {
      if (k == 0) {
        out = {l - window_, 1, true};
        return true;
      }
      --k;
    }
    if (l / (n_ - 1) / n_ == 0 || k >= n_ - 1) return false;
    const std::uint32_t r = l / (n_ - 1) % n_;
    const std::uint32_t source = (r + n_ - 1 - k) % n_;  // at distance k+1 from r
    out = {source * (n_ - 1) + k, 1, false};
    return true;
  }
  std::uint32_t lanes_at_a_time() const override { return std::min(window_, n_ - 1); }
  double closed_form(const LinkModel& m) const override {
    if (!matrix_.empty()) return std::numeric_limits<double>::quiet_NaN();
    return phases_ * direct_time(n_ - 1, bytes_, m);
  }
  double traffic() const override {
    if (matrix_.empty()) return static_cast<double>(lanes()) * bytes_;
    double sum = 0.0;
    for (std::uint32_t l = 0; l < lanes(); ++l) sum += bytes(l, 0);
    return sum;
  }

 private:
  std::uint32_t n_, phases_, window_;
  double bytes_;
  std::vector<double> matrix_;
};

/// The root to each other rank at once.
class StarProgram final : public CollectiveProgram {
 public:
  StarProgram(std::uint32_t ranks, std::uint32_t root, double bytes)
      : n_(ranks), root_(root), bytes_(bytes) {}
  std::uint32_t lanes() const override { return n_ - 1; }
  CollectiveLane lane(std::uint32_t l) const override { return {root_, (root_ + 1 + l) % n_, 1}; }
  double bytes(std::uint32_t, std::uint32_t) const override { return bytes_; }
  bool need(std::uint32_t, std::uint32_t, std::uint32_t, LaneNeed&) const override { return false; }
  std::uint32_t lanes_at_a_time() const override { return n_ - 1; }
  double closed_form(const LinkModel& m) const override { return direct_time(n_ - 1, bytes_, m); }
  double traffic() const override { return (n_ - 1) * bytes_; }

 private:
  std::uint32_t n_, root_;
  double bytes_;
};

bool direct_supports(const CollectiveShape& s) {
  return s.kind != CollectiveKind::kAllReduce &&
         (s.kind != CollectiveKind::kSendRecv || s.ranks == 2);
}
bool all_reduce_only(const CollectiveShape& s) {
  return s.kind == CollectiveKind::kAllReduce;
}

std::unique_ptr<CollectiveProgram> make_direct(const CollectiveShape& s) {
  if (s.kind == CollectiveKind::kBroadcast) {
    return std::make_unique<StarProgram>(s.ranks, s.root, s.bytes);
  }
  if (s.kind == CollectiveKind::kSendRecv) return std::make_unique<StarProgram>(2, 0, s.bytes);
  return std::make_unique<DirectProgram>(s, 1, s.bytes / s.ranks);
}
std::unique_ptr<CollectiveProgram> make_one_shot(const CollectiveShape& s) {
  return std::make_unique<DirectProgram>(s, 1, s.bytes);
}
std::unique_ptr<CollectiveProgram> make_two_shot(const CollectiveShape& s) {
  return std::make_unique<DirectProgram>(s, 2, s.bytes / s.ranks);
}

}  // namespace

CollectiveAlgorithm direct_algorithm() {
  return {"direct", "each rank to each other, a window of messages at a time", direct_supports,
          false, make_direct};
}
CollectiveAlgorithm one_shot_algorithm() {
  return {"one_shot", "each rank sends all it has to each other", all_reduce_only, false,
          make_one_shot};
}
CollectiveAlgorithm two_shot_algorithm() {
  return {"two_shot", "direct reduce-scatter, then direct all-gather", all_reduce_only, false,
          make_two_shot};
}

}  // namespace medley
