#include "hwmodels/topology/node_inside.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hwmodels/catalog.h"
#include "sim/core/unit_text.h"

namespace medley {

namespace {
constexpr double kAssumedDram = 100e9;     ///< B/s of a socket nobody describes
constexpr double kAssumedNic = 1.25e9;     ///< B/s: 10 Gbit/s
constexpr double kAssumedOnChip = 100e9;   ///< B/s between an SoC's parts
constexpr double kCopyFraction = 0.8;      ///< of DRAM bandwidth
constexpr double kOwnNic = 12.5e9;         ///< B/s: from here on a device has a NIC of its own
constexpr double kWideSocketLink = 100e9;  ///< B/s: such a link is the only one

ResolvedLink assumed_link(double rate, double latency) {
  ResolvedLink link;
  link.raw = link.bandwidth = BytesPerSec(rate);
  link.latency = Seconds(latency);
  return link;
}

/// Collects what is missing while a plan is made.
class Planner {
 public:
  Planner(const Catalog& catalog, const ClusterGroup& group, const ClusterFabricSpec& fabric,
          std::vector<std::string>& notes, Problems& problems)
      : catalog_(catalog), fabric_(fabric), notes_(notes), problems_(problems) {
    plan_.group = &group;
    plan_.type = group.type;
    plan_.device = group.device ? group.device : catalog.find_device(group.type->device);
    plan_.cpu =
        group.cpu || group.type->cpu.empty() ? group.cpu : catalog.find_device(group.type->cpu);
  }

  NodePlan make(bool several) {
    const NodeSpec& node = *plan_.type;
    plan_.devices_are_sockets =
        node.host_link.empty() && plan_.device != nullptr && plan_.device->kind == "cpu";
    sockets();
    device_links();
    memory();
    if (fabric_.host) override_host(*fabric_.host);
    nics(several);
    drives();
    if (!plan_.devices_are_sockets) device_fabric();
    return std::move(plan_);
  }

 private:
  ResolvedLink look_up(const std::string& name) {
    try {
      return resolve_link(catalog_, name);
    } catch (const InputError& error) {
      const Problem& p = error.problems().front();
      problems_.add(plan_.type->file, "",
                    fmt::format("node type \"{}\": {}", plan_.type->name, p.message), p.hint);
      return assumed_link(1.0, 0.0);
    }
  }
  void note(const std::string& text) {
    notes_.push_back(fmt::format("{}: {}", plan_.group->name, text));
  }

  void sockets() {
    const NodeSpec& node = *plan_.type;
    HostShape& h = plan_.host;
    if (plan_.devices_are_sockets) {
      h.sockets = static_cast<std::uint32_t>(node.devices);
      if (h.sockets > 1) socket_link(node.fabric_link, node.fabric_bandwidth);
      return;
    }
    const bool joined = plan_.cpu != nullptr && !plan_.cpu->fabric.empty();
    h.sockets = node.cpus > 1 && joined ? static_cast<std::uint32_t>(node.cpus) : 1;
    if (h.sockets > 1) socket_link(plan_.cpu->fabric, {});
  }

  void socket_link(const std::string& name, const Sourced<BytesPerSec>& all) {
    if (name.empty()) {
      plan_.host.socket_link = assumed_link(kAssumedOnChip, kSocketHop);
      return note("the sockets' link is unknown, 100 GB/s assumed");
    }
    ResolvedLink link = look_up(name);
    const double times = all.known()                           ? *all / link.raw
                         : link.raw.value() >= kWideSocketLink ? 1.0
                                                               : 3.0;
    link.raw *= times;
    link.bandwidth *= times;
    link.provenance = all.known() ? weaker(link.provenance, all.provenance) : Provenance::kAssumed;
    plan_.host.socket_link = link.with_latency(Seconds(kSocketHop));
  }

  void device_links() {
    const NodeSpec& node = *plan_.type;
    HostShape& h = plan_.host;
    if (!node.host_link.empty()) {
      h.device_link = look_up(node.host_link);
    } else if (plan_.device && plan_.device->memory_bandwidth.known()) {
      h.device_link = assumed_link(plan_.device->memory_bandwidth.value->value(), 0.0);
    } else {
      h.device_link = assumed_link(kAssumedOnChip, 0.0);
      note("no link to the host and no memory bandwidth known, 100 GB/s on chip assumed");
    }
    h.root_link = h.device_link;
  }

