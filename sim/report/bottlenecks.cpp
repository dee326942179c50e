#include "sim/report/bottlenecks.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <thread>

#include "hwmodels/catalog.h"
#include "sim/core/error.h"
#include "sim/runtime/simulation.h"

namespace medley {

std::string_view to_string(FleetResource resource) {
  switch (resource) {
    case FleetResource::kArithmetic:
      return "arithmetic";
    case FleetResource::kMemoryBandwidth:
      return "memory bandwidth";
    case FleetResource::kMemoryCapacity:
      return "memory capacity";
    case FleetResource::kDeviceLinks:
      return "device links";
    case FleetResource::kNetwork:
      return "network";
    case FleetResource::kHostSpeed:
      return "host speed";
    case FleetResource::kPowerLimit:
      return "power limit";
    case FleetResource::kReplicas:
      return "replicas";
  }
  return "";
}

namespace {
template <class T>
bool multiply(Sourced<T>& value, double factor) {
  if (!value.known()) return false;
  value.value = *value * factor;
  return true;
}

bool more_device(DeviceSpec& d, FleetResource resource, double factor) {
  bool any = false;
  switch (resource) {
    case FleetResource::kArithmetic:
      for (auto& peak : d.peak) any = multiply(peak, factor) || any;
      return any;
    case FleetResource::kMemoryBandwidth:
      return multiply(d.memory_bandwidth, factor);
    case FleetResource::kMemoryCapacity:
      return multiply(d.memory_capacity, factor);
    case FleetResource::kPowerLimit:
      return multiply(d.power.limit, factor);
    default:
      return false;
  }
}

bool more_links(const Catalog& catalog, Scenario& s, double factor) {
  bool any = false;
  for (const PoolSpec& pool : s.pools) {
    any = any || pool.devices_per_replica() > 1 || pool.role != PoolRole::kUnified;
  }
  if (!any) return false;
  any = false;
  for (NodeGroup& group : s.nodes) {
    NodeSpec& n = group.type;
    const LinkSpec* joining = n.resolved_link ? &*n.resolved_link : joining_link(catalog, n);
    if (joining == nullptr) continue;
    LinkSpec link = *joining;
    any = multiply(link.bandwidth, factor) || any;
    n.resolved_link = std::move(link);
    multiply(n.fabric_bandwidth, factor);
    for (AllReduceTable& table : n.all_reduce) {  // what grows with the payload is bandwidth
      const Seconds least = table.points.front().time;
      for (AllReducePoint& p : table.points) p.time = least + (p.time - least) / factor;
    }
  }
  return any;
}

void more_cable(const Catalog& catalog, LinkUse& use, double factor) {
  if (!use.bandwidth && !use.link.empty()) {
    const LinkSpec& link = catalog.link(use.link);
    if (link.bandwidth.known()) {
      use.bandwidth = *link.bandwidth * (link.achieved.known() ? *link.achieved : 1.0);
      use.provenance = link.bandwidth.provenance;
    }
  }
  if (use.bandwidth) use.bandwidth = *use.bandwidth * factor;
}

bool more_network(const Catalog& catalog, Scenario& s, double factor) {
  bool any = false;
  for (NodeGroup& group : s.nodes) any = multiply(group.type.network, factor) || any;
  if (s.fabric.network) {
    for (auto& [name, use] : s.fabric.network->links) more_cable(catalog, use, factor);
    for (FabricCable& cable : s.fabric.network->cables) more_cable(catalog, cable.link, factor);
    any = true;
  }
  int nodes = 0;
  for (const NodeGroup& group : s.nodes) nodes += group.count;
  return any && nodes > 1;
}

bool more_host(Scenario& s, double factor) {
  bool any = false;
  for (PoolSpec& pool : s.pools) {
    if (pool.backend.ideal()) continue;
    BackendSpec& b = pool.backend;
    for (auto* time :
         {&b.host_per_step, &b.host_per_sequence, &b.sync_per_step, &b.sync_per_sequence,
          &b.host_per_kernel, &b.request_overhead, &b.prompt_token_overhead}) {
      any = multiply(*time, 1.0 / factor) || any;
    }
    any = true;
  }
  for (NodeGroup& group : s.nodes) {
    multiply(group.device.launch_stream, 1.0 / factor);
    multiply(group.device.launch_graph, 1.0 / factor);
  }
  return any;
}

/// Pools that share devices, or compute on the hosts of others, keep their replicas: more of them
/// would share more.
bool more_replicas(Scenario& s, double factor) {
  bool any = false;
  std::vector<std::int64_t> devices(s.nodes.size(), 0);
  for (PoolSpec& pool : s.pools) {
    if (pool.sharing.mode != SharingSpec::Mode::kExclusive) continue;
    if (s.nodes[pool.node_group].host_of != NodeGroup::kNone) continue;
    const int extra = std::max(1, static_cast<int>(std::lround(pool.replicas * (factor - 1.0))));
    pool.replicas += extra;
    // Whole nodes for each pool: room for every one, however they are placed.
    const std::int64_t per_node = std::max(1, s.nodes[pool.node_group].type.devices);
    const std::int64_t need = static_cast<std::int64_t>(pool.devices_per_replica()) * extra;
    devices[pool.node_group] += (need + per_node - 1) / per_node;
    any = true;
  }
  for (std::size_t g = 0; g < devices.size(); ++g) s.nodes[g].count += static_cast<int>(devices[g]);
  return any;
}
}  // namespace

bool scale_resource(const Catalog& catalog, Scenario& s, FleetResource resource, double factor) {
  switch (resource) {
    case FleetResource::kDeviceLinks:
      return more_links(catalog, s, factor);
    case FleetResource::kNetwork:
      return more_network(catalog, s, factor);
    case FleetResource::kHostSpeed:
      return more_host(s, factor);
    case FleetResource::kReplicas:
      return more_replicas(s, factor);
    default:
      break;
  }
  bool any = false;
  for (NodeGroup& group : s.nodes) any = more_device(group.device, resource, factor) || any;
  if (resource == FleetResource::kMemoryCapacity) {
    for (PoolSpec& pool : s.pools) {
      pool.num_blocks_override =
          std::llround(static_cast<double>(pool.num_blocks_override) * factor);
    }
  }
  return any;
}

RunSpeed speed_of(const Analysis& a) {
  RunSpeed s;
  s.goodput = a.fleet().value("request_goodput");
  s.output_throughput = a.fleet().value("output_throughput");
  const auto take = [&](const char* metric, double& p50, double& p99) {
    const MetricRow* row = a.fleet().find(metric);
    if (row == nullptr || row->moments.count == 0) return;
    p50 = row->moments.p50;
    p99 = row->moments.p99;
  };
  take("ttft", s.ttft_p50, s.ttft_p99);
  take("tpot", s.tpot_p50, s.tpot_p99);
  take("e2el", s.e2e_p50, s.e2e_p99);
  return s;
}

namespace {
double change_of(const Scenario& nominal, const Scenario& changed, FleetResource resource,
                 double more) {
  if (resource != FleetResource::kReplicas) return more;
  double before = 0.0, after = 0.0;
  for (const PoolSpec& pool : nominal.pools) before += pool.replicas;
  for (const PoolSpec& pool : changed.pools) after += pool.replicas;
  return after / before - 1.0;
}

double faster(double nominal, double changed) {
  return changed > 0.0 ? nominal / changed - 1.0 : kBlank;
}

void run_one(const Catalog& catalog, const RunSpeed& nominal, const Scenario& changed,
             const std::atomic<bool>* interrupt, Bottleneck& row) {
  try {
    RunHooks hooks;
    hooks.interrupt = interrupt;
    const RunResult result = run(catalog, changed, hooks);
    row.speed = speed_of(Analysis(changed, result));
  } catch (const InfeasibleError& e) {
    row.failure = e.what();
    return;
  }
  const double rate = nominal.rate();
  row.rate_gain = rate > 0.0 ? row.speed.rate() / rate - 1.0 : kBlank;
  row.ttft_p50_gain = faster(nominal.ttft_p50, row.speed.ttft_p50);
  row.ttft_p99_gain = faster(nominal.ttft_p99, row.speed.ttft_p99);
  row.tpot_p50_gain = faster(nominal.tpot_p50, row.speed.tpot_p50);
}

/// Gains below a tenth of a percent are equal: what then decides is time.
double order_of(double gain) {
  constexpr double kStep = 1e-3;
  return std::isnan(gain) ? -1e9 : std::round(gain / kStep);
}
bool gains_more(const Bottlenecks& all, const Bottleneck& a, const Bottleneck& b) {
  const double x = order_of(all.marginal(a, a.rate_gain));
  const double y = order_of(all.marginal(b, b.rate_gain));
  if (x != y) return x > y;
  const auto times = [&](const Bottleneck& r) {
    return r.failure.empty() ? all.marginal(r, std::fmax(r.tpot_p50_gain, r.ttft_p50_gain)) : -1e9;
  };
  return times(a) > times(b);
}
}  // namespace

Bottlenecks find_bottlenecks(const Catalog& catalog, const Analysis& nominal,
                             const BottleneckOptions& options) {
  Bottlenecks found;
  found.nominal = speed_of(nominal);
  found.more = options.more;
  std::vector<Scenario> changed;
  for (int i = 0; i < kFleetResources; ++i) {
    Scenario s = nominal.scenario();
    s.report.chrome_trace = false;
    Bottleneck row;
    row.resource = static_cast<FleetResource>(i);
    if (!scale_resource(catalog, s, row.resource, 1.0 + options.more)) continue;
    row.change = change_of(nominal.scenario(), s, row.resource, options.more);
    found.rows.push_back(std::move(row));
    changed.push_back(std::move(s));
  }
  std::atomic<std::size_t> next{0};
  std::vector<std::exception_ptr> errors(changed.size());
  const auto work = [&] {
    for (std::size_t i = next++; i < changed.size(); i = next++) {
      try {
        run_one(catalog, found.nominal, changed[i], options.interrupt, found.rows[i]);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  };
  std::vector<std::thread> others;
  for (int t = 1; t < std::min(options.threads, static_cast<int>(changed.size())); ++t) {
    others.emplace_back(work);
  }
  work();
  for (std::thread& t : others) t.join();
  for (const std::exception_ptr& e : errors) {
    if (e) std::rethrow_exception(e);
  }
  std::stable_sort(
      found.rows.begin(), found.rows.end(),
      [&](const Bottleneck& a, const Bottleneck& b) { return gains_more(found, a, b); });
  return found;
}

FidelityCheck check_fidelity(const Catalog& catalog, const Analysis& nominal,
                             const std::atomic<bool>* interrupt) {
  FidelityCheck check;
  Scenario other = nominal.scenario();
  const bool layered = other.contention.layered;
  other.contention.layered = !layered;
  other.report.chrome_trace = false;
  RunHooks hooks;
  hooks.interrupt = interrupt;
  const RunResult result = run(catalog, other, hooks);
  const RunSpeed speed = speed_of(Analysis(other, result));
  check.folded = layered ? speed : speed_of(nominal);
  check.layered = layered ? speed_of(nominal) : speed;
  for (const ReplicaRecord& r : nominal.result().replicas) check.shared = check.shared || r.shared;
  return check;
}

std::vector<FidelityRow> fidelity_rows(const FidelityCheck& c) {
  return {{"ttft_p50", c.folded.ttft_p50, c.layered.ttft_p50},
          {"ttft_p99", c.folded.ttft_p99, c.layered.ttft_p99},
          {"tpot_p50", c.folded.tpot_p50, c.layered.tpot_p50},
          {"tpot_p99", c.folded.tpot_p99, c.layered.tpot_p99},
          {"e2e_p50", c.folded.e2e_p50, c.layered.e2e_p50},
          {"e2e_p99", c.folded.e2e_p99, c.layered.e2e_p99}};
}

double fidelity_difference(const FidelityCheck& check) {
  double most = 0.0;
  for (const FidelityRow& row : fidelity_rows(check)) {
    most = std::fmax(most, std::abs(row.difference()));
  }
  return most;
}

}  // namespace medley
