#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/core/csv.h"
#include "sim/core/provenance.h"
#include "sim/core/unit_text.h"
#include "tools/command.h"

namespace medley::cli {

/// A cell with where its number comes from.
struct Cell {
  Cell(std::string text_in) : text(std::move(text_in)) {}  // NOLINT: plain text converts
  Cell(const char* text_in) : text(text_in) {}             // NOLINT
  Cell(std::string text_in, std::optional<Provenance> class_in)
      : text(std::move(text_in)), provenance(class_in) {}
  std::string text;
  std::optional<Provenance> provenance;
};

/// "3.35 TB/s" with its class; "-" where unknown.
template <class Q>
Cell cell(const Sourced<Q>& value) {
  if (!value.known()) return {"-"};
  if constexpr (std::is_same_v<Q, double>) {
    return {number_text(*value), value.provenance};
  } else {
    return {format_quantity(*value), value.provenance};
  }
}

/// A list for people, numbers marked by their class ("3.35 TB/s s"), or for programs, with a column
/// <key>_class beside each such number.
class SourcedTable {
 public:
  struct Column {
    std::string title;
    std::string key = {};
    bool sourced = false;
  };
  explicit SourcedTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  void print(Format format) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

char mark(Provenance p);  ///< m, s, d, a
inline constexpr const char* kMarks = "m measured  s data sheet  d derived  a assumed  - unknown\n";

}  // namespace medley::cli
