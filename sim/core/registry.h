#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/core/error.h"

namespace medley {

/// One parameter of a registered policy: what `medley list`, defaults and strict keys come from.
struct ParamInfo {
  std::string name;
  double fallback = 0.0;
  double min = 0.0;
  double max = 0.0;
  std::string summary;  ///< with unit
};

/// Name -> {summary, parameters, factory}. Registration is explicit (one `add` line in
/// sim/serving/routing.cpp): static initialisers are dropped from static libraries by the linker.
template <class Factory>
class Registry {
 public:
  struct Entry {
    std::string summary;
    std::vector<ParamInfo> params;
    Factory make;
  };
  explicit Registry(std::string kind) : kind_(std::move(kind)) {}
  void add(std::string name, std::string summary, std::vector<ParamInfo> params, Factory make) {
    entries_.emplace(std::move(name),
                     Entry{std::move(summary), std::move(params), std::move(make)});
  }
  const Entry* find(std::string_view name) const {
    const auto it = entries_.find(std::string(name));
    return it == entries_.end() ? nullptr : &it->second;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [name, entry] : entries_) all.push_back(name);
    return all;
  }
  const std::map<std::string, Entry>& entries() const { return entries_; }
  const std::string& kind() const { return kind_; }

 private:
  std::string kind_;
  std::map<std::string, Entry> entries_;
};

}  // namespace medley
