#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace medley {

/// How much a number may be trusted. Order matters: later is weaker.
enum class Provenance : unsigned char { kMeasured, kDatasheet, kDerived, kAssumed };
inline constexpr int kProvenanceClasses = 4;

std::string_view to_string(Provenance p);  ///< "measured", "datasheet", "derived", "assumed"
std::optional<Provenance> parse_provenance(std::string_view text);
/// The weaker of two: what a result computed from both may claim.
constexpr Provenance weaker(Provenance a, Provenance b) {
  return a < b ? b : a;
}

/// A hardware or backend number with its source and class; `value` empty means unknown, which is
/// never silently replaced by a default.
template <class T>
struct Sourced {
  std::optional<T> value;
  Provenance provenance = Provenance::kAssumed;
  std::string source;  ///< citation, or the reason why it is unknown
  /// Relative standard error of a calibrated value; 0: not stated, the class's prior applies.
  double error = 0.0;
  std::int64_t n = 0;  ///< samples a calibrated value rests on; 0: not stated
  bool known() const { return value.has_value(); }
  T operator*() const { return *value; }
};

}  // namespace medley
