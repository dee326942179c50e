#pragma once

#include <vector>

#include "sim/runtime/step_player.h"
#include "sim/scenario/scenario.h"

namespace medley {

/// One replica's place and plan, as far as traffic depends on them.
struct ReplicaSite {
  const PoolSpec* pool = nullptr;
  DevicePlace place;  ///< first device; the others follow, over whole nodes where it spans several
  int devices_per_node = 1;
};

/// Place of device `i` of a replica.
DevicePlace place_of(const ReplicaSite& site, int i);

/// Wires that the collectives of a replica use.
StepFootprint footprint_of(const Transport& transport, const ReplicaSite& site);

/// Marks the footprints whose wires others use: other replicas, or KV on its way from prefill to
/// decode replicas. Routes that a hash picks among count with all of the first 16 hashes.
void find_shared_links(const Transport& transport, const std::vector<ReplicaSite>& sites,
                       std::vector<StepFootprint>& footprints);

}  // namespace medley
