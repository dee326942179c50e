#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>

#include "sim/core/error.h"
#include "workloads/model.h"

namespace medley {

namespace {
std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::vector<std::string> json_files(const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<std::string> files;
  fs::directory_iterator it(directory, error);
  if (error) {
    throw InputError(directory, "",
                     fmt::format("cannot read model directory: {}", error.message()));
  }
  for (const fs::directory_entry& e : it) {
    if (e.path().extension() == ".json") files.push_back(e.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}
}  // namespace

ModelZoo::ModelZoo(std::vector<std::string> directories) : directories_(std::move(directories)) {}

std::vector<ModelSpec> ModelZoo::all() const {
  std::map<std::string, ModelSpec> by_name;
  for (const std::string& directory : directories_) {
    for (const std::string& file : json_files(directory)) {
      ModelSpec m = load_model(file);
      const std::string name = lower(m.name);
      by_name.insert_or_assign(name, std::move(m));
    }
  }
  std::vector<ModelSpec> models;
  for (auto& [name, model] : by_name) models.push_back(std::move(model));
  return models;
}

std::vector<std::string> ModelZoo::names() const {
  std::vector<std::string> names;
  for (const ModelSpec& m : all()) names.push_back(m.name);
  return names;
}

ModelSpec ModelZoo::find(const std::string& name_or_path) const {
  if (name_or_path.ends_with(".json")) return load_model(name_or_path);
  // A file named after the model spares reading the others; later directories win.
  const std::string wanted = lower(name_or_path);
  for (auto d = directories_.rbegin(); d != directories_.rend(); ++d) {
    const std::filesystem::path file = std::filesystem::path(*d) / (wanted + ".json");
    std::error_code error;
    if (!std::filesystem::is_regular_file(file, error)) continue;
    ModelSpec m = load_model(file.string());
    if (lower(m.name) == wanted) return m;
  }
  std::vector<std::string> known;
  for (ModelSpec& m : all()) {
    if (lower(m.name) == wanted) return m;
    for (const std::string& alias : m.aliases) {
      if (lower(alias) == wanted) return m;
      known.push_back(alias);
    }
    known.push_back(m.name);
  }
  throw InputError("", "", fmt::format("unknown model \"{}\"", name_or_path),
                   suggest(name_or_path, known));
}

}  // namespace medley
