#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "sim/core/error.h"
#include "sim/engine/fluid_core.h"

namespace medley {

namespace {
// Levels that differ by rounding alone count as reaching the waterline.
constexpr double kWaterlineMargin = 1e-9;
constexpr double kSame = 1e-14;  // levels this close, relatively, are unchanged
constexpr double kPassed = 1e-12;
constexpr double kFits = 1.0 + 1e-13;

// All ones or 0, hidden from the optimiser, which would make branches of it.
std::uint64_t mask_if(bool condition) {
  std::uint64_t mask = 0 - std::uint64_t{condition};
  __asm__("" : "+r"(mask));
  return mask;
}

double masked(double x, std::uint64_t mask) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & mask);
}
}  // namespace

void FluidCore::fill() {
  ++counters_.components;
  events_.clear();
  changes_.clear();
  looked_.clear();
  lone_.clear();
  open_activities_ = 0;
  start_filling();
  for (const std::uint32_t a : fresh_) {
    if (!may_rise(a)) continue;
    const std::uint32_t first = path(a)[0].resource;
    const bool alone =
        looked_at(first) && resources_[first].users.size() == 1 && !looks_[first].open;
    if (!alone && levels_[a].phase == Phase::kAssumed) open(a);
  }
  for (const std::uint32_t r : general_) {
    if (looked_at(r)) continue;
    look(r);
    queue(r);
  }
  while (!events_.empty()) {
    const Event event = events_.front();
    std::pop_heap(events_.begin(), events_.end(), std::greater<>());
    events_.pop_back();
    if (event.id >= kBound) {
      const std::uint32_t a = event.id - kBound;
      if (levels_[a].phase != Phase::kOpen) continue;
      raise_to(event.level);
      freeze(a, paths_[a].cap, kNone);
    } else if (looks_[event.id].queued && looks_[event.id].event == event.level) {
      raise_to(event.level);
      step(event.id);
    }
  }
  MEDLEY_CHECK(open_activities_ == 0, "an activity that nothing holds");
  for (const std::uint32_t r : lone_) {
    if (lone_bottleneck(r)) make_hub(r);
  }
}

bool FluidCore::may_rise(std::uint32_t a) const {
  return activities_[a].live && activities_[a].hub == kNone && paths_[a].count > 0;
}

void FluidCore::start_filling() {
  for (const std::uint32_t a : fresh_) {
    if (!may_rise(a)) continue;
    lower_waterline(paths_[a].cap);
    for (const Element& e : path(a)) lower_waterline(share(resources_[e.resource]));
  }
  filled_ = passed_ = 0.0;
  if (waterline_ < kInfinity) raise_to(waterline_ - kWaterlineMargin * waterline_);
}

void FluidCore::raise_to(double level) {
  if (level <= filled_) return;
  filled_ = level;
  passed_ = level - kPassed * level;
}

void FluidCore::push(double level, std::uint32_t id) {
  events_.push_back({level, id});
  std::push_heap(events_.begin(), events_.end(), std::greater<>());
}

void FluidCore::look(std::uint32_t r) {
  Look& l = looks_[r];
  l.visit = visit_;
  l.open = 0;
  l.queued = l.assumed = l.full = false;
  looked_.push_back(r);
  counters_.visited += resources_[r].users.size();
}

void FluidCore::open(std::uint32_t a) {
  const std::span<const Element> demands = path(a);
  for (const Element& e : demands) {
    if (looked_at(e.resource) && looks_[e.resource].full) {  // a tie: that one holds it where it is
      levels_[a].holder = e.resource;
      return;
    }
  }
  levels_[a].phase = Phase::kOpen;
  ++open_activities_;
  if (paths_[a].cap < kInfinity) push(paths_[a].cap, kBound | a);
  for (const Element& e : demands) {
    if (!looked_at(e.resource)) look(e.resource);
    ++looks_[e.resource].open;
  }
  for (const Element& e : demands) {
    const Look& l = looks_[e.resource];
    if (!l.queued || l.assumed) queue(e.resource);
  }
}

void FluidCore::queue(std::uint32_t r) {
  Sums sums;
  const double event = next_event(r, sums);
  looks_[r].event = event;
  looks_[r].queued = event < kInfinity;
  if (looks_[r].queued) push(event, r);
}

