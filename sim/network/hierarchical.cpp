#include "sim/network/algorithms.h"
#include "sim/network/closed_forms.h"

namespace medley {

namespace {

/// Rings inside servers and rings of equal places across them (rails):
///   all-reduce      reduce-scatter inside, all-reduce across, all-gather inside
///   reduce-scatter  inside, then across;   all-gather  across, then inside
/// Lanes: (phase, rank); phase 0 gathers sums inside, 1 goes across, 2 spreads inside.
class HierarchicalProgram final : public CollectiveProgram {
 public:
  HierarchicalProgram(std::uint32_t ranks, std::uint32_t group, CollectiveKind kind, double bytes)
      : n_(ranks), g_(group), servers_(ranks / group), kind_(kind), bytes_(bytes) {}
  std::uint32_t lanes() const override { return 3 * n_; }
  CollectiveLane lane(std::uint32_t l) const override {
    const std::uint32_t r = l % n_;
    return {r, next(l / n_, r), steps(l / n_)};
  }
  double bytes(std::uint32_t l, std::uint32_t) const override {
    return l / n_ == 1 ? bytes_ / n_ : bytes_ / g_;
  }
  bool need(std::uint32_t l, std::uint32_t i, std::uint32_t k, LaneNeed& out) const override {
    if (k > 0) return false;
    std::uint32_t phase = l / n_;
    const std::uint32_t r = l % n_;
    std::uint32_t count = i;
    // The first message of a phase waits for the last of the one before that has any.
    while (count == 0) {
      if (phase == 0) return false;
      count = steps(--phase);
    }
    out = {phase * n_ + before(phase, r), count, false};
    return true;
  }
  double closed_form(const LinkModel& m) const override {
    return hierarchical_time(n_, g_, kind_ == CollectiveKind::kAllReduce, bytes_, m);
  }
  double traffic() const override {
    const double inside = static_cast<double>(n_) * (g_ - 1) * bytes_ / g_;
    const double across = (servers_ - 1.0) * bytes_;
    return (kind_ == CollectiveKind::kAllReduce ? 2.0 : 1.0) * (inside + across);
  }

 private:
  std::uint32_t steps(std::uint32_t phase) const {
    if (phase == 1) {
      return kind_ == CollectiveKind::kAllReduce ? 2 * (servers_ - 1) : servers_ - 1;
    }
    const bool used = kind_ == CollectiveKind::kAllReduce ||
                      (kind_ == CollectiveKind::kReduceScatter) == (phase == 0);
    return used ? g_ - 1 : 0;
  }
  std::uint32_t next(std::uint32_t phase, std::uint32_t r) const {
    if (phase == 1) return (r + g_) % n_;
    return r / g_ * g_ + (r + 1) % g_;
  }
  std::uint32_t before(std::uint32_t phase, std::uint32_t r) const {
    if (phase == 1) return (r + n_ - g_) % n_;
    return r / g_ * g_ + (r + g_ - 1) % g_;
  }

  std::uint32_t n_, g_, servers_;
  CollectiveKind kind_;
  double bytes_;
};

bool hierarchical_supports(const CollectiveShape& s) {
  return (s.kind == CollectiveKind::kAllReduce || s.kind == CollectiveKind::kAllGather ||
          s.kind == CollectiveKind::kReduceScatter) &&
         s.group > 1 && s.ranks > s.group && s.ranks % s.group == 0;
}

std::unique_ptr<CollectiveProgram> make_hierarchical(const CollectiveShape& s) {
  return std::make_unique<HierarchicalProgram>(s.ranks, s.group, s.kind, s.bytes);
}

}  // namespace

CollectiveAlgorithm hierarchical_algorithm() {
  return {"hierarchical", "rings inside servers, rings of equal places across them",
          hierarchical_supports, false, make_hierarchical};
}

}  // namespace medley
