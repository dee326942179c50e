#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "sim/core/text_file.h"
#include "sim/scenario/load.h"
#include "sim/scenario/validate.h"

using namespace medley;

namespace {
const std::string kConfigs = std::string(MEDLEY_SOURCE_DIR) + "/configs";

std::vector<std::string> shipped() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(kConfigs + "/scenarios")) {
    files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

LoadedScenario load(const std::string& path, bool build_trace) {
  LoadOptions options;
  options.path = path;
  options.build_trace = build_trace;
  return load_with_catalog(options);
}
}  // namespace

TEST_CASE("every shipped scenario loads, fits and is in the table of configs/README.md") {
  const std::string readme = read_file(kConfigs + "/README.md");
  CHECK(shipped().size() >= 7);
  for (const std::string& path : shipped()) {
    INFO(path);
    const LoadedScenario loaded = load(path, false);
    const Scenario& s = loaded.scenario;
    CHECK(check_feasible(*loaded.catalog, s).size() == s.pools.size());
    CHECK(readme.find("`" + s.name + ".json`") != std::string::npos);
    CHECK(s.resolved_json.find("\"/") == std::string::npos);  // no absolute path

    LoadOptions again;
    again.path = path;
    again.text = s.resolved_json;
    again.build_trace = false;
    CHECK(load_scenario(again).resolved_json == s.resolved_json);
  }
}

TEST_CASE("the default scenario is a mixed fleet") {
  const LoadedScenario loaded = load(kConfigs + "/scenarios/mixed_fleet.json", true);
  const Scenario& s = loaded.scenario;
  std::set<std::string> devices, vendors, models;
  for (const PoolSpec& pool : s.pools) {
    devices.insert(s.nodes[pool.node_group].device.name);
    vendors.insert(s.nodes[pool.node_group].device.vendor);
    models.insert(pool.model.name);
  }
  CHECK(devices.size() >= 4);
  CHECK(vendors.size() >= 3);
  CHECK(models.size() == 2);
  CHECK(s.trace.requests.size() >= 10000);
  CHECK(s.trace.classes.size() == 2);
}
