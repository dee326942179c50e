#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace medley {

/// A list of rows for people (aligned columns), for spreadsheets (CSV) or for programs (JSON array
/// of objects). Cells are text; columns of numbers are right-aligned.
class TextTable {
 public:
  enum class Align : std::uint8_t { kLeft, kRight };
  struct Column {
    std::string title;     ///< what people read
    std::string key = {};  ///< CSV header and JSON key; empty: the title
    Align align = Align::kLeft;
  };
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> row);  ///< checks the width
  void rule();                             ///< a line across before the next row
  std::size_t rows() const { return rows_.size(); }
  std::string aligned() const;
  std::string csv() const;
  std::string json() const;  ///< numeric-looking cells of right-aligned columns become numbers

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> rules_;
};

/// Columns that `text` takes on a terminal: code points of UTF-8, none for combining marks, two for
/// wide East Asian ones.
std::size_t display_width(std::string_view text);

/// `value` with three significant digits, and k, M, G, T for thousands ("1.23 M"); "-" for NaN.
std::string short_number(double value);
/// Seconds in the unit that reads best: "12.3 ms", "4.56 s", "2.1 h"; "-" for NaN.
std::string short_seconds(double seconds);
/// Joules likewise: "950 J", "1.2 MJ", "3.4 MWh".
std::string short_joules(double joules);
/// Share in percent: "98.2 %"; "-" for NaN.
std::string percent(double share);

}  // namespace medley
