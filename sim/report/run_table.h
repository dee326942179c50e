#pragma once

#include <string>

#include "sim/report/analysis.h"

namespace medley {

/// What `medley run` shows at its end: a line per pool, the fleet, and what the numbers rest on.
/// `colour`: ANSI emphasis for terminals.
std::string run_table(const Analysis& analysis, bool colour);

/// The account of a pool's memory, one line per pool, with the most concurrent requests at usual
/// context lengths.
std::string memory_table(const Scenario& scenario, const std::vector<MemoryAccount>& accounts);

}  // namespace medley
