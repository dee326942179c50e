#pragma once

#include <string>
#include <vector>

#include "sim/core/provenance.h"
#include "sim/scenario/scenario.h"

namespace medley {

/// How many numbers of one catalogue entry are known, by class, and how many are not.
struct ProvenanceCount {
  std::string kind;  ///< "device", "node", "backend"
  std::string name;
  int known[kProvenanceClasses] = {};
  int unknown = 0;
};

/// Those of every device, node type and backend that the scenario uses, overrides applied, in order
/// of first use. Formats that a device does not have are not counted as unknown.
std::vector<ProvenanceCount> count_provenance(const Scenario& scenario);

}  // namespace medley
