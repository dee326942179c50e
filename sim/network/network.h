#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "hwmodels/topology/topology.h"
#include "sim/core/fine_time.h"
#include "sim/engine/fluid.h"
#include "sim/network/delay_queue.h"

namespace medley {

/// A route as the network uses it; take one with `Network::find_path` and reuse it for as long as
/// its `epoch` is the network's.
struct NetworkPath {
  std::uint32_t from = 0, to = 0;
  std::uint64_t flow = 0;
  double latency_s = 0.0;
  double local_rate = std::numeric_limits<double>::infinity();  ///< of a path of no wire [B/s]
  std::uint64_t epoch = 0;
  std::vector<FluidDemand> demands;  ///< wires as resources, 1 per byte and crossing
};

/// Whose work waits for a resource.
enum class TrafficKind : std::uint8_t { kKvTransfer, kCollective, kKernels, kOther };
inline constexpr int kTrafficKinds = 4;
struct TrafficWaits {
  std::int64_t count = 0;
  double seconds = 0.0;
};

/// When a transfer's latency is paid.
enum class LatencyPlace : std::uint8_t {
  kBefore,  ///< then the bytes flow: what is in its latency loads no wire
  kAfter,   ///< the bytes flow first: the sender is free before the receiver has them all
};

/// `bytes` from one vertex to another.
///   alone: time = latency + bytes / min(bound, least capacity of the route)
struct TransferSpec {
  double bytes = 0.0;
  double bound = std::numeric_limits<double>::infinity();  ///< most bytes/s it can use
  std::uint64_t tag = 0;                                   ///< comes back with its completion
  double extra_latency_s = 0.0;                            ///< on top of the route's
  LatencyPlace latency = LatencyPlace::kBefore;
  bool notify_sent = false;  ///< kAfter: also report when the last byte has left
  /// Other resources it uses (memory at both ends, a core), in their units per byte.
  std::span<const FluidDemand> extra;
  TrafficKind kind = TrafficKind::kOther;
};

/// Names one transfer; stale after its delivery or cancellation.
struct TransferHandle {
  std::uint32_t slot = 0xffffffffU;
  std::uint32_t generation = 0;
  bool operator==(const TransferHandle&) const = default;
};

enum class NetworkEvent : std::uint8_t {
  kDelivered,  ///< a transfer is there
  kSent,       ///< its last byte left, latency still to come
  kActivity,   ///< an activity of the owner's own ended
};

/// What ended, when, and how long it waited for others:
///   waited = time of flowing - bytes / (rate alone when it began), never below 0,
/// with the wire (or other resource) of its route that was saturated longest meanwhile.
struct NetworkCompletion {
  static constexpr std::uint32_t kNone = 0xffffffffU;
  std::uint64_t tag = 0;
  FineTime time;
  NetworkEvent event = NetworkEvent::kDelivered;
  std::uint32_t waited_on = kNone;
  double waited_s = 0.0;
};

/// What a wire has done so far.
struct WireAccount {
  double bytes = 0.0;
  double busy_s = 0.0;
  double saturated_s = 0.0;
  double waited_s = 0.0;                          ///< sum of the waits put down to it
  std::array<TrafficWaits, kTrafficKinds> waits;  ///< the same by kind
};

struct NetworkOptions {
  /// Rate of a transfer from a vertex to itself [B/s]; infinite: its latency (0) alone.
  double local_rate = std::numeric_limits<double>::infinity();
  bool track_waits = true;  ///< costs about a tenth; off: waits are 0
};

/// Transfers over the wires of a topology, and whatever else shares resources with them.
///
/// Resources 0 .. wires-1 are the topology's wires with their bandwidths; the owner may add more
/// (device memories, cores) and start activities of its own on any of them (kernels, host tasks).
///
/// Rates: max-min between flows by bytes/s (fluid.h). Latency is a delay before or after, not a
/// rate, kept in FineTime, so that steps below a tick do not round. A transfer from a vertex to
/// itself has no wire: latency 0 and the local rate. Zero bytes take the latency alone.
///
/// Usage: start transfers at now(); next_time() says when something happens; step() goes there and
/// appends what ended at that very instant, transfers in order of (time, start). Repeat.
///
/// Failures: wires of a failed link have capacity 0; what flows over them stalls (`stalled`) until
/// they come back, or is moved by `reroute`; new routes avoid them. Where there is no way around, a
/// route is what it was before the failure, and what takes it stalls.
///
/// Laws: bytes are conserved (a wire's account is the sum of what crossed it); contention never
/// speeds a transfer up beyond its time alone; results do not depend on when next_time() is asked.
/// Steady state allocates nothing once the most transfers at a time has been seen.
class Network {
 public:
  explicit Network(const Topology& topology, const NetworkOptions& options = {},
                   FineTime start = {});
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  const Topology& topology() const { return *topology_; }
  std::uint32_t wires() const { return wires_; }
  std::uint32_t add_resource(double capacity) { return fluid_.add_resource(capacity); }
  FluidSystem& fluid() { return fluid_; }

