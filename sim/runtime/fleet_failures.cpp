#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/core/error.h"
#include "sim/runtime/fleet.h"

namespace medley {

// ---- parts and who needs them
// --------------------------------------------------------------------

ReplicaSite Fleet::site_of(std::uint32_t unit) const {
  const Unit& u = units_[unit];
  ReplicaSite site;
  site.pool = &scenario_.pools[u.pool];
  site.place = u.place;
  site.devices_per_node = scenario_.nodes[site.pool->node_group].type.devices;
  return site;
}

/// Devices, nodes and replicas that serve, in order.
std::vector<FailingPart> Fleet::served_parts() const {
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, int> devices;
  for (std::uint32_t u = 0; u < units_.size(); ++u) {
    const ReplicaSite site = site_of(u);
    for (int i = 0; i < site.pool->devices_per_replica(); ++i) {
      const DevicePlace p = place_of(site, i);
      devices[{p.group, p.node, p.device}] = 1;
    }
  }
  std::vector<FailingPart> nodes, parts;
  for (const auto& [place, used] : devices) {
    const auto& [g, n, d] = place;
    const std::string& group = scenario_.nodes[g].name;
    parts.push_back({FailingKind::kDevice, fmt::format("{}/{}/{}", group, n, d), g, n, d, {}});
    if (!nodes.empty() && nodes.back().group == g && nodes.back().node == n) continue;
    nodes.push_back({FailingKind::kNode, fmt::format("{}/{}", group, n), g, n, 0, {}});
  }
  parts.insert(parts.end(), nodes.begin(), nodes.end());
  for (const ReplicaRecord& r : result_.replicas) {
    parts.push_back({FailingKind::kReplica,
                     fmt::format("{}/{}", scenario_.pools[r.pool].name, r.replica),
                     r.pool,
                     r.replica,
                     0,
                     {}});
  }
  return parts;
}

std::vector<std::uint32_t> Fleet::units_needing(const FailingPart& part) const {
  std::vector<std::uint32_t> found;
  if (part.kind == FailingKind::kLink) return found;
  if (part.kind == FailingKind::kReplica) return {first_unit_[part.group] + part.node};
  for (std::uint32_t u = 0; u < units_.size(); ++u) {
    const ReplicaSite site = site_of(u);
    if (site.place.group != part.group) continue;
    for (int i = 0; i < site.pool->devices_per_replica(); ++i) {
      const DevicePlace p = place_of(site, i);
      if (p.node != part.node) continue;
      if (part.kind == FailingKind::kDevice && p.device != part.device) continue;
      found.push_back(u);
      break;
    }
  }
  return found;
}

void Fleet::build_failures(const Catalog& catalog) {
  const FailureSpec& spec = scenario_.failures;
  if (!spec.given) return;
  failures_ = std::make_unique<FailureControl>(spec, scenario_.seed, served_parts());
  FailureControl& f = *failures_;
  for (const FailingPart& part : f.timeline.parts()) f.units.push_back(units_needing(part));
  f.health.resize(units_.size());
  f.down_of_model.resize(trace_.models.size(), 0);
  f.kept.resize(trace_.requests.size());
  f.waiting.resize(trace_.models.size());
  if (spec.links()) {
    need_transport(catalog);
    for (std::uint32_t u = 0; u < units_.size(); ++u) find_wires(u);
  }
  arm_failures();
}

/// Wires that a replica's own traffic crosses, around links that are down. False where some of its
/// devices have no way to each other.
bool Fleet::find_wires(std::uint32_t unit) {
  const ReplicaSite site = site_of(unit);
  if (!failures_->spec.links() || site.pool->devices_per_replica() == 1) return true;
  StepFootprint found = footprint_of(*transport_, site);
  for (const StepFootprint::Wire& w : found.wires) {
    if (transport_->wire_capacity(w.resource) == 0.0) return false;
  }
  std::vector<std::uint32_t>& wires = failures_->health[unit].wires;
  wires.clear();
  for (const StepFootprint::Wire& w : found.wires) wires.push_back(w.resource);
  if (units_[unit].shared) {
    StepFootprint now = player_->footprint(unit);
    now.wires = std::move(found.wires);
    player_->set_footprint(unit, site.pool->pipeline_parallel, std::move(now));
  }
  return true;
}

// ---- the course of failures
// ----------------------------------------------------------------------

void Fleet::arm_failures() {
  FailureControl& f = *failures_;
  f.due = f.stopped ? SimTime::max() : f.next();
  if (f.due == SimTime::max()) {
    engine_.cancel(f.event);
  } else if (!engine_.reschedule(f.event, f.due)) {
    f.event = engine_.schedule(f.due, EventClass::kSchedule, 0, kFailure);
  }
}

/// Also ends the course of failures when nothing else can happen any more: what waits then waits
/// for replicas that never come back.
void Fleet::on_failure_event() {
  constexpr std::int64_t kMostIdleChanges = 1'000'000;
  FailureControl& f = *failures_;
  ++f.own_events;
  if (f.due <= engine_.now()) apply_failures();
  const std::uint64_t others = engine_.events_fired() - engine_.samples_fired() - f.own_events;
  f.idle_changes = others == f.other_events ? f.idle_changes + 1 : 0;
  f.other_events = others;
  if (f.stopped || f.idle_changes == 0 || !marked_.empty()) return;
  const bool restarting = std::any_of(f.health.begin(), f.health.end(),
                                      [](const UnitHealth& h) { return h.ready < SimTime::max(); });
  const std::size_t own = f.due < SimTime::max() ? 1 : 0;
  const std::size_t samples = sample_every_.value() > 0.0 ? 1 : 0;
  const bool alone = engine_.pending_events() <= own + samples && cursor_ == open_requests_;
  if (alone && !restarting && f.temporary == 0) {
    f.stopped = true;
    arm_failures();
  } else if (f.idle_changes > kMostIdleChanges) {
    throw InputError(scenario_.file, "/failures",
                     "a million failures and repairs in a row and nothing else: requests wait for "
                     "replicas that hardly ever serve",
                     "set a horizon, a longer mtbf or a shorter restart");
  }
}

void Fleet::apply_failures() {
  FailureControl& f = *failures_;
  const SimTime now = engine_.now();
  if (transport_) transport_->catch_up();
  f.stranded.clear();
  f.came_up = f.went_down = false;
  while (!f.stopped && f.next() <= now) {
    for (std::uint32_t u = 0; u < units_.size(); ++u) {
      if (f.health[u].ready <= now) bring_up(u);
    }
    f.changes.clear();
    f.timeline.pop(now, f.changes);
    for (const FailureTimeline::Change& c : f.changes) change_part(c);
    for (std::uint32_t u = 0; u < units_.size(); ++u) {
      if (!units_[u].up && f.health[u].ready == SimTime::max()) try_restart(u);
    }
  }
  settle_stranded();
  release_waiting();
  arm_failures();
}

void Fleet::change_part(const FailureTimeline::Change& c) {
  FailureControl& f = *failures_;
  const FailingPart& part = f.timeline.parts()[c.part];
  if (!c.for_good) f.temporary += c.down ? 1 : -1;
  if (c.down ? f.causes[c.part]++ > 0 : --f.causes[c.part] > 0) return;
  if (c.down) {
    f.open[c.part] = static_cast<std::uint32_t>(result_.failures.size());
    FailureRecord record;
    record.kind = part.kind;
    record.name = part.name;
    record.down = engine_.now();
    result_.failures.push_back(std::move(record));
  } else {
    result_.failures[f.open[c.part]].up = engine_.now();
  }
  for (const std::uint32_t u : f.units[c.part]) {
    f.health[u].causes += c.down ? 1 : -1;
    if (c.down) hit_unit(u, f.open[c.part]);
  }
  if (tiers_ && c.down && part.kind == FailingKind::kNode) {
    tiers_->lose_node(scenario_, part.group, part.node);
  }
  if (part.kind == FailingKind::kLink) change_cables(part, c.down, f.open[c.part]);
}

/// A cable that several failures name is down while any of them lasts. Collectives do not survive
/// the loss of a link they use.
void Fleet::change_cables(const FailingPart& part, bool down, std::uint32_t failure) {
  FailureControl& f = *failures_;
  std::vector<std::uint32_t> changed;
  for (const std::uint32_t link : part.links) {
    if (f.cable_causes.size() <= link) f.cable_causes.resize(link + 1, 0);
    if (down ? f.cable_causes[link]++ == 0 : --f.cable_causes[link] == 0) changed.push_back(link);
  }
  if (!changed.empty()) transport_->fail_cables(changed, down);
  if (!down) return;
  for (std::uint32_t u = 0; u < units_.size(); ++u) {
    const auto& wires = f.health[u].wires;
    if (std::any_of(wires.begin(), wires.end(),
                    [&](std::uint32_t w) { return transport_->wire_capacity(w) == 0.0; })) {
      hit_unit(u, failure);
    }
  }
}

/// Takes a replica down, or interrupts its restart.
void Fleet::hit_unit(std::uint32_t u, std::uint32_t failure) {
  UnitHealth& health = failures_->health[u];
  if (units_[u].up) {
    take_down(u, failure);
  } else if (health.ready < SimTime::max()) {
    health.ready = SimTime::max();
    std::vector<Outage>& outages = result_.replicas[u].outages;
    outages.back().ready = engine_.now();
    outages.push_back({engine_.now()});
  }
}

void Fleet::count_model_down(std::uint32_t unit, int by) {
  failures_->down += static_cast<std::size_t>(by);
  for (std::size_t m = 0; m < trace_.models.size(); ++m) {
    if (scenario_.pools[units_[unit].pool].model_name == trace_.models[m]) {
      failures_->down_of_model[m] += by;
    }
  }
}

void Fleet::take_down(std::uint32_t u, std::uint32_t failure) {
  FailureControl& f = *failures_;
  Unit& unit = units_[u];
  const SimTime now = engine_.now();
  acting_ = u;
  for (int lane = 0; lane < unit.replica->lanes(); ++lane) {
    if (unit.shared) {
      player_->abort(u, lane);
    } else if (unit.replica->busy(lane) && unit.replica->end(lane) == now) {
      unit.replica->complete(lane, now);
    }
    engine_.cancel(unit.ends[static_cast<std::size_t>(lane)]);
  }
  engine_.cancel(unit.wake);
  cancel_load(u);
  unit.up = false;
  f.went_down = true;
  count_model_down(u, 1);
  ++result_.failures[failure].replicas;
  result_.replicas[u].outages.push_back({now});
  if (pairing_) fail_handoffs(u, failure);
  fail_joins(u, failure);
  fail_moves(u, failure);
  if (tiers_) tiers_->fail(u);
  f.evicted.clear();
  unit.replica->fail(now, f.evicted);
  for (const Replica::Evicted& e : f.evicted) {
    keep_energy(u, e);
    f.stranded.push_back({e, failure});
  }
  unit.requests = unit.tokens = unit.prompt_tokens = 0.0;
  load_changed(u);
}

/// How long from the repair until it serves: the engine's start.
Seconds Fleet::ready_after(std::uint32_t) const {
  return scenario_.failures.restart;
}

void Fleet::try_restart(std::uint32_t u) {
  UnitHealth& health = failures_->health[u];
  if (health.causes > 0 || !find_wires(u)) return;
  Outage& outage = result_.replicas[u].outages.back();
  if (outage.repaired == SimTime::max()) outage.repaired = engine_.now();
  health.ready = SimTime::after(engine_.now(), ready_after(u));
}

void Fleet::bring_up(std::uint32_t u) {
  failures_->health[u].ready = SimTime::max();
  if (!find_wires(u)) return;  // a link failed meanwhile
  units_[u].up = true;
  failures_->came_up = true;
  count_model_down(u, -1);
  load_weights(u, engine_.now());  // it serves when they are there
  if (!units_[u].loading) result_.replicas[u].outages.back().ready = engine_.now();
  if (units_[u].role == PoolRole::kDecode) retry_pairing_ = true;
}

}  // namespace medley
