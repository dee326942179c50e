#include "sim/measure/readers/profile_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "sim/measure/kernel_models.h"

namespace medley {

namespace {
namespace fs = std::filesystem;

/// Top-level "key: value" lines of a YAML file; all we need of it.
KernelConstants top_level_pairs(const fs::path& path) {
  KernelConstants pairs;
  LineReader lines(path.string());
  std::string_view line;
  while (lines.next(line)) {
    const std::size_t colon = line.find(": ");
    if (line.empty() || line[0] == ' ' || line[0] == '#' || colon == std::string_view::npos) {
      continue;
    }
    std::string_view value = trimmed_text(line.substr(colon + 2));
    if (value.size() >= 2 && (value[0] == '\'' || value[0] == '"')) {
      value = value.substr(1, value.size() - 2);
    }
    pairs.emplace(line.substr(0, colon), value);
  }
  return pairs;
}

std::vector<std::string> folders_of(const KernelFile& file) {
  std::error_code error;
  std::vector<std::string> parts;
  for (const fs::path& part : fs::absolute(file.path, error).lexically_normal().parent_path()) {
    parts.push_back(part.string());
  }
  return parts;
}

/// "tp4" -> 4; 0: something else.
int ranks_in(const std::string& part) {
  if (!part.starts_with("tp")) return 0;
  const auto ranks = number_in(std::string_view(part).substr(2));
  return ranks && *ranks >= 1.0 && *ranks <= 1024.0 ? static_cast<int>(*ranks) : 0;
}

KernelConstants meta_of(const KernelFile& file) {
  std::error_code error;
  fs::path folder = fs::absolute(file.path, error).parent_path();
  for (int i = 0; i < 3; ++i, folder = folder.parent_path()) {
    if (fs::is_regular_file(folder / "meta.yaml", error)) {
      return top_level_pairs(folder / "meta.yaml");
    }
  }
  return {};
}

/// Takes "tp4" and "bf16" off the end of the folders; what is left ends in organisation and model.
void take_plan(std::vector<std::string>& parts, ProfileFolder& folder) {
  if (!parts.empty() && ranks_in(parts.back()) > 0) {
    folder.tp = ranks_in(parts.back());
    parts.pop_back();
  }
  if (parts.empty()) return;
  if (const auto format = parse_kernel_format(parts.back())) {
    folder.precision.weights = format->weights;
    folder.precision.activations = format->arithmetic;
    parts.pop_back();
  }
}
}  // namespace

ProfileFolder profile_folder(const KernelFile& file, KernelSink& sink) {
  ProfileFolder folder;
  std::vector<std::string> parts = folders_of(file);
  take_plan(parts, folder);
  const KernelConstants meta = meta_of(file);
  const auto told = [&](const char* key, std::string otherwise) {
    const auto found = meta.find(key);
    return found == meta.end() ? std::move(otherwise) : found->second;
  };
  const std::size_t n = parts.size();
  const std::string in_path = n >= 2 ? parts[n - 2] + "/" + parts[n - 1] : "";
  folder.model = kernel_model(sink.options(), told("model", in_path), file.path);
  sink.device(told("gpu", n >= 3 ? parts[n - 3] : ""));
  if (sink.options().tp > 0) folder.tp = sink.options().tp;
  return folder;
}

std::string device_after(const KernelFile& file, std::initializer_list<std::string_view> names) {
  std::vector<std::string> parts = folders_of(file);
  for (std::size_t i = parts.size(); i-- > 1;) {
    if (std::find(names.begin(), names.end(), parts[i - 1]) != names.end()) {
      return parts[i].substr(0, parts[i].find('_'));
    }
  }
  ProfileFolder ignored;
  take_plan(parts, ignored);
  return parts.size() >= 3 ? parts[parts.size() - 3] : "";
}

std::string model_of_folder(const KernelFile& file) {
  std::vector<std::string> parts = folders_of(file);
  ProfileFolder ignored;
  take_plan(parts, ignored);
  const std::size_t n = parts.size();
  return n >= 2 ? parts[n - 2] + "/" + parts[n - 1] : "";
}

}  // namespace medley
