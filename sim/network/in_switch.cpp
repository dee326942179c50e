#include "sim/network/algorithms.h"
#include "sim/network/closed_forms.h"

namespace medley {

namespace {

/// All ranks send up, the switch adds and sends down to all, chunk by chunk. Party n is the switch.
/// A broadcast goes up from the root alone and down to the others.
class InSwitchProgram final : public CollectiveProgram {
 public:
  InSwitchProgram(const CollectiveShape& s, double factor)
      : n_(s.ranks),
        k_(s.chunks ? s.chunks : default_chunks(s.bytes)),
        root_(s.root),
        broadcast_(s.kind == CollectiveKind::kBroadcast),
        factor_(broadcast_ ? 1.0 : factor),
        bytes_(s.bytes) {}
  std::uint32_t lanes() const override { return 2 * n_; }
  CollectiveLane lane(std::uint32_t l) const override {
    const std::uint32_t r = l % n_;
    const bool used = !broadcast_ || (r == root_) == (l < n_);
    return l < n_ ? CollectiveLane{r, n_, used ? k_ : 0} : CollectiveLane{n_, r, used ? k_ : 0};
  }
  double bytes(std::uint32_t, std::uint32_t) const override { return factor_ * bytes_ / k_; }
  bool need(std::uint32_t l, std::uint32_t i, std::uint32_t k, LaneNeed& out) const override {
    if (l < n_ || k >= (broadcast_ ? 1 : n_)) return false;
    out = {broadcast_ ? root_ : k, i + 1, false};
    return true;
  }
  double closed_form(const LinkModel& m) const override {
    return in_switch_time(factor_, k_, bytes_, m);
  }
  double traffic() const override { return factor_ * bytes_ * (broadcast_ ? 1.0 : n_); }

 private:
  std::uint32_t n_, k_, root_;
  bool broadcast_;
  double factor_, bytes_;
};

bool in_switch_supports(const CollectiveShape& s) {
  return s.kind == CollectiveKind::kAllReduce || s.kind == CollectiveKind::kBroadcast;
}

std::unique_ptr<CollectiveProgram> make_in_switch(const CollectiveShape& s) {
  return std::make_unique<InSwitchProgram>(s, 1.0);
}
std::unique_ptr<CollectiveProgram> make_nvls(const CollectiveShape& s) {
  return std::make_unique<InSwitchProgram>(s, 1.0 + 1.0 / s.ranks);
}

}  // namespace

CollectiveAlgorithm in_switch_algorithm() {
  return {"in_switch", "the switch adds and sends the sum to all", in_switch_supports, true,
          make_in_switch};
}
CollectiveAlgorithm nvls_algorithm() {
  return {"nvls", "the switch adds; each rank reads its part of the sum and writes it to all",
          in_switch_supports, true, make_nvls};
}

}  // namespace medley
