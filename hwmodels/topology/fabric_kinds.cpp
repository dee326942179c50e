#include <fmt/format.h>

#include "hwmodels/topology/kinds.h"

namespace medley {

const std::vector<FabricKindInfo>& fabric_kinds() {
  static const std::vector<FabricKindInfo> kinds = {
      switch_kind(),    leaf_spine_kind(), fat_tree_kind(), rail_kind(), dragonfly_kind(),
      wan_kind(),       nvswitch_kind(),   mesh_kind(),     ring_kind(), torus_kind(),
      pcie_tree_kind(), numa_kind(),       cxl_pool_kind(), list_kind()};
  return kinds;
}

const FabricKindInfo* find_fabric_kind(std::string_view name) {
  for (const FabricKindInfo& kind : fabric_kinds()) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

std::string fabric_kinds_markdown() {
  constexpr const char* kJoins[] = {"NICs", "devices", "sockets", "(inside of a server)"};
  std::string text = "| kind | joins | parameters (default) |\n|---|---|---|\n";
  for (const FabricKindInfo& kind : fabric_kinds()) {
    std::string params;
    for (const FabricParam& p : kind.params) {
      params +=
          fmt::format("{}`{}` ({}): {}", params.empty() ? "" : "; ", p.name, p.fallback, p.summary);
    }
    text +=
        fmt::format("| `{}`: {} | {} | {} |\n", kind.name, kind.summary,
                    kJoins[static_cast<std::size_t>(kind.ports)], params.empty() ? "-" : params);
  }
  return text;
}

}  // namespace medley
