#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/timestamp.h"

namespace medley {

/// What a column of a request file can mean to us.
enum class TraceField : std::uint8_t {
  kArrival,
  kInput,
  kOutput,
  kDelay,
  kModel,
  kClass,
  kTenant,
  kPriority,
  kSession,
  kChat,        ///< id of this row's turn (Bailian); with kParentChat it gives the session
  kParentChat,  ///< -1: first turn
  kFollows,     ///< row number (0-based) whose completion releases this one
  kHashIds,
  kPrefixId,  ///< rows with the same id share their first kPrefixTokens tokens
  kPrefixTokens,
  kNested,  ///< an array of requests inside the row (AIBrix "requests", "sub_requests")
};
constexpr std::size_t kTraceFields = 16;
constexpr std::size_t index_of(TraceField f) {
  return static_cast<std::size_t>(f);
}
/// "arrival", "input_tokens", ... as the user writes it in "columns".
std::string_view to_text(TraceField field);
std::optional<TraceField> parse_trace_field(std::string_view text);
std::vector<std::string> user_field_names();

/// The user's own mapping of one field.
struct ColumnChoice {
  TraceField field = TraceField::kArrival;
  std::string name;              ///< empty: keep the alias, change the unit
  std::optional<TimeUnit> unit;  ///< of kArrival and kDelay
};

/// One line of the alias table: in files of `format` the column `column` holds `field` in `unit`.
/// A file is of the first format all of whose `sign` columns it has.
struct TraceAlias {
  std::string_view format;
  std::string_view column;
  TraceField field;
  TimeUnit unit = TimeUnit::kUnknown;
  bool sign = false;
};
std::span<const TraceAlias> trace_aliases();

struct TraceFormat {
  std::string_view name;
  std::string_view summary;
  bool json_lines = false;
  std::int32_t hash_block_tokens = 0;  ///< tokens that one prefix id stands for
};
std::span<const TraceFormat> trace_formats();
const TraceFormat* find_trace_format(std::string_view name);
std::vector<std::string> trace_format_names();  ///< with "auto" first

/// Which column holds which field, in which unit.
struct ColumnMap {
  const TraceFormat* format = nullptr;
  struct Column {
    std::string name;
    TraceField field = TraceField::kArrival;
    TimeUnit unit = TimeUnit::kUnknown;
  };
  std::vector<Column> columns;  ///< CSV: those of the header; JSON lines: possible later keys too
  bool has(TraceField field) const;
  /// "arrival from `timestamp` [ms], ..." for the account.
  std::string to_text() const;
};

/// Finds the format of a file with these columns (CSV header, or the keys of the first JSON line)
/// and maps them. `format` is a name or "auto". Names match exactly, else without case and outer
/// blanks. Throws InputError naming `file` for an unknown format or a missing column.
ColumnMap map_columns(const std::vector<std::string>& names, bool json_lines,
                      std::string_view format, const std::vector<ColumnChoice>& choices,
                      const std::string& file);

}  // namespace medley
