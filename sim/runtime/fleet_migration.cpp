#include <algorithm>

#include "sim/core/error.h"
#include "sim/runtime/fleet.h"

namespace medley {

void Fleet::build_migration(const Catalog& catalog) {
  const MigrationSpec& spec = scenario_.migration;
  if (spec.policy == MigrationSpec::Policy::kNone) return;
  need_transport(catalog);
  move_paths_.resize(scenario_.pools.size());
  for (std::size_t p = 0; p < scenario_.pools.size(); ++p) {
    move_paths_[p] = kv_paths(scenario_.pools[p], scenario_.pools[p]);
  }
  for (const MigrationSpec::Drain& drain : spec.drains) {
    engine_.schedule(drain.at, EventClass::kSchedule, first_unit_[drain.pool] + drain.replica,
                     kDrain);
  }
}

/// A look at every interval while there is work.
void Fleet::arm_migration() {
  if (scenario_.migration.policy == MigrationSpec::Policy::kNone || engine_.pending(look_)) return;
  look_ = engine_.schedule_after(scenario_.migration.interval, EventClass::kSchedule, 0, kMigrate);
}

void Fleet::look_for_migrations() {
  for (std::uint16_t p = 0; p < scenario_.pools.size(); ++p) {
    if (scenario_.migration.policy == MigrationSpec::Policy::kBalance) balance(p);
  }
  for (std::uint32_t u = 0; u < units_.size(); ++u) {
    if (units_[u].draining) move_away(u);
  }
  const bool work = std::any_of(units_.begin(), units_.end(), [](const Unit& u) {
    return u.replica->running() + u.replica->waiting() > 0;
  });
  if (work) arm_migration();
}

double Fleet::kv_usage(std::uint32_t unit) const {
  const Replica& replica = *units_[unit].replica;
  return static_cast<double>(replica.used_blocks(engine_.now())) /
         static_cast<double>(replica.total_blocks());
}

bool Fleet::moves_from(std::uint32_t unit) const {
  return std::any_of(moves_.begin(), moves_.end(),
                     [&](const MigrationState& m) { return m.open && m.record.from == unit; });
}

/// From the replica of a pool with the most KV in use (or the longest queue) to the one with the
/// least: of the sequences whose move does not turn the difference around, the longest; where none
/// is so short (a queue with little KV), the shortest.
void Fleet::balance(std::uint16_t pool) {
  if (scenario_.pools[pool].role == PoolRole::kPrefill) return;
  const MigrationSpec& spec = scenario_.migration;
  const auto count = static_cast<std::uint32_t>(scenario_.pools[pool].replicas);
  std::uint32_t high = HandoffState::kNone, low = HandoffState::kNone;
  std::uint32_t longest = HandoffState::kNone;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t u = first_unit_[pool] + i;
    if (!units_[u].up || units_[u].loading) continue;
    if (high == HandoffState::kNone || kv_usage(u) > kv_usage(high)) high = u;
    if (longest == HandoffState::kNone ||
        units_[u].replica->waiting() > units_[longest].replica->waiting()) {
      longest = u;
    }
    if (takes(u) && (low == HandoffState::kNone || kv_usage(u) < kv_usage(low))) low = u;
  }
  if (low == HandoffState::kNone) return;
  const Replica& to = *units_[low].replica;
  if (kv_usage(high) - kv_usage(low) <= spec.threshold) {
    if (units_[longest].replica->waiting() - to.waiting() < spec.queue) return;
    high = longest;
  }
  if (high == low || moves_from(high)) return;
  const SimTime now = engine_.now();
  const std::int64_t gap =
      units_[high].replica->used_blocks(now) - units_[low].replica->used_blocks(now);
  const std::int64_t block = scenario_.pools[pool].batching.block_size;
  units_[high].replica->decoding(now, decoding_);
  const Replica::Decoding* chosen = nullptr;
  const Replica::Decoding* shortest = nullptr;
  for (const Replica::Decoding& d : decoding_) {
    if (2 * d.stored <= gap * block && (!chosen || d.stored > chosen->stored)) chosen = &d;
    if (!shortest || d.stored < shortest->stored) shortest = &d;
  }
  if (!chosen && high == longest) chosen = shortest;
  if (chosen) begin_move(high, low, *chosen);
}

