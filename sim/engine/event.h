#pragma once

#include <cstdint>

#include "sim/core/sim_time.h"

namespace medley {

/// What comes first among the events of one instant.
/// Completions precede arrivals: a request that arrives just as a batch ends must see the freed KV
/// blocks and batch slots, as a scheduler that polls after the step would. Scheduling runs once
/// both are known, so a decision sees everything that has happened by its own instant. Sampling
/// comes last and reads the state that the instant leaves behind. An event that schedules an
/// earlier class at its own instant makes the instant go round again: completions, arrivals and
/// scheduling repeat until none is left, only then come the samples.
enum class EventClass : std::uint8_t { kCompletion, kArrival, kSchedule, kSample };

/// What an event says beyond its order. The engine gives none of it a meaning; `entity` and `kind`
/// enter the fingerprint, `payload` does not (it may be an index or a pointer).
struct EventBody {
  std::uint32_t entity = 0;
  std::uint32_t kind = 0;
  std::uint64_t payload = 0;
};

/// A fired event.
struct Event {
  SimTime time;
  EventClass cls = EventClass::kCompletion;
  EventBody body;
};

/// Names one pending event; stays safe to use after the event fired or was cancelled (the slot's
/// generation then differs). A default-constructed handle names no event.
class EventHandle {
 public:
  constexpr EventHandle() = default;
  constexpr bool operator==(const EventHandle&) const = default;

 private:
  friend class EventQueue;
  static constexpr std::uint32_t kNone = UINT32_MAX;
  constexpr EventHandle(std::uint32_t slot, std::uint32_t generation)
      : slot_(slot), generation_(generation) {}
  std::uint32_t slot_ = kNone;
  std::uint32_t generation_ = 0;
};

}  // namespace medley
