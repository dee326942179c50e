#include "hwmodels/topology/cluster.h"

#include <fmt/format.h>

#include <algorithm>

#include "hwmodels/catalog.h"
#include "hwmodels/topology/cluster_router.h"
#include "hwmodels/topology/graph_router.h"
#include "hwmodels/topology/node_inside.h"
#include "sim/core/error.h"

namespace medley {

std::uint32_t ClusterTopology::device(std::size_t group, std::uint32_t node,
                                      std::uint32_t index) const {
  const Group& g = groups[group];
  MEDLEY_CHECK(node < g.nodes && index < g.devices, "no such device");
  return g.first + node * g.stride + index;
}
std::uint32_t ClusterTopology::host(std::size_t group, std::uint32_t node,
                                    std::uint32_t socket) const {
  const Group& g = groups[group];
  MEDLEY_CHECK(node < g.nodes && socket < g.sockets, "no such socket");
  return g.first + node * g.stride + g.socket_at + socket;
}
std::uint32_t ClusterTopology::memory(std::size_t group, std::uint32_t node,
                                      std::uint32_t socket) const {
  const Group& g = groups[group];
  MEDLEY_CHECK(node < g.nodes && socket < g.sockets, "no such memory");
  return g.first + node * g.stride + g.memory_at + socket;
}
std::uint32_t ClusterTopology::nic(std::size_t group, std::uint32_t node,
                                   std::uint32_t index) const {
  const Group& g = groups[group];
  MEDLEY_CHECK(node < g.nodes && index < g.nics, "no such NIC");
  return g.first + node * g.stride + g.nic_at + index;
}
std::uint32_t ClusterTopology::storage(std::size_t group, std::uint32_t node) const {
  const Group& g = groups[group];
  return g.drives == 0 ? kNone : g.first + node * g.stride + g.storage_at;
}
std::uint32_t ClusterTopology::socket_of(std::size_t group, std::uint32_t index) const {
  const Group& g = groups[group];
  return static_cast<std::uint32_t>(std::uint64_t{index} * g.sockets / g.devices);
}

namespace {
class ClusterBuilder {
 public:
  ClusterBuilder(const Catalog& catalog, const std::vector<ClusterGroup>& groups,
                 const ClusterFabricSpec& fabric)
      : catalog_(catalog),
        groups_(groups),
        fabric_(fabric),
        router_(std::make_unique<ClusterRouter>()) {
    for (const ClusterGroup& g : groups) servers_ += g.count;
  }

  ClusterTopology build() {
    for (const ClusterGroup& g : groups_) {
      plans_.push_back(plan_node(catalog_, g, fabric_, servers_ > 1, topology().notes, problems_));
    }
    problems_.throw_if_any();
    for (std::uint32_t g = 0; g < groups_.size(); ++g) add_group(g);
    problems_.throw_if_any();
    if (fabric_.pool) add_pool(*fabric_.pool);
    if (servers_ > 1 || fabric_.network) add_network();
    problems_.throw_if_any();
    topology().finish();
    for (const ClusterRouter::Group& g : router_->groups) out_.groups.push_back(g.at);
    topology().router = std::move(router_);
    return std::move(out_);
  }

 private:
  Topology& topology() { return out_.topology; }
  std::uint32_t vertices() { return static_cast<std::uint32_t>(topology().vertices.size()); }
  std::uint32_t links() { return static_cast<std::uint32_t>(topology().links.size()); }
  FabricContext context(LinkPlane plane, std::string prefix) {
    FabricContext c{catalog_, topology(), problems_};
    c.plane = plane;
    c.prefix = std::move(prefix);
    return c;
  }

  void add_group(std::uint32_t g) {
    const NodePlan& plan = plans_[g];
    router_->groups.emplace_back();
    ClusterRouter::Group& group = router_->groups.back();
    ClusterTopology::Group& at = group.at;
    at.name = plan.group->name;
    at.first = vertices();
    at.nodes = static_cast<std::uint32_t>(plan.group->count);
    at.devices = static_cast<std::uint32_t>(plan.type->devices);
    at.sockets = plan.host.sockets;
    at.nics = plan.host.nics;
    at.drives = plan.host.storage;
    if (at.nics > ClusterRouter::kMostNics) {
      problems_.add("", "", fmt::format("{} NICs in a server of \"{}\"", at.nics, at.name),
                    fmt::format("at most {}", ClusterRouter::kMostNics));
      return;
    }
    const bool shared = fabric_.devices.has_value() || (plan.fabric && plan.domain > at.devices);
    const std::uint32_t first_link = links();
    for (std::uint32_t n = 0; n < at.nodes; ++n) add_server(g, n, group, !shared);
    at.stride = (vertices() - at.first) / at.nodes;
    group.link_stride = (links() - first_link) / at.nodes;
    if (shared) add_domains(plan, group);
  }

