#include "sim/runtime/transport.h"

#include <fmt/format.h>

#include <algorithm>

#include "hwmodels/topology/cluster.h"
#include "sim/core/error.h"
#include "sim/network/network_driver.h"

namespace medley {

static ClusterTopology cluster_of(const Catalog& catalog, const Scenario& scenario) {
  std::vector<ClusterGroup> groups;
  for (const NodeGroup& g : scenario.nodes) {
    groups.push_back({g.name, &g.type, g.count, &g.device, g.cpu ? &*g.cpu : nullptr});
  }
  return build_cluster(catalog, groups, scenario.fabric);
}

struct Transport::Impl {
  Impl(const Catalog& catalog, const Scenario& scenario, Engine& e, std::uint32_t kind, Listener& l)
      : cluster(cluster_of(catalog, scenario)),
        network(cluster.topology),
        driver(e, network, EventClass::kCompletion, 0, kind),
        listener(l) {
    driver.bind<&Impl::on_completion>(*this);
  }
  void on_completion(const NetworkCompletion& c) {
    if (c.event == NetworkEvent::kActivity) {
      listener.on_activity(c.tag);
    } else {
      listener.on_arrived(c.tag);
    }
  }

  ClusterTopology cluster;
  Network network;
  NetworkDriver driver;
  Listener& listener;
  bool changed = false;
  int failed = 0;  ///< cables
};

Transport::Transport(const Catalog& catalog, const Scenario& scenario, Engine& engine,
                     std::uint32_t kind, Listener& listener)
    : impl_(std::make_unique<Impl>(catalog, scenario, engine, kind, listener)) {}
Transport::~Transport() = default;

std::uint32_t Transport::vertex(const DevicePlace& place) const {
  return impl_->cluster.device(place.group, place.node, place.device);
}

void Transport::wires_between(std::uint32_t from, std::uint32_t to, std::uint64_t hash,
                              std::vector<std::uint32_t>& out) const {
  out.clear();
  if (from == to) return;
  if (impl_->failed > 0) {
    NetworkPath path;
    impl_->network.find_path(from, to, hash, path);
    for (const FluidDemand& d : path.demands) {
      out.insert(out.end(), static_cast<std::size_t>(d.amount), d.resource);
    }
    return;
  }
  TopologyRoute route;
  impl_->cluster.topology.route(from, to, hash, route);
  for (const std::uint32_t link : route.links) {
    out.push_back(impl_->cluster.topology.links[link].wire);
  }
}

std::size_t Transport::wire_count() const {
  return impl_->cluster.topology.wires.size();
}

double Transport::wire_capacity(std::uint32_t wire) const {
  return impl_->network.wire_capacity(wire);
}

std::uint32_t Transport::add_resource(double capacity) {
  return impl_->network.add_resource(capacity);
}

FluidHandle Transport::start_activity(const FluidActivity& activity) {
  impl_->driver.catch_up();
  impl_->changed = true;
  return impl_->network.start_activity(activity);
}

void Transport::cancel_activity(FluidHandle activity) {
  impl_->driver.catch_up();
  impl_->changed = true;
  if (impl_->network.fluid().running(activity)) impl_->network.fluid().cancel(activity);
}

FineTime Transport::now() const {
  return impl_->network.now();
}

void Transport::catch_up() {
  impl_->driver.catch_up();
}

TransferHandle Transport::start(const TransportFlow& flow) {
  impl_->driver.catch_up();
  impl_->changed = true;
  TransferSpec spec;
  spec.bytes = flow.bytes;
  spec.bound = flow.bound;
  spec.tag = flow.tag;
  spec.extra_latency_s = flow.delay_s;
  return impl_->network.start(flow.from, flow.to, flow.hash, spec);
}

bool Transport::running(TransferHandle flow) const {
  return impl_->network.running(flow);
}

void Transport::set_bound(TransferHandle flow, double bytes_per_s) {
  impl_->driver.catch_up();
  impl_->changed = true;
  if (impl_->network.running(flow)) impl_->network.set_bound(flow, bytes_per_s);
}

void Transport::cancel(TransferHandle flow) {
  impl_->driver.catch_up();
  impl_->changed = true;
  if (impl_->network.running(flow)) impl_->network.cancel(flow);
}

void Transport::fail_cables(const std::vector<std::uint32_t>& links, bool down) {
  impl_->driver.catch_up();
  impl_->changed = true;
  for (const std::uint32_t l : links) {
    impl_->network.fail_link(l, down);
    impl_->failed += down ? 1 : -1;
  }
  impl_->network.reroute_blocked();
}

void Transport::on_event() {
  impl_->changed = true;
  impl_->driver.on_event();
}

void Transport::settle() {
  if (!impl_->changed) return;
  impl_->changed = false;
  impl_->driver.arm();
}

std::vector<WireRecord> Transport::wires() const {
  std::vector<WireRecord> records;
  const Topology& topology = impl_->cluster.topology;
  for (std::uint32_t w = 0; w < topology.wires.size(); ++w) {
    const TopologyWire& wire = topology.wires[w];
    const WireAccount a = impl_->network.account(w);
    records.push_back({wire.name, wire.link, wire.provenance, wire.bandwidth.value(), a.bytes,
                       a.busy_s, a.saturated_s, a.waited_s});
  }
  return records;
}

}  // namespace medley
