#include "workloads/trace_reader.h"

#include <fmt/format.h>

#include <charconv>

#include "sim/core/error.h"
#include "workloads/timestamp.h"

namespace medley {

namespace {
/// Core's messages name the path that was opened; users know the one they wrote.
[[noreturn]] void rethrow_as_written(const InputError& error, const TraceFileSpec& spec) {
  std::vector<Problem> problems = error.problems();
  for (Problem& p : problems) {
    if (p.file == spec.path) p.file = spec.file;
  }
  throw InputError(std::move(problems));
}
}  // namespace

bool TraceLines::next(std::string_view& line) {
  while (lines_.next(line)) {
    if (!trimmed(line).empty()) return true;
  }
  return false;
}

Trace read_trace(const TraceFileSpec& spec) {
  try {
    TraceLines lines(spec);
    std::string_view line;
    if (!lines.next(line)) throw InputError(spec.file, "", "is empty: no header and no request");
    if (line.find('\0') != std::string_view::npos) {
      throw InputError(spec.file, fmt::format("line {}", lines.number()), "is not text",
                       "unpack archives (tar, zip) and convert UTF-16 to UTF-8 first");
    }
    std::string first(line);
    switch (trimmed(first).front()) {
      case '{':
        return read_json_lines_trace(spec, lines, std::move(first));
      case '[':
        throw InputError(spec.file, fmt::format("line {}", lines.number()), "is a JSON array",
                         "write one object a line (jq -c '.[]')");
      default:
        return read_csv_trace(spec, lines, std::move(first));
    }
  } catch (const InputError& error) {
    rethrow_as_written(error, spec);
  }
}

bool parse_id_ranges(std::string_view text, std::size_t most, std::vector<std::uint64_t>& out) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    while (at < end && *at == ' ') ++at;
    if (at == end) return true;
    std::uint64_t low = 0;
    const auto first = std::from_chars(at, end, low);
    if (first.ec != std::errc()) return false;
    std::uint64_t high = low;
    at = first.ptr;
    if (at < end && *at == '-') {
      const auto second = std::from_chars(at + 1, end, high);
      if (second.ec != std::errc() || high < low) return false;
      at = second.ptr;
    }
    if (at < end && *at != ' ') return false;
    if (high - low >= most - out.size()) return false;
    for (std::uint64_t id = low; id < high; ++id) out.push_back(id);
    out.push_back(high);
  }
}

void append_id_ranges(std::string& out, const std::uint64_t* ids, std::size_t n) {
  for (std::size_t i = 0; i < n;) {
    std::size_t last = i;
    while (last + 1 < n && ids[last] != UINT64_MAX && ids[last + 1] == ids[last] + 1) ++last;
    if (i > 0) out += ' ';
    out += std::to_string(ids[i]);
    if (last > i) out += '-' + std::to_string(ids[last]);
    i = last + 1;
  }
}

}  // namespace medley
