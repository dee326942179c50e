#include <algorithm>
#include <map>
#include <tuple>

#include "sim/runtime/fleet.h"
#include "sim/scenario/validate.h"

namespace medley {

namespace {
/// Whether steps of this pool could meet others on some wire: a switch gives every device ports of
/// its own, everything else is shared in places.
bool may_share_links(const Scenario& scenario, const PoolSpec& pool) {
  if (pool.devices_per_replica() == 1) return false;
  const NodeSpec& node = scenario.nodes[pool.node_group].type;
  const bool own_ports = node.fabric == FabricKind::kSwitch &&
                         pool.devices_per_replica() <= std::max(node.devices, node.domain);
  return !own_ports || pool.role != PoolRole::kUnified;
}
}  // namespace

void Fleet::need_transport(const Catalog& catalog) {
  if (transport_) return;
  transport_ = std::make_unique<Transport>(catalog, scenario_, engine_, kNetwork,
                                           static_cast<Transport::Listener&>(*this));
}

void Fleet::build_sharing(const Catalog& catalog) {
  bool links = false, devices = false, hosts = false;
  for (const PoolSpec& pool : scenario_.pools) {
    links = links || may_share_links(scenario_, pool);
    hosts = hosts || scenario_.nodes[pool.node_group].host_of != NodeGroup::kNone;
    devices = devices || pool.sharing.mode == SharingSpec::Mode::kTimeSlice ||
              pool.sharing.mode == SharingSpec::Mode::kMps;
  }
  if (!scenario_.contention.steps || (!links && !devices && !hosts)) return;
  need_transport(catalog);
  std::vector<ReplicaSite> sites;
  std::vector<StepFootprint> footprints;
  for (std::size_t p = 0; p < scenario_.pools.size(); ++p) {
    const PoolSpec& pool = scenario_.pools[p];
    for (const ReplicaPlace& place : placement_.pools[p]) {
      ReplicaSite site;
      site.pool = &pool;
      site.place = {static_cast<std::uint32_t>(pool.node_group), place.node, place.first_device};
      site.devices_per_node = scenario_.nodes[pool.node_group].type.devices;
      footprints.push_back(footprint_of(*transport_, site));
      sites.push_back(site);
    }
  }
  if (links) find_shared_links(*transport_, sites, footprints);
  if (devices) share_devices(sites, footprints);
  if (hosts) share_hosts(sites, footprints);
  const Fidelity fidelity = scenario_.contention.layered ? Fidelity::kLayered : Fidelity::kFolded;
  bool any = false;
  for (StepFootprint& f : footprints) {
    f.shared = f.shared_links || f.shared_devices || f.shared_host;
    any = any || f.shared;
  }
  if (!any) return;
  player_ = std::make_unique<StepPlayer>(*transport_, fidelity,
                                         static_cast<StepPlayer::Listener&>(*this));
  for (std::uint32_t u = 0; u < footprints.size(); ++u) {
    player_->set_footprint(u, sites[u].pool->pipeline_parallel, std::move(footprints[u]));
  }
}

/// Resources of the devices that several replicas sit on.
void Fleet::share_devices(const std::vector<ReplicaSite>& sites,
                          std::vector<StepFootprint>& footprints) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> on_device;  // by vertex
  for (std::uint32_t u = 0; u < sites.size(); ++u) {
    for (int d = 0; d < sites[u].pool->devices_per_replica(); ++d) {
      on_device[transport_->vertex(place_of(sites[u], d))].push_back(u);
    }
  }
  for (const auto& [vertex, units] : on_device) {
    if (units.size() < 2) continue;
    const bool sliced = std::any_of(units.begin(), units.end(), [&](std::uint32_t u) {
      return sites[u].pool->sharing.mode == SharingSpec::Mode::kTimeSlice;
    });
    const DeviceSpec& shared = scenario_.nodes[sites[units.front()].pool->node_group].device;
    const std::string& name = transport_->name(vertex);
    using Of = LinkRecord::Kind;
    StepFootprint::Device device;
    device.sliced = sliced;
    device.compute = transport_->add_resource(
        1.0, {sliced ? Of::kDeviceTime : Of::kArithmetic, name, 1.0, Provenance::kAssumed});
    device.memory = device.compute;
    if (!sliced) {
      SharedResource memory{Of::kMemory, name, 1.0, Provenance::kAssumed};
      if (shared.memory_bandwidth.known()) {
        memory.bytes_per_unit = (*shared.memory_bandwidth).value();
        memory.provenance = shared.memory_bandwidth.provenance;
      }
      device.memory = transport_->add_resource(1.0, std::move(memory));
    }
    for (const std::uint32_t u : units) {
      if (sites[u].pool->sharing.mode == SharingSpec::Mode::kMig) continue;
      footprints[u].shared_devices = true;
      footprints[u].devices.push_back(device);
      const DeviceSpec& spec = scenario_.nodes[sites[u].pool->node_group].device;
      if (spec.memory_bandwidth.known()) {
        footprints[u].memory_bandwidth = (*spec.memory_bandwidth).value();
      }
    }
  }
}

