#include "sim/report/fleet_account.h"

#include <algorithm>
#include <cmath>

#include "sim/core/error.h"
#include "sim/report/statistics.h"
#include "sim/scenario/missing.h"

namespace medley {

double Known::or_blank() const {
  return known() ? value : kBlank;
}
std::string Known::status() const {
  return known() ? std::string() : "missing:" + missing;
}
Known Known::unknown(std::string field) {
  Known k;
  k.missing = std::move(field);
  return k;
}
Known& Known::operator+=(const Known& other) {
  value += other.value;
  if (known()) missing = other.missing;
  return *this;
}
Known& Known::operator*=(double factor) {
  value *= factor;
  return *this;
}

namespace {
template <class T>
Known known_or(const Sourced<T>& from, const char* field) {
  if (!from.known()) return Known::unknown(field);
  Known k;
  if constexpr (std::is_same_v<T, double>) {
    k.value = *from;
  } else {
    k.value = (*from).value();
  }
  return k;
}
}  // namespace

PoolRates pool_rates(const Scenario& scenario, const PoolSpec& pool) {
  const DeviceSpec& device = scenario.nodes[pool.node_group].device;
  DType d = pool.precision.activations;
  if (!device.peak[index(d)].known()) d = compute_fallback(device, d).value_or(d);
  PoolRates rates;
  if (device.peak[index(d)].known()) rates.peak_flops = (*device.peak[index(d)]).value();
  if (device.memory_bandwidth.known()) rates.bandwidth = (*device.memory_bandwidth).value();
  return rates;
}

FleetAccount::FleetAccount(const Scenario& scenario, const RunResult& result)
    : scenario_(scenario), result_(result), run_s_(result.end.seconds().value()) {
  place();
  read_power();
  find_missing();
}

void FleetAccount::place() {
  std::vector<std::size_t> first;
  for (std::size_t g = 0; g < scenario_.nodes.size(); ++g) {
    first.push_back(nodes_.size());
    for (int n = 0; n < scenario_.nodes[g].count; ++n) {
      NodeAccount node;
      node.group = g;
      node.node = n;
      nodes_.push_back(std::move(node));
    }
  }
  for (std::size_t r = 0; r < result_.replicas.size(); ++r) {
    const ReplicaRecord& replica = result_.replicas[r];
    const PoolSpec& pool = scenario_.pools[replica.pool];
    const auto room = static_cast<std::uint32_t>(scenario_.nodes[pool.node_group].type.devices);
    const auto all = static_cast<std::uint32_t>(pool.devices_per_replica());
    std::uint32_t at = replica.first_device, left = all;
    for (std::size_t n = first[pool.node_group] + replica.node; left > 0; ++n, at = 0) {
      const std::uint32_t here = std::min(left, room - at);
      nodes_[n].residents.push_back(
          {static_cast<std::uint32_t>(r), at, here, static_cast<double>(here) / all});
      nodes_[n].assigned += here * pool.sharing.fraction;
      left -= here;
    }
  }
}

void FleetAccount::read_power() {
  for (std::size_t i = 0; i < scenario_.pools.size(); ++i) {
    const ReplicaPower& replica = result_.pools[i].power;
    PoolPower p;
    const PowerSpec& power = scenario_.nodes[scenario_.pools[i].node_group].device.power;
    p.context_idle_w = known_or(power.context_idle, "power.context_idle");
    p.limit_w = known_or(power.limit, "power.limit");
    p.dynamic_known = replica.dynamic_known && replica.active_floor && replica.context_idle;
    if (!replica.missing.empty()) p.missing = replica.missing.front();
    p.provenance = replica.provenance;
    pools_.push_back(std::move(p));
  }
  for (const NodeGroup& group : scenario_.nodes) {
    GroupPower g;
    g.deep_idle_w = known_or(group.device.power.deep_idle, "power.deep_idle");
    g.overhead_w = known_or(group.type.overhead, "node.power.overhead");
    g.psu = known_or(group.type.psu_efficiency, "node.power.psu_efficiency");
    g.provenance = weaker(group.type.overhead.provenance, group.type.psu_efficiency.provenance);
    groups_.push_back(std::move(g));
  }
}

void FleetAccount::add_missing(std::string field, const std::string& group, std::string set_line,
                               std::string affects) {
  MissingValue m{std::move(field), group, std::move(set_line), std::move(affects)};
  if (std::find(missing_.begin(), missing_.end(), m) == missing_.end()) {
    missing_.push_back(std::move(m));
  }
}

void FleetAccount::find_missing() {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const NodeGroup& group = scenario_.nodes[g];
    const auto need = [&](const std::string& field, const char* affects) {
      add_missing(field, group.name, set_line(group.name, field), affects);
    };
    for (std::size_t p = 0; p < pools_.size(); ++p) {
      if (scenario_.pools[p].node_group != g) continue;
      for (const std::string& field : result_.pools[p].power.missing) need(field, "energy");
    }
    const bool spare = std::any_of(nodes_.begin(), nodes_.end(), [&](const NodeAccount& n) {
      return n.group == g && n.assigned < group.type.devices;
    });
    if (spare && !groups_[g].deep_idle_w.known()) need("power.deep_idle", "energy");
    if (!groups_[g].overhead_w.known()) need("node.power.overhead", "energy");
    if (!groups_[g].psu.known()) need("node.power.psu_efficiency", "energy");
    if (!node_usd_per_s(g).known()) need(node_usd_per_s(g).missing, "cost");
  }
  if (!scenario_.price.energy) {
    add_missing("price.energy", "", "--set 'price.energy=0.12 USD/kWh'", "cost");
  }
  if (!scenario_.price.carbon_g_per_joule) {
    add_missing("price.carbon_intensity", "", "--set 'price.carbon_intensity=400 gCO2/kWh'",
                "carbon");
  }
}

