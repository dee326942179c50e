#include "sim/core/csv.h"

#include <fmt/compile.h>

#include <charconv>
#include <cmath>

#include "sim/core/error.h"

namespace medley {

void append_number(std::string& out, std::int64_t value) {
  char buffer[24];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  out.append(buffer, end);
}

void append_number(std::string& out, double value) {
  constexpr double kExactIntegers = 1e15;  // below it "{}" prints no exponent either
  if (value > -kExactIntegers && value < kExactIntegers) {
    const auto whole = static_cast<std::int64_t>(value);
    if (static_cast<double>(whole) == value && (whole != 0 || !std::signbit(value))) {
      append_number(out, whole);
      return;
    }
  }
  if (std::isnan(value)) return;
  char buffer[40];
  const auto end = fmt::format_to(static_cast<char*>(buffer), FMT_COMPILE("{}"), value);
  out.append(buffer, end);
}

std::string number_text(double value) {
  std::string out;
  append_number(out, value);
  return out;
}

CsvWriter::CsvWriter(const std::vector<std::string_view>& header) : columns_(header.size()) {
  for (const std::string_view name : header) field(name);
  end_row();
}

void CsvWriter::separate() {
  if (filled_++ > 0) buffer_ += ',';
}

CsvWriter& CsvWriter::field(std::string_view text) {
  separate();
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    buffer_ += text;
    return *this;
  }
  buffer_ += '"';
  for (const char c : text) {
    if (c == '"') buffer_ += '"';
    buffer_ += c;
  }
  buffer_ += '"';
  return *this;
}

CsvWriter& CsvWriter::field(double value) {
  separate();
  append_number(buffer_, value);
  return *this;
}

CsvWriter& CsvWriter::field(std::int64_t value) {
  separate();
  append_number(buffer_, value);
  return *this;
}

CsvWriter& CsvWriter::blank() {
  separate();
  return *this;
}

void CsvWriter::end_row() {
  MEDLEY_CHECK(filled_ == columns_,
               fmt::format("CSV row of {} fields under a header of {}", filled_, columns_));
  filled_ = 0;
  buffer_ += '\n';
}

namespace {
// Reads the quoted part that starts behind `i` (at the opening quote) into `field`; returns the
// place behind the closing quote, or npos when there is none.
std::size_t read_quoted(std::string_view line, std::size_t i, std::string& field) {
  for (++i; i < line.size(); ++i) {
    if (line[i] != '"') {
      field += line[i];
    } else if (i + 1 < line.size() && line[i + 1] == '"') {
      field += '"';
      ++i;
    } else {
      return i + 1;
    }
  }
  return std::string_view::npos;
}
}  // namespace

bool split_csv(std::string_view line, std::vector<std::string>& fields, char separator) {
  std::size_t used = 0;
  std::size_t i = 0;
  while (true) {
    if (used == fields.size()) fields.emplace_back();
    std::string& field = fields[used++];
    field.clear();
    if (i < line.size() && line[i] == '"') {
      i = read_quoted(line, i, field);
      if (i == std::string_view::npos) {
        fields.resize(used);
        return false;
      }
    }
    const std::size_t end = std::min(line.find(separator, i), line.size());
    field += line.substr(i, end - i);
    if (end == line.size()) break;
    i = end + 1;
  }
  fields.resize(used);
  return true;
}

}  // namespace medley
