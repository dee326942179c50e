#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace medley {

/// Shortest text that reads back to the same double ("0.1", "1e-09"); "" for NaN, "inf"/"-inf"
/// kept.
std::string number_text(double value);
void append_number(std::string& out, double value);
void append_number(std::string& out, std::int64_t value);

template <class T>
concept CsvInteger = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char>;

/// Builds RFC 4180 rows in one growing buffer: fields in order, then `end_row`. '\n' line ends.
class CsvWriter {
 public:
  explicit CsvWriter(const std::vector<std::string_view>& header);
  CsvWriter& field(std::string_view text);  ///< quoted only where needed
  CsvWriter& field(double value);           ///< NaN is a blank cell
  CsvWriter& field(std::int64_t value);
  template <CsvInteger T>
  CsvWriter& field(T value) {
    return field(static_cast<std::int64_t>(value));
  }
  CsvWriter& blank();
  void end_row();  ///< checks that the row has as many fields as the header
  const std::string& text() const { return buffer_; }
  std::string take() { return std::move(buffer_); }

 private:
  void separate();
  std::string buffer_;
  std::size_t columns_ = 0;
  std::size_t filled_ = 0;
};

/// Splits one CSV record into fields (quotes, doubled quotes; no embedded line ends).
/// Reuses `fields`. Returns false when a quote is left open.
bool split_csv(std::string_view line, std::vector<std::string>& fields, char separator = ',');

}  // namespace medley
