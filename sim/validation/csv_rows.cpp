#include "sim/validation/csv_rows.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "sim/core/csv.h"
#include "sim/core/error.h"
#include "sim/core/text_file.h"

namespace medley {

namespace {
std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.pop_back();
  text.erase(0, text.find_first_not_of(' '));
  return text;
}
}  // namespace

CsvRows::CsvRows(const std::string& path) : path_(path) {
  LineReader reader(path);
  std::string_view line;
  std::vector<std::string> fields;
  while (reader.next(line)) {
    if (line.empty() || line == "\r") continue;
    split_csv(line, fields);
    if (columns_.empty()) {
      for (std::size_t i = 0; i < fields.size(); ++i) columns_.emplace(trimmed(fields[i]), i);
      continue;
    }
    for (std::string& f : fields) f = trimmed(std::move(f));
    fields.resize(columns_.size());
    rows_.push_back(fields);
    lines_.push_back(reader.line_number());
  }
}

bool CsvRows::has(std::string_view column) const {
  return columns_.find(column) != columns_.end();
}

const std::string& CsvRows::text(std::size_t row, std::string_view column) const {
  const auto it = columns_.find(column);
  if (it == columns_.end()) {
    throw InputError(path_, "", fmt::format("has no column \"{}\"", column), "");
  }
  return rows_[row][it->second];
}

double CsvRows::number(std::size_t row, std::string_view column) const {
  const std::string& cell = text(row, column);
  double value = 0.0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size() || !std::isfinite(value)) {
    throw InputError(fmt::format("{}:{}", path_, lines_[row]), "",
                     fmt::format("{} is \"{}\"", column, cell), "a number");
  }
  return value;
}

int CsvRows::integer(std::size_t row, std::string_view column) const {
  return static_cast<int>(std::lround(number(row, column)));
}

}  // namespace medley
