#include <algorithm>

#include "sim/core/error.h"
#include "sim/engine/fluid_core.h"

namespace medley {

// The hub of all that it would be connected with, if that is one and it uses it.
std::uint32_t FluidCore::hub_to_join(std::uint32_t a) const {
  std::uint32_t h = kNone;
  for (const Element& e : path(a)) {
    const Resource& r = resources_[e.resource];
    if (r.hub == kNone) {
      if (!r.users.empty()) return kNone;
    } else if (h == kNone) {
      h = r.hub;
    } else if (h != r.hub) {
      return kNone;
    }
  }
  if (h == kNone) return kNone;
  for (const Element& e : path(a)) {
    if (e.resource == h) return h;
  }
  return kNone;
}

WideSum FluidCore::virtual_now(const Hub& hub) const {
  const WideSum virtual_time = hub.virtual_time + WideSum(hub.level * (now_ - hub.since));
  return !hub.heap.empty() && hub.heap[0].first < virtual_time ? hub.heap[0].first : virtual_time;
}

void FluidCore::touch_hub(std::uint32_t h) {
  Hub& hub = hubs_[h];
  hub.virtual_time = virtual_now(hub);
  hub.since = now_;
  if (hub.touched) return;
  hub.touched = true;
  touched_hubs_.push_back(h);
}

void FluidCore::join_hub(std::uint32_t a, std::uint32_t h) {
  touch_hub(h);
  Hub& hub = hubs_[h];
  Activity& self = activities_[a];
  for (const Element& e : path(a)) {
    if (e.resource != h) bring_under_hub(e.resource, h);
  }
  add_users(a);
  for (const Element& e : path(a)) {
    if (e.resource != h) hub.ceiling = std::min(hub.ceiling, share(resources_[e.resource]));
  }
  hub.cap = std::min(hub.cap, paths_[a].cap);
  self.hub = h;
  self.end = hub.virtual_time + WideSum(self.left * self.level);
  hub.heap.emplace_back();
  hub_up(hub, hub.heap.size() - 1, {self.end, a});
}

void FluidCore::bring_under_hub(std::uint32_t r, std::uint32_t h) {
  Resource& resource = resources_[r];
  flush(r);
  if (resource.hub == h) return;
  accounts_[r].use = 0.0;
  looks_[r].saturated = false;
  resource.hub = h;
  accounts_[r].mark = hubs_[h].virtual_time;
}

void FluidCore::leave_hub(std::uint32_t a) {
  Activity& self = activities_[a];
  const std::uint32_t h = self.hub;
  touch_hub(h);
  Hub& hub = hubs_[h];
  const auto last = hub.heap.back();
  hub.heap.pop_back();
  if (self.place < hub.heap.size()) {
    const std::size_t p = self.place;
    if (p > 0 && last.first < hub.heap[(p - 1) / 4].first) {
      hub_up(hub, p, last);
    } else {
      hub_down(hub, p, last);
    }
  }
  hub.loose = true;
  for (const Element& e : path(a)) {
    Resource& r = resources_[e.resource];
    if (e.resource != h) flush(e.resource);
    remove_user(e);
    if (e.resource != h && r.users.empty()) r.hub = kNone;
  }
  self.hub = kNone;
}

// False when the hub is not the only one to limit its activities.
bool FluidCore::update_hub(std::uint32_t h) {
  Hub& hub = hubs_[h];
  if (hub.heap.empty()) return false;
  const double level = share(resources_[h]);
  if (!(level > 0.0)) return false;
  if (level > hub.cap || level >= hub.ceiling) {
    if (hub.loose) tighten(h);
    if (level > hub.cap || level >= hub.ceiling) return false;
  }
  hub.level = level;
  set_use(h, resources_[h].capacity, true);
  const double ahead = (hub.heap[0].first - hub.virtual_time).value() / level;
  timers_.set(FluidTimers::kShared | h, now_.after(std::max(0.0, ahead)));
  ++counters_.shared;
  return true;
}

void FluidCore::tighten(std::uint32_t h) {
  Hub& hub = hubs_[h];
  hub.loose = false;
  hub.cap = hub.ceiling = kInfinity;
  for (const auto& [end, a] : hub.heap) {
    hub.cap = std::min(hub.cap, paths_[a].cap);
    for (const Element& e : path(a)) {
      if (e.resource != h) hub.ceiling = std::min(hub.ceiling, share(resources_[e.resource]));
    }
  }
}

// Of a resource just found to be a lone bottleneck.
void FluidCore::make_hub(std::uint32_t h) {
  Hub& hub = hubs_[h];
  hub.virtual_time = WideSum();
  hub.since = now_;
  hub.level = 0.0;
  for (const User& user : resources_[h].users) {
    Activity& a = activities_[user.activity];
    for (const Element& e : path(user.activity)) {
      if (e.resource != h) bring_under_hub(e.resource, h);
    }
    settle(a);
    timers_.erase(user.activity);
    a.hub = h;
    a.end = WideSum(a.left * a.level);
    hub.heap.emplace_back();
    hub_up(hub, hub.heap.size() - 1, {a.end, user.activity});
  }
  resources_[h].hub = h;
  tighten(h);
  MEDLEY_CHECK(update_hub(h), "not a lone bottleneck");
}

void FluidCore::dissolve_hub(std::uint32_t h) {
  Hub& hub = hubs_[h];
  hub.virtual_time = virtual_now(hub);
  hub.since = now_;
  for (const auto& [end, a] : hub.heap) {
    Activity& self = activities_[a];
    self.left = std::max(0.0, (end - hub.virtual_time).value() / self.level);
    self.rate = rate({a, self.generation});
    self.since = now_;
    self.hub = kNone;
    levels_[a] = Level();
    fresh_.push_back(a);
    for (const Element& e : path(a)) {
      Resource& r = resources_[e.resource];
      if (r.hub == kNone) continue;
      touch(e.resource);
      if (e.resource == h) continue;
      flush(e.resource);
      accounts_[e.resource].use = r.weight.value() * hub.level;
      r.hub = kNone;
    }
  }
  resources_[h].hub = kNone;
  touch(h);
  timers_.erase(FluidTimers::kShared | h);
  if (!hub.heap.empty()) lower_waterline(0.0);
  hub.heap.clear();
  hub.level = 0.0;
  hub.touched = false;
}

// Those whose virtual end comes first end now: its time is where the timer was set.
void FluidCore::end_under_hub(std::uint32_t h) {
  touch_hub(h);
  Hub& hub = hubs_[h];
  timers_.erase(FluidTimers::kShared | h);
  const WideSum end = hub.heap[0].first;
  hub.virtual_time = end;
  while (!hub.heap.empty() && hub.heap[0].first == end) {
    const std::uint32_t a = hub.heap[0].second;
    done_.emplace_back(activities_[a].sequence, activities_[a].tag);
    remove(a);
  }
}

void FluidCore::hub_up(Hub& hub, std::size_t p, std::pair<WideSum, std::uint32_t> e) {
  while (p > 0) {
    const std::size_t parent = (p - 1) / 4;
    if (!(e.first < hub.heap[parent].first)) break;
    hub_place(hub, p, hub.heap[parent]);
    p = parent;
  }
  hub_place(hub, p, e);
}

void FluidCore::hub_down(Hub& hub, std::size_t p, std::pair<WideSum, std::uint32_t> e) {
  for (;;) {
    const std::size_t first = 4 * p + 1;
    if (first >= hub.heap.size()) break;
    const std::size_t stop = std::min(first + 4, hub.heap.size());
    std::size_t least = first;
    for (std::size_t child = first + 1; child < stop; ++child) {
      if (hub.heap[child].first < hub.heap[least].first) least = child;
    }
    if (!(hub.heap[least].first < e.first)) break;
    hub_place(hub, p, hub.heap[least]);
    p = least;
  }
  hub_place(hub, p, e);
}

}  // namespace medley
