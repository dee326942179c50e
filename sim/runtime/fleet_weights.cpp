#include <algorithm>

#include "hwmodels/topology/cluster.h"
#include "sim/core/error.h"
#include "sim/runtime/fleet.h"
#include "workloads/model.h"

namespace medley {

void Fleet::build_weights(const Catalog& catalog) {
  if (std::all_of(scenario_.pools.begin(), scenario_.pools.end(), [](const PoolSpec& p) {
        return p.load_weights.from == WeightLoadSpec::From::kNone;
      })) {
    return;
  }
  need_transport(catalog);
  loads_.resize(units_.size());
  for (std::uint32_t u = 0; u < units_.size(); ++u) {
    const WeightLoadSpec& spec = scenario_.pools[units_[u].pool].load_weights;
    if (spec.from == WeightLoadSpec::From::kNone) continue;
    plan_load(u);
    if (spec.at_start) load_weights(u, SimTime());
  }
}

/// One flow per device, of its own part of the weights.
void Fleet::plan_load(std::uint32_t u) {
  const Unit& unit = units_[u];
  const PoolSpec& pool = scenario_.pools[unit.pool];
  const WeightLoadSpec& spec = pool.load_weights;
  const ClusterTopology& cluster = transport_->cluster();
  WeightLoad& load = loads_[u];
  load.engine_start = spec.engine_start;
  for (int d = 0; d < pool.devices_per_replica(); ++d) {
    DevicePlace place = unit.place;
    place.device += static_cast<std::uint32_t>(d);
    const std::uint32_t socket = cluster.socket_of(place.group, place.device);
    TransportFlow flow;
    flow.to = transport_->vertex(place);
    switch (spec.from) {
      case WeightLoadSpec::From::kNvme:
        flow.from = cluster.storage(place.group, place.node);
        break;
      case WeightLoadSpec::From::kHost:
        flow.from = cluster.memory(place.group, place.node, socket);
        break;
      default: {
        const ClusterTopology::Group& there = cluster.groups[spec.node_group];
        flow.from = cluster.memory(spec.node_group, u % there.nodes, socket % there.sockets);
        break;
      }
    }
    if (flow.from == ClusterTopology::kNone) {
      throw InputError(scenario_.file, "/pools/" + pool.name + "/load_weights/from",
                       "its servers have no drives", "give cluster.fabric.storage");
    }
    flow.bytes = stage_weight_bytes(pool.model, pool.tensor_parallel, pool.pipeline_parallel,
                                    d / pool.tensor_parallel, pool.precision.weights)
                     .value();
    flow.hash = (std::uint64_t{u} << 32) | static_cast<std::uint64_t>(d);
    flow.tag = kWeightFlow | u;
    load.bytes += flow.bytes;
    load.flows.push_back(flow);
  }
}

/// The replica serves again once its weights, which start to move at `when`, are there and its
/// engine has started. At once where its pool loads nothing.
void Fleet::load_weights(std::uint32_t unit, SimTime when) {
  if (loads_.empty() || loads_[unit].flows.empty()) return;
  if (!units_[unit].loading) ++closed_units_;
  units_[unit].loading = true;
  loads_[unit].event = engine_.schedule(when, EventClass::kCompletion, unit, kLoadWeights);
}

void Fleet::start_load(std::uint32_t unit) {
  WeightLoad& load = loads_[unit];
  load.began = engine_.now();
  load.flows_left = static_cast<std::int32_t>(load.flows.size());
  for (const TransportFlow& flow : load.flows) load.under_way.push_back(transport_->start(flow));
}

void Fleet::on_weights_arrived(std::uint32_t unit) {
  WeightLoad& load = loads_[unit];
  if (--load.flows_left > 0) return;
  load.under_way.clear();
  load.event = engine_.schedule_after(load.engine_start, EventClass::kCompletion, unit, kReady);
}

void Fleet::on_ready(std::uint32_t unit) {
  WeightLoad& load = loads_[unit];
  ReplicaRecord& record = result_.replicas[unit];
  ++record.loads;
  record.load_s += (engine_.now() - load.began).value();
  record.load_bytes += load.bytes;
  units_[unit].loading = false;
  --closed_units_;
  if (!record.outages.empty()) record.outages.back().ready = engine_.now();
  mark(unit);
  if (held_ > 0) pull(unit);
  if (units_[unit].role == PoolRole::kDecode) pair_waiting(units_[unit].pool);
}

/// The replica fails meanwhile.
void Fleet::cancel_load(std::uint32_t unit) {
  if (!units_[unit].loading) return;
  WeightLoad& load = loads_[unit];
  for (const TransferHandle flow : load.under_way) transport_->cancel(flow);
  load.under_way.clear();
  engine_.cancel(load.event);
  units_[unit].loading = false;
  --closed_units_;
  auto& outages = result_.replicas[unit].outages;
  if (!outages.empty()) outages.back().ready = engine_.now();
}

/// Those that take requests; all of them where none does: the requests wait there.
const std::vector<std::uint32_t>* Fleet::open_of(const std::vector<std::uint32_t>& candidates) {
  open_.clear();
  for (const std::uint32_t c : candidates) {
    if (takes(c)) open_.push_back(c);
  }
  return open_.empty() ? &candidates : &open_;
}

}  // namespace medley