/// A drained replica gives away its shortest sequence to the emptiest replica of its pool.
void Fleet::move_away(std::uint32_t unit) {
  if (moves_from(unit)) return;
  units_[unit].replica->decoding(engine_.now(), decoding_);
  if (decoding_.empty()) return note_drained(unit);
  const auto chosen = std::min_element(
      decoding_.begin(), decoding_.end(),
      [](const Replica::Decoding& a, const Replica::Decoding& b) { return a.stored < b.stored; });
  const std::uint16_t pool = units_[unit].pool;
  std::uint32_t low = HandoffState::kNone;
  for (int i = 0; i < scenario_.pools[pool].replicas; ++i) {
    const std::uint32_t u = first_unit_[pool] + static_cast<std::uint32_t>(i);
    if (u == unit || !takes(u) ||
        !units_[u].replica->import_room(chosen->request, chosen->produced)) {
      continue;
    }
    if (low == HandoffState::kNone || kv_usage(u) < kv_usage(low)) low = u;
  }
  if (low != HandoffState::kNone) begin_move(unit, low, *chosen);
}

void Fleet::drain(std::uint32_t unit) {
  if (units_[unit].draining) return;
  units_[unit].draining = true;
  ++closed_units_;
  std::vector<std::uint32_t> back;
  units_[unit].replica->withdraw(back);
  for (const std::uint32_t request : back) {
    Unit& u = units_[unit];
    const Request& r = trace_.requests[request];
    u.requests -= 1.0;
    u.tokens -= r.input_tokens;
    if (u.role == PoolRole::kUnified) u.tokens -= expected_at_dispatch_[request];
    u.prompt_tokens -= r.input_tokens;
    load_changed(unit);
    route_request(request);
  }
  move_away(unit);
  arm_migration();
}

void Fleet::note_drained(std::uint32_t unit) {
  const Replica& replica = *units_[unit].replica;
  if (result_.replicas[unit].drained > SimTime() || !units_[unit].draining) return;
  if (replica.running() == 0 && replica.waiting() == 0) {
    result_.replicas[unit].drained = engine_.now();
  }
}

// ---- one move ----------------------------------------------------------------------------------

void Fleet::begin_move(std::uint32_t from, std::uint32_t to, const Replica::Decoding& what) {
  const auto import = units_[to].replica->reserve_import(what.request, what.produced);
  if (!import) return;
  auto free =
      std::find_if(moves_.begin(), moves_.end(), [](const MigrationState& m) { return !m.open; });
  if (free == moves_.end()) free = moves_.insert(moves_.end(), MigrationState());
  MigrationState& m = *free;
  m = MigrationState();
  m.open = true;
  m.record.request = what.request;
  m.record.from = from;
  m.record.to = to;
  m.record.began = engine_.now();
  m.slot = what.slot;
  m.import_slot = import->slot;
  m.sent = std::min(import->cached_tokens, what.stored);
  send_move(m, what.stored, false);
}

/// Sends the KV up to `upto` tokens; with the last of it what a sequence keeps besides.
void Fleet::send_move(MigrationState& m, std::int64_t upto, bool last) {
  const double tokens = static_cast<double>(upto - m.sent);
  m.sent = upto;
  m.flows.clear();
  if (!last) ++m.record.rounds;
  const Unit& source = units_[m.record.from];
  const Unit& sink = units_[m.record.to];
  const auto index = static_cast<std::uint64_t>(&m - moves_.data());
  for (const KvPath& path : move_paths_[source.pool]) {
    TransportFlow flow;
    flow.bytes = tokens * path.bytes_per_token + (last ? path.bytes_per_sequence : 0.0);
    if (flow.bytes <= 0.0) continue;
    DevicePlace place = source.place;
    place.device += static_cast<std::uint32_t>(path.from);
    flow.from = transport_->vertex(place);
    place = sink.place;
    place.device += static_cast<std::uint32_t>(path.to);
    flow.to = transport_->vertex(place);
    flow.hash = m.record.request;
    flow.tag = kMoveFlow | index;
    m.record.bytes += flow.bytes;
    ++m.flows_left;
    m.flows.push_back(transport_->start(flow));
  }
  if (m.flows_left == 0) next_of_move(m);
}

