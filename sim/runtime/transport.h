#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "sim/engine/engine.h"
#include "sim/network/network.h"
#include "sim/scenario/scenario.h"

namespace medley {

/// Bytes on their way between two devices.
struct TransportFlow {
  std::uint32_t from = 0;  ///< vertices of the cluster's topology
  std::uint32_t to = 0;
  double bytes = 0.0;
  double delay_s = 0.0;                                    ///< before its first byte may leave
  double bound = std::numeric_limits<double>::infinity();  ///< [B/s]
  std::uint64_t hash = 0;                                  ///< picks among equal routes
  std::uint64_t tag = 0;                                   ///< comes back when it has arrived
};

/// Where a replica's devices stand in the cluster.
struct DevicePlace {
  std::uint32_t group = 0;
  std::uint32_t node = 0;
  std::uint32_t device = 0;  ///< within the node
};

/// What a wire of the cluster carried.
struct WireRecord {
  std::string name;
  std::string link;
  Provenance provenance = Provenance::kAssumed;
  double capacity = 0.0;  ///< [B/s]
  double bytes = 0.0;
  double busy_s = 0.0;
  double saturated_s = 0.0;
  double waited_s = 0.0;  ///< of the flows that waited for it longest
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

  std::uint32_t vertex(const DevicePlace& place) const;
  /// Wires between two vertices for flows of this hash, one per crossing; around links that are
  /// down where that is possible.
  void wires_between(std::uint32_t from, std::uint32_t to, std::uint64_t hash,
                     std::vector<std::uint32_t>& out) const;
  std::size_t wire_count() const;
  double wire_capacity(std::uint32_t wire) const;  ///< [B/s]
  /// A resource beside the wires: a device's arithmetic, its memory.
  std::uint32_t add_resource(double capacity);
  FluidHandle start_activity(const FluidActivity& activity);
  void cancel_activity(FluidHandle activity);
  FineTime now() const;  ///< the network's: never behind the engine's in a handler
  void catch_up();
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
  std::vector<WireRecord> wires() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace medley