  /// One server: devices, then sockets, DRAM, NICs, drives; its device fabric unless shared.
  void add_server(std::uint32_t g, std::uint32_t n, ClusterRouter::Group& group, bool own_fabric) {
    const NodePlan& plan = plans_[g];
    ClusterTopology::Group& at = group.at;
    const std::uint32_t first = vertices(), first_link = links();
    FabricContext inside = context(LinkPlane::kHost, fmt::format("{}/{}/", at.name, n));
    for (std::uint32_t d = 0; d < at.devices; ++d) {
      const std::uint32_t v = inside.add_vertex(fmt::format("device{}", d), VertexKind::kDevice);
      topology().vertices[v].index = d;
      topology().vertices[v].forwards = false;
      inside.ports.push_back(v);
      topology().endpoints.push_back(v);
    }
    const HostSide side = build_host_side(plan.host, inside);
    at.socket_at = side.sockets.front() - first;
    at.memory_at = side.memory.front() - first;
    if (!side.nics.empty()) at.nic_at = side.nics.front() - first;
    if (!side.storage.empty()) at.storage_at = side.storage.front() - first;
    if (n == 0) make_inside_router(group, first, first_link);
    if (own_fabric && plan.fabric) {
      FabricContext fabric = context(LinkPlane::kFabric, inside.prefix);
      fabric.ports = inside.ports;
      std::unique_ptr<PortRouter> built =
          find_fabric_kind(plan.fabric->kind)->build(*plan.fabric, fabric);
      if (n == 0) group.devices = std::move(built);
      at.domain = at.devices;
    }
    for (std::uint32_t v = first; v < vertices(); ++v) {
      topology().vertices[v].group = g;
      topology().vertices[v].node = n;
    }
    if (n == 0) group.domain_links = links() - first_link;
  }

  void make_inside_router(ClusterRouter::Group& group, std::uint32_t first,
                          std::uint32_t first_link) {
    std::vector<std::uint32_t> members;
    for (std::uint32_t v = first; v < vertices(); ++v) members.push_back(v);
    topology().finish();
    group.inside = GraphRouter::make(topology(), members, first_link);
    if (!group.inside) {
      problems_.add("", "", fmt::format("the servers of \"{}\" are too large", group.at.name), "");
      return;
    }
    const auto size = static_cast<std::uint32_t>(members.size());
    group.inside_size = size;
    for (std::uint32_t v = 0; v < size; ++v) {
      for (std::uint32_t i = 0; i < group.at.nics; ++i) {
        group.nic_cost.push_back(group.inside->cost(v, group.at.nic_at + i));
      }
      for (std::uint32_t i = 0; i < group.at.sockets; ++i) {
        group.socket_cost.push_back(group.inside->cost(v, group.at.socket_at + i));
      }
    }
  }

  /// A device fabric of several servers: domain by domain, alike, after the servers.
  void add_domains(const NodePlan& plan, ClusterRouter::Group& group) {
    const FabricSpec& spec = fabric_.devices ? *fabric_.devices : *plan.fabric;
    const FabricKindInfo& kind = *find_fabric_kind(spec.kind);
    ClusterTopology::Group& at = group.at;
    const std::uint32_t all = at.devices * at.nodes;
    const auto own = static_cast<std::uint32_t>(std::max<std::int64_t>(0, kind.own_ports(spec)));
    at.domain = fabric_.devices ? (own > 0 ? own : all) : plan.domain;
    const bool hub = kind.name == "nvswitch" || kind.name == "switch";
    if (all % at.domain != 0 && !hub) {
      problems_.add(spec.file, spec.pointer,
                    fmt::format("a {} of {} devices does not fit \"{}\" with {}", kind.name,
                                at.domain, at.name, all),
                    "whole ones only: change its size or the number of servers");
      return;
    }
    for (std::uint32_t first = 0, d = 0; first < all; first += at.domain, ++d) {
      const std::uint32_t before = links();
      FabricContext fabric = context(LinkPlane::kFabric, fmt::format("{}/domain{}/", at.name, d));
      for (std::uint32_t i = first; i < std::min(all, first + at.domain); ++i) {
        fabric.ports.push_back(at.first + i / at.devices * at.stride + i % at.devices);
      }
      std::unique_ptr<PortRouter> built = kind.build(spec, fabric);
      if (!problems_.empty()) return;
      if (d == 0) {
        group.devices = std::move(built);
        group.domain_links = links() - before;
      }
    }
  }

