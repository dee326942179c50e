#include "sim/report/provenance_count.h"

#include <algorithm>

namespace medley {

namespace {
template <class T>
void count(const Sourced<T>& value, ProvenanceCount& out, bool optional = false) {
  if (value.known()) {
    ++out.known[static_cast<std::size_t>(value.provenance)];
  } else if (!optional) {
    ++out.unknown;
  }
}

void count(const DeviceSpec& d, ProvenanceCount& out) {
  for (std::size_t i = 0; i < kDTypes; ++i) {
    count(d.peak[i], out, true);
    count(d.sustained[i], out, true);
    count(d.power.energy_per_flop[i], out, !d.peak[i].known());
    for (const OpEfficiency& e : d.efficiency) count(e.compute[i], out, true);
  }
  for (const OpEfficiency& e : d.efficiency) count(e.memory, out, true);
  count(d.memory_capacity, out);
  count(d.memory_bandwidth, out);
  count(d.last_level_cache, out, true);
  count(d.launch_stream, out);
  count(d.launch_graph, out);
  count(d.power.limit, out);
  count(d.power.deep_idle, out);
  count(d.power.context_idle, out);
  count(d.power.active_floor, out);
  count(d.power.energy_per_byte, out);
  count(d.power.clock_min, out);
  count(d.power.voltage_floor, out);
  count(d.capex, out);
  count(d.rent, out);
}

void count(const NodeSpec& n, ProvenanceCount& out) {
  count(n.fabric_bandwidth, out, n.fabric == FabricKind::kNone);
  for (const AllReduceTable& t : n.all_reduce) ++out.known[static_cast<std::size_t>(t.provenance)];
  count(n.host_memory, out, true);
  count(n.network, out, true);
  count(n.idle_power, out, true);
  count(n.overhead, out);
  count(n.psu_efficiency, out);
  count(n.capex, out, true);
  count(n.rent, out, true);
}

void count(const BackendSpec& b, ProvenanceCount& out) {
  count(b.host_per_step, out);
  count(b.host_per_sequence, out);
  count(b.memory_utilization, out);
  count(b.context_reserve, out);
  count(b.activation_factor, out);
  count(b.decode_skew, out);
  count(b.decode_skew, out);
}

template <class Spec>
void add(const char* kind, const std::string& name, const Spec& spec,
         std::vector<ProvenanceCount>& all) {
  ProvenanceCount one;
  one.kind = kind;
  one.name = name;
  count(spec, one);
  all.push_back(std::move(one));
}
}  // namespace

std::vector<ProvenanceCount> count_provenance(const Scenario& scenario) {
  std::vector<ProvenanceCount> all;
  for (const NodeGroup& group : scenario.nodes) {
    add("device", group.name + ": " + group.device.name, group.device, all);
    add("node", group.name + ": " + group.type.name, group.type, all);
  }
  for (const PoolSpec& pool : scenario.pools) {
    const bool listed = std::any_of(all.begin(), all.end(), [&](const ProvenanceCount& c) {
      return c.kind == "backend" && c.name == pool.backend.name;
    });
    if (!listed) add("backend", pool.backend.name, pool.backend, all);
  }
  return all;
}

}  // namespace medley
