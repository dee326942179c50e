#include "sim/scenario/document.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "sim/core/json_reader.h"
#include "sim/scenario/paths.h"

namespace medley {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {
constexpr std::size_t kDeepestInclude = 32;

/// Lays `from` over `into`, objects member by member, and notes where the values came from.
void merge(Json& into, Json&& from, const std::string& pointer, const std::string& origin,
           std::map<std::string, std::string>& origins) {
  if (into.is_object() && from.is_object()) {
    for (auto& [key, value] : from.items()) {
      const std::string below = pointer_join(pointer, key);
      if (const auto it = into.find(key); it != into.end()) {
        merge(*it, std::move(value), below, origin, origins);
      } else {
        into[key] = std::move(value);
        origins[below] = origin;
      }
    }
    return;
  }
  into = std::move(from);
  std::erase_if(origins, [&](const auto& o) { return o.first.starts_with(pointer + "/"); });
  origins[pointer] = origin;
}

class Includer {
 public:
  explicit Includer(std::string root_file) : root_file_(std::move(root_file)) {}

  /// `json` of `file` with everything it includes underneath.
  Json expand(Json json, const std::string& file, std::map<std::string, std::string>& origins) {
    if (!json.is_object()) {
      throw InputError(file, "", "a scenario is a JSON object", "start with {");
    }
    stack_.push_back(fs::weakly_canonical(file).string());
    names_.push_back(file);
    Json merged = Json::object();
    std::map<std::string, std::string> merged_origins;
    const std::vector<std::string> names = included_by(json, file);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string child = resolve_path(fs::path(file).parent_path().string(), names[i]);
      const std::string pointer = fmt::format("/include/{}", i);
      check_cycle(child, file, pointer);
      std::map<std::string, std::string> child_origins;
      Json value = expand(read(child, file, pointer, names[i]), child, child_origins);
      merge_tree(merged, std::move(value), child, child_origins, merged_origins);
    }
    json.erase("include");
    if (file != root_file_) rebase(json, file);
    merge_tree(merged, std::move(json), file, {}, merged_origins);
    origins = std::move(merged_origins);
    stack_.pop_back();
    names_.pop_back();
    return merged;
  }

 private:
  static std::vector<std::string> included_by(const Json& json, const std::string& file) {
    Problems problems;
    ObjectReader reader(json, file, "", problems);
    const std::string single = json.contains("include") && json["include"].is_string()
                                   ? json["include"].get<std::string>()
                                   : "";
    auto names = single.empty() ? reader.texts_or_empty("include") : std::vector{single};
    problems.throw_if_any();
    return names;
  }

  static Json read(const std::string& child, const std::string& file, const std::string& pointer,
                   const std::string& name) {
    if (!fs::is_regular_file(child)) {
      throw InputError(file, pointer, fmt::format("cannot include \"{}\": no such file", name),
                       "paths are relative to the file that includes");
    }
    return load_json(child);
  }

  void check_cycle(const std::string& child, const std::string& file,
                   const std::string& pointer) const {
    const std::string key = fs::weakly_canonical(child).string();
    const auto it = std::find(stack_.begin(), stack_.end(), key);
    if (it != stack_.end()) {
      std::vector<std::string> ring(names_.begin() + (it - stack_.begin()), names_.end());
      ring.push_back(child);
      throw InputError(file, pointer, fmt::format("cyclic include: {}", fmt::join(ring, " -> ")),
                       "remove one of the includes");
    }
    if (stack_.size() >= kDeepestInclude) {
      throw InputError(file, pointer,
                       fmt::format("includes nested deeper than {}", kDeepestInclude));
    }
  }

  /// Merges a whole tree whose own parts came from `inner` (or else `file`).
  static void merge_tree(Json& into, Json&& from, const std::string& file,
                         const std::map<std::string, std::string>& inner,
                         std::map<std::string, std::string>& origins) {
    merge(into, std::move(from), "", file, origins);
    for (const auto& [pointer, origin] : inner) origins[pointer] = origin;
  }

  /// Paths of an included file are relative to it; rewritten to start from the scenario's folder.
  void rebase(Json& json, const std::string& file) const {
    const std::string from = fs::path(file).parent_path().string();
    const std::string to = fs::path(root_file_).parent_path().string();
    each_path(json, [&](std::string& path) {
      // What is not there may be in the shipped data, which needs no rewriting.
      if (fs::exists(fs::path(from) / path)) path = rebase_path(path, from, to);
    });
  }

  std::string root_file_;
  std::vector<std::string> stack_;  ///< canonical, for comparing
  std::vector<std::string> names_;  ///< as shown
};
}  // namespace

std::string pointer_join(const std::string& pointer, std::string_view key) {
  std::string out = pointer + "/";
  for (const char c : key) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

const std::string& Document::origin(std::string pointer) const {
  while (!pointer.empty()) {
    if (const auto it = origins.find(pointer); it != origins.end()) return it->second;
    pointer.resize(pointer.rfind('/') == std::string::npos ? 0 : pointer.rfind('/'));
  }
  return file;
}

std::vector<Problem> Document::blame(const std::vector<Problem>& problems) const {
  std::vector<Problem> out = problems;
  for (Problem& p : out) {
    if (p.file == file && p.pointer.starts_with('/')) p.file = origin(p.pointer);
  }
  return out;
}

Document load_document(const LoadOptions& options) {
  Document document;
  document.file = options.path;
  Json json = options.text ? parse_json(*options.text, options.path) : load_json(options.path);
  Includer includer(options.path);
  document.root =
      std::make_unique<Json>(includer.expand(std::move(json), options.path, document.origins));
  Problems problems;
  for (const std::string& text : options.overrides) apply_override(text, document, problems);
  problems.throw_if_any();
  // Absolute paths stay out of resolved scenarios, and with them out of every output.
  const std::string folder = fs::path(options.path).parent_path().string();
  each_path(*document.root, [&](std::string& path) {
    if (fs::path(path).is_absolute()) path = rebase_path(path, "", folder);
  });
  *document.root = Json(nlohmann::json(*document.root));  // sorts the keys
  return document;
}

}  // namespace medley
