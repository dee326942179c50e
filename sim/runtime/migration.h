#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/sim_time.h"
#include "sim/engine/event.h"
#include "sim/network/network.h"
#include "sim/runtime/migration_record.h"
#include "sim/runtime/transport.h"

namespace medley {

/// One under way. Copies overlap with decoding; what is made meanwhile follows in the next one, the
/// rest when it has stopped. Assumes: stopping and joining cost no host time of their own.
struct MigrationState {
  MigrationRecord record;
  bool open = false;
  bool stopping = false;  ///< leaves, or has left
  bool left = false;
  std::uint32_t slot = 0;         ///< at `from`
  std::uint32_t import_slot = 0;  ///< at `to`
  std::int64_t sent = 0;          ///< tokens whose KV is there or on its way
  std::int32_t flows_left = 0;
  std::vector<TransferHandle> flows;
};

/// The weights of one replica on their way to its devices.
struct WeightLoad {
  std::vector<TransportFlow> flows;  ///< one per device; none: it does not load
  double bytes = 0.0;
  Seconds engine_start;
  std::int32_t flows_left = 0;
  SimTime began;
  std::vector<TransferHandle> under_way;
  EventHandle event;  ///< its begin, or the engine's start
};

}  // namespace medley
