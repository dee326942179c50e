#include "sim/report/output_directory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "sim/core/error.h"
#include "sim/report/columns.h"

namespace medley {

namespace fs = std::filesystem;

namespace {
[[noreturn]] void refuse_disk(const std::string& path, const char* what,
                              const std::error_code& error) {
  throw std::runtime_error(fmt::format("{}: cannot {}: {}", path, what, error.message()));
}

bool is_report_file(const std::string& name) {
  const std::vector<std::string>& ours = report_file_names();
  return std::find(ours.begin(), ours.end(), name) != ours.end();
}

void check_existing(const std::string& path, bool overwrite) {
  std::error_code error;
  bool any = false;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    any = true;
    const std::string name = it->path().filename().string();
    if (overwrite && !is_report_file(name)) {
      throw InputError(path, "", fmt::format("holds \"{}\", which no medley run wrote", name),
                       "choose another --out, or move that file away");
    }
  }
  if (error) refuse_disk(path, "read the directory", error);
  if (any && !overwrite) {
    throw InputError(path, "", "the output directory is not empty",
                     "--overwrite replaces an earlier run; or choose another --out");
  }
}
}  // namespace

void OutputDirectory::check(const std::string& path, bool overwrite) {
  if (path.empty()) throw InputError("", "", "the output directory has no name");
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) {
    check_existing(path, overwrite);
  } else if (fs::exists(status)) {
    throw InputError(path, "", "exists and is no directory", "choose another --out");
  }
}

OutputDirectory::OutputDirectory(std::string path, bool overwrite)
    : path_(std::move(path)), overwrite_(overwrite) {
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
  check(path_, overwrite_);
  const fs::path target(path_);
  const fs::path parent = target.parent_path();
  std::error_code error;
  for (fs::path p = parent; !p.empty() && !fs::exists(p, error); p = p.parent_path()) {
    made_parents_.insert(made_parents_.begin(), p.string());
  }
  if (!parent.empty() && !made_parents_.empty() && !fs::create_directories(parent, error)) {
    if (error) {
      discard();
      refuse_disk(parent.string(), "create the directory", error);
    }
  }
  staging_ =
      (parent / fmt::format(".{}.partial-{}", target.filename().string(), ::getpid())).string();
  if (!fs::create_directory(staging_, error) && error) {
    staging_.clear();
    discard();
    refuse_disk(path_, "create the directory", error);
  }
}

OutputDirectory::~OutputDirectory() {
  if (!committed_) discard();
}

void OutputDirectory::discard() noexcept {
  std::error_code error;
  if (!staging_.empty()) fs::remove_all(staging_, error);
  for (auto p = made_parents_.rbegin(); p != made_parents_.rend(); ++p) {
    fs::remove(*p, error);  // only when empty
  }
}

std::string OutputDirectory::file(std::string_view name) const {
  return (fs::path(staging_) / name).string();
}

void OutputDirectory::commit() {
  check(path_, overwrite_);
  std::error_code error;
  std::string old;
  if (fs::exists(path_, error) && !fs::is_empty(path_, error)) {
    old = staging_ + ".old";
    fs::rename(path_, old, error);
    if (error) refuse_disk(path_, "replace the directory", error);
  }
  fs::rename(staging_, path_, error);
  if (error) {
    std::error_code ignored;
    if (!old.empty()) fs::rename(old, path_, ignored);
    refuse_disk(path_, "create the directory", error);
  }
  committed_ = true;
  if (!old.empty()) fs::remove_all(old, error);
}

}  // namespace medley
