#include "sim/report/table_file.h"

#include "sim/core/error.h"
#include "sim/report/columns.h"

namespace medley {

void append_seconds(std::string& out, std::int64_t ns) {
  constexpr std::int64_t kPerSecond = 1000000000;
  constexpr int kDigits = 9;
  if (ns < 0) {
    out += '-';
    ns = -ns;
  }
  append_number(out, ns / kPerSecond);
  std::int64_t rest = ns % kPerSecond;
  if (rest == 0) return;
  char digits[kDigits];
  int last = 0;
  for (int i = kDigits - 1; i >= 0; --i, rest /= 10) {
    digits[i] = static_cast<char>('0' + rest % 10);
    if (last == 0 && digits[i] != '0') last = i + 1;
  }
  out += '.';
  out.append(digits, static_cast<std::size_t>(last));
}

TableFile::TableFile(std::string_view name, const std::string& path, bool gzip)
    : sink_(path, gzip) {
  for (const ColumnInfo& c : report_columns()) {
    if (c.file == name) next() += c.column;
  }
  columns_ = filled_;
  end_row();
}

TableFile& TableFile::text(std::string_view value) {
  std::string& out = next();
  if (value.find_first_of(",\"\r\n") == std::string_view::npos) {
    out += value;
    return *this;
  }
  out += '"';
  for (const char c : value) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
  return *this;
}

TableFile& TableFile::number(double value) {
  append_number(next(), value);
  return *this;
}

TableFile& TableFile::integer(std::int64_t value) {
  append_number(next(), value);
  return *this;
}

TableFile& TableFile::seconds(std::int64_t ns) {
  append_seconds(next(), ns);
  return *this;
}

TableFile& TableFile::blank() {
  next();
  return *this;
}

void TableFile::end_row() {
  MEDLEY_CHECK(filled_ == columns_ && columns_ > 0, "a row has as many fields as its header");
  filled_ = 0;
  sink_.buffer() += '\n';
  sink_.flush_if_full();
}

}  // namespace medley
