#include "sim/core/provenance.h"

#include <array>

namespace medley {

namespace {
constexpr std::array<std::string_view, kProvenanceClasses> kNames = {"measured", "datasheet",
                                                                     "derived", "assumed"};
}  // namespace

std::string_view to_string(Provenance p) {
  return kNames[static_cast<std::size_t>(p)];
}

std::optional<Provenance> parse_provenance(std::string_view text) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (text == kNames[i]) return static_cast<Provenance>(i);
  }
  return std::nullopt;
}

}  // namespace medley
