#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "workloads/workload_spec.h"

namespace medley {

/// Where relative paths of a scenario are looked for.
using SearchDirs = std::vector<std::string>;

/// The first existing `dir/file` (or `file` itself when absolute); a problem at `key` otherwise.
std::string find_input_file(ObjectReader& reader, std::string_view key, const std::string& file,
                            const SearchDirs& dirs);

enum class Measure : std::uint8_t {
  kCount,
  kPositive,  ///< a count of at least 1
  kSeconds
};

/// A bare value (512, "5 s") or {"dist": name, ...}. A problem and fixed(1) when it cannot be read.
Distribution load_distribution(ObjectReader& parent, std::string_view key, Measure measure,
                               const SearchDirs& dirs);

ArrivalSpec load_arrivals(ObjectReader reader, const SearchDirs& dirs);
GeneratorSpec load_generator(ObjectReader reader, const SearchDirs& dirs);

/// Named numeric columns of a CSV file. `where` keeps rows whose column equals a text.
struct CsvColumns {
  std::vector<std::vector<double>> values;  ///< by requested name, then row
};
struct CsvRequest {
  std::string path, file;  ///< opened, and as written
  bool header = true;      ///< without one, columns are called "1", "2", ...
  std::vector<std::string> names;
  std::vector<std::pair<std::string, std::string>> where;
};
/// Throws InputError with file and line.
CsvColumns read_csv_columns(const CsvRequest& request);

}  // namespace medley
