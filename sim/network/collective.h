#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace medley {

/// What a collective does, and what its `bytes` S means for n ranks.
enum class CollectiveKind : std::uint8_t {
  kAllReduce,      ///< every rank holds S and ends with the sum
  kAllGather,      ///< every rank gives S/n and ends with S
  kReduceScatter,  ///< every rank holds S and ends with the sum of its S/n
  kBroadcast,      ///< the root's S reaches all
  kAllToAll,       ///< every rank holds S and gives S/n to each (itself included)
  kSendRecv,       ///< S from rank 0 to rank 1
};
inline constexpr int kCollectiveKinds = 6;
std::string_view to_string(CollectiveKind kind);  ///< "all_reduce", ...

/// Numbers of a collective, without the network it runs on.
struct CollectiveShape {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::uint32_t ranks = 1;
  double bytes = 0.0;        ///< S
  std::uint32_t chunks = 0;  ///< pieces that follow each other in a pipeline; 0: see default_chunks
  std::uint32_t root = 0;    ///< of a broadcast
  std::uint32_t group = 1;   ///< ranks of one server, consecutive (hierarchical)
  std::uint32_t window = 64;  ///< messages a rank has under way at a time (direct)
  /// All-to-all-v: bytes from rank i to rank j at i n + j; empty: S/n each.
  const std::vector<double>* matrix = nullptr;
};

/// An idle network on which no two messages of a step share a wire:
///   a message of m bytes takes latency + m / bandwidth.
/// `inner`: within a group, used by hierarchical algorithms alone; others see latency, bandwidth.
struct LinkModel {
  double latency = 0.0;    ///< [s]
  double bandwidth = 0.0;  ///< of one rank, per direction [B/s]
  double inner_latency = 0.0;
  double inner_bandwidth = 0.0;
};

/// A sequence of messages from one party to another, sent one at a time in this order. Parties are
/// ranks, and at number n the switch (of algorithms that use one).
struct CollectiveLane {
  std::uint32_t from = 0, to = 0;
  std::uint32_t messages = 0;
};

/// A lane may send its message once `lane` has `sent` (its last byte left) or delivered `count`.
struct LaneNeed {
  std::uint32_t lane = 0;
  std::uint32_t count = 0;
  bool sent = false;
};

/// A collective as lanes and what their messages wait for: a step graph that is computed, never
/// stored. Immutable. Reductions cost no time of their own (they hide behind the wires; give the
/// memory traffic as extra demands where it matters).
class CollectiveProgram {
 public:
  virtual ~CollectiveProgram() = default;
  virtual std::uint32_t lanes() const = 0;
  virtual CollectiveLane lane(std::uint32_t lane) const = 0;
  virtual double bytes(std::uint32_t lane, std::uint32_t message) const = 0;
  /// The k-th thing that a message waits for; false where there are only k.
  virtual bool need(std::uint32_t lane, std::uint32_t message, std::uint32_t k,
                    LaneNeed& out) const = 0;
  /// Share of its rank's bandwidth that a lane may use; 1: all.
  virtual double lane_share() const { return 1.0; }
  /// Lanes that a rank has under way at a time beyond that: a rank held below its wires' rate
  /// divides what it has among them.
  virtual std::uint32_t lanes_at_a_time() const { return 1; }
  /// Time on an idle network (closed_forms.h); NaN where there is no closed form.
  virtual double closed_form(const LinkModel& model) const = 0;
  /// Bytes that all ranks together put on their wires.
  virtual double traffic() const = 0;
};

using ProgramFactory = std::unique_ptr<CollectiveProgram> (*)(const CollectiveShape& shape);

/// An algorithm: which collectives it can do and how. To add one: a file with its factory and a
/// line in collective_registry.cpp.
struct CollectiveAlgorithm {
  std::string name;
  std::string summary;
  bool (*supports)(const CollectiveShape& shape);
  bool needs_switch = false;  ///< that all ranks hang on
  ProgramFactory make;
};
const std::vector<CollectiveAlgorithm>& collective_algorithms();
/// Throws InputError with a suggestion.
const CollectiveAlgorithm& collective_algorithm(std::string_view name);

/// Pieces of a pipeline that carries `bytes`: of 512 KiB, at most 64.
std::uint32_t default_chunks(double bytes);

}  // namespace medley
