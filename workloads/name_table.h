#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace medley {

/// Names numbered in order of first use.
class NameTable {
 public:
  /// Nothing when `name` would be number `most` + 1.
  std::optional<std::uint32_t> id(std::string_view name, std::uint32_t most) {
    if (!list_.empty() && name == list_[last_]) return last_;  // columns change rarely
    key_.assign(name);
    const auto [it, added] = index_.try_emplace(key_, static_cast<std::uint32_t>(list_.size()));
    if (added && list_.size() > most) return std::nullopt;
    if (added) list_.push_back(key_);
    last_ = it->second;
    return last_;
  }
  std::vector<std::string> take() { return std::move(list_); }

 private:
  std::string key_;
  std::uint32_t last_ = 0;
  std::unordered_map<std::string, std::uint32_t> index_;
  std::vector<std::string> list_;
};

}  // namespace medley
