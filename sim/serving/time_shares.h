#pragma once

#include <cstdint>

namespace medley {

/// Where the time of a request in batches went. Every step of its batch counts, also one in which
/// the token budget left it no token; the parts of a step are what bounds its kernels (StepCost).
///   sum = time from its admission to its last step's end
struct TimeShares {
  enum Part : std::uint8_t {
    kCompute,     ///< kernels bound by arithmetic; what has no roofline; power duty cycles
    kMemory,      ///< kernels bound by memory
    kLink,        ///< collectives and sends, as if alone
    kHost,        ///< launches, and host work that the device does not hide
    kContention,  ///< what steps took beyond what they take alone
    kStall        ///< between steps: its turn in the pipeline, waiting after a preemption
  };
  static constexpr int kParts = 6;
  double seconds[kParts] = {};
  double& operator[](Part p) { return seconds[p]; }
  double operator[](Part p) const { return seconds[p]; }
  void add(const TimeShares& other, double sign = 1.0) {
    for (int i = 0; i < kParts; ++i) seconds[i] += sign * other.seconds[i];
  }
};

}  // namespace medley
