#include "sim/runtime/fleet.h"

#include <algorithm>

namespace medley {

void Fleet::on_arrived(std::uint64_t tag) {
  switch (tag & kFlowMask) {
    case kTierFlow:
      return tiers_->on_arrived(tag & ~kFlowMask);
    case kWeightFlow:
      return on_weights_arrived(static_cast<std::uint32_t>(tag));
    case kMoveFlow:
      return on_move_arrived(tag & ~kFlowMask);
    default:
      return on_handoff_arrived(tag);
  }
}

void Fleet::build_tiers(const Catalog& catalog) {
  if (std::all_of(scenario_.pools.begin(), scenario_.pools.end(),
                  [](const PoolSpec& p) { return p.tiering.tiers.empty(); })) {
    return;
  }
  need_transport(catalog);
  std::vector<KvTiers::Site> sites;
  for (std::size_t u = 0; u < units_.size(); ++u) {
    sites.push_back({units_[u].pool, result_.replicas[u].replica, units_[u].place});
  }
  tiers_ = std::make_unique<KvTiers>(scenario_, engine_, *transport_, sites, kTierFlow,
                                     static_cast<KvTiers::Listener&>(*this));
  for (std::uint32_t u = 0; u < units_.size(); ++u) {
    if (KvBacking* backing = tiers_->backing(u)) {
      units_[u].replica->set_backing(backing,
                                     scenario_.pools[units_[u].pool].tiering.write_through);
    }
  }
}

void Fleet::on_recall(std::uint32_t, std::uint32_t request, bool again, std::int64_t tokens) {
  if (!again) result_.requests[request].tier_cached_tokens = static_cast<std::int32_t>(tokens);
}

void Fleet::on_recalled(std::uint32_t unit, std::uint32_t slot, std::uint32_t request,
                        Seconds took) {
  result_.requests[request].recall_s += took.value();
  Unit& u = units_[unit];
  if (u.replica->fetched(slot, engine_.now())) {
    engine_.reschedule(u.ends[0], u.replica->end(0));
  }
  mark(unit);
}

}  // namespace medley
