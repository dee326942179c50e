#pragma once

#include <cstdint>

#include "sim/network/collective.h"
#include "sim/network/collective_runner.h"

namespace medley {

/// How a collective will be run.
struct CollectivePlan {
  static constexpr std::uint32_t kNone = 0xffffffffU;
  const CollectiveAlgorithm* algorithm = nullptr;
  CollectiveShape shape;                ///< with ranks and group filled in
  LinkModel model;                      ///< what the estimate rests on
  double estimate_s = 0.0;              ///< closed form on `model`; NaN where there is none
  std::uint32_t switch_vertex = kNone;  ///< of algorithms that use one
};

/// The algorithm that was asked for, or the one with the least estimate. An estimate is the closed
/// form on an idle network whose messages cost what those of the algorithm's own steps cost here:
///   latency   = the longest route of a step
///   bandwidth = the least over wires of capacity / (messages of one step that cross it)
/// with the steps: ring and tree r -> r+1; halving-doubling r -> r xor 2^i for each i; direct all
/// pairs (of at most 64 ranks, else r -> r + n/2); hierarchical r -> r+1 inside, r -> r+g across;
/// in-switch rank -> switch. Ties go to the first in the registry. "auto" takes no in-switch
/// algorithm, since a topology does not say whether its switches can add: ask for them by name.
/// Throws InputError for an unknown algorithm or one that cannot do this collective here.
CollectivePlan plan_collective(const Network& network, const CollectiveCall& call);

}  // namespace medley
