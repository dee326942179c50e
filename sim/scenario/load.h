#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hwmodels/catalog.h"
#include "sim/scenario/scenario.h"

namespace medley {

/// What a command adds to a scenario file.
struct LoadOptions {
  std::string path;                       ///< scenario file; its folder anchors relative paths
  std::vector<std::string> overrides;     ///< "a.b.c=value", applied in order
  std::vector<std::string> catalog_dirs;  ///< searched before those the scenario names
  std::vector<std::string> model_dirs;    ///< likewise, model zoo
  bool assume_missing = false;            ///< fill unknown power and price with class priors
  bool build_trace = true;                ///< false: Scenario::trace stays empty
  std::optional<std::string> text;        ///< read this in place of the file at `path`
};

/// A scenario with the catalogue that it was resolved against (links are looked up in it at run
/// time).
struct LoadedScenario {
  std::unique_ptr<Catalog> catalog;
  Scenario scenario;
};

/// From a file to a frozen scenario:
///   strict JSON -> includes merged (later wins, the including file last) -> overrides -> strict
///   reading -> names resolved against catalogue and zoo -> validation -> trace.
/// Maps by name are unordered: they are read sorted by name, so the order of keys in a file never
/// changes a result. Throws InputError with every problem found, each naming the file (or the
/// override) that its value came from.
/// Law: loading Scenario::resolved_json from the same folder gives the same resolved_json.
LoadedScenario load_with_catalog(const LoadOptions& options);
Scenario load_scenario(const LoadOptions& options);

}  // namespace medley
