#include <algorithm>

#include "sim/core/error.h"
#include "sim/engine/fluid_core.h"

namespace medley {

namespace {
constexpr double kFull = 1.0 - 1e-12;
}  // namespace

void FluidCore::solve() {
  if (!needs_solve()) return;
  ++counters_.solves;
  ++visit_;
  prepare();
  general_.clear();
  for (const std::uint32_t r : touched_) {
    resources_[r].touched = false;
    if (under_hub(resources_[r]) || looked_at(r)) continue;
    if (resources_[r].users.empty()) {
      set_use(r, 0.0, false);
    } else if (!solve_alone(r)) {
      general_.push_back(r);
    }
  }
  if (!general_.empty()) {
    fill();
    apply();
  }
  touched_.clear();
  touched_hubs_.clear();
  fresh_.clear();
  waterline_ = kInfinity;
  solved_sequence_ = sequence_;
#ifndef NDEBUG
  // Of large systems now and then, so that it costs as much as the solves at most.
  const std::uint64_t every = 1 + (active_ + resources_.size()) / 512;
  if (counters_.solves % every == 0) {
    const std::string wrong = certificate(1e-9);
    MEDLEY_CHECK(wrong.empty(), wrong);
  }
#endif
}

// Hubs, and activities without demands.
void FluidCore::prepare() {
  for (const std::uint32_t h : touched_hubs_) {
    if (!hubs_[h].touched) continue;  // dissolved meanwhile
    hubs_[h].touched = false;
    if (!update_hub(h)) dissolve_hub(h);
  }
  for (const std::uint32_t a : fresh_) {
    const Activity& self = activities_[a];
    if (!self.live || self.hub != kNone) continue;
    if (paths_[a].count == 0 && self.left > 0.0) {
      levels_[a].value = paths_[a].cap;
      rerate(a, paths_[a].cap, true);
    }
  }
}

// One activity and its own resources.
bool FluidCore::solve_alone(std::uint32_t r) {
  const Resource& resource = resources_[r];
  if (resource.users.size() != 1) return false;
  const std::uint32_t a = resource.users[0].activity;
  double level = paths_[a].cap;
  std::uint32_t holder = kNone;
  for (const Element& e : path(a)) {
    const Resource& other = resources_[e.resource];
    if (other.users.size() != 1) return false;
    const double fills = other.capacity / e.weight;
    if (fills < level || holder == kNone) holder = fills <= level ? e.resource : holder;
    level = std::min(level, fills);
  }
  for (const Element& e : path(a)) {
    const Resource& other = resources_[e.resource];
    looks_[e.resource].visit = visit_;
    const bool saturated = other.capacity / e.weight == level;
    set_use(e.resource, saturated ? other.capacity : e.weight * level, saturated);
  }
  ++counters_.alone;
  levels_[a].holder = holder;
  if (level != levels_[a].value) {
    levels_[a].value = level;
    rerate(a, level, true);
  }
  return true;
}

void FluidCore::apply() {
  std::size_t changed = 0;
  for (const Change& c : changes_) changed += levels_[c.activity].value != c.before;
  const bool ordered = changed * 8 < timers_.size();
  for (const Change& c : changes_) {
    Level& level = levels_[c.activity];
    level.phase = Phase::kAssumed;
    if (level.value == c.before) continue;
    if (activities_[c.activity].hub != kNone) {
      level = Level();
    } else {
      rerate(c.activity, level.value, ordered);
    }
  }
  if (!ordered) timers_.restore();
  counters_.rerated += changed;
  for (const std::uint32_t r : looked_) {
    const Resource& resource = resources_[r];
    if (under_hub(resource)) continue;
    double used = 0.0;
    for (const User& user : resource.users) used += user.weight * levels_[user.activity].value;
    const bool full = looks_[r].full || used >= resource.capacity * kFull;
    set_use(r, full ? resource.capacity : used, full);
  }
}

void FluidCore::settle(Activity& a) const {
  a.left = left_now(a);
  a.since = now_;
}

void FluidCore::rerate(std::uint32_t a, double level, bool ordered) {
  Activity& self = activities_[a];
  settle(self);
  self.rate = level == paths_[a].cap ? self.bound : level / self.level;
  FineTime end = now_;
  if (self.left > 0.0) end = self.rate > 0.0 ? now_.after(self.left / self.rate) : FineTime::max();
  if (ordered) {
    timers_.set(a, end);
  } else {
    timers_.set_unordered(a, end);
  }
}

}  // namespace medley
