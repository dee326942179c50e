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
  Impl(const Catalog& catalog, const Scenario& scenario, Engine& e, std::uint32_t kind,
       Listener& l)
      : cluster(cluster_of(catalog, scenario)),
        network(cluster.topology),
        driver(e, network, EventClass::kCompletion, 0, kind),
        listener(l) {
    driver.bind<&Impl::on_completion>(*this);
  }
  void on_completion(const NetworkCompletion& c) { listener.on_arrived(c.tag); }

  ClusterTopology cluster;
  Network network;
  NetworkDriver driver;
  Listener& listener;
  bool changed = false;
};

Transport::Transport(const Catalog& catalog, const Scenario& scenario, Engine& engine, std::uint32_t kind,
                     Listener& listener)
    : impl_(std::make_unique<Impl>(catalog, scenario, engine, kind, listener)) {}
Transport::~Transport() = default;

std::uint32_t Transport::vertex(const DevicePlace& place) const {
  return impl_->cluster.device(place.group, place.node, place.device);
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
