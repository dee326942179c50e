#pragma once

#include <string>

#include "sim/report/analysis.h"
#include "sim/report/uncertainty.h"

namespace medley {

/// Writes the whole report of a run (results/README.md lists its files) into `directory`, which
/// appears complete or not at all (OutputDirectory). What is written follows Scenario::report.
/// `draws`: its parameter draws, which fill further columns and uncertainty.csv.
/// Throws InputError for a refused target and std::runtime_error when the disk says no.
void write_report(const Analysis& analysis, const std::string& directory, bool overwrite,
                  const Uncertainty* draws = nullptr);

}  // namespace medley
