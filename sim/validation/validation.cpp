#include "sim/validation/validation.h"

#include <filesystem>

#include "sim/core/error.h"
#include "sim/core/text_file.h"

namespace medley {

std::string_view to_string(Half half) {
  return half == Half::kFit ? "fit" : "report";
}

Half half_of(std::string_view key) {
  return (fnv1a(key) & 1U) == 0 ? Half::kFit : Half::kReport;
}

const ValidationSet& validation_set(std::string_view name) {
  std::vector<std::string> names;
  for (const ValidationSet& set : validation_sets()) {
    if (set.name == name) return set;
    names.push_back(set.name);
  }
  throw InputError("", "", "unknown validation set \"" + std::string(name) + "\"",
                   suggest(name, names));
}

std::vector<ValidationRow> run_validation(const ValidationSet& set,
                                          const ValidationContext& context) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(context.data, ignored)) {
    throw InputError(
        context.data, "", "no measured data here",
        "name its folder with --data, or in the environment variable MEDLEY_SHARED_DATA");
  }
  ValidationContext absolute = context;
  absolute.data = std::filesystem::absolute(context.data).lexically_normal().string();
  return set.run(absolute);
}

}  // namespace medley
