#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/core/text_file.h"
#include "workloads/request.h"
#include "workloads/workload_spec.h"

namespace medley {

/// Reads one request file: CSV or JSON lines (told by the first non-blank character), plain or
/// gzip, any line end, byte-order mark or not. One account comes with it. Throws InputError.
Trace read_trace(const TraceFileSpec& spec);

/// Numbers and ranges separated by blanks: "0-13 40 55-57". Appends; false when malformed or when
/// more than `most` ids would come of it.
bool parse_id_ranges(std::string_view text, std::size_t most, std::vector<std::uint64_t>& out);
/// The shortest such text.
void append_id_ranges(std::string& out, const std::uint64_t* ids, std::size_t count);

/// A first line that was looked at, and the lines after it.
class TraceLines {
 public:
  explicit TraceLines(const TraceFileSpec& spec) : lines_(spec.path) {}
  /// Next line that is not blank.
  bool next(std::string_view& line);
  std::int64_t number() const { return lines_.line_number(); }

 private:
  LineReader lines_;
};

/// Both read everything after `first` (the header, or the first object).
Trace read_csv_trace(const TraceFileSpec& spec, TraceLines& lines, std::string first);
Trace read_json_lines_trace(const TraceFileSpec& spec, TraceLines& lines, std::string first);

}  // namespace medley
