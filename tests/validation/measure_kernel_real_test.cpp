#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "sim/measure/kernel_screen.h"
#include "sim/measure/read_kernel_table.h"

namespace {
std::string shared_data(const std::string& path) {
  const char* named = std::getenv("MEDLEY_SHARED_DATA");
  const std::string root =
      named != nullptr ? named : std::string(MEDLEY_SOURCE_DIR) + "/../shared/data";
  return root + "/" + path;
}

struct Expected {
  std::string path;
  std::int64_t rows, kept;
  std::size_t collectives;
};

void check_files(const std::vector<Expected>& all) {
  for (const Expected& e : all) {
    CAPTURE(e.path);
    if (!std::filesystem::exists(shared_data(e.path))) {
      MESSAGE("skipped: the measured data is not here");
      continue;
    }
    const medley::KernelTable t = medley::read_kernel_table(shared_data(e.path));
    CHECK(t.account.rows_read == e.rows);
    CHECK(t.account.kept == e.kept);
    CHECK(t.collectives.size() == e.collectives);
    std::int64_t sum = t.account.kept;
    for (const auto& [why, rows] : t.account.dropped) sum += rows;
    CHECK(sum == t.account.rows_read);
    for (const medley::KernelSample& s : t.kernels) {
      if (!(s.time_s > 0.0 && s.bytes > 0.0 && s.flops >= 0.0)) FAIL(s.key());
    }
  }
}
}  // namespace

TEST_CASE("aiconfigurator's own tables") {
  const std::string root = "serving/aiconfigurator/perf-csv/";
  check_files({
      {root + "h100_sxm/gemm", 101003, 101003, 0},
      {root + "h100_sxm/attention", 88712, 85448, 0},
      {root + "h100_sxm/moe", 46494, 22138, 0},
      {root + "h100_sxm/mla", 9724, 9724, 0},
      {root + "h100_sxm/comm", 3302, 3302, 5962},
      {root + "b60/comm", 321, 321, 321},
  });
}

TEST_CASE("LLMServingSim's own profiles") {
  const std::string v2 = "serving/LLMServingSim/v2-profiles/";
  const std::string v0 = "serving/LLMServingSim/v0-profiles/";
  check_files({
      {v2 + "RTX4090/meta-llama/Llama-3.1-8B/bf16/tp1", 10091, 10091, 0},
      {v2 + "RTXPRO6000/Qwen/Qwen3-30B-A3B-Instruct-2507/bf16/tp1", 20558, 20406, 0},
      {v0 + "H100/meta-llama/Llama-3.1-8B/tp1", 30720, 30720, 0},
      {v0 + "TPU-v6e-1/meta-llama/Llama-3.1-8B/tp1", 30624, 30325, 0},
  });
}

TEST_CASE("the other formats' own files") {
  const std::string root = "serving/";
  check_files({
      {root + "vidur", 33144, 33056, 26340},
      {root + "Frontier/compute/h800/Llama-3.1-405B-Instruct-FP8", 12180, 12180, 0},
      {root + "splitwise-sim", 1260, 840, 0},
      {root + "InferSim/bench_data/gemm", 512, 490, 0},
      {root + "LLMCompass/figure5/ab", 42, 42, 0},
  });
}

TEST_CASE("a known outlier of the RTX PRO 6000's GEMMs is found") {
  const std::string path = shared_data("serving/aiconfigurator/perf-csv/rtx_pro_6000_server/gemm");
  if (!std::filesystem::exists(path)) {
    MESSAGE("skipped: the measured data is not here");
    return;
  }
  medley::KernelTable t = medley::read_kernel_table(path);
  CHECK(t.account.rows_read == 114576);
  const medley::Screened s = medley::screen_monotone(t.kernels);
  CHECK(t.kernels.size() + s.removed.size() == 114576);
  // bf16, n 6144, k 4096: 63 us at m 224, 148 and 151 us at 225 and 256, 127 us from 257 on.
  for (const char* m : {"225", "256"}) {
    const std::string key = std::string("gemm|bf16|bf16|n=6144,k=4096,format=bfloat16|") + m;
    CHECK(std::count_if(s.removed.begin(), s.removed.end(),
                        [&](const medley::KernelOutlier& o) { return o.key == key; }) == 1);
  }
  CHECK(s.removed.size() < 114576 / 10);
}

TEST_CASE("experts' weights are counted as they are read: no row beats an H100's memory") {
  const std::string path = shared_data("serving/aiconfigurator/perf-csv/h100_sxm/moe");
  if (!std::filesystem::exists(path)) {
    MESSAGE("skipped: the measured data is not here");
    return;
  }
  double best = 0.0;
  for (const medley::KernelSample& s : medley::read_kernel_table(path).kernels) {
    if (s.bytes > 2e8) best = std::max(best, s.bytes / s.time_s);  // four times the L2
  }
  CHECK(best < 3.35e12);
  CHECK(best > 0.9 * 3.35e12);
}
