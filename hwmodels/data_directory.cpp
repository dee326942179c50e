#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "hwmodels/catalog.h"
#include "sim/core/error.h"

namespace medley {

namespace fs = std::filesystem;

namespace {
bool holds_data(const fs::path& root) {
  std::error_code ignored;
  return fs::is_directory(root / "hwmodels" / "catalog", ignored);
}
}  // namespace

std::string shipped_data_directory() {
  if (const char* given = std::getenv("MEDLEY_DATA_DIR"); given && *given) {
    if (!holds_data(given)) {
      throw InputError(given, "", "MEDLEY_DATA_DIR holds no hwmodels/catalog",
                       "point it at <prefix>/share/medley or at a source tree");
    }
    return given;
  }
  std::error_code ignored;
  const fs::path binary = fs::read_symlink("/proc/self/exe", ignored);
  const fs::path installed = binary.parent_path().parent_path() / "share" / "medley";
  if (!binary.empty() && holds_data(installed)) return installed.string();
#ifdef MEDLEY_SOURCE_DIR
  if (holds_data(MEDLEY_SOURCE_DIR)) return MEDLEY_SOURCE_DIR;
#endif
  throw InputError("", "", "the shipped data (hardware catalogue, model zoo) was not found",
                   "set MEDLEY_DATA_DIR to the folder that holds hwmodels/catalog");
}

}  // namespace medley
