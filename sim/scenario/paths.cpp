#include "sim/scenario/paths.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

namespace medley {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {
using Visit = std::function<void(std::string&)>;

void visit_text(Json& value, const Visit& visit) {
  if (value.is_string() && !value.get_ref<const std::string&>().empty()) {
    visit(value.get_ref<std::string&>());
  }
}

Json* member(Json& value, const char* key) {
  if (!value.is_object()) return nullptr;
  const auto it = value.find(key);
  return it == value.end() ? nullptr : &*it;
}

/// Members of a workload that map one name to another: no key in them means a file.
bool maps_names(std::string_view key) {
  constexpr std::array kKeys = {"columns", "where", "model_names", "class_names", "tenant_names"};
  return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

void visit_workload(Json& value, const Visit& visit) {
  if (value.is_array()) {
    for (Json& element : value) visit_workload(element, visit);
  }
  if (!value.is_object()) return;
  for (auto& [key, below] : value.items()) {
    if (key == "file" || key == "csv") visit_text(below, visit);
    if (!maps_names(key)) visit_workload(below, visit);
  }
}

void visit_pool(Json& pool, const Visit& visit) {
  if (Json* step = member(pool, "step_model")) {
    if (Json* tables = member(*step, "tables")) visit_text(*tables, visit);
  }
  Json* model = member(pool, "model");
  if (model && model->is_string() && model->get_ref<const std::string&>().ends_with(".json")) {
    visit_text(*model, visit);
  }
}
}  // namespace

std::string resolve_path(const std::string& folder, const std::string& name) {
  return (fs::path(folder) / name).lexically_normal().string();
}

namespace {
/// An empty folder is the current one.
fs::path folder(const std::string& text) {
  return text.empty() ? fs::path(".") : fs::path(text);
}
}  // namespace

std::string rebase_path(const std::string& path, const std::string& from, const std::string& to) {
  const fs::path full = fs::weakly_canonical(fs::absolute(folder(from) / path));
  return full.lexically_relative(fs::weakly_canonical(fs::absolute(folder(to)))).generic_string();
}

void each_path(Json& root, const Visit& visit) {
  for (const char* key : {"catalog", "zoo"}) {
    Json* list = member(root, key);
    if (!list || !list->is_array()) continue;
    for (Json& element : *list) visit_text(element, visit);
  }
  if (Json* pools = member(root, "pools"); pools && pools->is_object()) {
    for (auto& [name, pool] : pools->items()) visit_pool(pool, visit);
  }
  if (Json* workload = member(root, "workload")) visit_workload(*workload, visit);
}

}  // namespace medley
