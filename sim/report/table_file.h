#pragma once

#include <cstdint>
#include <string_view>

#include "sim/core/csv.h"
#include "sim/core/sim_time.h"
#include "sim/report/output_directory.h"

namespace medley {

/// Appends nanoseconds as seconds, exactly and without trailing zeros: 1500000000 -> "1.5".
void append_seconds(std::string& out, std::int64_t ns);

/// A CSV of the report, streamed to disk: fields in the order of `report_columns()`.
class TableFile {
 public:
  /// `name` in the table of columns; written to `path`.
  TableFile(std::string_view name, const std::string& path, bool gzip = false);
  TableFile& text(std::string_view value);  ///< quoted only where needed
  TableFile& number(double value);          ///< NaN is a blank cell
  TableFile& integer(std::int64_t value);
  TableFile& seconds(std::int64_t ns);
  TableFile& blank();
  void end_row();  ///< checks the number of fields
  void close() { sink_.close(); }

 private:
  std::string& next() {
    std::string& out = sink_.buffer();
    if (filled_++ > 0) out += ',';
    return out;
  }
  FileSink sink_;
  std::size_t columns_ = 0;
  std::size_t filled_ = 0;
};

}  // namespace medley
