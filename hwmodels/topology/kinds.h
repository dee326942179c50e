#pragma once

// One function per structure, called by fabric_kinds.cpp alone; private to hwmodels/topology.

#include "hwmodels/topology/fabric.h"

namespace medley {

FabricKindInfo switch_kind();
FabricKindInfo nvswitch_kind();
FabricKindInfo mesh_kind();
FabricKindInfo ring_kind();
FabricKindInfo torus_kind();
FabricKindInfo leaf_spine_kind();
FabricKindInfo fat_tree_kind();
FabricKindInfo rail_kind();
FabricKindInfo dragonfly_kind();
FabricKindInfo pcie_tree_kind();
FabricKindInfo numa_kind();
FabricKindInfo cxl_pool_kind();
FabricKindInfo wan_kind();
FabricKindInfo list_kind();

// Parameters that kinds have in common.
inline FabricParam link_param(std::string name, std::string fallback, std::string summary) {
  return {std::move(name),
          FabricParam::Type::kLink,
          std::move(fallback),
          std::move(summary),
          1.0,
          1.0,
          {}};
}
inline FabricParam count_param(std::string name, std::string fallback, std::string summary,
                               double min = 1.0, double max = 1e6) {
  return {std::move(name),
          FabricParam::Type::kCount,
          std::move(fallback),
          std::move(summary),
          min,
          max,
          {}};
}
inline FabricParam time_param(std::string name, std::string fallback, std::string summary) {
  return {std::move(name),
          FabricParam::Type::kTime,
          std::move(fallback),
          std::move(summary),
          0.0,
          10.0,
          {}};
}

}  // namespace medley
