#include <algorithm>

#include "sim/report/table_file.h"
#include "sim/report/writers.h"

namespace medley {

namespace {
double ratio(double a, double b) {
  return b > 0.0 ? a / b : kBlank;
}

/// What each device of a node serves.
std::vector<std::vector<std::uint32_t>> slots_of(const Analysis& a, const NodeAccount& node) {
  std::vector<std::vector<std::uint32_t>> slots(
      static_cast<std::size_t>(a.scenario().nodes[node.group].type.devices));
  for (const Resident& r : node.residents) {
    for (std::uint32_t d = 0; d < r.devices; ++d) slots[r.first + d].push_back(r.replica);
  }
  return slots;
}

void write_spare(TableFile& out, const Analysis& a, const NodeAccount& node) {
  const double run = a.account().run_s();
  const GroupPower& power = a.account().groups()[node.group];
  Known idle = power.deep_idle_w;
  idle *= run;
  out.blank().blank().integer(0).integer(0);
  if (idle.known()) {
    out.integer(0).integer(0).number(idle.value).number(idle.value);
    out.number(ratio(idle.value, run));
  } else {
    out.blank().blank().blank().blank().blank();
  }
  out.blank().blank().integer(0);
  // Its price is carried by the pools on the node; on an empty node nobody carries it.
  Known usd = a.account().node_usd_per_s(node.group);
  usd *= run / a.scenario().nodes[node.group].type.devices;
  out.number(node.assigned == 0.0 ? usd.or_blank() : 0.0);
  const Sourced<Watts>& deep_idle = a.scenario().nodes[node.group].device.power.deep_idle;
  out.text(idle.known() ? to_string(deep_idle.provenance) : "");
  out.text(idle.known() ? "ok" : idle.status()).integer(0).integer(0).integer(0).integer(0);
}

void write_used(TableFile& out, const Analysis& a, const NodeAccount& node, std::uint32_t r) {
  const ReplicaRecord& replica = a.result().replicas[r];
  const PoolSpec& pool = a.scenario().pools[replica.pool];
  const PoolPower& power = a.account().pools()[replica.pool];
  const PoolRates rates = pool_rates(a.scenario(), pool);
  const double run = a.account().run_s();
  const double n = pool.devices_per_replica();
  out.text(pool.name).integer(replica.replica);
  out.number(replica.busy_s).number(ratio(replica.busy_s, run));
  if (power.dynamic_known) {
    const double active = replica.active_energy_j / n;
    const double idle = replica.idle_energy_j / n;
    out.number(active).number(idle).integer(0).number(active + idle);
    out.number(ratio(active + idle, run));
  } else {
    out.blank().blank().blank().blank().blank();
  }
  out.number(ratio(replica.flops, n * replica.busy_s * rates.peak_flops));
  out.number(ratio(replica.bytes, n * replica.busy_s * rates.bandwidth));
  out.number(replica.limited_s);
  Known usd = a.account().node_usd_per_s(node.group);
  usd *= run * pool.sharing.fraction / node.assigned;
  out.number(usd.or_blank());
  out.text(power.dynamic_known ? to_string(power.provenance) : "");
  out.text(power.dynamic_known ? "ok" : "missing:" + power.missing);
  out.number(replica.extrapolated_s);
  out.number(power.dynamic_known ? replica.extrapolated_j / n : kBlank);
  out.number(replica.waited_device_s).number(replica.waited_link_s);
}
}  // namespace

void write_devices_csv(const Analysis& a, const std::string& path) {
  TableFile out("devices.csv", path);
  for (const NodeAccount& node : a.account().nodes()) {
    const NodeGroup& group = a.scenario().nodes[node.group];
    const auto slots = slots_of(a, node);
    for (std::size_t d = 0; d < slots.size(); ++d) {
      // One row per replica on it, one when there is none.
      for (std::size_t i = 0; i < std::max<std::size_t>(1, slots[d].size()); ++i) {
        out.text(group.name).integer(node.node).integer(static_cast<std::int64_t>(d));
        out.text(group.device.name);
        if (slots[d].empty()) {
          write_spare(out, a, node);
        } else {
          write_used(out, a, node, slots[d][i]);
        }
        out.end_row();
      }
    }
  }
  out.close();
}

}  // namespace medley