int FleetAccount::devices() const {
  int n = 0;
  for (const NodeGroup& g : scenario_.nodes) n += g.count * g.type.devices;
  return n;
}

Known FleetAccount::replica_j(std::size_t replica, double from, double to) const {
  const ReplicaRecord& r = result_.replicas[replica];
  const PoolPower& power = pools_[r.pool];
  if (!power.dynamic_known) return Known::unknown(power.missing);
  Known k;
  to = std::min(to, run_s_);
  if (to <= from) return k;
  const double seconds = to - from;
  k.value = power.context_idle_w.value * scenario_.pools[r.pool].device_share() * seconds;
  const double bin = result_.bin.value();
  const auto bins = r.extra_energy_j.size();
  auto b = static_cast<std::size_t>(std::max(0.0, std::floor(from / bin)));
  for (; b < bins && static_cast<double>(b) * bin < to; ++b) {
    // The last bin ends with the run.
    const double begin = static_cast<double>(b) * bin;
    const double end = std::min(begin + bin, run_s_);
    const double overlap = std::min(to, end) - std::max(from, begin);
    if (overlap <= 0.0) continue;
    k.value += r.extra_energy_j[b] * std::min(1.0, overlap / (end - begin));
  }
  return k;
}

double FleetAccount::share(const NodeAccount& node, std::size_t pool) const {
  if (node.assigned == 0.0) return 0.0;
  double own = 0.0;
  for (const Resident& r : node.residents) {
    if (result_.replicas[r.replica].pool == pool) {
      own += r.devices * scenario_.pools[pool].sharing.fraction;
    }
  }
  return own / node.assigned;
}

Known FleetAccount::overhead_j(const NodeAccount& node, double seconds) const {
  const GroupPower& g = groups_[node.group];
  Known k = g.overhead_w;
  const double spare = scenario_.nodes[node.group].type.devices - node.assigned;
  if (spare > 1e-9) {
    Known idle = g.deep_idle_w;
    idle *= spare;
    k += idle;
  }
  k *= seconds;
  return k;
}

namespace {
Known over_psu(Known dc, const Known& psu) {
  if (!psu.known()) return dc.known() ? psu : dc;
  dc *= 1.0 / psu.value;
  return dc;
}
}  // namespace

Known FleetAccount::node_j(const NodeAccount& node, double from, double to) const {
  to = std::min(to, run_s_);
  if (to <= from) return {};
  Known dc;
  for (const Resident& r : node.residents) {
    Known part = replica_j(r.replica, from, to);
    part *= r.part;
    dc += part;
  }
  dc += overhead_j(node, to - from);
  return over_psu(dc, groups_[node.group].psu);
}

Known FleetAccount::pool_devices_j(std::size_t pool, double from, double to) const {
  Known k;
  for (std::size_t r = 0; r < result_.replicas.size(); ++r) {
    if (result_.replicas[r].pool == pool) k += replica_j(r, from, to);
  }
  return k;
}

Known FleetAccount::pool_it_j(std::size_t pool, double from, double to) const {
  to = std::min(to, run_s_);
  const std::size_t group = scenario_.pools[pool].node_group;
  Known dc = pool_devices_j(pool, from, to);
  for (const NodeAccount& node : nodes_) {
    if (node.group != group) continue;
    const double own = share(node, pool);
    if (own == 0.0) continue;
    Known around = overhead_j(node, std::max(0.0, to - from));
    around *= own;
    dc += around;
  }
  return over_psu(dc, groups_[group].psu);
}

Known FleetAccount::cluster_devices_j(double from, double to) const {
  to = std::min(to, run_s_);
  Known k;
  for (std::size_t r = 0; r < result_.replicas.size(); ++r) k += replica_j(r, from, to);
  for (const NodeAccount& node : nodes_) {
    const double spare = scenario_.nodes[node.group].type.devices - node.assigned;
    if (spare < 1e-9) continue;
    Known idle = groups_[node.group].deep_idle_w;
    idle *= spare * std::max(0.0, to - from);
    k += idle;
  }
  return k;
}

Known FleetAccount::cluster_it_j(double from, double to) const {
  Known k;
  for (const NodeAccount& node : nodes_) k += node_j(node, from, to);
  return k;
}

