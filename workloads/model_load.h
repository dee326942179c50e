#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/core/error.h"
#include "workloads/model.h"

namespace medley {

/// The two readers behind load_model. Problems are collected; the result is meaningless when any
/// was added.
ModelSpec read_zoo_model(const nlohmann::ordered_json& root, const std::string& file,
                         Problems& problems);
ModelSpec read_hf_config(const nlohmann::ordered_json& root, const std::string& file,
                         Problems& problems);

/// Largest size any field of a description may have.
inline constexpr std::int64_t kMaxModelSize = 100'000'000;

inline constexpr std::int64_t kMostLayers = 10'000;

/// Rules no single key shows: one window and one expert layout per model, KV heads that divide the
/// heads, top-k within the experts.
void check_model(const ModelSpec& model, const std::string& pointer, Problems& problems);
/// Appends `group`, joined to the last one where equal.
void append_layers(std::vector<LayerGroup>& layers, const LayerGroup& group);

}  // namespace medley
