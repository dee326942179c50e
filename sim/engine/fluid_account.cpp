#include <fmt/format.h>
#include <algorithm>

#include "sim/core/error.h"
#include "sim/engine/fluid_core.h"

namespace medley {

// Brings the account up to now.
void FluidCore::flush(std::uint32_t r) {
  Account& account = accounts_[r];
  const std::uint32_t hub = resources_[r].hub;
  const double elapsed = now_ - account.since;
  account.since = now_;
  if (hub != kNone && hub != r) {
    const WideSum virtual_time = virtual_now(hubs_[hub]);
    account.units += resources_[r].weight.value() * (virtual_time - account.mark).value();
    account.busy_s += elapsed;
    account.mark = virtual_time;
  } else if (account.use > 0.0) {
    account.units += account.use * elapsed;
    account.busy_s += elapsed;
    if (looks_[r].saturated) account.saturated_s += elapsed;
  }
}

void FluidCore::set_use(std::uint32_t r, double use, bool saturated) {
  saturated = saturated && use > 0.0;
  if (accounts_[r].use == use && looks_[r].saturated == saturated) return;
  flush(r);
  accounts_[r].use = use;
  looks_[r].saturated = saturated;
}

double FluidCore::use(std::uint32_t r) const {
  MEDLEY_CHECK(r < resources_.size(), "no such resource");
  const Resource& resource = resources_[r];
  if (resource.hub == kNone || resource.hub == r) return accounts_[r].use;
  return resource.weight.value() * hubs_[resource.hub].level;
}

FluidUse FluidCore::account(std::uint32_t r) const {
  MEDLEY_CHECK(r < resources_.size(), "no such resource");
  const Account& account = accounts_[r];
  const std::uint32_t hub = resources_[r].hub;
  const double elapsed = now_ - account.since;
  FluidUse total{account.units, account.busy_s, account.saturated_s};
  if (hub != kNone && hub != r) {
    const WideSum virtual_time = virtual_now(hubs_[hub]);
    total.units += resources_[r].weight.value() * (virtual_time - account.mark).value();
    total.busy_s += elapsed;
  } else if (account.use > 0.0) {
    total.units += account.use * elapsed;
    total.busy_s += elapsed;
    if (looks_[r].saturated) total.saturated_s += elapsed;
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
    if (!self.live || (self.left == 0.0 && paths_[a].count == 0)) continue;
    level[a] = rate({a, self.generation}) * self.level;
    for (const Element& e : path(a)) {
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
    if (!self.live || (self.left == 0.0 && paths_[a].count == 0)) continue;
    if (level[a] > paths_[a].cap * (1.0 + tolerance)) {
      return fmt::format("activity {}: level {} above its bound {}", a, level[a], paths_[a].cap);
    }
    bool held = level[a] >= paths_[a].cap * (1.0 - tolerance);
    for (const Element& e : path(a)) {
      const std::uint32_t r = e.resource;
      held = held || (used[r] >= resources_[r].capacity * (1.0 - tolerance) &&
                      level[a] >= highest[r] * (1.0 - tolerance));
    }
    if (!held) return fmt::format("activity {}: nothing holds it at level {}", a, level[a]);
  }
  return "";
}

}  // namespace medley
