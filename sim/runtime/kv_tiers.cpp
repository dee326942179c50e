#include "sim/runtime/kv_tiers.h"

#include <algorithm>

#include "hwmodels/topology/cluster.h"
#include "sim/core/error.h"
#include "workloads/model.h"

namespace medley {

class KvTiers::Port final : public KvBacking {
 public:
  Port(KvTiers& owner, std::uint32_t unit) : owner_(owner), unit_(unit) {}
  std::int64_t find(std::uint64_t id) const override { return owner_.find(unit_, id); }
  bool worth(const std::vector<Part>& parts, double recompute_s) const override {
    return owner_.worth(unit_, parts, recompute_s);
  }
  bool compares() const override { return spec().recall_if_faster; }
  void fetch(std::uint32_t slot, std::uint32_t request, bool again,
             const std::vector<Part>& parts) override {
    owner_.fetch(unit_, slot, request, again, parts);
  }
  void evicted(std::uint64_t id, std::int64_t blocks) override {
    if (!spec().write_through && wanted(id)) owner_.offer(unit_, -1, id, blocks);
  }
  void computed(std::uint64_t id, std::int64_t blocks) override {
    if (wanted(id)) owner_.offer(unit_, -1, id, blocks);
  }
  void forget(std::uint64_t id) override { owner_.forget(unit_, id); }

