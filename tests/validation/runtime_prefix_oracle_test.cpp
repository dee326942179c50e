#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "sim/runtime/simulation.h"
#include "sim/scenario/load.h"

namespace {

/// Share of a trace's input tokens that one replica with an endless cache finds in it.
double cached_share(const std::string& trace) {
  medley::LoadOptions options;
  options.path = "oracle.json";
  options.text = R"({"schema": "medley.scenario/1", "name": "oracle",
    "cluster": {"nodes": {"n": {"type": "8xh100-sxm", "count": 1}}},
    "pools": {"p": {"node": "n", "model": "llama-3.1-8b", "backend": "ideal", "replicas": 1,
                    "max_model_len": 1000000, "max_num_batched_tokens": 8192, "num_gpu_blocks_override": 100000000}},
    "workload": {"sources": {"s": {"model": "llama-3.1-8b", "trace": {"file": ")" +
                 trace + R"("}}}}})";
  const medley::LoadedScenario loaded = medley::load_with_catalog(options);
  const medley::RunResult result = medley::run(*loaded.catalog, loaded.scenario);
  double cached = 0.0, input = 0.0;
  for (std::size_t i = 0; i < result.requests.size(); ++i) {
    cached += result.requests[i].cached_tokens;
    input += loaded.scenario.trace.requests[i].input_tokens;
  }
  return cached / input;
}

}  // namespace

TEST_CASE("an endless prefix cache finds 37.4 % and 65.1 % of two published traces' input tokens") {
  const char* named = std::getenv("MEDLEY_SHARED_DATA");
  const std::string data =
      named != nullptr ? named : std::string(MEDLEY_SOURCE_DIR) + "/../shared/data";
  const std::string folder =
      std::filesystem::absolute(data + "/traces/mooncake").lexically_normal().string();
  if (!std::filesystem::is_directory(folder)) {
    MESSAGE("skipped: the traces are not here");
    return;
  }
  // Our cache never serves a prompt's last token and counts whole 16-token blocks only.
  CHECK(std::abs(cached_share(folder + "/conversation_trace.jsonl") - 0.374) < 0.001);
  CHECK(std::abs(cached_share(folder + "/synthetic_trace.jsonl") - 0.651) < 0.001);
}
