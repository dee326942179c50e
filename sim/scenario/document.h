#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/core/error.h"
#include "sim/scenario/load.h"

namespace medley {

/// A scenario's JSON after includes and overrides, with where each part of it came from.
struct Document {
  std::unique_ptr<nlohmann::ordered_json> root;  ///< keys sorted, no "include"
  std::string file;
  /// JSON pointer -> included file or override that set it; what is not listed stands in `file`.
  std::map<std::string, std::string> origins;

  /// The file or override that set the value at `pointer`, or else the nearest one above it.
  const std::string& origin(std::string pointer) const;
  /// The same problems, each blamed on the file or override its value came from.
  std::vector<Problem> blame(const std::vector<Problem>& problems) const;
};

/// Reads the file, merges what it includes and applies the overrides. Throws InputError.
Document load_document(const LoadOptions& options);

/// Sets the values of "a.b.c=value" in `document`. The value is read as JSON when it is JSON, else
/// as a string. Member names that hold dots are matched whole, the longest first; numbers index
/// arrays. Maps that are missing on the way are made (strict reading judges them later), but a new
/// member of a map by name must be given whole.
void apply_override(const std::string& text, Document& document, Problems& problems);

/// One more token of a JSON pointer, escaped per RFC 6901.
std::string pointer_join(const std::string& pointer, std::string_view key);

}  // namespace medley