void Fleet::on_move_arrived(std::uint64_t index) {
  MigrationState& m = moves_[index];
  if (--m.flows_left == 0) next_of_move(m);
}

/// A copy is there: another one, or the stop, or the end.
void Fleet::next_of_move(MigrationState& m) {
  if (m.left) return end_move(m);
  const MigrationSpec& spec = scenario_.migration;
  Unit& source = units_[m.record.from];
  const Replica::Decoding now = source.replica->decoding(m.slot, engine_.now());
  if (now.stored - m.sent > spec.stop_tokens && m.record.rounds < spec.rounds) {
    return send_move(m, now.stored, false);
  }
  // The step under way adds a token.
  if (!units_[m.record.to].replica->grow_import(m.import_slot, now.produced + 1)) {
    return cancel_move(m);
  }
  m.stopping = true;
  acting_ = m.record.from;
  if (source.replica->leave(m.slot, engine_.now())) {
    engine_.reschedule(source.ends[0], source.replica->end(0));
  }
}

void Fleet::on_left(std::uint32_t request, std::uint32_t, std::int64_t stored,
                    std::int32_t produced, SimTime now) {
  MigrationState& m = *move_of(request);
  m.left = true;
  m.record.stopped = now;
  units_[m.record.to].replica->settle_import(m.import_slot, produced, now);
  count_move(m, 1.0);
  mark(m.record.from);
  send_move(m, stored, true);
}

/// The routers' account of it moves, or comes back.
void Fleet::count_move(const MigrationState& m, double sign) {
  for (const auto& [unit, by] : {std::pair(m.record.from, -sign), std::pair(m.record.to, sign)}) {
    units_[unit].requests += by;
    units_[unit].tokens += by * expected_at_dispatch_[m.record.request];
    load_changed(unit);
  }
}

void Fleet::end_move(MigrationState& m) {
  const std::uint32_t request = m.record.request;
  m.record.arrived = engine_.now();
  m.open = false;
  RequestRecord& record = result_.requests[request];
  record.energy_j += units_[m.record.from].replica->release_export(m.slot);
  record.replica = result_.replicas[m.record.to].replica;
  ++record.migrations;
  record.migration_s += (m.record.arrived - m.record.stopped).value();
  result_.migrations.push_back(m.record);
  mark(m.record.from);
  const MigrationRecord done = m.record;
  join(done.to, m.import_slot, done.stopped);
  if (units_[done.from].draining) move_away(done.from);
}

/// It ended or was preempted where it was, or there is no room for its last tokens.
void Fleet::cancel_move(MigrationState& m) {
  for (const TransferHandle flow : m.flows) transport_->cancel(flow);
  units_[m.record.to].replica->cancel_import(m.import_slot);
  mark(m.record.to);
  m.open = false;
}

/// One end has failed. What had left a replica that lives is taken back there.
void Fleet::fail_moves(std::uint32_t unit, std::uint32_t failure) {
  for (MigrationState& m : moves_) {
    if (!m.open || (m.record.from != unit && m.record.to != unit)) continue;
    if (m.left) count_move(m, -1.0);
    cancel_move(m);
    if (m.record.from == unit) continue;
    ++result_.failures[failure].requests_hit;
    Replica& source = *units_[m.record.from].replica;
    if (m.left) {
      source.take_back(m.slot);
      mark(m.record.from);
    } else if (m.stopping) {
      source.stay(m.slot);
    }
  }
}

MigrationState* Fleet::move_of(std::uint32_t request) {
  for (MigrationState& m : moves_) {
    if (m.open && m.record.request == request) return &m;
  }
  return nullptr;
}

}  // namespace medley
