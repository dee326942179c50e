#include "workloads/model_load.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "sim/core/json_reader.h"
#include "sim/core/text_file.h"

namespace medley {

namespace {
/// Python writes Infinity and NaN into JSON; neither is JSON. Replaced outside strings by tokens of
/// the same length (so that line and column of other errors stay right): null, and 0.0 for NaN.
std::string without_python_floats(std::string text) {
  constexpr std::string_view kInfinity = "Infinity";
  constexpr std::string_view kNan = "NaN";
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_string) {
      if (text[i] == '\\') {
        ++i;
      } else if (text[i] == '"') {
        in_string = false;
      }
    } else if (text[i] == '"') {
      in_string = true;
    } else if (text.compare(i, kInfinity.size(), kInfinity) == 0) {
      if (i > 0 && text[i - 1] == '-') text[i - 1] = ' ';
      text.replace(i, kInfinity.size(), "null    ");
    } else if (text.compare(i, kNan.size(), kNan) == 0) {
      text.replace(i, kNan.size(), "0.0");
    }
  }
  return text;
}

bool has_window(const LayerGroup& g) {
  return g.window > 0;
}
}  // namespace

void append_layers(std::vector<LayerGroup>& layers, const LayerGroup& group) {
  if (!layers.empty()) {
    LayerGroup same = group;
    same.count = layers.back().count;
    if (same == layers.back()) {
      layers.back().count += group.count;
      return;
    }
  }
  layers.push_back(group);
}

void check_model(const ModelSpec& model, const std::string& pointer, Problems& problems) {
  const auto problem = [&](std::string message, std::string hint) {
    problems.add(model.file, pointer, std::move(message), std::move(hint));
  };
  const LayerGroup* window = nullptr;
  const LayerGroup* moe = nullptr;
  for (const LayerGroup& g : model.layers) {
    if (g.kv_heads > 0 && g.heads % g.kv_heads != 0) {
      problem(
          fmt::format("{} attention heads are not a multiple of {} KV heads", g.heads, g.kv_heads),
          "each KV head serves a whole number of query heads");
      return;
    }
    if (g.mixer == MixerKind::kMoe && g.experts_per_token > g.experts) {
      problem(fmt::format("{} experts per token of {} experts", g.experts_per_token, g.experts),
              "top-k cannot exceed the number of experts");
      return;
    }
    if (has_window(g) && window && window->window != g.window) {
      problem(fmt::format("layers with two different windows ({} and {}) are not supported",
                          window->window, g.window),
              "one window per model");
      return;
    }
    if (g.mixer == MixerKind::kMoe && moe &&
        (moe->experts != g.experts || moe->experts_per_token != g.experts_per_token)) {
      problem("layers with different numbers of experts are not supported",
              "one expert count and top-k per model");
      return;
    }
    if (has_window(g)) window = &g;
    if (g.mixer == MixerKind::kMoe) moe = &g;
  }
}

ModelSpec load_model(const std::string& path) {
  constexpr std::size_t kMaxBytes = std::size_t{16} << 20;
  const nlohmann::ordered_json root =
      parse_json(without_python_floats(read_file(path, kMaxBytes)), path);
  Problems problems;
  if (!root.is_object()) throw InputError(path, "", "a model description is a JSON object");
  ModelSpec model = root.contains("schema") ? read_zoo_model(root, path, problems)
                                            : read_hf_config(root, path, problems);
  problems.throw_if_any();
  return model;
}

}  // namespace medley