  void add_pool(const FabricSpec& spec) {
    FabricContext pool = context(LinkPlane::kPool, "pool/");
    for (ClusterRouter::Group& group : router_->groups) {
      group.first_socket = pool.size();
      for (std::uint32_t n = 0; n < group.at.nodes; ++n) {
        for (std::uint32_t s = 0; s < group.at.sockets; ++s) {
          pool.ports.push_back(group.at.first + n * group.at.stride + group.at.socket_at + s);
        }
      }
    }
    const std::int64_t own = find_fabric_kind(spec.kind)->own_ports(spec);
    if (own > 0 && own != pool.size()) {
      pool.problem(spec, "ports", fmt::format("{} ports for {} sockets", own, pool.size()),
                   "leave it out: it is worked out");
    }
    router_->pool_sockets = pool.size();
    router_->pool_first = vertices();
    router_->pool = find_fabric_kind(spec.kind)->build(spec, pool);
    router_->pool_size = vertices() - router_->pool_first;
    for (std::uint32_t v = router_->pool_first; v < vertices(); ++v) {
      if (topology().vertices[v].kind == VertexKind::kMemory) out_.pool.push_back(v);
    }
  }

  void add_network() {
    FabricContext net = context(LinkPlane::kNetwork, "net/");
    double fastest = 0.0;
    std::uint32_t server = 0;
    for (std::size_t g = 0; g < plans_.size(); ++g) {
      ClusterRouter::Group& group = router_->groups[g];
      group.first_nic = net.size();
      const double rate = plans_[g].nic_rate ? plans_[g].nic_rate->value() : 1e30;
      if (plans_[g].nic_rate) fastest = std::max(fastest, rate);
      for (std::uint32_t n = 0; n < group.at.nodes; ++n, ++server) {
        for (std::uint32_t i = 0; i < group.at.nics; ++i) {
          net.ports.push_back(group.at.first + n * group.at.stride + group.at.nic_at + i);
          net.limits.push_back(BytesPerSec(rate));
          net.rail.push_back(i);
          net.server.push_back(server);
        }
      }
    }
    FabricSpec plain;
    plain.kind = "switch";
    const FabricSpec& spec = fabric_.network ? *fabric_.network : plain;
    const LinkPriors& priors = catalog_.priors().links.at("network");
    ResolvedLink link;
    link.raw = BytesPerSec(fastest > 0.0 ? fastest : 1.0);
    link.bandwidth = link.raw * priors.achieved.value;
    link.latency = priors.latency.value;
    net.default_link = link;
    name_ports(net);
    const FabricKindInfo& kind = *find_fabric_kind(spec.kind);
    check_servers(spec, net, server);
    router_->network = kind.build(spec, net);
  }

  /// Sizes that a structure states must match.
  void check_servers(const FabricSpec& spec, FabricContext& net, std::uint32_t servers) {
    if (spec.has("ports") && spec.count("ports", 0) < net.size()) {
      net.problem(
          spec, "ports",
          fmt::format("{} ports for the cluster's {} NICs", spec.count("ports", 0), net.size()),
          "more of them, or leave it out");
    }
    if (spec.has("nodes") && spec.count("nodes", 0) < servers) {
      net.problem(spec, "nodes",
                  fmt::format("{} servers for the cluster's {}", spec.count("nodes", 0), servers),
                  "more of them, or leave it out");
    }
  }

  /// "h100/3" (all NICs of a server), "h100/3/nic0", "h100/*".
  void name_ports(FabricContext& net) {
    for (const ClusterRouter::Group& g : router_->groups) {
      net.port_names.push_back(g.at.name + "/0");
      net.port_names.push_back(g.at.name + "/*");
    }
    net.find_ports = [this](const std::string& name) {
      std::vector<std::uint32_t> found;
      for (const ClusterRouter::Group& g : router_->groups) {
        if (!name.starts_with(g.at.name + "/")) continue;
        const std::string rest = name.substr(g.at.name.size() + 1);
        for (std::uint32_t n = 0; n < g.at.nodes; ++n) {
          for (std::uint32_t i = 0; i < g.at.nics; ++i) {
            if (rest != "*" && rest != std::to_string(n) && rest != fmt::format("{}/nic{}", n, i)) {
              continue;
            }
            found.push_back(g.at.first + n * g.at.stride + g.at.nic_at + i);
          }
        }
      }
      return found;
    };
  }

  const Catalog& catalog_;
  const std::vector<ClusterGroup>& groups_;
  const ClusterFabricSpec& fabric_;
  int servers_ = 0;
  Problems problems_;
  std::vector<NodePlan> plans_;
  ClusterTopology out_;
  std::unique_ptr<ClusterRouter> router_;
};
}  // namespace

ClusterTopology build_cluster(const Catalog& catalog, const std::vector<ClusterGroup>& groups,
                              const ClusterFabricSpec& fabric) {
  return ClusterBuilder(catalog, groups, fabric).build();
}

ClusterTopology build_node(const Catalog& catalog, const NodeSpec& node) {
  ClusterGroup group;
  group.name = node.name;
  group.type = &node;
  return build_cluster(catalog, {group}, {});
}

}  // namespace medley
