#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/scenario/scenario.h"

namespace medley {

/// Where one replica runs: `devices_per_replica()` devices from `first_device` on, counted within
/// node `node` of its group.
struct ReplicaPlace {
  std::uint32_t node = 0;
  std::uint32_t first_device = 0;
};

/// A place for every replica of every pool, and what could not be placed.
struct Placement {
  std::vector<std::vector<ReplicaPlace>> pools;  ///< index: pool, replica
  std::vector<std::int64_t> missing;             ///< replicas without a place, by pool
  bool complete() const;
};

/// First fit: pools with larger replicas first (ties in pool order), each replica on the first node
/// of its group with enough free devices. With replicas of powers of two on nodes of a power of two
/// nothing that fits is missed.
Placement place_replicas(const Scenario& scenario);

}  // namespace medley