/// Sockets that both compute and serve accelerators: their cores, and their DRAM's wire.
void Fleet::share_hosts(const std::vector<ReplicaSite>& sites,
                        std::vector<StepFootprint>& footprints) {
  const auto server_of = [&](const ReplicaSite& site) {
    const std::size_t host = scenario_.nodes[site.pool->node_group].host_of;
    return host == NodeGroup::kNone ? site.pool->node_group : host;
  };
  struct Socket {
    std::uint32_t cores = 0;
    double one_core = 1.0;
    double bandwidth = 1.0;
  };
  std::map<std::tuple<std::size_t, std::uint32_t, std::uint32_t>, Socket> sockets;
  std::vector<std::uint32_t> wires;
  for (std::uint32_t u = 0; u < sites.size(); ++u) {
    const NodeGroup& group = scenario_.nodes[sites[u].pool->node_group];
    if (group.host_of == NodeGroup::kNone) continue;
    for (int d = 0; d < sites[u].pool->devices_per_replica(); ++d) {
      const DevicePlace place = place_of(sites[u], d);
      const auto key = std::make_tuple(group.host_of, place.node, place.device);
      Socket& socket = sockets[key];
      if (socket.cores == 0) {
        socket.cores = transport_->add_resource(
            1.0, {LinkRecord::Kind::kArithmetic, transport_->name(transport_->vertex(place)), 1.0,
                  Provenance::kAssumed});
        socket.one_core = 1.0 / std::max(1, group.device.cores);
        if (group.device.memory_bandwidth.known()) {
          socket.bandwidth = (*group.device.memory_bandwidth).value();
        }
      }
      transport_->wires_between(transport_->vertex(place), transport_->memory_of(place), 0, wires);
      StepFootprint::Device device{socket.cores, socket.cores, false, true, 0.0};
      if (!wires.empty()) {
        device.memory = wires.front();
        device.memory_scale = transport_->wire_capacity(wires.front());
      }
      footprints[u].shared_devices = true;
      footprints[u].devices.push_back(device);
      footprints[u].memory_bandwidth = socket.bandwidth;
    }
  }
  for (std::uint32_t u = 0; u < sites.size(); ++u) {
    if (scenario_.nodes[sites[u].pool->node_group].host_of != NodeGroup::kNone) continue;
    const auto it = sockets.find(std::make_tuple(server_of(sites[u]), sites[u].place.node,
                                                 transport_->socket_of(sites[u].place)));
    if (it == sockets.end()) continue;
    footprints[u].shared_host = true;
    footprints[u].cores = it->second.cores;
    footprints[u].one_core = it->second.one_core;
    footprints[u].memory_bandwidth = it->second.bandwidth;
  }
}

void Fleet::begin_shared(std::uint32_t r, int lane) {
  Replica& replica = *units_[r].replica;
  player_->begin(r, lane, replica.use(lane), replica.pipeline_wait(lane),
                 scenario_.pools[units_[r].pool].model.total_layers());
}

void Fleet::on_step_played(std::uint32_t unit, int lane, SimTime end) {
  end = std::max(end, engine_.now());
  units_[unit].replica->set_end(lane, end);
  units_[unit].ends[static_cast<std::size_t>(lane)] = engine_.schedule(
      end, EventClass::kCompletion, unit, kStepEnd, static_cast<std::uint64_t>(lane));
}

}  // namespace medley
