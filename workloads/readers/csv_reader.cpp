#include <fmt/format.h>

#include <algorithm>

#include "sim/core/csv.h"
#include "sim/core/error.h"
#include "workloads/trace_reader.h"
#include "workloads/trace_rows.h"

namespace medley {

namespace {
constexpr std::size_t kMostIds = std::size_t{1} << 20;  // of one row

/// Comment lines before the header: "# hash_block_tokens = 64" is the only one that says something.
void read_comment(std::string_view line, std::int32_t& block) {
  constexpr std::string_view kKey = "hash_block_tokens";
  const std::size_t key = line.find(kKey);
  const std::size_t equals = line.find('=');
  if (key == std::string_view::npos || equals == std::string_view::npos || equals < key) return;
  const ParsedCount n = parse_count(line.substr(equals + 1));
  if (n.fault == TextFault::kNone && n.value > 0 && n.value <= INT32_MAX) {
    block = static_cast<std::int32_t>(n.value);
  }
}

class CsvRows {
 public:
  CsvRows(const TraceFileSpec& spec, const std::vector<std::string>& header, ColumnMap map,
          std::int32_t file_block)
      : width_(header.size()),
        map_(std::move(map)),
        sink_(spec, spec.hash_block_tokens != 0 ? spec.hash_block_tokens
                    : file_block != 0           ? file_block
                                                : map_.format->hash_block_tokens) {
    sink_.set_format(map_.format->name);
    sink_.note("columns: " + map_.to_text());
    column_.assign(width_, nullptr);
    for (const ColumnMap::Column& c : map_.columns) {
      const auto at = std::find(header.begin(), header.end(), c.name);
      column_[static_cast<std::size_t>(at - header.begin())] = &c;
    }
  }

  void take(std::string_view line, std::int64_t number) {
    if (!split(line)) {
      sink_.bad_row(number, "a quote is left open");
      return;
    }
    if (fields_.size() != width_) {
      sink_.bad_row(number, fmt::format("wrong number of fields: {} where the header has {}",
                                        fields_.size(), width_));
      return;
    }
    row_.clear();
    row_.line = number;
    for (std::size_t i = 0; i < width_; ++i) {
      if (column_[i] == nullptr) continue;
      row_.set(column_[i]->field, trimmed(fields_[i]), column_[i]->unit);
    }
    const std::string_view ids = row_[TraceField::kHashIds];
    if (!ids.empty()) {
      ids_.clear();
      if (!parse_id_ranges(ids, kMostIds, ids_)) {
        sink_.bad_row(number, fmt::format("hash_ids are malformed: `{}`", ids.substr(0, 40)),
                      "numbers and ranges separated by blanks: 0-13 40 55-57");
        return;
      }
      row_.hash_ids = ids_;
      row_.has_hash_ids = true;
    }
    sink_.take(row_);
  }

  Trace finish() { return sink_.finish(); }

 private:
  bool split(std::string_view line) {
    fields_.clear();
    if (line.find('"') != std::string_view::npos) {
      if (!split_csv(line, quoted_)) return false;
      fields_.assign(quoted_.begin(), quoted_.end());
      return true;
    }
    for (std::size_t at = 0;;) {
      const std::size_t comma = line.find(',', at);
      fields_.push_back(line.substr(at, comma - at));
      if (comma == std::string_view::npos) return true;
      at = comma + 1;
    }
  }

  std::size_t width_;
  ColumnMap map_;
  RowSink sink_;
  std::vector<const ColumnMap::Column*> column_;
  std::vector<std::string_view> fields_;
  std::vector<std::string> quoted_;
  std::vector<std::uint64_t> ids_;
  RawRow row_;
};

bool has_letter(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80) != 0;
  });
}
}  // namespace

Trace read_csv_trace(const TraceFileSpec& spec, TraceLines& lines, std::string first) {
  std::int32_t block = 0;
  std::string_view line = first;
  while (trimmed(line).starts_with('#')) {
    read_comment(line, block);
    if (!lines.next(line)) throw InputError(spec.file, "", "is empty: comments only, no header");
  }
  const std::string where = fmt::format("line {}", lines.number());
  std::vector<std::string> header;
  if (!split_csv(line, header)) throw InputError(spec.file, where, "a quote is left open");
  if (std::none_of(header.begin(), header.end(), has_letter)) {
    throw InputError(spec.file, where, "has no header line: its columns have no names",
                     "put one in front, like arrival_s,input_tokens,output_tokens");
  }
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (!header[i].empty() &&
        std::find(header.begin(), header.begin() + static_cast<std::ptrdiff_t>(i), header[i]) !=
            header.begin() + static_cast<std::ptrdiff_t>(i)) {
      throw InputError(spec.file, where, fmt::format("names the column `{}` twice", header[i]),
                       "rename or drop one");
    }
  }
  ColumnMap map = map_columns(header, false, spec.format, spec.columns, spec.file);
  const bool timed =
      map.has(TraceField::kArrival) || map.has(TraceField::kDelay) || map.has(TraceField::kFollows);
  if (!timed && !spec.times_not_needed) {
    throw InputError(spec.file, where, "has no column for arrival",
                     fmt::format("it has: {}; {}", fmt::join(header, ", "), kOwnArrivals));
  }
  CsvRows rows(spec, header, std::move(map), block);
  while (lines.next(line)) rows.take(line, lines.number());
  return rows.finish();
}

}  // namespace medley