  void memory() {
    const DeviceSpec* owner = plan_.devices_are_sockets ? plan_.device : plan_.cpu;
    ResolvedLink dram = assumed_link(kAssumedDram, kDramLatency);
    if (owner == nullptr && plan_.type->host_link.empty()) owner = plan_.device;  // one memory
    if (owner && owner->memory_bandwidth.known()) {
      const Sourced<Ramp>& copy = owner->efficiency[index(OpClass::kCopy)].memory;
      dram.raw = *owner->memory_bandwidth;
      dram.bandwidth = dram.raw * (copy.known() ? copy.value->fraction : kCopyFraction);
      dram.provenance = weaker(owner->memory_bandwidth.provenance, copy.provenance);
      if (!plan_.devices_are_sockets && plan_.cpu && plan_.host.sockets == 1) {
        dram.bandwidth *= std::max(1, plan_.type->cpus);
      }
    } else {
      note("the DRAM bandwidth of its host is unknown, 100 GB/s assumed");
    }
    dram.half_duplex = true;
    plan_.host.memory = dram;
  }

  /// What the scenario says about the inside of servers goes over what was worked out.
  void override_host(const FabricSpec& spec) {
    Topology unused;
    FabricContext context{catalog_, unused, problems_};
    HostShape& h = plan_.host;
    const auto over = [&](const char* key, ResolvedLink& link) {
      if (spec.links.contains(key)) link = context.link(spec, key);
    };
    h.sockets = static_cast<std::uint32_t>(spec.count("sockets", h.sockets));
    h.devices_per_switch = static_cast<std::uint32_t>(spec.count("devices_per_switch", 0));
    host_says_switches_ = spec.has("devices_per_switch");
    if (spec.links.contains("link")) h.root_link = context.link(spec, "link");
    over("link", h.device_link);
    over("root_link", h.root_link);
    over("socket_link", h.socket_link);
    if (h.sockets > 1 && h.socket_link.raw.value() == 0.0) {
      context.problem(spec, "socket_link", "missing required key",
                      "the node type does not say how its sockets are joined");
    }
    if (spec.links.contains("socket_link") || spec.has("socket_latency")) {
      h.socket_link =
          h.socket_link.with_latency(Seconds(spec.number("socket_latency", kSocketHop)));
    }
    h.socket_ring = spec.word("joined", "mesh") == "ring";
    if (spec.links.contains("memory")) {
      h.memory = context.link(spec, "memory");
      h.memory->half_duplex = true;
    }
  }

  void nics(bool several) {
    const NodeSpec& node = *plan_.type;
    HostShape& h = plan_.host;
    if (!node.network.known() && !several) return;
    const bool own = node.network.known() && node.network.value->value() / node.devices >= kOwnNic;
    h.nics = fabric_.nics_per_node > 0 ? static_cast<std::uint32_t>(fabric_.nics_per_node)
             : own                     ? static_cast<std::uint32_t>(node.devices)
                                       : 1;
    if (node.network.known()) {
      plan_.nic_rate = *node.network / h.nics;
    } else if (!fabric_.network || !fabric_.network->links.contains("link")) {
      plan_.nic_rate = BytesPerSec(kAssumedNic);
      note("the network of its servers is unknown, 10 Gbit/s assumed");
    }
    const bool pcie = node.host_link.starts_with("PCIe") && node.host_link.ends_with("x16");
    h.nic_link = look_up(pcie ? node.host_link : "PCIe 5.0 x16");
    if (plan_.nic_rate && *plan_.nic_rate > h.nic_link.raw) {  // ports of the device itself
      h.nic_link.bandwidth = h.nic_link.bandwidth * (*plan_.nic_rate / h.nic_link.raw);
      h.nic_link.raw = *plan_.nic_rate;
      h.nic_link.provenance = Provenance::kAssumed;
    }
    h.nics_with_devices = h.nics == static_cast<std::uint32_t>(node.devices) && node.devices > 1;
    if (h.nics_with_devices && pcie && !host_says_switches_) h.devices_per_switch = 1;
  }

