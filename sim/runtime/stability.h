#pragma once

#include <string>

#include "sim/runtime/records.h"

namespace medley {

/// Whether a pool kept up with its load, from its backlog B(t) = arrived - first scheduled by t, at
/// 60 instants of the window [from, to] of arrivals.
///   growth = mean of B over the last third - mean over the first third, as a share of the
///   arrivals. saturated:    growth > 5 % of the arrivals and more than `batch` requests stable:
///   growth < 2 %, or less than a tenth of `batch` inconclusive: in between; fewer than 50
///   arrivals; or a window shorter than twice the mean time
///                 from arrival to completion (the run says nothing about a steady state)
struct StabilityVerdict {
  Stability stability = Stability::kInconclusive;
  double slope_per_s = 0.0;  ///< growth over the time between the thirds' centres
  std::string reason;
};
/// `pool` 0xffff: the whole fleet. `batch`: sequences that run at once.
StabilityVerdict judge_stability(const std::vector<RequestRecord>& requests, std::uint16_t pool,
                                 SimTime from, SimTime to, double batch);

}  // namespace medley
