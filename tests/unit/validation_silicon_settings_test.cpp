// Launch arguments of the closed-loop sample, by origin, engine and device.
#include <doctest/doctest.h>

#include <algorithm>

#include "sim/validation/sets/silicon_settings.h"

using namespace medley;

namespace {
ServingCase applied(const SiliconRun& run, int concurrency, int tensor_parallel) {
  ServingCase c;
  c.concurrency = concurrency;
  c.tensor_parallel = tensor_parallel;
  apply_launch_settings(run, c);
  return c;
}
bool sets(const ServingCase& c, const char* line) {
  return std::find(c.overrides.begin(), c.overrides.end(), line) != c.overrides.end();
}
const std::string kApril = "source_file=2026-04-06.csv; measured=2026-04-05T01:02:03Z";
const std::string kMarch = "source_file=2026-03-25.csv; measured=2026-03-20T01:02:03Z";
}  // namespace

TEST_CASE("origin and date of a run of the sample") {
  const SiliconRun nightly{kApril, "b200_sxm", "vllm", "minimax-m2.5", "fp8", 8192, 1024};
  CHECK(nightly.inferencex());
  CHECK(nightly.measured() == "2026-04-05");
  const SiliconRun own{
      "source_file=/home/x.csv; silicon_concurrency=8", "h100_sxm", "vllm", "", "", 1, 1};
  CHECK(!own.inferencex());
  CHECK(own.measured().empty());
}

TEST_CASE("the recipe of a model changes with its date and device") {
  SiliconRun run{kApril, "b200_sxm", "vllm", "minimax-m2.5", "fp8", 8192, 1024};
  const ServingCase later = applied(run, 16, 4);
  CHECK(later.max_num_batched_tokens == 2 * 8192);
  CHECK(later.kv_cache_dtype == "fp8");
  CHECK(!later.expert_parallel);
  run.source = kMarch;
  const ServingCase earlier = applied(run, 16, 4);
  CHECK(earlier.max_num_batched_tokens == 0);
  CHECK(earlier.expert_parallel);
  CHECK(sets(earlier, "pools.p.gpu_memory_utilization=0.95"));
}

TEST_CASE("TensorRT-LLM does not chunk: a prompt and its answer fit in one step") {
  const SiliconRun run{kApril, "h200_sxm", "trtllm", "deepseek-r1", "fp8", 8192, 1024};
  const ServingCase c = applied(run, 4, 8);
  CHECK(sets(c, "pools.p.scheduler=continuous"));
  CHECK(sets(c, "pools.p.max_model_len=9224"));
  CHECK(c.max_num_batched_tokens == 9224);  // more than (4 + 8192 + 127) / 64 * 64 = 8320
  const SiliconRun own{
      "source_file=/home/x.csv", "h100_sxm", "trtllm", "llama-3.1-8b", "", 1024, 128};
  CHECK(applied(own, 8, 1).max_num_batched_tokens == 128 + 1024 + 1500);
}
