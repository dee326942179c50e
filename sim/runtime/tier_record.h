#pragma once

#include <cstdint>

namespace medley {

/// What one KV tier did in a run. Bytes are of all devices of a replica together.
///   bytes_in = stored by replicas + handed down by the tier above
///   bytes_out = recalled by replicas + handed down to the tier below
struct TierRecord {
  static constexpr std::uint32_t kAll = 0xffffffffU;
  std::uint16_t pool = 0;
  std::uint16_t level = 0;       ///< place in the pool's list
  std::uint32_t node = kAll;     ///< within the group; kAll: of the whole pool
  std::uint32_t replica = kAll;  ///< within the pool; kAll: shared
  double capacity = 0.0;         ///< [B]
  double peak = 0.0;             ///< [B]
  std::int64_t recalls = 0;      ///< fetches that read from it
  std::int64_t recalled_tokens = 0;
  double bytes_in = 0.0;
  double bytes_out = 0.0;
  std::int64_t stored_entries = 0;
  std::int64_t evicted_entries = 0;
  std::int64_t dropped_entries = 0;  ///< not taken: no room, or too much under way already
};

}  // namespace medley
