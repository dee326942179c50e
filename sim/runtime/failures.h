#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/rng.h"
#include "sim/core/sim_time.h"
#include "sim/engine/event.h"
#include "sim/runtime/records.h"
#include "sim/scenario/failure_spec.h"
#include "sim/serving/replica.h"

namespace medley {

/// When which part goes down and comes back: given events and random processes (FailureSpec), in
/// order of (time, source). Times are drawn one ahead; a process goes on for ever.
/// Law: the draws of a part depend on the seed and its name alone.
class FailureTimeline {
 public:
  struct Change {
    std::uint32_t part = 0;  ///< index into parts()
    bool down = false;
    bool for_good = false;
  };
  /// `served`: devices, nodes and replicas that matter, in order; those of kinds that fail at
  /// random get a process each.
  FailureTimeline(const FailureSpec& spec, std::uint64_t seed,
                  const std::vector<FailingPart>& served);

  const std::vector<FailingPart>& parts() const { return parts_; }
  SimTime next() const { return heap_.empty() ? SimTime::max() : heap_.front().time; }
  /// Appends everything that happens up to `now`.
  void pop(SimTime now, std::vector<Change>& out);

 private:
  struct Source {
    std::uint32_t part = 0;
    bool random = false;
    bool down = false;  ///< state after its last change
    Seconds lasts;      ///< of an event
    bool for_good = false;
    FailureSpec::Random law;
    double scale = 0.0;  ///< of the Weibull distribution
    Rng rng{0, ""};
  };
  struct Due {
    SimTime time;
    std::uint32_t source = 0;
    bool operator>(const Due& o) const {
      return time != o.time ? time > o.time : source > o.source;
    }
  };
  std::uint32_t part_of(const FailingPart& part);
  void add_event(const FailureSpec::Event& event);
  void add_process(const FailureSpec::Random& law, std::uint64_t seed, const FailingPart& part);
  void push(SimTime from, double span_s, std::uint32_t source);

  std::map<std::pair<FailingKind, std::string>, std::uint32_t> index_;
  std::vector<FailingPart> parts_;
  std::vector<Source> sources_;
  std::vector<Due> heap_;
};

/// A replica as far as failures go.
struct UnitHealth {
  static constexpr std::uint32_t kNone = 0xffffffffU;
  int causes = 0;                    ///< failed parts that it needs, links apart
  SimTime ready = SimTime::max();    ///< restarting: when it serves again
  std::vector<std::uint32_t> wires;  ///< that its own traffic crosses; where links fail
};

/// Somebody who was on a replica that failed.
struct Stranded {
  Replica::Evicted request;
  std::uint32_t failure = 0;  ///< index into RunResult::failures
};

/// What the fleet keeps for failures.
struct FailureControl {
  FailureControl(const FailureSpec& s, std::uint64_t seed, const std::vector<FailingPart>& served)
      : spec(s),
        timeline(s, seed, served),
        causes(timeline.parts().size(), 0),
        open(timeline.parts().size(), UnitHealth::kNone) {}
  const FailureSpec& spec;
  FailureTimeline timeline;
  std::vector<int> causes;                        ///< by part: sources that hold it down
  std::vector<std::uint32_t> open;                ///< by part: its record, while it is down
  std::vector<std::vector<std::uint32_t>> units;  ///< by part: replicas that need it
  std::vector<UnitHealth> health;                 ///< by replica
  std::vector<int> cable_causes;                  ///< by topology link
  std::vector<int> down_of_model;                 ///< replicas down, by trace model
  std::size_t down = 0;
  int temporary = 0;             ///< failures in effect that will be repaired
  SimTime due = SimTime::max();  ///< of the next change, event armed
  EventHandle event;
  bool stopped = false;
  std::vector<FailureTimeline::Change> changes;
  std::vector<Stranded> stranded;  ///< of the instant at hand
  std::vector<Replica::Evicted> evicted;
  std::vector<Replica::Streamed> kept;              ///< by request: tokens it comes with
  std::vector<std::vector<std::uint32_t>> waiting;  ///< no healthy replica, by trace model
  bool came_up = false, went_down = false;          ///< somebody, in the instant at hand
  std::vector<std::uint32_t> healthy;
  struct Join {  ///< KV there, the answer of the prefill engine on its way
    std::uint32_t unit = 0, slot = 0, request = 0;
    EventHandle event;
  };
  std::vector<Join> joins;
  std::uint64_t other_events = 0;  ///< fired when failures were last looked at
  std::uint64_t own_events = 0;
  std::int64_t idle_changes = 0;  ///< since anything else happened

  SimTime next() const;
};

}  // namespace medley
