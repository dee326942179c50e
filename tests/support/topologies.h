#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "hwmodels/catalog.h"
#include "hwmodels/topology/cluster.h"
#include "sim/core/json_reader.h"

namespace medley::testing {

inline FabricSpec fabric_of(const std::string& text) {
  const nlohmann::ordered_json json = parse_json(text, "fabric.json");
  Problems problems;
  ObjectReader reader(json, "fabric.json", "", problems);
  FabricSpec spec = read_fabric(reader, problems);
  problems.throw_if_any();
  return spec;
}

inline Topology topology_of(const Catalog& catalog, const std::string& text) {
  return build_topology(catalog, fabric_of(text));
}

inline ClusterFabricSpec cluster_fabric_of(const Catalog& catalog, const std::string& text) {
  Problems problems;
  ClusterFabricSpec spec = read_cluster_fabric(parse_json(text, "s.json"), "s.json",
                                               "/cluster/fabric", catalog, problems);
  problems.throw_if_any();
  return spec;
}

}  // namespace medley::testing
