// The shipped sample traces: made again from their recipes, and what their README says of them.
#include "tests/support/traces.h"
#include "workloads/trace_stats.h"
#include "workloads/trace_write.h"

using namespace medley;

namespace {
const std::string kDir = std::string(MEDLEY_SOURCE_DIR) + "/workloads/traces/";

struct Shipped {
  const char* name;
  std::int64_t requests;
  double rate, in_mean, out_mean, burstiness, reuse;  // as published for the traffic imitated
};
constexpr Shipped kShipped[] = {
    {"chat", 20000, 5.53, 1155, 211, 1.4, 0.0},
    {"code", 10000, 2.57, 2048, 27.9, 13.2, 0.0},
    {"long-context", 12000, 3.40, 12035, 343, 1.0, 0.374},
};

bool near(double a, double b, double relative) {
  return std::abs(a - b) <= relative * std::abs(b) + 1e-12;
}
}  // namespace

TEST_CASE("recipes make the shipped traces again, byte for byte") {
  for (const Shipped& s : kShipped) {
    CAPTURE(s.name);
    const TraceRecipe recipe = load_trace_recipe(kDir + "recipes/" + s.name + ".json");
    const Trace made = build_trace(recipe.workload, recipe.seed);
    check_trace(made);
    const std::string text = native_csv(made);
    CHECK(text == read_file(kDir + s.name + ".csv.gz"));
    const ScratchDirectory dir;
    write_native_csv(made, dir.path() + "/t.csv.gz");
    CHECK(std::filesystem::file_size(dir.path() + "/t.csv.gz") < 300'000);
    CHECK(read_file(dir.path() + "/t.csv.gz") == text);
  }
}

TEST_CASE("shipped traces are close to the statistics they imitate") {
  for (const Shipped& s : kShipped) {
    CAPTURE(s.name);
    TraceFileSpec spec;
    spec.file = spec.path = kDir + s.name + ".csv.gz";
    const Trace t = read_trace(spec);
    check_trace(t);
    const TraceStats stats = trace_stats(t);
    CHECK(stats.requests == s.requests);
    CHECK(stats.requests >= 10'000);
    CHECK(near(stats.rate_per_s, s.rate, 0.05));
    CHECK(near(stats.input.mean, s.in_mean, 0.08));
    CHECK(near(stats.output.mean, s.out_mean, 0.08));
    CHECK(near(stats.burstiness, s.burstiness, 0.10));
    CHECK(near(stats.ideal_prefix_reuse, s.reuse, 0.02));
  }
}
