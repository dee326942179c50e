// Every shipped scenario: fast-forward equals step by step, nobody is lost, energy adds up.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "sim/runtime/simulation.h"
#include "sim/scenario/load.h"
#include "tests/support/builders.h"

using namespace medley;

TEST_CASE("every shipped scenario: fast-forward equals step by step to 1e-9") {
  std::vector<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(MEDLEY_SOURCE_DIR) + "/configs/scenarios")) {
    if (entry.path().extension() == ".json") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  CHECK(files.size() >= 6);
  for (const std::string& file : files) {
    CAPTURE(file);
    LoadOptions options;
    options.path = file;
    // The million-request fleet in a tenth of the time: every replica still has its share.
    if (file.ends_with("big_fleet.json")) options.overrides = {"horizon=60 s"};
    LoadedScenario loaded = load_with_catalog(options);
    Scenario& s = loaded.scenario;
    s.fast_forward = true;
    const RunResult fast = run(*loaded.catalog, s);
    s.fast_forward = false;
    const RunResult slow = run(*loaded.catalog, s);
    CHECK(fast.arrived == fast.finished + fast.rejected + fast.unfinished);
    CHECK(fast.finished == slow.finished);
    int differing = 0;
    for (std::size_t i = 0; i < fast.requests.size(); ++i) {
      const RequestRecord& a = fast.requests[i];
      const RequestRecord& b = slow.requests[i];
      if (a.status != RequestStatus::kFinished || b.status != a.status) continue;
      // 1 ns of rounding at each end beside 1e-9 of the instant.
      const double tolerance = 2e-9 + 1e-9 * a.last_token.seconds().value();
      const bool same = std::abs((a.last_token - b.last_token).value()) <= tolerance &&
                        std::abs((a.first_token - b.first_token).value()) <= tolerance &&
                        medley::testing::close(a.energy_j, b.energy_j, 1e-9);
      differing += same ? 0 : 1;
    }
    CHECK(differing == 0);
    for (std::size_t k = 0; k < fast.replicas.size(); ++k) {
      CHECK(medley::testing::close(fast.replicas[k].active_energy_j,
                                   slow.replicas[k].active_energy_j, 1e-9));
      CHECK(medley::testing::close(fast.replicas[k].attributed_j, fast.replicas[k].active_energy_j,
                                   1e-9));
    }
  }
}
