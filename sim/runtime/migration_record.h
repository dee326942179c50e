#pragma once

#include <cstdint>

#include "sim/core/sim_time.h"

namespace medley {

/// A decoding request that moved.
///   stop time = started again - stopped
struct MigrationRecord {
  std::uint32_t request = 0;
  std::uint32_t from = 0, to = 0;  ///< RunResult::replicas
  SimTime began;                   ///< first copy starts
  SimTime stopped;                 ///< last token at `from`
  SimTime arrived;                 ///< all KV at `to`: it joins the next batch there
  std::int32_t rounds = 0;         ///< copies while it decoded
  double bytes = 0.0;              ///< of KV
};

}  // namespace medley
