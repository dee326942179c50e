#pragma once

#include <vector>

#include "sim/runtime/records.h"
#include "sim/serving/replica.h"

namespace medley {

/// Adds up what one replica's advances take: time, work, energy and its course over time.
///   active energy of a step = (floor + dynamic) over the step; spread evenly inside the step.
/// Bins hold energy above context idle, so that idle time needs no events. Exact for a run of many
/// steps: a bin edge inside a run is found by inverting the sum of step times.
class ReplicaMeter final : public AdvanceListener {
 public:
  /// Watts of all the replica's devices together; `lanes`: pipeline stages (a step keeps 1/lanes of
  /// the devices active).
  ReplicaMeter(double floor_w, double idle_w, int lanes, SimTime bin, ReplicaRecord& record,
               LogHistogram& gaps, std::vector<TraceSpan>* spans);
  void on_advance(const Advance& advance) override;
  void on_long_gap(double seconds) override { gaps_->add(seconds, 1); }

 private:
  void take_line(const Advance& a);
  void take_points(const Advance& a);
  void spread(const Advance& a);
  void spread_limited(const Advance& a, double seconds);
  static void add_to_bin(std::vector<double>& bins, std::int64_t bin, double amount);

  double floor_w_, idle_w_;
  double share_;  ///< 1 / lanes
  std::int64_t bin_ns_;
  ReplicaRecord* record_;
  LogHistogram* gaps_;
  std::vector<TraceSpan>* spans_;
};

}  // namespace medley
