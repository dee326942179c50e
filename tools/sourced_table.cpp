#include "tools/sourced_table.h"

namespace medley::cli {

char mark(Provenance p) {
  constexpr char kLetters[] = {'m', 's', 'd', 'a'};
  return kLetters[static_cast<std::size_t>(p)];
}

void SourcedTable::print(Format format) const {
  std::vector<TextTable::Column> columns;
  for (const Column& c : columns_) {
    const bool right = c.sourced && format == Format::kTable;
    columns.push_back({c.title, c.key, right ? TextTable::Align::kRight : TextTable::Align::kLeft});
    if (c.sourced && format != Format::kTable) {
      columns.push_back({c.key + "_class", c.key + "_class", TextTable::Align::kLeft});
    }
  }
  TextTable table(std::move(columns));
  for (const std::vector<Cell>& row : rows_) {
    std::vector<std::string> cells;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const Cell& c = row[i];
      if (format == Format::kTable) {
        cells.push_back(c.provenance          ? c.text + " " + mark(*c.provenance)
                        : columns_[i].sourced ? c.text + "  "
                                              : c.text);
        continue;
      }
      cells.push_back(c.text == "-" ? "" : c.text);
      if (columns_[i].sourced) {
        cells.emplace_back(c.provenance ? to_string(*c.provenance) : std::string_view());
      }
    }
    table.add(std::move(cells));
  }
  print_table(table, format);
  bool any = false;
  for (const Column& c : columns_) any = any || c.sourced;
  if (any && format == Format::kTable) cli::print(std::string("\n") + kMarks);
}

}  // namespace medley::cli
