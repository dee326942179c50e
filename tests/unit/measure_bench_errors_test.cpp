// Bad results of load generators: where, what, and all at once.
#include <doctest/doctest.h>

#include "sim/core/error.h"
#include "sim/measure/bench_result.h"
#include "tests/support/scratch_directory.h"

using namespace medley;

namespace {
std::vector<Problem> bench_problems(const std::string& text, const std::string& name = "x.json",
                                    const std::string& format = "auto") {
  const ScratchDirectory dir;
  try {
    read_bench(dir.write(name, text), format);
  } catch (const InputError& error) {
    return error.problems();
  }
  return {};
}

bool tells(const std::vector<Problem>& problems, std::size_t i, const std::string& pointer,
           const std::string& message) {
  return i < problems.size() && problems[i].pointer == pointer &&
         (problems[i].message + " " + problems[i].hint).find(message) != std::string::npos;
}
}  // namespace

TEST_CASE("a result that breaks off, is no JSON, or is nothing that is known") {
  CHECK(tells(bench_problems("{\"completed\": 1,\n \"duration\": 2"), 0, "line 1", "breaks off"));
  CHECK(tells(bench_problems("{\"completed\": 1, \"duration\": 1}\n{\"a\": tru}"), 0, "line 2",
              "not valid JSON"));
  CHECK(tells(bench_problems("{\"completed\": 1, \"duration\": 1}\nhello"), 0, "line 2",
              "no JSON object"));
  CHECK(tells(bench_problems("{\"a\": 1}"), 0, "", "no load generator"));
  CHECK(tells(bench_problems("a,b\n1,2\n", "x.csv"), 0, "", "known: vllm-bench"));
  CHECK(tells(bench_problems("metrics:\n  a: 1\n", "x.yaml"), 0, "", "YAML"));
  CHECK(tells(bench_problems(""), 0, "", "empty"));
  CHECK(tells(bench_problems("{}", "x.json", "vlm-bench"), 0, "", "vllm-bench"));
  CHECK_THROWS_AS(read_bench("no/such/file.json"), InputError);
}

TEST_CASE("wrong types are told by pointer, all of a file's at once") {
  const auto problems = bench_problems(
      R"({"completed": "many", "duration": 2, "request_rate": -1, "mean_ttft_ms": [1], "model_id": 5})");
  REQUIRE(problems.size() == 4);
  CHECK(tells(problems, 0, "/model_id", "not text"));
  CHECK(tells(problems, 1, "/request_rate", "not above 0"));
  CHECK(tells(problems, 2, "/completed", "not a number"));
  CHECK(tells(problems, 3, "/mean_ttft_ms", "is array"));
  const auto second = bench_problems(
      "{\"completed\": 1, \"duration\": 1}\n{\"completed\": 1, \"duration\": true}\n");
  CHECK(tells(second, 0, "line 2 /duration", "is boolean"));
}

TEST_CASE("several formats in one file, arrays of different lengths, nothing completed") {
  CHECK(tells(bench_problems("{\"completed\": 1, \"duration\": 1}\n{\"benchmarks\": []}"), 0,
              "line 2 ", "is of format guidellm"));
  CHECK(tells(bench_problems(R"({"completed": 2, "duration": 1, "input_lens": [1, 2],
    "output_lens": [1], "ttfts": [1, 2]})"),
              0, "/output_lens", "has 1 elements, input_lens has 2"));
  CHECK(tells(bench_problems(R"({"completed": 0, "duration": 1})"), 0, "", "no request was"));
  CHECK(
      tells(bench_problems(R"({"completed": 2, "duration": 1, "input_lens": [1], "output_lens": [1],
    "itls": [["a"]]})"),
            0, "/itls", "no list of numbers"));
}

TEST_CASE("CSV tables: an unknown unit, a cell that is no number, one that is missing") {
  const auto problems = bench_problems(
      "Metric,avg,p50\nTime To First Token (furlongs),1,2\nRequest Latency (ms),abc,2\n"
      "Inter Token Latency (ms),5\n",
      "x.csv");
  REQUIRE(problems.size() == 3);
  CHECK(tells(problems, 0, "line 2", "no unit of time"));
  CHECK(tells(problems, 1, "line 3", "`abc` is not a number"));
  CHECK(tells(problems, 2, "line 4", "no cell for column p50"));
  CHECK(tells(
      bench_problems("prompt_tokens,generation_tokens,ttft,generation_time\n5,5,x,1\n", "x.csv"), 0,
      "line 2", "ttft holds no number"));
}

TEST_CASE("a folder without stages, and stages that are wrong, each with its file") {
  const ScratchDirectory dir;
  CHECK_THROWS_AS(read_bench(dir.path()), InputError);
  dir.write("stage_0_lifecycle_metrics.json", "{\"load_summary\": {}, \"successes\": {}}");
  dir.write("stage_1_lifecycle_metrics.json", "{");
  try {
    read_bench(dir.path());
    FAIL("read");
  } catch (const InputError& error) {
    REQUIRE(error.problems().size() == 2);
    CHECK(error.problems()[0].file.ends_with("stage_0_lifecycle_metrics.json"));
    CHECK(error.problems()[1].file.ends_with("stage_1_lifecycle_metrics.json"));
  }
}
