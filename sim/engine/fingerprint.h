#pragma once

#include <cstdint>

#include "sim/core/sim_time.h"

namespace medley {

/// Rolling 64-bit hash of what happened, in order. Two runs with equal fingerprints fired the same
/// events in the same order; one swapped pair, one shifted nanosecond or one event more changes it
/// (up to a chance of 2^-64). Integers only, so equal on every machine and compiler.
class Fingerprint {
 public:
  void add(SimTime time, std::uint32_t entity, std::uint32_t kind) {
    mix(static_cast<std::uint64_t>(time.ns()));
    mix(std::uint64_t{entity} << 32 | kind);
  }
  std::uint64_t value() const { return state_; }
  bool operator==(const Fingerprint&) const = default;

 private:
  void mix(std::uint64_t word) {
    state_ = (state_ ^ word) * 0x9e3779b97f4a7c15U;
    state_ ^= state_ >> 32;
  }
  std::uint64_t state_ = 0xcbf29ce484222325U;
};

}  // namespace medley
