#pragma once

#include <string>
#include <vector>

namespace medley {

/// One key of a scenario file, for documentation.
struct SchemaKey {
  std::string path;      ///< "pools.<name>.replicas"
  std::string type;      ///< "integer", "time", "name of a model", ...
  std::string fallback;  ///< default, or "required"; "" where the key is simply absent
  std::string summary;
};

/// Keys in the order in which a reader wants them, under headings.
struct SchemaSection {
  std::string title;
  std::string note;  ///< may be empty
  std::vector<SchemaKey> keys;
};

/// Every key that loading accepts. Parameters of routing policies come from their registry, number
/// formats and names from their tables. A test compares it with what resolved scenarios hold.
const std::vector<SchemaSection>& scenario_schema();

/// The sections as Markdown tables: the reference part of configs/README.md.
std::string schema_markdown();

}  // namespace medley
