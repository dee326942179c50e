#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/error.h"
#include "sim/core/text_file.h"

namespace medley {

/// Columns that hold one value for the whole file and were kept outside of it.
using KernelConstants = std::map<std::string, std::string, std::less<>>;

/// Reads a table of measured kernels row by row. A column may be in the file or among the
/// constants; readers do not see the difference. Columns are claimed by name before the first row;
/// a column that nobody claimed or ignored must hold one value only, else it is an axis the reader
/// does not know and an error at the line where it first differs.
class KernelCsv {
 public:
  KernelCsv(const std::string& path, KernelConstants constants);

  using Column = int;
  static constexpr Column kAbsent = -1;
  /// A claimed column; kAbsent where there is none.
  Column find(std::string_view name);
  Column find_any(std::initializer_list<std::string_view> names);  ///< the first there is
  /// The same, but a missing one is a problem told by `start`.
  Column need(std::string_view name);
  void ignore(std::initializer_list<std::string_view> names);
  void ignore_prefix(std::string_view prefix);
  void ignore_rest();
  bool has(std::string_view name) const;
  const std::vector<std::string>& header() const { return header_; }
  /// Ends the claims. Throws with every missing column at once.
  void start(std::string_view format);

  /// Next row that is not blank. False at the end.
  bool next();
  bool broken() const { return broken_; }  ///< wrong number of fields
  std::string_view text(Column column) const;
  std::optional<double> number(Column column) const;
  std::int64_t line() const { return lines_.line_number(); }
  const std::string& path() const { return path_; }

 private:
  void split(std::string_view line);
  void check_strangers();
  std::string path_;
  LineReader lines_;
  std::vector<std::string> header_;
  std::vector<char> claimed_;
  KernelConstants constants_;
  std::vector<std::string> constant_values_;
  std::vector<std::string> missing_;
  std::vector<std::string_view> fields_;
  std::vector<std::string> quoted_;
  struct Stranger {
    std::size_t column;
    std::string value;
  };
  std::vector<Stranger> strangers_;
  bool strangers_seen_ = false;
  bool broken_ = false;
};

std::string_view trimmed_text(std::string_view text);
/// A finite number that fills the whole text.
std::optional<double> number_in(std::string_view text);

}  // namespace medley
