#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/error.h"
#include "sim/core/unit_text.h"
#include "sim/core/units.h"

namespace medley {

/// Parses JSON with // and /* */ comments. Duplicate keys are errors (with their pointer), syntax
/// errors carry line and column, and a UTF-8 BOM is skipped. Object key order is kept.
/// Throws InputError. `name` is what messages call the text.
nlohmann::ordered_json parse_json(std::string_view text, const std::string& name);
/// The same from a file (".gz" too). Unreadable, missing or over-large (> 256 MiB) files are
/// errors.
nlohmann::ordered_json load_json(const std::string& path);

/// `key` as one token of a JSON pointer (RFC 6901).
std::string escape_pointer(std::string_view key);

/// Inclusive bounds for numbers; the default takes every finite number.
struct Range {
  double min = -1.7976931348623157e308;
  double max = 1.7976931348623157e308;
  static constexpr Range positive() { return {5e-324, 1.7976931348623157e308}; }
  static constexpr Range non_negative() { return {0.0, 1.7976931348623157e308}; }
  static constexpr Range fraction() { return {0.0, 1.0}; }
  static constexpr Range at_least(double min) { return {min, 1.7976931348623157e308}; }
};

/// Strict typed view of one JSON object. Every getter notes the key as known; `finish` reports the
/// keys nobody asked for, with a suggestion. Problems are collected, never thrown: a getter that
/// finds a problem records it and returns its default, so that one pass finds them all.
///
/// Dimensioned values are strings with units ("3.35 TB/s"); a bare number other than 0 is an error.
class ObjectReader {
 public:
  /// `node` must outlive the reader. A node that is no object is a problem (and reads as empty).
  ObjectReader(const nlohmann::ordered_json& node, std::string file, std::string pointer,
               Problems& problems);

  bool has(std::string_view key) const;   ///< present and not null (does not mark as known)
  std::vector<std::string> keys() const;  ///< in file order
  const std::string& file() const { return file_; }
  const std::string& pointer() const { return pointer_; }
  std::string pointer_to(std::string_view key) const;  ///< escaped per RFC 6901

  std::string text(std::string_view key);  ///< required
  std::string text_or(std::string_view key, std::string fallback);
  std::optional<std::string> maybe_text(std::string_view key);
  std::vector<std::string> texts_or_empty(std::string_view key);  ///< array of strings
  /// Required / optional member of a fixed vocabulary; a miss is a problem with a suggestion.
  std::string choice(std::string_view key, const std::vector<std::string>& allowed);
  std::string choice_or(std::string_view key, const std::vector<std::string>& allowed,
                        std::string fallback);

  bool boolean_or(std::string_view key, bool fallback);
  std::optional<bool> maybe_boolean(std::string_view key);
  double number(std::string_view key, Range range = {});  ///< required, finite
  double number_or(std::string_view key, double fallback, Range range = {});
  std::optional<double> maybe_number(std::string_view key, Range range = {});
  std::vector<double> numbers_or_empty(std::string_view key, Range range = {});
  std::int64_t integer(std::string_view key, std::int64_t min,
                       std::int64_t max);  ///< required; 3.0 is 3, 3.5 a problem
  std::int64_t integer_or(std::string_view key, std::int64_t fallback, std::int64_t min,
                          std::int64_t max);
  std::optional<std::int64_t> maybe_integer(std::string_view key, std::int64_t min,
                                            std::int64_t max);

  template <class Q>
  Q quantity(std::string_view key, Range range = Range::non_negative());  ///< required
  template <class Q>
  Q quantity_or(std::string_view key, Q fallback, Range range = Range::non_negative());
  template <class Q>
  std::optional<Q> maybe_quantity(std::string_view key, Range range = Range::non_negative());

  /// Sub-object. `object` on a missing key records a problem and returns an empty reader.
  ObjectReader object(std::string_view key);
  std::optional<ObjectReader> maybe_object(std::string_view key);
  /// Calls `visit(name, reader)` for each member of the sub-object `key` (a map by name), in file
  /// order.
  void each_member(std::string_view key,
                   const std::function<void(const std::string&, ObjectReader)>& visit);
  /// Calls `visit(index, reader)` for each object of the array `key` (absent: none).
  void each_element(std::string_view key,
                    const std::function<void(std::size_t, ObjectReader)>& visit);
  /// The untyped value (marks it known), or nullptr.
  const nlohmann::ordered_json* raw(std::string_view key);

  /// Records a problem at `key` ("" for the object itself).
  void problem(std::string_view key, std::string message, std::string hint = "");
  /// Reports unknown keys. Keys starting with "$" or equal to "comment" are allowed anywhere.
  void finish();

 private:
  const nlohmann::ordered_json* find(std::string_view key, bool required);
  const nlohmann::ordered_json* node_;
  std::string file_;
  std::string pointer_;
  Problems* problems_;
  std::vector<std::string> known_;
};

}  // namespace medley
