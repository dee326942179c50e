#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/core/error.h"
#include "sim/network/algorithms.h"

namespace medley {

std::string_view to_string(CollectiveKind kind) {
  constexpr std::string_view kNames[kCollectiveKinds] = {
      "all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "send_recv"};
  return kNames[static_cast<int>(kind)];
}

const std::vector<CollectiveAlgorithm>& collective_algorithms() {
  static const std::vector<CollectiveAlgorithm> all = {
      ring_algorithm(),         double_tree_algorithm(), halving_doubling_algorithm(),
      direct_algorithm(),       one_shot_algorithm(),    two_shot_algorithm(),
      hierarchical_algorithm(), in_switch_algorithm(),   nvls_algorithm(),
  };
  return all;
}

const CollectiveAlgorithm& collective_algorithm(std::string_view name) {
  std::vector<std::string> known;
  for (const CollectiveAlgorithm& a : collective_algorithms()) {
    if (a.name == name) return a;
    known.push_back(a.name);
  }
  known.push_back("auto");
  throw InputError("", "", fmt::format("unknown collective algorithm \"{}\"", name),
                   suggest(name, known));
}

std::uint32_t default_chunks(double bytes) {
  constexpr double kPiece = 512.0 * 1024.0;
  return static_cast<std::uint32_t>(std::clamp(std::ceil(bytes / kPiece), 1.0, 64.0));
}

}  // namespace medley
