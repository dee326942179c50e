#include "sim/measure/read_kernel_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "sim/core/csv.h"
#include "sim/measure/readers/kernel_readers.h"

namespace medley {

namespace {
namespace fs = std::filesystem;
constexpr std::size_t kHeadLines = 60;
constexpr int kFoldersUp = 8;

/// "a=1; b=two" of the line of `file` in an INDEX.csv.
KernelConstants constants_in(const fs::path& index, const std::string& file) {
  LineReader lines(index.string());
  std::string_view line;
  std::vector<std::string> fields;
  if (!lines.next(line) || !split_csv(line, fields)) return {};
  const auto column = [&](std::string_view name) {
    return static_cast<std::size_t>(std::find(fields.begin(), fields.end(), name) - fields.begin());
  };
  const std::size_t file_at = column("file");
  const std::size_t constants_at = column("constant_columns");
  const std::size_t most = std::max(file_at, constants_at);
  KernelConstants constants;
  while (lines.next(line)) {
    if (!split_csv(line, fields) || fields.size() <= most || fields[file_at] != file) continue;
    std::string_view text = fields[constants_at];
    while (!text.empty()) {
      const std::size_t end = std::min(text.find(';'), text.size());
      const std::string_view pair = trimmed_text(text.substr(0, end));
      if (const std::size_t equals = pair.find('='); equals != std::string_view::npos) {
        constants.emplace(pair.substr(0, equals), pair.substr(equals + 1));
      }
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    break;
  }
  return constants;
}

KernelConstants outside_constants(const std::string& path) {
  std::error_code error;
  const fs::path file = fs::absolute(path, error).lexically_normal();
  fs::path folder = file.parent_path();
  for (int i = 0; i < kFoldersUp && !folder.empty(); ++i) {
    if (fs::is_regular_file(folder / "INDEX.csv", error)) {
      return constants_in(folder / "INDEX.csv", file.lexically_relative(folder).generic_string());
    }
    if (folder == folder.parent_path()) break;
    folder = folder.parent_path();
  }
  return {};
}

KernelFile look_at(const std::string& path) {
  KernelFile file;
  file.path = path;
  LineReader lines(path);
  std::string_view line;
  while (file.head.size() < kHeadLines && lines.next(line)) {
    const std::string_view text = trimmed_text(line);
    file.head.emplace_back(text);
    if (file.columns.empty() && !text.empty() && !text.starts_with('#')) {
      split_csv(text, file.columns);
    }
  }
  file.constants = outside_constants(path);
  return file;
}

/// What lies beside tables and holds no rows.
bool beside_tables(const fs::path& path) {
  const std::string name = path.filename().string();
  if (name.starts_with("README") || name.starts_with("LICENSE") || name.starts_with(".") ||
      name == "INDEX.csv") {
    return true;
  }
  const std::string extension = path.extension().string();
  constexpr std::array kOthers = {".md", ".yaml", ".yml", ".json", ".jsonl", ".ini", ".py"};
  return std::find(kOthers.begin(), kOthers.end(), extension) != kOthers.end();
}

std::vector<std::string> files_beneath(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  std::vector<std::string> files;
  for (const fs::directory_entry& e : fs::recursive_directory_iterator(path)) {
    if (e.is_regular_file() && !beside_tables(e.path())) files.push_back(e.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

const KernelReader* reader_named(const std::string& name) {
  for (const KernelReader& r : kernel_readers()) {
    if (r.name == name) return &r;
  }
  throw InputError("", "", fmt::format("unknown format `{}` of measured kernels", name),
                   suggest(name, kernel_format_names()));
}

const KernelReader* reader_for(const KernelFile& file) {
  for (const KernelReader& r : kernel_readers()) {
    if (r.takes(file)) return &r;
  }
  return nullptr;
}

void fail_unknown(const std::string& path, bool folder, const KernelFile* file) {
  if (folder) {
    throw InputError(path, "", "holds no table of measured kernels in a known format",
                     fmt::format("known: {}", fmt::join(kernel_format_names(), ", ")));
  }
  throw InputError(
      path, "line 1",
      fmt::format("no known format of measured kernels has the columns {}",
                  fmt::join(file->columns, ", ")),
      fmt::format("known: {}; or name one with --format", fmt::join(kernel_format_names(), ", ")));
}
}  // namespace

bool KernelFile::has(std::initializer_list<std::string_view> names) const {
  return std::all_of(names.begin(), names.end(), [&](std::string_view name) {
    return std::find(columns.begin(), columns.end(), name) != columns.end() ||
           constants.find(name) != constants.end();
  });
}

std::string KernelFile::name() const {
  std::string name = fs::path(path).filename().string();
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  return name;
}

const std::vector<KernelFormatInfo>& kernel_formats() {
  static const std::vector<KernelFormatInfo> formats = [] {
    std::vector<KernelFormatInfo> all;
    for (const KernelReader& r : kernel_readers()) all.push_back({r.name, r.summary});
    return all;
  }();
  return formats;
}

std::vector<std::string> kernel_format_names() {
  std::vector<std::string> names;
  for (const KernelFormatInfo& f : kernel_formats()) names.push_back(f.name);
  return names;
}

KernelTable read_kernel_table(const std::string& path, const KernelReadOptions& options) {
  const KernelReader* forced =
      options.format.empty() || options.format == "auto" ? nullptr : reader_named(options.format);
  std::error_code error;
  const bool folder = fs::is_directory(path, error);
  KernelTable table;
  table.device = options.device;
  table.account.source = path;
  KernelSink sink(table, options);
  for (const std::string& name : files_beneath(path)) {
    const KernelFile file = look_at(name);
    const KernelReader* reader = reader_for(file);
    if (forced != nullptr && (!folder || reader == forced)) reader = forced;
    if (forced != nullptr && reader != forced) reader = nullptr;
    if (reader == nullptr) {
      if (!folder) fail_unknown(path, folder, &file);
      sink.note(fmt::format("left out, no known format: {}", name));
      continue;
    }
    sink.begin_file();
    sink.format(reader->name);
    reader->read(file, sink);
  }
  if (table.format.empty()) fail_unknown(path, folder, nullptr);
  table.account.format = table.format;
  return table;
}

}  // namespace medley
