#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace medley {

/// `name` seen from `folder`; absolute names stay.
std::string resolve_path(const std::string& folder, const std::string& name);

/// A path relative to folder `from`, written relative to folder `to`.
std::string rebase_path(const std::string& path, const std::string& from, const std::string& to);

/// Calls `visit` for every value of a scenario that names a file or folder, so that it can be
/// rewritten.
void each_path(nlohmann::ordered_json& root, const std::function<void(std::string&)>& visit);

}  // namespace medley
