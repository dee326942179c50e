#pragma once

// Private to sim/scenario/schema*.cpp.

#include <vector>

#include "sim/scenario/schema.h"

namespace medley {

SchemaSection general_section();
SchemaSection nodes_section();
SchemaSection fabric_section();
SchemaSection pools_section();
SchemaSection engine_section();
SchemaSection failures_section();
std::vector<SchemaSection> tier_sections();
std::vector<SchemaSection> workload_sections();
std::vector<SchemaSection> settings_sections();

}  // namespace medley