  void drives() {
    HostShape& h = plan_.host;
    h.storage = 1;
    if (fabric_.storage.given()) {
      Topology unused;
      FabricContext context{catalog_, unused, problems_};
      h.storage_link = context.resolve(fabric_.storage, storage_file());
      return;
    }
    h.storage_link = look_up("NVMe Gen4 x4");
    h.storage_link.bandwidth *= std::max(1, plan_.type->devices / 2);
    h.storage_link.raw *= std::max(1, plan_.type->devices / 2);
    h.storage_link.provenance = Provenance::kAssumed;
  }
  std::string storage_file() const {
    return fabric_.network ? fabric_.network->file : plan_.type->file;
  }

  /// The link between the devices, all of a device's together for a switch.
  LinkUse fabric_use(bool whole) {
    const NodeSpec& node = *plan_.type;
    const ResolvedLink link =
        node.resolved_link ? resolve_spec(*node.resolved_link) : look_up(node.fabric_link);
    LinkUse use;
    use.link = link.link;
    use.bandwidth = link.bandwidth;
    use.latency = link.latency;
    use.provenance = link.provenance;
    if (whole && node.fabric_bandwidth.known()) {
      use.bandwidth = link.bandwidth * (*node.fabric_bandwidth / link.raw);
      use.provenance = weaker(use.provenance, node.fabric_bandwidth.provenance);
    }
    return use;
  }

  void device_fabric() {
    const NodeSpec& node = *plan_.type;
    if (node.devices < 2 && node.domain < 2) return;
    if (node.fabric == FabricKind::kNone || node.fabric == FabricKind::kHost) return;
    FabricSpec spec;
    spec.file = node.file;
    spec.pointer = "/fabric";
    spec.links["link"] = fabric_use(node.fabric == FabricKind::kSwitch);
    plan_.domain = static_cast<std::uint32_t>(std::max(node.devices, node.domain));
    switch (node.fabric) {
      case FabricKind::kSwitch:
        spec.kind = "nvswitch";
        break;
      case FabricKind::kMesh:
        spec.kind = "mesh";
        break;
      case FabricKind::kRing:
        spec.kind = "ring";
        break;
      default:
        torus(spec);
        break;
    }
    plan_.fabric = std::move(spec);
  }

  /// As many dimensions as a device has pairs of links.
  void torus(FabricSpec& spec) {
    const NodeSpec& node = *plan_.type;
    const double link = look_up(node.fabric_link).raw.value();
    const double ports =
        node.fabric_bandwidth.known() ? node.fabric_bandwidth.value->value() / link : 4.0;
    spec.kind = "torus";
    spec.dims = even_dims(node.devices, std::clamp(static_cast<int>(ports / 2 + 0.5), 1, 3));
    const bool cube =
        std::all_of(spec.dims.begin(), spec.dims.end(), [](std::int64_t d) { return d == 2; });
    if (cube && std::abs(ports - 2.0 * static_cast<double>(spec.dims.size())) < 0.5) {
      LinkUse& use = spec.links["link"];  // both links of a dimension lead to one neighbour
      use.count = 2;
    }
  }

  const Catalog& catalog_;
  const ClusterFabricSpec& fabric_;
  std::vector<std::string>& notes_;
  Problems& problems_;
  NodePlan plan_;
  bool host_says_switches_ = false;
};
}  // namespace

std::vector<std::int64_t> even_dims(std::int64_t devices, int dims) {
  std::vector<std::int64_t> sizes;
  for (int left = dims; left > 1 && devices > 1; --left) {
    const double root = std::pow(static_cast<double>(devices), 1.0 / left);
    auto size = static_cast<std::int64_t>(root + 1e-9);
    while (devices % size != 0) --size;
    if (size > 1) sizes.push_back(size);
    devices /= size;
  }
  if (devices > 1 || sizes.empty()) sizes.push_back(devices);
  std::sort(sizes.rbegin(), sizes.rend());
  return sizes;
}

NodePlan plan_node(const Catalog& catalog, const ClusterGroup& group,
                   const ClusterFabricSpec& fabric, bool several, std::vector<std::string>& notes,
                   Problems& problems) {
  return Planner(catalog, group, fabric, notes, problems).make(several);
}

}  // namespace medley