  /// The route of a flow. Throws InputError where there is no way even with every link up.
  void find_path(std::uint32_t from, std::uint32_t to, std::uint64_t flow, NetworkPath& out) const;
  /// Grows whenever routes or capacities of wires change.
  std::uint64_t epoch() const { return epoch_; }
  /// Bytes/s of one flow alone on a path, right now.
  double rate_alone(const NetworkPath& path) const;

  TransferHandle start(const NetworkPath& path, const TransferSpec& spec);
  TransferHandle start(std::uint32_t from, std::uint32_t to, std::uint64_t flow,
                       const TransferSpec& spec);
  /// An activity of the owner's on the same resources; its tag is below 2^63 and comes back with a
  /// kActivity completion. Cancel and change it through fluid().
  FluidHandle start_activity(const FluidActivity& activity);

  bool running(TransferHandle handle) const;
  /// Takes it out; returns the bytes that had not flowed.
  double cancel(TransferHandle handle);
  void set_bound(TransferHandle handle, double bytes_per_s);
  double remaining(TransferHandle handle) const;  ///< bytes that have not flowed
  double rate(TransferHandle handle) const;       ///< bytes/s since the last next_time()
  std::size_t active() const { return active_; }  ///< transfers under way

  FineTime now() const { return fluid_.now(); }
  /// When something happens next; max() when nothing will.
  FineTime next_time();
  /// Goes to next_time() and appends what ended then; false when there is nothing to come.
  bool step(std::vector<NetworkCompletion>& out);
  /// Moves the clock on without reaching next_time(); `time` >= now() and <= next_time().
  void advance_to(FineTime time);

  /// 0 bytes/s stops it. Lasts until the next change of this wire, failures included.
  void set_wire_capacity(std::uint32_t wire, double bytes_per_s);
  double wire_capacity(std::uint32_t wire) const { return fluid_.capacity(wire); }
  void fail_link(std::uint32_t link, bool down);      ///< both directions of the cable
  void fail_vertex(std::uint32_t vertex, bool down);  ///< every link that touches it
  /// Transfers that have bytes left and no rate, ascending by start.
  void stalled(std::vector<TransferHandle>& out);
  std::uint64_t tag(TransferHandle handle) const;
  /// What is left goes on over a new route (whose latency it pays again when it was flowing).
  void reroute(TransferHandle handle);
  /// Every transfer whose route has a wire of capacity 0, in order of start, where there is another
  /// way; the others stay and wait. Those still in their latency too.
  void reroute_blocked();

  /// Of a wire or another resource.
  WireAccount account(std::uint32_t resource) const;
  /// Saturated time so far of what an activity of the owner's uses, in order of its demands.
  void mark(std::span<const FluidDemand> demands, std::vector<double>& marks) const;
  /// Puts a wait of such an activity down to the resource that was saturated longest since then;
  /// kNone when none was.
  std::uint32_t blame(std::span<const FluidDemand> demands, const std::vector<double>& marks,
                      TrafficKind kind, double seconds);

 private:
  static constexpr std::uint64_t kTransferBit = 1ULL << 63;
  enum class Phase : std::uint8_t { kFree, kBefore, kFlowing, kAfter };
  struct Transfer {
    std::uint64_t tag = 0, flow = 0, sequence = 0;
    double bytes = 0.0, bound = 0.0, latency_s = 0.0, extra_latency_s = 0.0, alone = 0.0;
    FineTime began;
    FluidHandle handle;
    std::uint32_t from = 0, to = 0, generation = 0;
    std::uint32_t path_demands = 0;  // the first so many of `demands` are wires of the route
    Phase phase = Phase::kFree;
    LatencyPlace place = LatencyPlace::kBefore;
    TrafficKind kind = TrafficKind::kOther;
    bool notify_sent = false;
    std::vector<FluidDemand> demands;
    std::vector<double> marks;  // saturated time of each demand's resource when it began
  };

  bool blocked(const Transfer& t) const;
  bool find_detour(std::uint32_t from, std::uint32_t to, std::uint64_t flow) const;
  std::uint32_t take_slot();
  void free_slot(std::uint32_t slot);
  void delay(std::uint32_t slot, Phase phase);
  void begin_flow(std::uint32_t slot);
  void end_flow(std::uint32_t slot, std::vector<NetworkCompletion>& out);
  void deliver(std::uint32_t slot, std::vector<NetworkCompletion>& out);
  void find_wait(const Transfer& t, NetworkCompletion& c);
  void refresh_wires();
  Transfer& at(TransferHandle handle);
  const Transfer& at(TransferHandle handle) const;

  const Topology* topology_;
  NetworkOptions options_;
  std::uint32_t wires_;
  FluidSystem fluid_;
  DelayQueue delays_;
  LinkFailures failures_;
  std::uint64_t epoch_ = 1;
  std::uint64_t sequence_ = 0;
  std::size_t active_ = 0;
  std::vector<Transfer> transfers_;
  std::vector<std::uint32_t> free_;
  std::vector<double> nominal_;                                 // of wires, failures apart
  std::vector<std::array<TrafficWaits, kTrafficKinds>> waits_;  // by resource
  std::vector<FluidCompletion> ended_;
  std::vector<std::uint64_t> stalled_tags_;
  NetworkPath scratch_;
  mutable TopologyRoute route_;
};

}  // namespace medley
