#pragma once

#include <cstdint>

namespace medley {

/// Keys of the array heaps: what orders, packed into one integer.
__extension__ using PackedKey = unsigned __int128;

// a < b as 0 or 1, hidden from the optimiser: GCC 12 would turn what depends on it into branches,
// and one mispredicted branch costs more than a whole level (72 against 49 ns per event).
inline std::uint32_t key_less(const PackedKey& a, const PackedKey& b) {
  std::uint32_t result = a < b ? 1U : 0U;
  __asm__("" : "+r"(result));
  return result;
}

// `second` (0 or 1) chooses b over a, by masks for the same reason.
inline PackedKey pick_key(PackedKey a, PackedKey b, std::uint32_t second) {
  const std::uint64_t mask = 0 - std::uint64_t{second};
  const auto low_a = static_cast<std::uint64_t>(a), high_a = static_cast<std::uint64_t>(a >> 64);
  const auto low_b = static_cast<std::uint64_t>(b), high_b = static_cast<std::uint64_t>(b >> 64);
  const std::uint64_t high = high_a ^ ((high_a ^ high_b) & mask);
  return PackedKey{high} << 64 | (low_a ^ ((low_a ^ low_b) & mask));
}

struct LeastKey {
  PackedKey key;
  std::uint32_t index;
};

/// The least of four, without a branch.
inline LeastKey least_of_4(const PackedKey* k) {
  const std::uint32_t low = key_less(k[1], k[0]);
  const std::uint32_t high = key_less(k[3], k[2]);
  const PackedKey a = pick_key(k[0], k[1], low);
  const PackedKey b = pick_key(k[2], k[3], high);
  const std::uint32_t upper = key_less(b, a);
  return {pick_key(a, b, upper), low ^ ((low ^ (high | 2U)) & (0U - upper))};
}

}  // namespace medley
