// The shipped scenario of KV tiers does what it says.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/runtime/simulation.h"
#include "sim/scenario/load.h"

using namespace medley;

namespace {
struct Outcome {
  double hits = 0.0;  ///< share of prompt tokens found, tiers included
  double ttft = 0.0;  ///< median [s]
};

Outcome outcome_of(std::vector<std::string> overrides) {
  LoadOptions options;
  options.path = std::string(MEDLEY_SOURCE_DIR) + "/configs/scenarios/kv_tiers.json";
  options.overrides = std::move(overrides);
  const LoadedScenario loaded = load_with_catalog(options);
  const RunResult r = run(*loaded.catalog, loaded.scenario);
  double cached = 0.0, asked = 0.0;
  std::vector<double> ttft;
  for (std::size_t i = 0; i < r.requests.size(); ++i) {
    cached += r.requests[i].cached_tokens;
    asked += loaded.scenario.trace.requests[i].input_tokens;
    ttft.push_back((r.requests[i].first_token - r.requests[i].arrival).value());
  }
  std::nth_element(ttft.begin(), ttft.begin() + static_cast<std::ptrdiff_t>(ttft.size() / 2),
                   ttft.end());
  for (const TierRecord& t : r.tiers) CHECK(t.peak <= t.capacity);
  return {cached / asked, ttft[ttft.size() / 2]};
}
}  // namespace

TEST_CASE("each tier of kv_tiers.json raises the hit rate and lowers the time to first token") {
  const Outcome none = outcome_of({"pools.long.kv_tiers=null"});
  const Outcome host =
      outcome_of({R"(pools.long.kv_tiers=[{"where": "host", "capacity": "400 GB"}])"});
  const Outcome both = outcome_of({});
  MESSAGE("hits " << none.hits << ", " << host.hits << " with DRAM, " << both.hits
                  << " with drives too; median TTFT " << none.ttft << ", " << host.ttft << ", "
                  << both.ttft << " s");
  CHECK(host.hits > 2.0 * none.hits);
  CHECK(both.hits > host.hits);
  CHECK(both.hits < 0.38);  // what an endless cache finds, and little more at the ends of ids
  CHECK(host.ttft < none.ttft);
  CHECK(both.ttft < host.ttft);
}
