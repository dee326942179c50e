#include "sim/runtime/transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "hwmodels/topology/cluster.h"
#include "sim/core/error.h"
#include "sim/network/network_driver.h"

namespace medley {

static ClusterTopology cluster_of(const Catalog& catalog, const Scenario& scenario) {
  std::vector<ClusterGroup> groups;
  for (const NodeGroup& g : scenario.nodes) {  // host CPUs are part of their servers, last in line
    if (g.host_of != NodeGroup::kNone) break;
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
    for (const NodeGroup& g : scenario.nodes) host_of.push_back(g.host_of);
    driver.bind<&Impl::on_completion>(*this);
  }
  void on_completion(const NetworkCompletion& c) {
    if (c.event == NetworkEvent::kActivity) {
      listener.on_activity(c.tag);
    } else {
      listener.on_arrived(c.tag);
    }
  }

  std::vector<std::size_t> host_of;  ///< by node group
  ClusterTopology cluster;
  Network network;
  NetworkDriver driver;
  Listener& listener;
  std::vector<SharedResource> added;
  bool changed = false;
  int failed = 0;  ///< cables
};

Transport::Transport(const Catalog& catalog, const Scenario& scenario, Engine& engine,
                     std::uint32_t kind, Listener& listener)
    : impl_(std::make_unique<Impl>(catalog, scenario, engine, kind, listener)) {}
Transport::~Transport() = default;

std::uint32_t Transport::vertex(const DevicePlace& place) const {
  const std::size_t server = impl_->host_of[place.group];
  if (server != NodeGroup::kNone) return impl_->cluster.host(server, place.node, place.device);
  return impl_->cluster.device(place.group, place.node, place.device);
}

std::uint32_t Transport::socket_of(const DevicePlace& place) const {
  if (impl_->host_of[place.group] != NodeGroup::kNone) return place.device;
  return impl_->cluster.socket_of(place.group, place.device);
}

std::uint32_t Transport::memory_of(const DevicePlace& place) const {
  const std::size_t server = impl_->host_of[place.group];
  return impl_->cluster.memory(server == NodeGroup::kNone ? place.group : server, place.node,
                               socket_of(place));
}

const std::string& Transport::name(std::uint32_t vertex) const {
  return impl_->cluster.topology.vertices[vertex].name;
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

std::uint32_t Transport::add_resource(double capacity, SharedResource about) {
  impl_->added.push_back(std::move(about));
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

const ClusterTopology& Transport::cluster() const {
  return impl_->cluster;
}

double Transport::alone_s(const std::vector<TransportFlow>& flows) const {
  std::map<std::uint32_t, double> load;  // of wires, in bytes
  double latency = 0.0, slowest = 0.0;
  NetworkPath path;
  for (const TransportFlow& flow : flows) {
    impl_->network.find_path(flow.from, flow.to, flow.hash, path);
    latency = std::max(latency, path.latency_s + flow.delay_s);
    for (const FluidDemand& d : path.demands) load[d.resource] += flow.bytes * d.amount;
  }
  for (const auto& [wire, bytes] : load) {
    slowest = std::max(slowest, bytes / impl_->network.wire_capacity(wire));
  }
  return latency + slowest;
}

TransferHandle Transport::start(const TransportFlow& flow) {
  impl_->driver.catch_up();
  impl_->changed = true;
  TransferSpec spec;
  spec.bytes = flow.bytes;
  spec.bound = flow.bound;
  spec.tag = flow.tag;
  spec.kind = flow.kind;
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

void Transport::mark(const std::vector<FluidDemand>& demands, std::vector<double>& marks) const {
  impl_->network.mark(demands, marks);
}

void Transport::blame(const std::vector<FluidDemand>& demands, const std::vector<double>& marks,
                      TrafficKind kind, double seconds) {
  impl_->network.blame(demands, marks, kind, seconds);
}

std::vector<LinkRecord> Transport::links() const {
  std::vector<LinkRecord> records;
  const std::vector<TopologyWire>& wires = impl_->cluster.topology.wires;
  const auto all = static_cast<std::uint32_t>(wires.size() + impl_->added.size());
  for (std::uint32_t i = 0; i < all; ++i) {
    const WireAccount a = impl_->network.account(i);
    if (!(a.bytes > 0.0)) continue;
    LinkRecord r;
    double scale = 1.0;
    if (i < wires.size()) {
      r.name = wires[i].name;
      r.link = wires[i].link;
      r.provenance = wires[i].provenance;
    } else {
      const SharedResource& about = impl_->added[i - wires.size()];
      r.kind = about.kind;
      r.name = about.name;
      r.provenance = about.provenance;
      scale = about.bytes_per_unit;
    }
    r.capacity = scale * impl_->network.wire_capacity(i);
    r.bytes = scale * a.bytes;
    r.busy_s = a.busy_s;
    r.saturated_s = a.saturated_s;
    r.waits = a.waits;
    records.push_back(std::move(r));
  }
  return records;
}

}  // namespace medley
