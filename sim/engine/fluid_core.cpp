#include "sim/engine/fluid_core.h"

#include <algorithm>
#include <cmath>

#include "sim/core/error.h"

namespace medley {

FluidCore::FluidCore(FineTime start) : now_(start) {
  MEDLEY_CHECK(start >= FineTime(), "a start before time 0");
}

std::uint32_t FluidCore::add_resource(double capacity) {
  MEDLEY_CHECK(capacity >= 0.0 && std::isfinite(capacity), "capacity must be finite and >= 0");
  MEDLEY_CHECK(resources_.size() < FluidTimers::kShared - 1, "too many resources");
  resources_.emplace_back().capacity = capacity;
  accounts_.emplace_back().since = now_;
  hubs_.emplace_back();
  looks_.emplace_back();
  timers_.add_resource();
  return static_cast<std::uint32_t>(resources_.size() - 1);
}

void FluidCore::set_capacity(std::uint32_t r, double capacity) {
  MEDLEY_CHECK(r < resources_.size(), "no such resource");
  MEDLEY_CHECK(capacity >= 0.0 && std::isfinite(capacity), "capacity must be finite and >= 0");
  Resource& resource = resources_[r];
  const double before = resource.capacity;
  if (capacity == before) return;
  if (under_hub(resource)) {
    const std::uint32_t h = resource.hub;
    touch_hub(h);
    resource.capacity = capacity;
    if (r == h) return;
    hubs_[h].loose |= capacity > before;
    hubs_[h].ceiling = std::min(hubs_[h].ceiling, share(resource));
    return;
  }
  if (capacity < before) {
    resource.capacity = capacity;
    lower_waterline(share(resource));
  } else {
    if (!looks_[r].saturated && before > 0.0 && !resource.touched) {
      resource.capacity = capacity;
      return;
    }
    lower_waterline(saturation_level(r));
    resource.capacity = capacity;
  }
  touch(r);
}

// The highest level on it; 0 when none is known.
double FluidCore::saturation_level(std::uint32_t r) const {
  double highest = 0.0;
  for (const User& user : resources_[r].users) {
    const double level = levels_[user.activity].value;
    if (level < kInfinity) highest = std::max(highest, level);
  }
  return highest;
}

FluidHandle FluidCore::start(const FluidActivity& activity) {
  MEDLEY_CHECK(activity.work >= 0.0 && std::isfinite(activity.work), "work must be finite, >= 0");
  MEDLEY_CHECK(activity.level > 0.0 && std::isfinite(activity.level), "level must be finite, > 0");
  MEDLEY_CHECK(activity.bound >= 0.0, "bound must be >= 0");
  const std::uint32_t a = take_slot();
  Activity& self = activities_[a];
  self.left = activity.work;
  self.rate = 0.0;
  self.since = now_;
  self.level = activity.level;
  self.bound = activity.bound;
  self.tag = activity.tag;
  self.sequence = sequence_++;
  self.hub = kNone;
  self.live = true;
  Path& path = paths_[a];
  path = {activity.bound * activity.level, 0, 0};
  levels_[a] = Level();
  ++active_;
  if (activity.work > 0.0) place_demands(a, activity.demands);
  if (activity.work == 0.0 || (path.count == 0 && self.bound == kInfinity)) {
    self.left = 0.0;
    timers_.set(a, now_);
  } else {
    attach(a);
  }
  return {a, self.generation};
}

std::uint32_t FluidCore::take_slot() {
  if (free_slot_ == kNone) {
    MEDLEY_CHECK(activities_.size() < kBound - 1, "too many activities");
    activities_.emplace_back();
    levels_.emplace_back();
    paths_.emplace_back();
    timers_.add_activity();
    return static_cast<std::uint32_t>(activities_.size() - 1);
  }
  const std::uint32_t a = free_slot_;
  free_slot_ = paths_[a].first;
  return a;
}

std::uint32_t FluidCore::take_elements(std::uint8_t size_class) {
  if (free_elements_.size() <= size_class) free_elements_.resize(size_class + 1U, kNone);
  std::uint32_t first = free_elements_[size_class];
  if (first != kNone) {
    free_elements_[size_class] = elements_[first].place;
    return first;
  }
  first = static_cast<std::uint32_t>(elements_.size());
  elements_.resize(elements_.size() + (std::size_t{1} << size_class));
  return first;
}

// Elements are kept in blocks of powers of two; one demand per resource, none of amount 0.
void FluidCore::place_demands(std::uint32_t a, std::span<const FluidDemand> demands) {
  std::uint8_t size_class = 0;
  while ((std::size_t{1} << size_class) < demands.size()) ++size_class;
  const double level = activities_[a].level;
  activities_[a].size_class = size_class;
  Path& self = paths_[a];
  self.first = take_elements(size_class);
  Element* const elements = &elements_[self.first];
  for (const FluidDemand& demand : demands) {
    MEDLEY_CHECK(demand.resource < resources_.size(), "demand for no such resource");
    MEDLEY_CHECK(demand.amount >= 0.0 && std::isfinite(demand.amount), "amount not finite, >= 0");
    const double weight = demand.amount / level;
    if (weight == 0.0) continue;
    // The stamp of a resource says where its element is, if it is one of this activity's.
    std::uint32_t& stamp = resources_[demand.resource].stamp;
    if (stamp < self.count && elements[stamp].resource == demand.resource) {
      elements[stamp].weight += weight;
      continue;
    }
    stamp = self.count;
    elements[self.count++] = {weight, demand.resource, 0};
  }
  if (self.count == 0) {
    elements[0].place = free_elements_[size_class];
    free_elements_[size_class] = self.first;
  }
}

void FluidCore::attach(std::uint32_t a) {
  const std::uint32_t h = hub_to_join(a);
  if (h != kNone) {
    join_hub(a, h);
    return;
  }
  fresh_.push_back(a);
  for (const Element& e : path(a)) {
    if (under_hub(resources_[e.resource])) dissolve_hub(resources_[e.resource].hub);
    touch(e.resource);
  }
  add_users(a);
}

void FluidCore::add_users(std::uint32_t a) {
  const Path& self = paths_[a];
  for (std::uint32_t i = self.first; i < self.first + self.count; ++i) {
    Element& e = elements_[i];
    Resource& r = resources_[e.resource];
    e.place = static_cast<std::uint32_t>(r.users.size());
    r.users.push_back({e.weight, a, i});
    r.most_users = std::max(r.most_users, e.place + 1);
    r.weight += e.weight;
  }
}

void FluidCore::remove_user(const Element& e) {
  Resource& r = resources_[e.resource];
  const User last = r.users.back();
  r.users[e.place] = last;
  elements_[last.element].place = e.place;
  r.users.pop_back();
  if (r.users.size() * 2 > r.most_users) {
    r.weight -= e.weight;
    return;
  }
  r.most_users = static_cast<std::uint32_t>(r.users.size());
  r.weight = WideSum();
  for (const User& user : r.users) r.weight += user.weight;
}

// Off its resources and timers; the slot is free.
void FluidCore::remove(std::uint32_t a) {
  Activity& self = activities_[a];
  if (self.hub != kNone) {
    leave_hub(a);
  } else {
    timers_.erase(a);
    if (paths_[a].count > 0) lower_waterline(levels_[a].value);
    for (const Element& e : path(a)) {
      touch(e.resource);
      remove_user(e);
    }
  }
  if (paths_[a].count > 0) {
    elements_[paths_[a].first].place = free_elements_[self.size_class];
    free_elements_[self.size_class] = paths_[a].first;
  }
  self.live = false;
  ++self.generation;
  paths_[a].first = free_slot_;
  paths_[a].count = 0;
  free_slot_ = a;
  --active_;
}

void FluidCore::touch(std::uint32_t r) {
  if (resources_[r].touched) return;
  resources_[r].touched = true;
  touched_.push_back(r);
}

double FluidCore::cancel(FluidHandle h) {
  const double left = remaining(h);
  remove(h.slot);
  return left;
}

void FluidCore::set_bound(FluidHandle h, double bound) {
  MEDLEY_CHECK(running(h), "set_bound of an activity that is not running");
  MEDLEY_CHECK(bound >= 0.0, "bound must be >= 0");
  Activity& self = activities_[h.slot];
  if (bound == self.bound || (self.left == 0.0 && self.hub == kNone)) return;
  const double before = paths_[h.slot].cap, cap = bound * self.level;
  self.bound = bound;
  paths_[h.slot].cap = cap;
  if (self.hub != kNone) {
    touch_hub(self.hub);
    hubs_[self.hub].loose |= cap > before;
    hubs_[self.hub].cap = std::min(hubs_[self.hub].cap, cap);
    return;
  }
  const double level = levels_[h.slot].value;
  if (level < before && level <= cap) return;
  lower_waterline(std::min(level, cap));
  fresh_.push_back(h.slot);
  for (const Element& e : path(h.slot)) touch(e.resource);
}

double FluidCore::remaining(FluidHandle h) const {
  MEDLEY_CHECK(running(h), "the activity is not running");
  const Activity& self = activities_[h.slot];
  if (self.hub == kNone) return left_now(self);
  const Hub& hub = hubs_[self.hub];
  return std::max(0.0, (self.end - virtual_now(hub)).value() / self.level);
}

double FluidCore::rate(FluidHandle h) const {
  MEDLEY_CHECK(running(h), "the activity is not running");
  const Activity& self = activities_[h.slot];
  if (self.hub == kNone) return self.rate;
  return self.sequence < solved_sequence_ ? hubs_[self.hub].level / self.level : 0.0;
}

void FluidCore::advance(FineTime time) {
  MEDLEY_CHECK(time >= now_ && time <= timers_.top_time(), "advance past a completion, or back");
  MEDLEY_CHECK(time == now_ || !needs_solve(), "solve() comes before advance()");
  now_ = time;
}

void FluidCore::take_completions(std::vector<FluidCompletion>& out) {
  done_.clear();
  while (!timers_.empty() && timers_.top_time() == now_ && now_ != FineTime::max()) {
    const std::uint32_t id = timers_.top();
    if (id >= FluidTimers::kShared) {
      end_under_hub(id - FluidTimers::kShared);
    } else {
      done_.emplace_back(activities_[id].sequence, activities_[id].tag);
      remove(id);
    }
  }
  if (!std::is_sorted(done_.begin(), done_.end())) std::sort(done_.begin(), done_.end());
  for (const auto& [sequence, tag] : done_) out.push_back({tag, now_});
}

double FluidCore::left_now(const Activity& self) const {
  const double elapsed = now_ - self.since;
  return elapsed > 0.0 ? std::max(0.0, self.left - self.rate * elapsed) : self.left;
}

void FluidCore::stalled(std::vector<std::uint64_t>& tags) const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> found;
  for (const Activity& a : activities_) {
    if (a.live && a.hub == kNone && a.left > 0.0 && a.rate == 0.0) {
      found.emplace_back(a.sequence, a.tag);
    }
  }
  std::sort(found.begin(), found.end());
  for (const auto& [sequence, tag] : found) tags.push_back(tag);
}

}  // namespace medley
