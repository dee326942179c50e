// Files of real load generators: what they hold, and figures worked out with other tools.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "sim/measure/bench_result.h"
#include "sim/measure/power_log.h"

using namespace medley;

namespace {
/// The file, or "" (and a message) where the measured data is absent.
std::string measured_file(const std::string& path) {
  const char* named = std::getenv("MEDLEY_SHARED_DATA");
  const std::string root =
      named != nullptr ? named : std::string(MEDLEY_SOURCE_DIR) + "/../shared/data";
  if (std::filesystem::exists(root + "/" + path)) return root + "/" + path;
  MESSAGE("skipped: the measured data is not here");
  return "";
}

void check_sums(const ImportAccount& a) {
  std::int64_t sum = a.kept;
  for (const auto& [reason, n] : a.dropped) sum += n;
  CHECK(sum == a.rows_read);
  CHECK(a.kept > 0);
}
}  // namespace

TEST_CASE("inference-perf sweep: six server variants at seven rates, as the derived table says") {
  const std::string folder = measured_file("traces/tool-outputs/inference-perf");
  if (folder.empty()) return;
  int variants = 0, points = 0;
  for (const char* variant : {"vllm", "vllm_batch_size", "vllm_chunking_and_prefix_caching",
                              "vllm_eagle", "vllm_quantization", "vllm_v0_engine"}) {
    const BenchFile file = read_bench(folder + "/" + variant);
    check_sums(file.account);
    CHECK(file.results.size() == 7);
    ++variants;
    points += static_cast<int>(file.results.size());
    for (const BenchResult& r : file.results) {
      CHECK(r.concurrency == 440);
      CHECK(r.model == "meta-llama/Meta-Llama-3-8B-Instruct");
      CHECK(r.mean_input() == doctest::Approx(202).epsilon(0.012));
      const double derived = (r.e2e.mean - r.ttft.mean) / (r.output_length.mean - 1.0);
      CHECK(r.tpot.mean == doctest::Approx(derived).epsilon(0.26));
      CHECK(r.requests_per_s > 0.9);
    }
  }
  CHECK(variants == 6);
  CHECK(points == 42);
  const BenchResult r = read_bench(folder + "/vllm/stage_1_lifecycle_metrics.json").results.at(0);
  CHECK(r.request_rate == 31.4);
  CHECK(r.completed == 1884);
  CHECK(r.e2e.mean == doctest::Approx(0.5467452551630615));
  CHECK(r.ttft.p99 == doctest::Approx(0.04361342025920749));
  CHECK(r.tpot.mean == doctest::Approx((0.5467452551630615 - 0.02983692160898013) /
                                       (62.36411889596603 - 1.0)));  // 8.4 ms, printed: 4.0 ms
}

TEST_CASE("SGLang on H200: rates from 1 to infinite, mean lengths near half of the nominal ones") {
  for (const auto& [name, lines] :
       {std::pair<const char*, std::size_t>{"llama_3_3_70b_online_output.jsonl", 7},
        {"deepseek_dp_mla_output.jsonl", 1}}) {
    const std::string path =
        measured_file(std::string("traces/tool-outputs/sglang_bench_h200/") + name);
    if (path.empty()) return;
    const BenchFile file = read_bench(path);
    check_sums(file.account);
    CHECK(file.results.size() == lines);
    for (const BenchResult& r : file.results) {
      CHECK(r.request_rate.has_value());
      CHECK(r.output_tokens_per_s ==
            doctest::Approx(r.output_tokens / r.duration_s).epsilon(0.001));
      if (r.range_ratio == 0.0)
        CHECK(r.mean_output() == doctest::Approx(*r.random_output / 2).epsilon(0.06));
    }
  }
}

TEST_CASE("one file of each other tool is read whole") {
  const std::pair<const char*, std::size_t> files[] = {
      {"vllm_bench_serve_results_nerdalert.json", 9},
      {"aiperf/profile_export_from_docs.jsonl", 1},
      {"genai-perf/profile_export_genai_perf_from_cloudai_docs.csv", 1},
      {"guidellm_report_v2.json", 2},
      {"llmperf_individual_anyscale_70b.json", 1},
      {"llmperf_summary_anyscale_70b.json", 1}};
  for (const auto& [name, results] : files) {
    CAPTURE(name);
    const std::string path = measured_file(std::string("traces/tool-outputs/") + name);
    if (path.empty()) return;
    const BenchFile file = read_bench(path);
    check_sums(file.account);
    REQUIRE(file.results.size() == results);
    for (const BenchResult& r : file.results) {
      CHECK(r.completed > 0);
      CHECK(r.mean_output() > 1.0);
      CHECK(r.ttft.known());
      CHECK(r.tpot.mean > 0.0);
    }
  }
}

TEST_CASE("power logs of a server with two A6000: idle and busy watts as its README shows") {
  const std::string folder =
      measured_file("serving/LLMServingSim/ispass26-artifact/figure_6/raw_data");
  if (folder.empty()) return;
  const PowerLog gpu = read_power_log(folder + "/gpu_power_log_tp1.txt");
  CHECK(gpu.format == "nvidia-smi");
  check_sums(gpu.account);
  const double t = gpu.start_s();
  CHECK(*gpu.mean_w(t, t + 1.0) == doctest::Approx(33.0).epsilon(0.05));  // idle
  CHECK(*gpu.mean_w(t, gpu.end_s()) > 60.0);
  const PowerLog server = read_power_log(folder + "/server_power_log_tp1.csv");
  CHECK(server.scope == PowerScope::kServer);
  check_sums(server.account);
  REQUIRE(server.account.dropped.size() == 1);  // a line that two writers tore
  CHECK(*server.mean_w(server.start_s(), server.start_s() + 10) ==
        doctest::Approx(384.0).epsilon(0.02));
}
