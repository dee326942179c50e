#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "hwmodels/device.h"
#include "sim/core/json_reader.h"
#include "sim/core/provenance.h"

namespace medley {

/// Reads sourced values of one catalogue entry:
///   {"value": "3.35 TB/s", "class": "datasheet", "source": "<key of the entry's sources>"}
///   {"value": null, "source": "why it is unknown"}
/// A fitted one may state its relative standard error and the samples behind it:
///   {..., "error": 0.06, "n": 2500}
/// Every known value must name its class and a source that exists.
class SourcedReader {
 public:
  /// Reads the map `sources` of `entry`.
  SourcedReader(ObjectReader& entry, Problems& problems);
  const std::map<std::string, std::string>& sources() const { return sources_; }

  /// The sub-object `key`, or an empty one, so that its values read as unknown with a reason.
  ObjectReader section(ObjectReader& parent, std::string_view key);

  template <class Q>
  Sourced<Q> quantity(ObjectReader& parent, std::string_view key, Range range = Range::positive());
  Sourced<double> number(ObjectReader& parent, std::string_view key, Range range);
  /// {"fraction": 0.93, "half": "4 MB", "range": ["1 MB", "2 GB"], "class": ..., "source": ...};
  /// `half` in Q's unit, 0 if absent; over flops also "serial".
  template <class Q>
  Sourced<Ramp> ramp(ObjectReader& parent, std::string_view key);
  /// The class and cited source of an object that holds its values itself.
  template <class T>
  void cite(ObjectReader& object, Sourced<T>& into);

 private:
  template <class T, class Read>
  Sourced<T> value(ObjectReader& parent, std::string_view key, const Read& read);
  std::optional<ObjectReader> open(ObjectReader& parent, std::string_view key);

  std::map<std::string, std::string> sources_;
  Problems* problems_;
};

}  // namespace medley
