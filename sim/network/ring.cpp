#include "sim/network/algorithms.h"
#include "sim/network/closed_forms.h"

namespace medley {

namespace {

/// Rank r sends to r+1; step s passes on what step s-1 brought. One piece per step unless chunks
/// are asked for: then the pieces of a step follow each other and hide the latency.
class RingProgram final : public CollectiveProgram {
 public:
  RingProgram(std::uint32_t ranks, std::uint32_t steps, std::uint32_t chunks, double bytes)
      : n_(ranks), steps_(steps), k_(chunks), bytes_(bytes) {}
  std::uint32_t lanes() const override { return n_; }
  CollectiveLane lane(std::uint32_t r) const override {
    return {r, r + 1 == n_ ? 0 : r + 1, steps_ * k_};
  }
  double bytes(std::uint32_t, std::uint32_t) const override { return bytes_ / n_ / k_; }
  bool need(std::uint32_t r, std::uint32_t i, std::uint32_t k, LaneNeed& out) const override {
    if (k > 0 || i < k_) return false;
    out = {r == 0 ? n_ - 1 : r - 1, i - k_ + 1, false};
    return true;
  }
  double closed_form(const LinkModel& m) const override {
    return ring_time(steps_, n_, k_, bytes_, m);
  }
  double traffic() const override { return bytes_ * steps_; }

 private:
  std::uint32_t n_, steps_, k_;
  double bytes_;
};

class ChainProgram final : public CollectiveProgram {
 public:
  ChainProgram(std::uint32_t ranks, std::uint32_t root, std::uint32_t chunks, double bytes)
      : n_(ranks), root_(root), k_(chunks), bytes_(bytes) {}
  std::uint32_t lanes() const override { return n_ - 1; }
  CollectiveLane lane(std::uint32_t p) const override {
    return {(root_ + p) % n_, (root_ + p + 1) % n_, k_};
  }
  double bytes(std::uint32_t, std::uint32_t) const override { return bytes_ / k_; }
  bool need(std::uint32_t p, std::uint32_t i, std::uint32_t k, LaneNeed& out) const override {
    if (k > 0 || p == 0) return false;
    out = {p - 1, i + 1, false};
    return true;
  }
  double closed_form(const LinkModel& m) const override {
    return chain_time(n_ - 1, k_, bytes_, m);
  }
  double traffic() const override { return bytes_ * (n_ - 1); }

 private:
  std::uint32_t n_, root_, k_;
  double bytes_;
};

bool ring_supports(const CollectiveShape& s) {
  return s.kind != CollectiveKind::kAllToAll && s.kind != CollectiveKind::kSendRecv;
}

std::unique_ptr<CollectiveProgram> make_ring(const CollectiveShape& s) {
  if (s.kind == CollectiveKind::kBroadcast) {
    return std::make_unique<ChainProgram>(s.ranks, s.root,
                                          s.chunks ? s.chunks : default_chunks(s.bytes), s.bytes);
  }
  const std::uint32_t steps =
      s.kind == CollectiveKind::kAllReduce ? 2 * (s.ranks - 1) : s.ranks - 1;
  return std::make_unique<RingProgram>(s.ranks, steps, s.chunks ? s.chunks : 1, s.bytes);
}

}  // namespace

CollectiveAlgorithm ring_algorithm() {
  return {"ring", "each rank to the next; a chain for broadcast", ring_supports, false, make_ring};
}

}  // namespace medley
