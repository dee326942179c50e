#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "sim/engine/engine.h"
#include "sim/network/network.h"
#include "sim/runtime/records.h"
#include "sim/scenario/scenario.h"

namespace medley {

struct ClusterTopology;

/// Bytes on their way between two devices.
struct TransportFlow {
  std::uint32_t from = 0;  ///< vertices of the cluster's topology
  std::uint32_t to = 0;
  double bytes = 0.0;
  double delay_s = 0.0;                                    ///< before its first byte may leave
  double bound = std::numeric_limits<double>::infinity();  ///< [B/s]
  std::uint64_t hash = 0;                                  ///< picks among equal routes
  std::uint64_t tag = 0;                                   ///< comes back when it has arrived
  TrafficKind kind = TrafficKind::kOther;
};

/// Where a replica's devices stand in the cluster.
struct DevicePlace {
  std::uint32_t group = 0;
  std::uint32_t node = 0;
  std::uint32_t device = 0;  ///< within the node
};

/// What the owner adds beside the wires.
struct SharedResource {
  LinkRecord::Kind kind = LinkRecord::Kind::kDeviceTime;
  std::string name;
  double bytes_per_unit = 1.0;  ///< for reports: of memories, their bandwidth
  Provenance provenance = Provenance::kAssumed;
};

/// The cluster's network in a run: flows over the topology's wires, in step with the engine. One
/// pending event (completion class) at the rounded time of the next arrival.
class Transport {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void on_arrived(std::uint64_t tag) = 0;
    virtual void on_activity(std::uint64_t tag) = 0;
  };
  /// `kind`: of its events in `engine`; the owner passes those to on_event.
  Transport(const Catalog& catalog, const Scenario& scenario, Engine& engine, std::uint32_t kind,
            Listener& listener);
  ~Transport();

  const ClusterTopology& cluster() const;
  std::uint32_t vertex(const DevicePlace& place) const;
  /// The socket a device hangs on (a host CPU is its own), and that socket's DRAM.
  std::uint32_t socket_of(const DevicePlace& place) const;
  std::uint32_t memory_of(const DevicePlace& place) const;
  const std::string& name(std::uint32_t vertex) const;
  /// Wires between two vertices for flows of this hash, one per crossing; around links that are
  /// down where that is possible.
  void wires_between(std::uint32_t from, std::uint32_t to, std::uint64_t hash,
                     std::vector<std::uint32_t>& out) const;
  std::size_t wire_count() const;
  double wire_capacity(std::uint32_t wire) const;  ///< [B/s]
  /// A resource beside the wires: a device's arithmetic, its memory.
  std::uint32_t add_resource(double capacity, SharedResource about = {});
  FluidHandle start_activity(const FluidActivity& activity);
  void cancel_activity(FluidHandle activity);
  FineTime now() const;  ///< the network's: never behind the engine's in a handler
  void catch_up();
  /// How long these would take together with nothing else on the wires: the greatest latency + the
  /// greatest bytes / bandwidth over wires (exact for one flow).
  double alone_s(const std::vector<TransportFlow>& flows) const;
  TransferHandle start(const TransportFlow& flow);
  bool running(TransferHandle flow) const;
  void set_bound(TransferHandle flow, double bytes_per_s);  ///< nothing happens once it has arrived
  void cancel(TransferHandle flow);
  /// Both directions of the cable of a topology link. Transfers over it take another way where
  /// there is one, else they wait.
  void fail_cables(const std::vector<std::uint32_t>& links, bool down);
  /// From the owner's event handler.
  void on_event();
  /// After all changes of an instant.
  void settle();
  /// Who made an activity wait (Network::mark, blame).
  void mark(const std::vector<FluidDemand>& demands, std::vector<double>& marks) const;
  void blame(const std::vector<FluidDemand>& demands, const std::vector<double>& marks,
             TrafficKind kind, double seconds);
  /// Wires and added resources that carried something.
  std::vector<LinkRecord> links() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace medley
