#pragma once

// Private to the Replica's sources.

#include <cstddef>
#include <cstdint>

namespace medley {

inline std::size_t residue(std::int64_t value, std::int64_t modulus) {
  const std::int64_t r = value % modulus;
  return static_cast<std::size_t>(r < 0 ? r + modulus : r);
}
/// Makes std::push_heap and friends keep the earliest in front.
inline constexpr auto kLater = [](const auto& a, const auto& b) { return a > b; };

}  // namespace medley