// Without branches: which users are final is as good as random.
FluidCore::Sums FluidCore::sum(std::uint32_t r) const {
  Sums s;
  const double passed = passed_;
  std::uint64_t held = std::bit_cast<std::uint64_t>(s.held);
  for (const User& user : resources_[r].users) {
    const Level& level = levels_[user.activity];
    const std::uint64_t assumed = mask_if(level.phase == Phase::kAssumed);
    const std::uint64_t final =
        mask_if(level.phase == Phase::kFinal) | (assumed & mask_if(level.value < passed));
    const std::uint64_t stays = assumed & ~final;
    const double use = user.weight * level.value;
    s.used += masked(use, final);
    s.weight += masked(user.weight, ~final);
    s.rest += masked(use, stays);
    const std::uint64_t is_held = stays & mask_if(level.holder == r);
    held = (held & ~is_held) | (std::bit_cast<std::uint64_t>(level.value) & is_held);
  }
  s.held = std::bit_cast<double>(held);
  return s;
}

// The level of the next event, or less; infinite when nothing but an opening can bring one.
double FluidCore::next_event(std::uint32_t r, Sums& s) {
  s = sum(r);
  Look& l = looks_[r];
  const double capacity = resources_[r].capacity;
  const bool fits = l.open == 0 && s.used + s.rest <= capacity * kFits;
  if (s.weight == 0.0 || (fits && s.held < 0.0)) return kInfinity;
  s.fills = std::max(0.0, capacity - s.used) / s.weight;
  if (s.held >= 0.0 && std::abs(s.fills - s.held) <= kSame * s.held) s.fills = s.held;
  l.assumed = fits;
  if (fits) return s.held;
  return s.held >= 0.0 ? std::min(s.fills, s.held) : s.fills;
}

void FluidCore::step(std::uint32_t r) {
  Sums s;
  Look& l = looks_[r];
  l.event = next_event(r, s);
  l.queued = l.event < kInfinity;
  if (!l.queued) return;
  if (l.event > filled_) {
    push(l.event, r);
  } else if (s.held >= 0.0 && s.held <= filled_ && s.fills > filled_) {
    open_held(r);
    queue(r);
  } else {
    saturate(r, std::max(filled_, s.fills), s.held);
  }
}

void FluidCore::open_held(std::uint32_t r) {
  looks_[r].assumed = false;  // queued again when all are open
  for (const User& user : resources_[r].users) {
    const Level& level = levels_[user.activity];
    if (level.phase == Phase::kAssumed && level.holder == r && level.value >= passed_) {
      open(user.activity);
    }
  }
}

void FluidCore::saturate(std::uint32_t r, double level, double held) {
  looks_[r].full = true;
  looks_[r].queued = false;
  const bool same = held >= 0.0 && std::abs(level - held) <= kSame * held;
  if (same) level = held;
  const std::size_t before = changes_.size();
  for (const User& user : resources_[r].users) {
    const Level& l = levels_[user.activity];
    if (l.phase == Phase::kFinal) continue;
    bool stops = l.phase == Phase::kOpen;
    if (l.phase == Phase::kAssumed) {
      stops = l.holder == r ? !same && l.value >= passed_ : l.value > level + kSame * level;
    }
    if (stops) freeze(user.activity, level, r);
  }
  const std::size_t users = resources_[r].users.size();
  if (users > 1 && changes_.size() - before == users) lone_.push_back(r);
}

void FluidCore::freeze(std::uint32_t a, double level, std::uint32_t holder) {
  Level& l = levels_[a];
  const bool was_open = l.phase == Phase::kOpen;
  changes_.push_back({a, l.value});
  l = {level, holder, Phase::kFinal};
  if (was_open) --open_activities_;
  for (const Element& e : path(a)) {
    if (was_open) {
      --looks_[e.resource].open;
    } else if (!looked_at(e.resource)) {
      look(e.resource);
      queue(e.resource);
    }
  }
}

// Whether all that is connected with r uses it and is held by it, with room everywhere else.
bool FluidCore::lone_bottleneck(std::uint32_t r) {
  const double level = share(resources_[r]);
  if (!(level > 0.0)) return false;
  ++lone_check_;
  for (const User& user : resources_[r].users) {
    if (paths_[user.activity].cap < level) return false;
    for (const Element& e : path(user.activity)) {
      const Resource& other = resources_[e.resource];
      if (e.resource == r || looks_[e.resource].checked == lone_check_) continue;
      looks_[e.resource].checked = lone_check_;
      if (share(other) <= level) return false;
      for (const User& u : other.users) {
        if (levels_[u.activity].holder != r) return false;
      }
    }
  }
  return true;
}

}  // namespace medley
