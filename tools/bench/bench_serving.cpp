// Serving speed: the Mooncake conversation trace on 8 replicas of an 8-GPU node (when the shared
// data is there), and generated chat requests on a mixed fleet. Prints figures; nothing gates.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "sim/core/error.h"
#include "sim/runtime/simulation.h"
#include "sim/scenario/load.h"

using namespace medley;

namespace {

constexpr const char* kMooncake = R"({
  "schema": "medley.scenario/1", "name": "mooncake",
  "cluster": {"nodes": {"n": {"type": "8xh100-sxm", "count": 1}}},
  "pools": {"p": {"node": "n", "model": "llama-3.1-8b", "backend": "vllm-2026", "replicas": 8,
                  "max_num_batched_tokens": 8192, "max_num_seqs": 256, "block_size": 16,
                  "enable_prefix_caching": true}},
  "routing": {"policy": "least_outstanding_requests"},
  "workload": {"sources": {"mooncake": {"trace": {"file": "TRACE"}, "model": "llama-3.1-8b"}}}
})";

void report(const std::string& what, const LoadedScenario& loaded, int reps) {
  double best = 1e300;
  RunResult r;
  for (int i = 0; i < reps; ++i) {
    r = run(*loaded.catalog, loaded.scenario);
    best = std::min(best, r.loop_wall_s);
  }
  std::int64_t steps = 0, cached = 0, prompt = 0;
  for (const ReplicaRecord& rep : r.replicas) {
    steps += rep.steps;
    cached += rep.cached_tokens;
    prompt += rep.prompt_tokens;
  }
  const double n = static_cast<double>(r.requests.size());
  fmt::print("{:<34} {:>9} {:>10.1f} ms {:>12.0f} {:>11} {:>11} {:>7.1f} %\n", what,
             r.requests.size(), best * 1e3, n / best, r.events, steps,
             100.0 * static_cast<double>(cached) / static_cast<double>(cached + prompt));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"medley serving benchmark"};
  int reps = 5;
  std::string trace;
  std::vector<std::string> scenarios;
  app.add_option("--reps", reps, "repetitions; the best is printed");
  app.add_option("--trace", trace,
                 "Mooncake conversation trace (default: from MEDLEY_SHARED_DATA)");
  app.add_option("scenarios", scenarios, "further scenario files to time");
  CLI11_PARSE(app, argc, argv);
  fmt::print("{:<34} {:>9} {:>13} {:>12} {:>11} {:>11} {:>9}\n", "case", "requests", "event loop",
             "requests/s", "events", "steps", "cached");
  try {
    if (trace.empty()) {
      const char* root = std::getenv("MEDLEY_SHARED_DATA");
      trace = std::string(root != nullptr ? root : "../shared/data") +
              "/traces/mooncake/conversation_trace.jsonl";
    }
    if (std::filesystem::exists(trace)) {
      LoadOptions options;
      options.path = "mooncake.json";
      std::string text = kMooncake;
      text.replace(text.find("TRACE"), 5, std::filesystem::absolute(trace).string());
      options.text = text;
      LoadedScenario loaded = load_with_catalog(options);
      report("mooncake, fast-forward", loaded, reps);
      loaded.scenario.fast_forward = false;
      report("mooncake, step by step", loaded, reps);
    } else {
      fmt::print("mooncake: skipped, no {}\n", trace);
    }
    for (const std::string& path : scenarios) {
      LoadOptions options;
      options.path = path;
      report(path, load_with_catalog(options), 1);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
