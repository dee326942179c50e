#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/sim_time.h"
#include "sim/core/units.h"

namespace medley {

/// What can fail. A device or node takes down every replica that sits on it, a replica itself (its
/// engine crashes), a link those whose own traffic crosses it.
enum class FailingKind : std::uint8_t { kDevice, kNode, kReplica, kLink };
inline constexpr int kFailingKinds = 4;
constexpr std::string_view to_string(FailingKind kind) {
  constexpr std::string_view kNames[] = {"device", "node", "replica", "link"};
  return kNames[static_cast<std::size_t>(kind)];
}

/// One thing that fails.
struct FailingPart {
  FailingKind kind = FailingKind::kDevice;
  std::string name;                  ///< "h100/0/3", "h100/0", "chat/1", "a - b"
  std::uint32_t group = 0;           ///< node group; of a replica: its pool
  std::uint32_t node = 0;            ///< within the group; of a replica: its number in the pool
  std::uint32_t device = 0;          ///< within the node
  std::vector<std::uint32_t> links;  ///< of a link: cables, by their first topology link
};

/// Failures and what is done about them.
///
///   up times:     mean MTBF, exponential, or Weibull of `shape` with that mean
///   repair times: mean MTTR, exponential
///
/// Every part has a random stream of its own, so that none shifts another's draws; the clock of the
/// up time runs from the last repair, under load or not. A replica serves again `restart` after
/// everything it needs is repaired.
/// Assumes: failures are independent and seen at once (connections break).
struct FailureSpec {
  struct Event {
    FailingPart part;
    SimTime at;
    std::optional<Seconds> lasts;  ///< absent: for good
  };
  struct Random {
    std::optional<Seconds> mtbf;  ///< absent: this kind fails by its events alone
    Seconds mttr = Seconds(0.0);
    double shape = 1.0;
  };
  enum class Power : std::uint8_t { kDeepIdle, kOff };
  struct Shed {
    double above = 0.0;               ///< outstanding requests per healthy replica
    std::int16_t below_priority = 0;  ///< requests whose number is higher may go
  };

  bool given = false;
  std::vector<Event> events;
  std::array<Random, kFailingKinds> random;
  std::vector<FailingPart> cables;  ///< all, when links fail at random
  Seconds restart = Seconds(0.0);
  bool retry = true;        ///< else what was on board is lost
  bool keep_output = true;  ///< retried: tokens already streamed become part of the prompt
  int max_retries = 3;
  std::optional<Shed> shed;
  Power power = Power::kDeepIdle;  ///< of the devices of a replica that is down, until repaired

  const Random& of(FailingKind kind) const { return random[static_cast<std::size_t>(kind)]; }
  bool links() const {
    if (of(FailingKind::kLink).mtbf) return true;
    for (const Event& e : events) {
      if (e.part.kind == FailingKind::kLink) return true;
    }
    return false;
  }
};

}  // namespace medley
