#pragma once

#include <string>
#include <string_view>

#include "sim/core/units.h"

namespace medley {

/// Parses "3.35 TB/s", "500 ms", "30 kW", "80 GiB", "0.87 pJ/flop", "2.95 USD/h" into a Quantity.
/// GB is 1e9 bytes and GiB 2^30; B is byte and b is bit; flop rates are "TFLOP/s" or "TOPS".
/// A bare "0" is the only number allowed without a unit. Throws std::invalid_argument whose
/// message says what was wrong and shows one right spelling (callers add file and pointer).
template <class Q>
Q parse_quantity(std::string_view text);

/// Shortest text in a readable unit ("3.35 TB/s", "80 GiB") from which parse_quantity reads the
/// same double back.
template <class Q>
std::string format_quantity(Q quantity);

// clang-format off
#define MEDLEY_QUANTITIES(X) \
  X(Seconds) X(Bytes) X(Flops) X(Joules) X(Usd) X(PerSec) X(BytesPerSec) X(FlopsPerSec) X(Watts) \
  X(JoulesPerByte) X(JoulesPerFlop) X(UsdPerSec) X(UsdPerJoule)
// clang-format on
#define MEDLEY_DECLARE(Q)                     \
  template <>                                 \
  Q parse_quantity<Q>(std::string_view text); \
  template <>                                 \
  std::string format_quantity<Q>(Q quantity);
MEDLEY_QUANTITIES(MEDLEY_DECLARE)
#undef MEDLEY_DECLARE

}  // namespace medley
