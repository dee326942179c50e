#pragma once

#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/error.h"
#include "sim/measure/bench_result.h"

namespace medley {

/// One JSON value of a text that holds several: one a line, or written one behind another.
struct JsonPiece {
  std::int64_t line = 1;  ///< of its first character
  std::string text;       ///< with Infinity as "inf" and NaN as null
};
/// Cuts a text into its values; a value that breaks off, or anything between values, is a problem.
std::vector<JsonPiece> split_json_values(std::string_view text, const std::string& file,
                                         Problems& problems);

/// Parses a piece; of a repeated key the first counts, and its name goes to `repeated`. Syntax
/// errors are problems (the result is then null).
nlohmann::ordered_json parse_piece(const JsonPiece& piece, const std::string& file,
                                   Problems& problems, std::vector<std::string>& repeated);

/// Lenient view of one JSON object: unknown keys are nobody's business, a value of the wrong type
/// is a problem with its pointer. Absent and null are the same.
class LooseObject {
 public:
  LooseObject(const nlohmann::ordered_json& node, std::string file, std::string pointer,
              Problems& problems)
      : node_(&node), file_(std::move(file)), pointer_(std::move(pointer)), problems_(&problems) {}

  bool has(std::string_view key) const;
  const nlohmann::ordered_json* find(std::string_view key) const;  ///< null: absent, JSON null
  /// The first of `keys` that is there, as a number: "inf" and "1,146.31" as text are fine too.
  double number(std::initializer_list<std::string_view> keys) const;  ///< NaN: absent
  std::string text(std::initializer_list<std::string_view> keys) const;
  std::vector<double> numbers(std::string_view key) const;  ///< nulls are NaN; absent: empty
  LooseObject object(std::string_view key) const;           ///< absent: an empty one
  void problem(std::string_view key, std::string message, std::string hint = "") const;
  std::string pointer_to(std::string_view key) const;
  const std::string& file() const { return file_; }
  const std::string& pointer() const { return pointer_; }
  Problems& problems() const { return *problems_; }
  const nlohmann::ordered_json& node() const { return *node_; }

 private:
  const nlohmann::ordered_json* node_;
  std::string file_;
  std::string pointer_;
  Problems* problems_;
};

/// A number of load generators' text: "1,146.31", "inf", "550"; false when it is none.
bool parse_bench_number(std::string_view text, double& value);
/// Seconds of one unit of time ("ms", "us", "ns", "s", "sec"); 0 when it is no time.
double seconds_in(std::string_view unit);

}  // namespace medley