Known FleetAccount::node_usd_per_s(std::size_t group) const {
  const NodeGroup& g = scenario_.nodes[group];
  Known k;
  if (scenario_.price.prefer_capex) {
    if (g.type.capex.known()) {
      k.value = (*g.type.capex).value();
    } else if (g.device.capex.known()) {
      k.value = (*g.device.capex).value() * g.type.devices;
    } else {
      return Known::unknown("node.price.capex");
    }
    k *= 1.0 / scenario_.price.amortization.value();
    return k;
  }
  if (g.type.rent.known()) {
    k.value = (*g.type.rent).value();
  } else if (g.device.rent.known()) {
    k.value = (*g.device.rent).value() * g.type.devices;
  } else {
    return Known::unknown("node.price.rent");
  }
  return k;
}

Known FleetAccount::energy_usd(const Known& it_j) const {
  if (!scenario_.price.energy) return Known::unknown("price.energy");
  Known k = it_j;
  k *= scenario_.price.pue * scenario_.price.energy->value();
  return k;
}

Known FleetAccount::carbon_g(const Known& it_j) const {
  if (!scenario_.price.carbon_g_per_joule) return Known::unknown("price.carbon_intensity");
  Known k = it_j;
  k *= scenario_.price.pue * *scenario_.price.carbon_g_per_joule;
  return k;
}

Known FleetAccount::pool_usd(std::size_t pool, double from, double to) const {
  to = std::min(to, run_s_);
  const std::size_t group = scenario_.pools[pool].node_group;
  double shares = 0.0;
  for (const NodeAccount& node : nodes_) {
    if (node.group == group) shares += share(node, pool);
  }
  Known k = node_usd_per_s(group);
  k *= shares * std::max(0.0, to - from);
  if (scenario_.price.prefer_capex) k += energy_usd(pool_it_j(pool, from, to));
  return k;
}

Known FleetAccount::cluster_usd(double from, double to) const {
  to = std::min(to, run_s_);
  Known k;
  for (std::size_t g = 0; g < scenario_.nodes.size(); ++g) {
    Known nodes = node_usd_per_s(g);
    nodes *= scenario_.nodes[g].count * std::max(0.0, to - from);
    k += nodes;
  }
  if (scenario_.price.prefer_capex) k += energy_usd(cluster_it_j(from, to));
  return k;
}

namespace {
constexpr double kConserved = 1e-9;

bool equal(double a, double b, double scale) {
  return std::abs(a - b) <= kConserved * std::max({std::abs(a), std::abs(b), scale, 1e-300});
}
}  // namespace

void check_conservation(const Scenario& scenario, const RunResult& result) {
  MEDLEY_CHECK(result.arrived == result.finished + result.rejected + result.lost + result.shed +
                                     result.unfinished,
               "INV-1: arrived = finished + rejected + lost + shed + unfinished");
  MEDLEY_CHECK(result.requests.size() == scenario.trace.requests.size(),
               "INV-1: one record per request of the trace");
  std::vector<double> by_pool(scenario.pools.size(), 0.0);
  for (std::size_t i = 0; i < result.requests.size(); ++i) {
    const RequestRecord& r = result.requests[i];
    if (r.pool >= by_pool.size()) continue;
    by_pool[r.pool] += r.energy_j;
    if (result.handoffs.empty() || result.handoffs[i].prefill_pool >= by_pool.size()) continue;
    by_pool[r.pool] -= result.handoffs[i].prefill_energy_j;
    by_pool[result.handoffs[i].prefill_pool] += result.handoffs[i].prefill_energy_j;
  }
  for (const EarlierWork& w : result.earlier) {
    const RequestRecord& r = result.requests[w.request];
    by_pool[w.pool] += w.energy_j;
    if (r.pool < by_pool.size()) by_pool[r.pool] -= w.energy_j;
  }
  std::vector<double> attributed(scenario.pools.size(), 0.0);
  const double seconds = result.end.seconds().value();
  for (const ReplicaRecord& r : result.replicas) {
    const PoolRecord& pool = result.pools[r.pool];
    if (!pool.power.dynamic_known || !pool.power.context_idle || !pool.power.active_floor) continue;
    attributed[r.pool] += r.attributed_j;
    const double total = r.active_energy_j + r.idle_energy_j;
    MEDLEY_CHECK(equal(r.attributed_j, r.active_energy_j, total),
                 "INV-5: requests + idle = device total");
    double course = pool.power.context_idle->value() * pool.power.devices * seconds;
    for (const double extra : r.extra_energy_j) course += extra;
    MEDLEY_CHECK(equal(course, total, total), "INV-5: energy = integral of power over the bins");
  }
  for (std::size_t p = 0; p < by_pool.size(); ++p) {
    if (attributed[p] == 0.0) continue;
    MEDLEY_CHECK(equal(by_pool[p], attributed[p], 0.0),
                 "INV-5: energy of requests = energy attributed by their pool");
  }
}

}  // namespace medley
