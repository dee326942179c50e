#include <bit>

#include "sim/network/algorithms.h"
#include "sim/network/closed_forms.h"

namespace medley {

namespace {

/// Rounds of pairwise exchange over q = 2^p of the ranks: halving (with sums), then doubling. The
/// rest fold into a neighbour before and unfold after. A message starts when both ends are through
/// with their last round (rendezvous), so that rounds do not overlap at a rank.
/// Lanes: (rank, stage); stage 0 folds, 1..p halve, p+1..2p double, 2p+1 unfolds.
/// Source: Thakur, Rabenseifner, Gropp, Optimization of collective communication operations in
/// MPICH, IJHPCA 19 (2005).
class HalvingProgram final : public CollectiveProgram {
 public:
  HalvingProgram(std::uint32_t ranks, CollectiveKind kind, double bytes)
      : n_(ranks),
        kind_(kind),
        bytes_(bytes),
        q_(std::bit_floor(ranks)),
        rest_(ranks - q_),
        p_(static_cast<std::uint32_t>(std::bit_width(q_)) - 1) {}
  std::uint32_t lanes() const override { return n_ * stages(); }
  CollectiveLane lane(std::uint32_t l) const override {
    const std::uint32_t r = l / stages();
    const std::uint32_t s = l % stages();
    const bool folded = r < 2 * rest_ && r % 2 == 0;
    if (s == 0) return {r, folded ? r + 1 : r, folded ? 1U : 0U};
    if (s == stages() - 1) {
      const bool unfolds = r < 2 * rest_ && r % 2 == 1;
      return {r, unfolds ? r - 1 : r, unfolds ? 1U : 0U};
    }
    if (folded || !active(s)) return {r, r, 0};
    return {r, real(peer(number(r), s)), 1};
  }
  double bytes(std::uint32_t l, std::uint32_t) const override {
    const std::uint32_t s = l % stages();
    if (s == 0 || s == stages() - 1) return bytes_;
    const std::uint32_t halvings = s <= p_ ? s : 2 * p_ + 1 - s;
    return bytes_ / static_cast<double>(1ULL << halvings);
  }
  bool need(std::uint32_t l, std::uint32_t, std::uint32_t k, LaneNeed& out) const override {
    const std::uint32_t r = l / stages();
    const std::uint32_t s = l % stages();
    if (s == 0 || k > 1) return false;
    if (s == stages() - 1) {
      out = {into(number(r), 2 * p_), 1, false};
      return k == 0;
    }
    const std::uint32_t v = number(r);
    const std::uint32_t u = peer(v, s);
    const std::uint32_t first = kind_ == CollectiveKind::kAllGather ? p_ + 1 : 1;
    if (s > first) {
      out = {into(k == 0 ? v : u, s - 1), 1, false};
      return true;
    }
    // Own fold, then the peer's; those that have none have nothing to wait for.
    for (const std::uint32_t w : {v, u}) {
      if (w >= rest_ || k-- > 0) continue;
      out = {2 * w * stages(), 1, false};
      return true;
    }
    return false;
  }
  double closed_form(const LinkModel& m) const override {
    return halving_time(n_, kind_ == CollectiveKind::kAllReduce, bytes_, m);
  }
  double traffic() const override {
    return (kind_ == CollectiveKind::kAllReduce ? 2.0 : 1.0) * (q_ - 1) * bytes_ +
           2.0 * rest_ * bytes_;
  }

 private:
  std::uint32_t stages() const { return 2 * p_ + 2; }
  bool active(std::uint32_t s) const {
    return kind_ == CollectiveKind::kAllReduce || (kind_ == CollectiveKind::kAllGather) == (s > p_);
  }
  std::uint32_t number(std::uint32_t r) const { return r < 2 * rest_ ? r / 2 : r - rest_; }
  std::uint32_t real(std::uint32_t v) const { return v < rest_ ? 2 * v + 1 : v + rest_; }
  std::uint32_t peer(std::uint32_t v, std::uint32_t s) const {
    return s <= p_ ? v ^ (q_ >> s) : v ^ (1U << (s - p_ - 1));
  }
  /// The lane that ends at v in stage s.
  std::uint32_t into(std::uint32_t v, std::uint32_t s) const {
    return real(peer(v, s)) * stages() + s;
  }

  std::uint32_t n_;
  CollectiveKind kind_;
  double bytes_;
  std::uint32_t q_, rest_, p_;
};

bool halving_supports(const CollectiveShape& s) {
  return s.kind == CollectiveKind::kAllReduce ||
         ((s.kind == CollectiveKind::kAllGather || s.kind == CollectiveKind::kReduceScatter) &&
          std::has_single_bit(s.ranks));
}

std::unique_ptr<CollectiveProgram> make_halving(const CollectiveShape& s) {
  return std::make_unique<HalvingProgram>(s.ranks, s.kind, s.bytes);
}

}  // namespace

CollectiveAlgorithm halving_doubling_algorithm() {
  return {"halving_doubling", "pairwise exchanges of halves, quarters, ... and back",
          halving_supports, false, make_halving};
}

}  // namespace medley
