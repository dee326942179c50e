#include <algorithm>
#include <functional>

#include "sim/core/error.h"
#include "sim/engine/fluid_core.h"

namespace medley {

namespace {
// Levels that differ by rounding alone count as reaching the waterline.
constexpr double kWaterlineMargin = 1e-9;
constexpr double kFull = 1.0 - 1e-12;
}  // namespace

void FluidCore::solve() {
  if (!needs_solve()) return;
  ++counters_.solves;
  ++visit_;
  for (const std::uint32_t h : touched_hubs_) {
    if (!hubs_[h].touched) continue;  // dissolved meanwhile
    hubs_[h].touched = false;
    if (!update_hub(h)) dissolve_hub(h);
  }
  for (const std::uint32_t a : fresh_) {
    const Activity& self = activities_[a];
    if (!self.live || self.hub != kNone || self.left == 0.0) continue;
    if (self.count == 0) rerate(a, level_[a] = self.cap, true);
    lower_waterline(self.cap);
    for (const Element& e : path(self)) lower_waterline(share(resources_[e.resource]));
  }
  waterline_ -= waterline_ < kInfinity ? kWaterlineMargin * waterline_ : 0.0;
  for (const std::uint32_t r : touched_) {
    resources_[r].touched = false;
    if (under_hub(resources_[r]) || resources_[r].visit == visit_) continue;
    if (resources_[r].users.empty()) {
      set_use(r, 0.0, false);
    } else if (!solve_alone(r)) {
      solve_component(r);
    }
  }
  touched_.clear();
  touched_hubs_.clear();
  fresh_.clear();
  waterline_ = kInfinity;
  solved_sequence_ = sequence_;
#ifndef NDEBUG
  const std::string wrong = certificate(1e-9);
  MEDLEY_CHECK(wrong.empty(), wrong);
#endif
}

// One activity and its own resources.
bool FluidCore::solve_alone(std::uint32_t r) {
  const Resource& resource = resources_[r];
  if (resource.users.size() != 1) return false;
  const std::uint32_t a = resource.users[0].activity;
  Activity& self = activities_[a];
  double level = self.cap;
  for (const Element& e : path(self)) {
    const Resource& other = resources_[e.resource];
    if (other.users.size() != 1) return false;
    level = std::min(level, other.capacity / e.weight);
  }
  for (const Element& e : path(self)) {
    Resource& other = resources_[e.resource];
    other.visit = visit_;
    const bool saturated = other.capacity / e.weight == level;
    set_use(e.resource, saturated ? other.capacity : e.weight * level, saturated);
  }
  ++counters_.alone;
  if (level != level_[a]) {
    level_[a] = level;
    rerate(a, level, true);
  }
  return true;
}

void FluidCore::solve_component(std::uint32_t r) {
  ++counters_.components;
  collect(r);
  counters_.visited += seen_activities_.size();
  const std::uint32_t h = lone_bottleneck();
  if (h != kNone) {
    make_hub(h);
    return;
  }
  fill();
  apply();
}

void FluidCore::collect(std::uint32_t r) {
  seen_activities_.clear();
  seen_resources_.clear();
  barrier_ = false;
  see(r);
  for (std::size_t i = 0; i < seen_activities_.size(); ++i) {
    for (const Element& e : path(activities_[seen_activities_[i].activity])) {
      if (resources_[e.resource].visit != visit_) see(e.resource);
    }
  }
}

void FluidCore::see(std::uint32_t r) {
  resources_[r].visit = visit_;
  seen_resources_.push_back(r);
  Open open;
  for (const User& user : resources_[r].users) {
    const double level = level_[user.activity];
    if (level >= 0.0 && level < waterline_) {
      open.used += user.weight * level;
      barrier_ = true;
      continue;
    }
    if (level >= 0.0) {
      seen_activities_.push_back({user.activity, level});
      level_[user.activity] = -1.0;
    }
    open.weight += user.weight;
    ++open.open;
  }
  open.summed = open.weight;
  open_[r] = open;
}

// A resource that all activities of the component use and that limits each of them first.
std::uint32_t FluidCore::lone_bottleneck() const {
  const std::size_t n = seen_activities_.size();
  if (barrier_ || n < 2) return kNone;
  std::uint32_t h = kNone;
  for (const std::uint32_t r : seen_resources_) {
    if (open_[r].open == n && (h == kNone || share(resources_[r]) < share(resources_[h]))) h = r;
  }
  if (h == kNone) return kNone;
  const double level = share(resources_[h]);
  if (!(level > 0.0)) return kNone;
  for (const std::uint32_t r : seen_resources_) {
    if (r != h && share(resources_[r]) <= level) return kNone;
  }
  for (const Seen& seen : seen_activities_) {
    if (activities_[seen.activity].cap < level) return kNone;
  }
  return h;
}

// Candidates are lower bounds of the levels at which their resources fill up: what is frozen
// elsewhere meanwhile only raises them. The least one that is up to date is the next to freeze.
void FluidCore::fill() {
  candidates_.clear();
  for (const std::uint32_t r : seen_resources_) {
    const Open& o = open_[r];
    if (o.open > 0) candidates_.push_back({(resources_[r].capacity - o.used) / o.weight, r});
  }
  for (const Seen& seen : seen_activities_) {
    const double cap = activities_[seen.activity].cap;
    if (cap < kInfinity) candidates_.push_back({cap, kBound | seen.activity});
  }
  std::make_heap(candidates_.begin(), candidates_.end(), std::greater<>());
  filled_ = std::max(0.0, waterline_ < kInfinity ? waterline_ : 0.0);
  open_activities_ = seen_activities_.size();
  while (open_activities_ > 0) {
    std::pop_heap(candidates_.begin(), candidates_.end(), std::greater<>());
    Candidate& least = candidates_.back();
    if (least.id >= kBound) {
      const std::uint32_t a = least.id - kBound;
      filled_ = std::max(filled_, least.level);
      if (level_[a] < 0.0) freeze(a, activities_[a].cap);
      candidates_.pop_back();
      continue;
    }
    if (open_[least.id].open == 0) {
      candidates_.pop_back();
      continue;
    }
    const double level = fills_at(least.id);
    if (level > least.level) {
      least.level = level;
      std::push_heap(candidates_.begin(), candidates_.end(), std::greater<>());
      continue;
    }
    const std::uint32_t r = least.id;
    candidates_.pop_back();
    saturate(r);
  }
}

double FluidCore::fills_at(std::uint32_t r) {
  Open& o = open_[r];
  if (o.weight < 0.25 * o.summed) sum_anew(r);
  return (resources_[r].capacity - o.used) / o.weight;
}

void FluidCore::sum_anew(std::uint32_t r) {
  Open& o = open_[r];
  o.used = o.weight = 0.0;
  for (const User& user : resources_[r].users) {
    const double level = level_[user.activity];
    if (level < 0.0) {
      o.weight += user.weight;
    } else {
      o.used += user.weight * level;
    }
  }
  o.summed = o.weight;
}

void FluidCore::saturate(std::uint32_t r) {
  sum_anew(r);
  Open& o = open_[r];
  filled_ = std::max(filled_, (resources_[r].capacity - o.used) / o.weight);
  o.saturated = true;
  for (const User& user : resources_[r].users) {
    if (level_[user.activity] < 0.0) freeze(user.activity, filled_);
  }
}

void FluidCore::freeze(std::uint32_t a, double level) {
  level_[a] = level;
  --open_activities_;
  for (const Element& e : path(activities_[a])) {
    Open& o = open_[e.resource];
    o.used += e.weight * level;
    o.weight -= e.weight;
    --o.open;
  }
}

void FluidCore::apply() {
  std::size_t changed = 0;
  for (const Seen& seen : seen_activities_) changed += level_[seen.activity] != seen.level;
  const bool ordered = changed * 8 < timers_.size();
  for (const Seen& seen : seen_activities_) {
    if (level_[seen.activity] != seen.level) rerate(seen.activity, level_[seen.activity], ordered);
  }
  if (!ordered) timers_.restore();
  counters_.rerated += changed;
  for (const std::uint32_t r : seen_resources_) {
    const double capacity = resources_[r].capacity;
    const bool full = open_[r].saturated || open_[r].used >= capacity * kFull;
    set_use(r, full ? capacity : open_[r].used, full);
  }
}

void FluidCore::settle(Activity& a) const {
  a.left = left_now(a);
  a.since = now_;
}

void FluidCore::rerate(std::uint32_t a, double level, bool ordered) {
  Activity& self = activities_[a];
  settle(self);
  self.rate = level == self.cap ? self.bound : level / self.level;
  FineTime end = now_;
  if (self.left > 0.0) end = self.rate > 0.0 ? now_.after(self.left / self.rate) : FineTime::max();
  if (ordered) {
    timers_.set(a, end);
  } else {
    timers_.set_unordered(a, end);
  }
}

}  // namespace medley
