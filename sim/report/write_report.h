#pragma once

#include <string>

#include "sim/report/analysis.h"
#include "sim/report/bottlenecks.h"
#include "sim/report/uncertainty.h"

namespace medley {

/// What was also run; null: nothing.
struct ReportExtras {
  const Uncertainty* draws = nullptr;
  const Bottlenecks* bottlenecks = nullptr;
  const FidelityCheck* fidelity = nullptr;
};

/// Writes the whole report of a run (results/README.md lists its files) into `directory`, which
/// appears complete or not at all (OutputDirectory). What is written follows Scenario::report.
/// `more`: its parameter draws, which fill further columns and uncertainty.csv, and other runs of
/// the same load.
/// Throws InputError for a refused target and std::runtime_error when the disk says no.
void write_report(const Analysis& analysis, const std::string& directory, bool overwrite,
                  const ReportExtras& more = {});

}  // namespace medley
