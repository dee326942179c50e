// Folded and layered steps on the shipped scenarios whose steps share devices or links.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "sim/core/sim_time.h"
#include "sim/report/bottlenecks.h"
#include "sim/runtime/simulation.h"
#include "sim/scenario/load.h"

using namespace medley;

namespace {
/// The first requests, far enough apart that each is alone.
void keep_apart(Scenario& s) {
  constexpr std::size_t kRequests = 40;
  constexpr std::int64_t kApart = 1000;
  std::vector<Request>& all = s.trace.requests;
  all.erase(std::remove_if(all.begin(), all.end(),
                           [](const Request& r) { return r.arrival == SimTime::max(); }),
            all.end());
  if (all.size() > kRequests) all.resize(kRequests);
  s.trace.follow_ups.clear();
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].arrival = SimTime::from_seconds(Seconds(static_cast<double>(i) * kApart));
  }
  s.measure = {};
  s.horizon.reset();
  s.report.interval = Seconds(0);
}
FidelityCheck check_of(const Catalog& catalog, const Scenario& s) {
  const RunResult result = run(catalog, s);
  return check_fidelity(catalog, Analysis(s, result), nullptr);
}
}  // namespace

TEST_CASE("folded and layered agree to 1 % on every shipped scenario where nobody contends") {
  std::vector<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(MEDLEY_SOURCE_DIR) + "/configs/scenarios")) {
    if (entry.path().extension() == ".json") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  int shared = 0;
  for (const std::string& file : files) {
    if (file.ends_with("big_fleet.json")) continue;  // a million requests, nothing shared
    CAPTURE(file);
    LoadOptions options;
    options.path = file;
    LoadedScenario loaded = load_with_catalog(options);
    Scenario alone = loaded.scenario;
    keep_apart(alone);
    const FidelityCheck apart = check_of(*loaded.catalog, alone);
    CHECK(fidelity_difference(apart) < 0.01);
    if (!apart.shared) {
      CHECK(fidelity_difference(apart) == 0.0);
      continue;
    }
    ++shared;
    const FidelityCheck shipped = check_of(*loaded.catalog, loaded.scenario);
    const std::string figure =
        fmt::format("{}: layered against folded {:.4f} % alone, {:.2f} % as shipped",
                    std::filesystem::path(file).stem().string(), 100 * fidelity_difference(apart),
                    100 * fidelity_difference(shipped));
    MESSAGE(figure);
  }
  CHECK(shared >= 2);
}
