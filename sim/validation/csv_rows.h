#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace medley {

/// A small measured table held in memory, read by column name. Throws InputError for a missing file
/// or column and for cells that are no numbers.
class CsvRows {
 public:
  explicit CsvRows(const std::string& path);
  std::size_t size() const { return rows_.size(); }
  bool has(std::string_view column) const;
  const std::string& text(std::size_t row, std::string_view column) const;
  bool blank(std::size_t row, std::string_view column) const { return text(row, column).empty(); }
  double number(std::size_t row, std::string_view column) const;
  int integer(std::size_t row, std::string_view column) const;

 private:
  std::string path_;
  std::map<std::string, std::size_t, std::less<>> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> lines_;
};

}  // namespace medley