 private:
  const KvTieringSpec& spec() const { return *owner_.units_[unit_].spec; }
  /// The upper half of the names are blocks of preempted requests.
  bool wanted(std::uint64_t id) const { return spec().swap || id >> 63 == 0; }
  KvTiers& owner_;
  std::uint32_t unit_;
};

KvTiers::KvTiers(const Scenario& scenario, Engine& engine, Transport& transport,
                 const std::vector<Site>& sites, std::uint64_t tag, Listener& listener)
    : engine_(engine), transport_(transport), listener_(listener), tag_(tag) {
  for (const Site& site : sites) add_unit(scenario, site);
}
KvTiers::~KvTiers() = default;

std::uint32_t KvTiers::vertex_of(const Scenario& scenario, const KvTierSpec& tier, const Site& site,
                                 std::uint32_t device) const {
  const ClusterTopology& cluster = transport_.cluster();
  const std::uint32_t index = site.place.device + device;
  switch (tier.where) {
    case KvTierSpec::Where::kHost:
      return cluster.memory(site.place.group, site.place.node,
                            cluster.socket_of(site.place.group, index));
    case KvTierSpec::Where::kNvme:
      return cluster.storage(site.place.group, site.place.node);
    case KvTierSpec::Where::kCxl:
      return cluster.pool.empty() ? ClusterTopology::kNone
                                  : cluster.pool[index % cluster.pool.size()];
    case KvTierSpec::Where::kRemote:
      break;
  }
  const ClusterTopology::Group& there = cluster.groups[tier.node_group];
  const auto nodes = static_cast<std::uint32_t>(scenario.nodes[tier.node_group].count);
  const bool own = tier.node_group == site.place.group;
  // Its own node is not remote.
  const std::uint32_t node =
      own && nodes > 1 ? (site.place.node + 1) % nodes : (site.place.node + site.replica) % nodes;
  return cluster.memory(tier.node_group, node, index % there.sockets);
}

void KvTiers::add_unit(const Scenario& scenario, const Site& site) {
  units_.emplace_back();
  ports_.emplace_back();
  const PoolSpec& pool = scenario.pools[site.pool];
  if (pool.tiering.tiers.empty()) return;
  Unit& unit = units_.back();
  unit.spec = &pool.tiering;
  unit.block_tokens = pool.batching.block_size;
  double whole = 0.0;
  for (int d = 0; d < pool.devices_per_replica(); ++d) {
    const double token =
        kv_bytes_per_token(pool.model, pool.tensor_parallel, pool.pipeline_parallel,
                           d / pool.tensor_parallel, pool.precision.kv);
    unit.block_bytes.push_back(token * unit.block_tokens);
    whole += unit.block_bytes.back();
    DevicePlace place = site.place;
    place.device += static_cast<std::uint32_t>(d);
    unit.devices.push_back(transport_.vertex(place));
  }
  for (std::size_t level = 0; level < pool.tiering.tiers.size(); ++level) {
    const KvTierSpec& tier = pool.tiering.tiers[level];
    TierRecord record;
    record.pool = site.pool;
    record.level = static_cast<std::uint16_t>(level);
    if (tier.scope != KvTierSpec::Scope::kCluster) record.node = site.place.node;
    if (tier.scope == KvTierSpec::Scope::kReplica) record.replica = site.replica;
    auto found = std::find_if(stores_.begin(), stores_.end(), [&](const Store& s) {
      return s.record.pool == record.pool && s.record.level == record.level &&
             s.record.node == record.node && s.record.replica == record.replica;
    });
    unit.stores.push_back(static_cast<std::uint32_t>(found - stores_.begin()));
    if (found == stores_.end()) {
      record.capacity = tier.capacity.value();
      stores_.push_back(
          {KvTier(static_cast<std::int64_t>(record.capacity / whole)), record, whole});
    }
    unit.vertices.emplace_back();
    for (std::uint32_t d = 0; d < unit.devices.size(); ++d) {
      unit.vertices.back().push_back(vertex_of(scenario, tier, site, d));
      MEDLEY_CHECK(unit.vertices.back().back() != ClusterTopology::kNone, "a KV tier is nowhere");
    }
  }
  ports_.back() = std::make_unique<Port>(*this, static_cast<std::uint32_t>(units_.size() - 1));
}

KvBacking* KvTiers::backing(std::uint32_t unit) {
  return ports_[unit].get();
}

// ---- what is where -----------------------------------------------------------------------------

std::int64_t KvTiers::find(std::uint32_t unit, std::uint64_t id) const {
  std::int64_t most = 0;
  for (const std::uint32_t s : units_[unit].stores) most = std::max(most, stores_[s].tier.find(id));
  return most;
}

std::size_t KvTiers::level_with(const Unit& unit, std::uint64_t id, std::int64_t blocks) const {
  std::size_t level = 0;
  while (level < unit.stores.size() && stores_[unit.stores[level]].tier.find(id) < blocks) ++level;
  MEDLEY_CHECK(level < unit.stores.size(), "a KV tier has lost what it had");
  return level;
}

/// Takes an entry into the level below `from`.
void KvTiers::offer(std::uint32_t unit, int from, std::uint64_t id, std::int64_t blocks) {
  Unit& u = units_[unit];
  const auto level = static_cast<std::size_t>(from + 1);
  if (blocks == 0 || level == u.stores.size()) return;
  Store& store = stores_[u.stores[level]];
  const std::int64_t known = store.tier.known(id);
  if (known >= blocks) return store.tier.touch(id);
  const double bytes = static_cast<double>(blocks - known) * store.block_bytes;
  const bool coming = store.tier.find(id) < known;
  if (coming || u.under_way + bytes > u.spec->staging.value()) {
    ++store.record.dropped_entries;
    return;
  }
  const std::size_t before = evicted_.size();
  if (!store.tier.reserve(id, blocks, evicted_)) {
    ++store.record.dropped_entries;
    return;
  }
  ++store.record.stored_entries;
  store.record.bytes_in += bytes;
  if (from >= 0) stores_[u.stores[static_cast<std::size_t>(from)]].record.bytes_out += bytes;
  u.under_way += bytes;
  auto batch = std::find_if(waiting_.begin(), waiting_.end(), [&](std::uint32_t j) {
    return !jobs_[j].recall && jobs_[j].unit == unit && jobs_[j].from == from;
  });
  if (batch == waiting_.end()) {
    const std::uint32_t index = new_job();
    jobs_[index].unit = unit;
    jobs_[index].from = from;
    jobs_[index].to = from + 1;
    jobs_[index].blocks.assign(1, 0.0);
    waiting_.push_back(index);
    batch = waiting_.end() - 1;
  }
  Job& job = jobs_[*batch];
  job.entries.push_back({u.stores[level], id});
  job.blocks[0] += static_cast<double>(blocks - known);
  job.bytes += bytes;
  // What had to go for it, one level further down.
  while (evicted_.size() > before) {
    const KvTier::Piece piece = evicted_.back();
    evicted_.pop_back();
    ++stores_[u.stores[level]].record.evicted_entries;
    offer(unit, from + 1, piece.id, piece.blocks);
  }
}

void KvTiers::forget(std::uint32_t unit, std::uint64_t id) {
  for (const std::uint32_t s : units_[unit].stores) stores_[s].tier.erase(id);
}

// ---- recalls -----------------------------------------------------------------------------------

bool KvTiers::worth(std::uint32_t unit, const std::vector<KvBacking::Part>& parts,
                    double recompute_s) const {
  const Unit& u = units_[unit];
  Job job;
  job.recall = true;
  job.unit = unit;
  job.blocks.assign(u.stores.size(), 0.0);
  for (const KvBacking::Part& part : parts) {
    job.blocks[level_with(u, part.id, part.first + part.blocks)] +=
        static_cast<double>(part.blocks);
  }
  std::vector<TransportFlow> flows;
  flows_of(job, 0, flows);
  return transport_.alone_s(flows) < recompute_s;
}

void KvTiers::fetch(std::uint32_t unit, std::uint32_t slot, std::uint32_t request, bool again,
                    const std::vector<KvBacking::Part>& parts) {
  const Unit& u = units_[unit];
  const std::uint32_t index = new_job();
  Job& job = jobs_[index];
  job.recall = true;
  job.unit = unit;
  job.slot = slot;
  job.request = request;
  job.started = engine_.now();
  job.blocks.assign(u.stores.size(), 0.0);
  std::int64_t blocks = 0;
  for (const KvBacking::Part& part : parts) {
    const std::size_t level = level_with(u, part.id, part.first + part.blocks);
    Store& store = stores_[u.stores[level]];
    store.tier.hold(part.id);
    job.entries.push_back({u.stores[level], part.id});
    job.blocks[level] += static_cast<double>(part.blocks);
    store.record.recalled_tokens += part.blocks * u.block_tokens;
    store.record.bytes_out += static_cast<double>(part.blocks) * store.block_bytes;
    blocks += part.blocks;
  }
  for (std::size_t level = 0; level < u.stores.size(); ++level) {
    if (job.blocks[level] > 0.0) ++stores_[u.stores[level]].record.recalls;
  }
  waiting_.push_back(index);
  listener_.on_recall(unit, request, again, blocks * u.block_tokens);
}

// ---- moving ------------------------------------------------------------------------------------

std::uint32_t KvTiers::new_job() {
  if (spare_jobs_.empty()) {
    jobs_.emplace_back();
    jobs_.back().open = true;
    return static_cast<std::uint32_t>(jobs_.size() - 1);
  }
  const std::uint32_t index = spare_jobs_.back();
  spare_jobs_.pop_back();
  jobs_[index] = Job{};
  jobs_[index].open = true;
  return index;
}

void KvTiers::flows_of(const Job& job, std::uint64_t tag, std::vector<TransportFlow>& out) const {
  const Unit& u = units_[job.unit];
  for (std::size_t i = 0; i < job.blocks.size(); ++i) {
    if (job.blocks[i] <= 0.0) continue;
    for (std::size_t d = 0; d < u.devices.size(); ++d) {
      TransportFlow flow;
      if (job.recall) {
        flow.from = u.vertices[i][d];
        flow.to = u.devices[d];
      } else {
        flow.from = job.from < 0 ? u.devices[d] : u.vertices[static_cast<std::size_t>(job.from)][d];
        flow.to = u.vertices[static_cast<std::size_t>(job.to)][d];
      }
      flow.bytes = job.blocks[i] * u.block_bytes[d];
      flow.hash = (std::uint64_t{job.unit} << 32) | d;
      flow.tag = tag;
      if (flow.bytes > 0.0) out.push_back(flow);
    }
  }
}

void KvTiers::flush() {
  for (std::size_t i = 0; i < waiting_.size(); ++i) start(waiting_[i]);
  waiting_.clear();
}

void KvTiers::start(std::uint32_t index) {
  flows_.clear();
  flows_of(jobs_[index], tag_ | index, flows_);
  jobs_[index].flows_left = static_cast<std::int32_t>(flows_.size());
  MEDLEY_CHECK(!flows_.empty(), "a KV transfer without bytes");
  for (const TransportFlow& flow : flows_) jobs_[index].flows.push_back(transport_.start(flow));
}

void KvTiers::on_arrived(std::uint64_t tag) {
  const auto index = static_cast<std::uint32_t>(tag & 0xffffffffU);
  if (--jobs_[index].flows_left > 0) return;
  const Job job = std::move(jobs_[index]);
  jobs_[index].open = false;
  spare_jobs_.push_back(index);
  for (const Held& e : job.entries) {
    job.recall ? stores_[e.store].tier.release(e.id) : stores_[e.store].tier.arrived(e.id);
  }
  if (job.recall) {
    listener_.on_recalled(job.unit, job.slot, job.request, engine_.now() - job.started);
  } else {
    units_[job.unit].under_way -= job.bytes;
  }
}

void KvTiers::fail(std::uint32_t unit) {
  for (std::uint32_t index = 0; index < jobs_.size(); ++index) {
    Job& job = jobs_[index];
    if (!job.open || job.unit != unit || (!job.recall && job.from >= 0)) continue;
    for (const TransferHandle flow : job.flows) transport_.cancel(flow);
    std::erase(waiting_, index);
    for (const Held& e : job.entries) {
      job.recall ? stores_[e.store].tier.release(e.id) : stores_[e.store].tier.cancel(e.id);
    }
    if (!job.recall) units_[unit].under_way -= job.bytes;
    job.open = false;
    spare_jobs_.push_back(index);
  }
}

void KvTiers::lose_node(const Scenario& scenario, std::uint32_t group, std::uint32_t node) {
  for (Store& s : stores_) {
    const PoolSpec& pool = scenario.pools[s.record.pool];
    const bool host = pool.tiering.tiers[s.record.level].where == KvTierSpec::Where::kHost;
    if (host && pool.node_group == group && s.record.node == node) s.tier.clear();
  }
}

std::vector<TierRecord> KvTiers::records() const {
  std::vector<TierRecord> records;
  for (const Store& s : stores_) {
    records.push_back(s.record);
    records.back().peak = static_cast<double>(s.tier.peak()) * s.block_bytes;
  }
  std::stable_sort(records.begin(), records.end(), [](const TierRecord& a, const TierRecord& b) {
    return a.pool != b.pool ? a.pool < b.pool : a.level < b.level;
  });
  return records;
}

}  // namespace medley
