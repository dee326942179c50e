#include "sim/runtime/transport.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/core/error.h"
#include "sim/network/network_driver.h"

namespace medley {

struct TransportCluster {
  Topology topology;
  std::vector<std::uint32_t> first_of_group;
  std::vector<std::uint32_t> devices_per_node;
};

static TransportCluster build(const Scenario& scenario) {
  TransportCluster c;
  Topology& t = c.topology;
  t.vertices.push_back(
      {"switch", VertexKind::kSwitch, TopologyVertex::kNone, TopologyVertex::kNone, 0, true});
  for (std::uint32_t g = 0; g < scenario.nodes.size(); ++g) {
    const NodeGroup& group = scenario.nodes[g];
    c.first_of_group.push_back(static_cast<std::uint32_t>(t.vertices.size()));
    c.devices_per_node.push_back(static_cast<std::uint32_t>(group.type.devices));
    const double bandwidth =
        group.type.network.known() ? (*group.type.network).value() / group.type.devices : 12.5e9;
    for (int n = 0; n < group.count; ++n) {
      for (int d = 0; d < group.type.devices; ++d) {
        const auto v = static_cast<std::uint32_t>(t.vertices.size());
        t.vertices.push_back({fmt::format("{}/{}/{}", group.name, n, d), VertexKind::kDevice, g,
                              static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(d), false});
        for (int direction = 0; direction < 2; ++direction) {
          const auto w = static_cast<std::uint32_t>(t.wires.size());
          t.wires.push_back({t.vertices.back().name, BytesPerSec(bandwidth), JoulesPerByte(0.0), "",
                             Provenance::kAssumed});
          t.links.push_back({direction == 0 ? v : 0, direction == 0 ? 0 : v, w, Seconds(1e-6),
                             LinkPlane::kNetwork});
        }
      }
    }
  }
  t.finish();
  return c;
}

struct Transport::Impl {
  Impl(const Scenario& scenario, Engine& e, std::uint32_t kind, Listener& l)
      : cluster(build(scenario)),
        network(cluster.topology),
        driver(e, network, EventClass::kCompletion, 0, kind),
        listener(l) {
    driver.bind<&Impl::on_completion>(*this);
  }
  void on_completion(const NetworkCompletion& c) { listener.on_arrived(c.tag); }

  TransportCluster cluster;
  Network network;
  NetworkDriver driver;
  Listener& listener;
  bool changed = false;
};

Transport::Transport(const Catalog&, const Scenario& scenario, Engine& engine, std::uint32_t kind,
                     Listener& listener)
    : impl_(std::make_unique<Impl>(scenario, engine, kind, listener)) {}
Transport::~Transport() = default;

std::uint32_t Transport::vertex(const DevicePlace& place) const {
  const TransportCluster& c = impl_->cluster;
  return c.first_of_group[place.group] + place.node * c.devices_per_node[place.group] +
         place.device;
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
