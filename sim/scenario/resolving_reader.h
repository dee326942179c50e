#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/json_reader.h"

namespace medley {

/// An ObjectReader that writes down what it read, defaults filled in and units normalised: reading
/// a scenario and building its resolved form are one pass, so neither can forget a key.
/// Optional values that are absent stay absent.
class ResolvingReader {
 public:
  /// `out` must outlive the reader and keep its address; it becomes an object.
  ResolvingReader(ObjectReader reader, nlohmann::json& out, Problems& problems);

  ObjectReader& in() { return in_; }
  nlohmann::json& out() { return *out_; }
  Problems& problems() { return *problems_; }
  bool has(std::string_view key) const { return in_.has(key); }

  std::string text(std::string_view key);
  std::string text_or(std::string_view key, std::string fallback);
  std::optional<std::string> maybe_text(std::string_view key);
  std::vector<std::string> texts_or_empty(std::string_view key);
  std::string choice_or(std::string_view key, const std::vector<std::string>& allowed,
                        std::string fallback);
  bool boolean_or(std::string_view key, bool fallback);
  std::optional<bool> maybe_boolean(std::string_view key);
  double number_or(std::string_view key, double fallback, Range range = {});
  std::optional<double> maybe_number(std::string_view key, Range range = {});
  std::int64_t integer_or(std::string_view key, std::int64_t fallback, std::int64_t min,
                          std::int64_t max);
  std::optional<std::int64_t> maybe_integer(std::string_view key, std::int64_t min,
                                            std::int64_t max);
  template <class Q>
  Q quantity_or(std::string_view key, Q fallback, Range range = Range::non_negative());
  template <class Q>
  std::optional<Q> maybe_quantity(std::string_view key, Range range = Range::non_negative());

  /// Writes a value that depends on others over what was read.
  void set(std::string_view key, const std::string& value);
  void set(std::string_view key, std::int64_t value);

  /// A sub-object; absent ones read as empty where `always`, so that their defaults are written.
  std::optional<ResolvingReader> maybe_object(std::string_view key);
  ResolvingReader object_or_empty(std::string_view key);
  void each_member(std::string_view key,
                   const std::function<void(const std::string&, ResolvingReader)>& visit);

  void problem(std::string_view key, std::string message, std::string hint = "") {
    in_.problem(key, std::move(message), std::move(hint));
  }
  void finish() { in_.finish(); }

 private:
  ObjectReader in_;
  nlohmann::json* out_;
  Problems* problems_;
};

}  // namespace medley
