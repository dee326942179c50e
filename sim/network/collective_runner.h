#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/network/collective.h"
#include "sim/network/network.h"

namespace medley {

/// One collective to run.
struct CollectiveCall {
  CollectiveShape shape;  ///< `ranks` is filled in from `members`; group 0 from the topology
  std::vector<std::uint32_t> members;  ///< vertices, rank by rank
  std::string algorithm = "auto";
  std::uint64_t flow = 0;  ///< which of equal routes its messages take
  std::uint64_t tag = 0;   ///< comes back when it is done
  bool joined = true;      ///< false: ranks start one by one, by `join`
  /// What a library adds to the wires (nccl_model.h): time before the first message, time per
  /// message, and the share of its rank's bandwidth that a rank can use.
  double start_s = 0.0;
  double step_s = 0.0;
  double efficiency = 1.0;
  /// Resource of each member's memory (Network::add_resource), or none: every byte of a message
  /// uses `read` of the sender's and `write` of the receiver's.
  std::vector<std::uint32_t> memory;
  double memory_read = 1.0;
  double memory_write = 1.0;
};

struct CollectiveDone {
  std::uint64_t tag = 0;
  FineTime time;
  double waited_s = 0.0;  ///< sum over messages
};

/// Plays collectives over a network that it shares with others. The owner of the network hands
/// every completion to `handle`; those with this runner's tags are taken.
///
///   while (network.step(batch))
///     for (c : batch) if (!runner.handle(c, done)) ...;   // the owner's own
///
/// Memory: 32 bytes per lane and one path for each lane of several messages; nothing per message.
/// Laws: see closed_forms.h; bytes on the wires are the program's traffic times hops.
class CollectiveRunner {
 public:
  /// Tags of its transfers have `space` in their top byte (below 128).
  CollectiveRunner(Network& network, std::uint8_t space);

  /// Resolves "auto", checks and starts. Throws InputError for what an algorithm cannot do.
  std::uint32_t start(const CollectiveCall& call);
  /// Rank `rank` of collective `id` (started with joined = false) arrives.
  void join(std::uint32_t id, std::uint32_t rank);
  /// False when the completion is not of this runner.
  bool handle(const NetworkCompletion& completion, std::vector<CollectiveDone>& done);
  std::size_t active() const { return active_; }

 private:
  static constexpr std::uint32_t kNone = 0xffffffffU;
  static constexpr std::uint32_t kStartLane = 0xffffffffU;
  struct Lane {
    std::uint32_t started = 0, sent = 0, delivered = 0;
    std::uint32_t met = 0;          // needs of the next message that are met
    std::uint32_t waiters = kNone;  // first lane that waits for this one
    std::uint32_t next_waiter = kNone;
    std::uint32_t path = kNone;
    bool waiting = false;
  };
  struct Running {
    std::unique_ptr<CollectiveProgram> program;
    std::vector<std::uint32_t> parties;  // vertices of the ranks, then the switch
    std::vector<Lane> lanes;
    std::vector<NetworkPath> paths;
    std::vector<bool> joined;  // by party
    std::uint64_t left = 0;    // messages to deliver
    std::uint64_t tag = 0, flow = 0;
    std::vector<std::uint32_t> memory;  // by rank; may be empty
    double memory_read = 0.0, memory_write = 0.0;
    double step_s = 0.0;
    double bound = 0.0;  // of a lane [B/s]
    double waited_s = 0.0;
    bool begun = false;
    bool live = false;
  };

  std::uint64_t tag_of(std::uint32_t id, std::uint32_t lane) const {
    return (space_ << 56) | (static_cast<std::uint64_t>(id) << 32) | lane;
  }
  void begin(std::uint32_t id);
  void try_send(std::uint32_t id, std::uint32_t lane);
  bool ready(Running& c, std::uint32_t lane);
  const NetworkPath& path_of(Running& c, Lane& lane, const CollectiveLane& shape);
  void wake(std::uint32_t id, std::uint32_t lane);

  Network* network_;
  std::uint64_t space_;
  std::vector<Running> running_;
  std::vector<std::uint32_t> free_;
  std::size_t active_ = 0;
  NetworkPath scratch_;
};

/// Plays one collective alone on an idle network and returns its time [s].
double run_alone(const Topology& topology, const CollectiveCall& call);

}  // namespace medley
