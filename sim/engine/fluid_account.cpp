#include <fmt/format.h>
#include <algorithm>

#include "sim/core/error.h"
#include "sim/engine/fluid_core.h"

namespace medley {

// Brings the account up to now.
void FluidCore::flush(Resource& r) const {
  const double elapsed = now_ - r.since;
  r.since = now_;
  if (r.hub != kNone && &r != &resources_[r.hub]) {
    const WideSum virtual_time = virtual_now(hubs_[r.hub]);
    r.units += r.weight.value() * (virtual_time - r.mark).value();
    r.busy_s += elapsed;
    r.mark = virtual_time;
    return;
  }
  if (r.use > 0.0) {
    r.units += r.use * elapsed;
    r.busy_s += elapsed;
    if (r.saturated) r.saturated_s += elapsed;
  }
}

void FluidCore::set_use(std::uint32_t r, double use, bool saturated) {
  Resource& resource = resources_[r];
  saturated = saturated && use > 0.0;
  if (resource.use == use && resource.saturated == saturated) return;
  flush(resource);
  resource.use = use;
  resource.saturated = saturated;
}

double FluidCore::use(std::uint32_t r) const {
  MEDLEY_CHECK(r < resources_.size(), "no such resource");
  const Resource& resource = resources_[r];
  if (resource.hub == kNone || resource.hub == r) return resource.use;
  return resource.weight.value() * hubs_[resource.hub].level;
}

FluidUse FluidCore::account(std::uint32_t r) const {
  MEDLEY_CHECK(r < resources_.size(), "no such resource");
  const Resource& resource = resources_[r];
  const double elapsed = now_ - resource.since;
  FluidUse total{resource.units, resource.busy_s, resource.saturated_s};
  if (resource.hub != kNone && resource.hub != r) {
    const WideSum virtual_time = virtual_now(hubs_[resource.hub]);
    total.units += resource.weight.value() * (virtual_time - resource.mark).value();
    total.busy_s += elapsed;
  } else if (resource.use > 0.0) {
    total.units += resource.use * elapsed;
    total.busy_s += elapsed;
    if (resource.saturated) total.saturated_s += elapsed;
  }
  return total;
}

std::string FluidCore::certificate(double tolerance) const {
  std::vector<double>&used = check_used_, &highest = check_highest_, &level = check_level_;
  used.assign(resources_.size(), 0.0);
  highest.assign(resources_.size(), 0.0);
  level.assign(activities_.size(), 0.0);
  for (std::uint32_t a = 0; a < activities_.size(); ++a) {
    const Activity& self = activities_[a];
    if (!self.live || (self.left == 0.0 && self.count == 0)) continue;
    level[a] = rate({a, self.generation}) * self.level;
    for (const Element& e : path(self)) {
      used[e.resource] += e.weight * level[a];
      highest[e.resource] = std::max(highest[e.resource], level[a]);
    }
  }
  for (std::uint32_t r = 0; r < resources_.size(); ++r) {
    const double capacity = resources_[r].capacity;
    if (!(used[r] <= capacity * (1.0 + tolerance))) {
      return fmt::format("resource {}: use {} above its capacity {}", r, used[r], capacity);
    }
  }
  for (std::uint32_t a = 0; a < activities_.size(); ++a) {
    const Activity& self = activities_[a];
    if (!self.live || (self.left == 0.0 && self.count == 0)) continue;
    if (level[a] > self.cap * (1.0 + tolerance)) {
      return fmt::format("activity {}: level {} above its bound {}", a, level[a], self.cap);
    }
    bool held = level[a] >= self.cap * (1.0 - tolerance);
    for (const Element& e : path(self)) {
      const std::uint32_t r = e.resource;
      held = held || (used[r] >= resources_[r].capacity * (1.0 - tolerance) &&
                      level[a] >= highest[r] * (1.0 - tolerance));
    }
    if (!held) return fmt::format("activity {}: nothing holds it at level {}", a, level[a]);
  }
  return "";
}

}  // namespace medley
