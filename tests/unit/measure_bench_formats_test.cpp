// What load generators write: hand-typed samples of every format with its oddities.
#include <doctest/doctest.h>

#include <cmath>

#include "sim/core/error.h"
#include "sim/measure/bench_result.h"
#include "tests/support/scratch_directory.h"

using namespace medley;

namespace {
BenchFile read_bench_text(const std::string& text, const std::string& name = "result.json",
                          const std::string& format = "auto") {
  const ScratchDirectory dir;
  return read_bench(dir.write(name, text), format);
}

void check_account(const BenchFile& file, std::int64_t read, std::int64_t kept) {
  CHECK(file.account.rows_read == read);
  CHECK(file.account.kept == kept);
  std::int64_t dropped = 0;
  for (const auto& [reason, n] : file.account.dropped) dropped += n;
  CHECK(read == kept + dropped);
}

bool noted(const BenchResult& r, const std::string& part) {
  for (const std::string& note : r.notes) {
    if (note.find(part) != std::string::npos) return true;
  }
  return false;
}
}  // namespace

TEST_CASE("vLLM bench serve: several appended objects, \"inf\", the goodput key with a colon") {
  const BenchFile file = read_bench_text(
      R"({"date": "20260101-120000", "backend": "vllm", "model_id": "org/M-8B", "num_prompts": 12,
 "request_rate": 2.5, "burstiness": 0.25, "max_concurrency": null, "duration": 5.0, "completed": 10,
 "total_input_tokens": 1000, "total_output_tokens": 400, "request_throughput": 2.0,
 "request_goodput:": null, "output_throughput": 80.0, "total_token_throughput": 280.0,
 "mean_ttft_ms": 50.0, "median_ttft_ms": 45.0, "p99_ttft_ms": 90.0, "mean_tpot_ms": 10.0,
 "mean_itl_ms": 11.0, "mean_e2el_ms": 440.0}
{"backend": "vllm", "model_id": "org/M-8B", "request_rate": "inf", "max_concurrency": 16,
 "duration": 4.0, "completed": 8, "failed": 1, "total_input_tokens": 8, "total_output_tokens": 16})");
  CHECK(file.format == "vllm-bench");
  check_account(file, 2, 2);
  REQUIRE(file.results.size() == 2);
  const BenchResult& a = file.results[0];
  CHECK(a.tool == "vllm bench serve");
  CHECK(a.model == "org/M-8B");
  CHECK(a.request_rate == 2.5);
  CHECK_FALSE(a.concurrency.has_value());
  CHECK(a.burstiness == 0.25);
  CHECK(a.completed == 10);
  CHECK(a.failed == 2);
  CHECK(a.mean_input() == 100.0);
  CHECK(a.mean_output() == 40.0);
  CHECK(a.ttft.mean == doctest::Approx(0.050));
  CHECK(a.ttft.p50 == doctest::Approx(0.045));
  CHECK(a.ttft.p99 == doctest::Approx(0.090));
  CHECK(std::isnan(a.ttft.p90));
  CHECK(a.itl.mean == doctest::Approx(0.011));
  CHECK(a.e2e.mean == doctest::Approx(0.440));
  CHECK(noted(a, "2025-05"));
  const BenchResult& b = file.results[1];
  CHECK(std::isinf(*b.request_rate));
  CHECK(b.concurrency == 16);
  CHECK(b.failed == 1);
  CHECK(b.requests_per_s == 2.0);       // 8 in 4 s
  CHECK(b.output_tokens_per_s == 4.0);  // 16 in 4 s
}

// Two answered requests: TTFT 0.1 and 0.3, gaps (0.01, 0.03) and (0.02): E2E 0.14 and 0.32, TPOT
// 0.02 and 0.02, ITL mean 0.02, TTFT median 0.2; the third failed.
TEST_CASE("vLLM --save-detailed: lengths, first tokens and gaps of each request") {
  const BenchFile file = read_bench_text(
      R"({"backend": "vllm", "model_id": "m", "request_rate": "inf", "duration": 1.0, "completed": 2,
 "input_lens": [7, 9, 5], "output_lens": [3, 2, 0], "ttfts": [0.1, 0.3, 0.0],
 "itls": [[0.01, 0.03], [0.02], []], "generated_texts": ["a } b", "", ""],
 "errors": ["", "", "timed out"]})");
  check_account(file, 3, 2);
  const BenchResult& r = file.results.at(0);
  REQUIRE(r.requests.size() == 2);
  CHECK(r.requests[0].input == 7);
  CHECK(r.requests[0].output == 3);
  CHECK(std::isnan(r.requests[0].start_s));
  CHECK(r.requests[0].e2e_s == doctest::Approx(0.14));
  CHECK(r.tpot.mean == doctest::Approx(0.02));
  CHECK(r.itl.mean == doctest::Approx(0.02));
  CHECK(r.ttft.p50 == doctest::Approx(0.2));
  CHECK(r.input_tokens == 16.0);
}

TEST_CASE("SGLang JSON lines: bare Infinity, lengths drawn from N x ratio to N") {
  const BenchFile file = read_bench_text(
      "{\"backend\": \"sglang\", \"dataset_name\": \"random\", \"request_rate\": Infinity, "
      "\"max_concurrency\": null, \"total_input_tokens\": 50, \"total_output_tokens\": 60, "
      "\"total_output_tokens_retokenized\": 59, \"mean_e2e_latency_ms\": 2000, "
      "\"median_ttft_ms\": 100, \"median_itl_ms\": 20, \"output_throughput\": 30, "
      "\"random_input_len\": 10, \"random_output_len\": 12, \"random_range_ratio\": 0.5, "
      "\"duration\": 2.0, \"completed\": 5}\n"
      "{\"backend\": \"sglang\", \"dataset_name\": \"sharegpt\", \"request_rate\": 4.0, "
      "\"random_input_len\": 1024, \"random_range_ratio\": 0.0, \"total_input_tokens\": 50, "
      "\"total_output_tokens\": 60, \"duration\": 2.0, \"completed\": 5, \"accept_length\": 3.1}\n",
      "out.jsonl");
  REQUIRE(file.results.size() == 2);
  const BenchResult& r = file.results[0];
  CHECK(r.tool == "sglang bench_serving");
  CHECK(std::isinf(*r.request_rate));
  CHECK(r.range_ratio == 0.5);
  CHECK(r.random_input == 10.0);
  CHECK(r.e2e.mean == doctest::Approx(2.0));
  CHECK(r.itl.p50 == doctest::Approx(0.02));
  CHECK(r.tpot.mean == doctest::Approx((2.0 - 0.1) / 11.0));  // no mean TTFT: from the small median
  CHECK_FALSE(file.results[1].range_ratio.has_value());       // not of this data set
  CHECK(noted(file.results[1], "speculative decoding: 3.1"));
}

TEST_CASE("genai-perf CSV: CRLF, two tables, commas in numbers; early ones in ns") {
  const std::string head = "Metric,avg,min,max,p99,p95,p90,p75,p50,p25\r\n";
  const auto text = [&](const char* unit, const char* ttft) {
    return head + "Time To First Token (" + unit + ")," + ttft +
           "\r\nOutput Sequence Length (tokens),20.00,1,1,1,1,1,1,20,1\r\n"
           "Input Sequence Length (tokens),\"1,000.00\",1,1,1,1,1,1,1000,1\r\n\r\n"
           "Metric,Value\r\nOutput Token Throughput (per sec),\"1,500.50\"\r\n"
           "Request Throughput (per sec),2.00\r\nRequest Count (count),40.00\r\n";
  };
  const BenchResult r =
      read_bench_text(text("ms", "\"1,146.00\",1,1,\"3,000.5\",9,8,7,640.0,6"), "a.csv")
          .results.at(0);
  CHECK(r.tool == "genai-perf");
  CHECK(r.ttft.mean == doctest::Approx(1.146));
  CHECK(r.ttft.p99 == doctest::Approx(3.0005));
  CHECK(r.ttft.p50 == doctest::Approx(0.640));
  CHECK(r.mean_input() == 1000.0);
  CHECK(r.completed == 40);
  CHECK(r.duration_s == 20.0);  // 40 at 2 a second
  CHECK(r.output_tokens_per_s == 1500.5);
  const BenchResult ns =
      read_bench_text(text("ns", "5000000,1,1,1,1,1,1,1,1"), "a.csv").results.at(0);
  CHECK(ns.ttft.mean == doctest::Approx(0.005));
}

TEST_CASE("AIPerf: JSON aggregate, and records with failures, warm-up and a repeated key") {
  const BenchFile json = read_bench_text(
      R"({"aiperf_version": "0.3", "input_config": {"loadgen": {"concurrency": 4}},
 "request_latency": {"unit": "ms", "avg": 500, "p50": 480}, "request_count": {"unit": "requests", "avg": 12},
 "time_to_first_token": {"unit": "us", "avg": 30000}, "request_throughput": {"unit": "requests/sec", "avg": 3},
 "input_sequence_length": {"unit": "tokens", "avg": 100}, "output_sequence_length": {"unit": "tokens", "avg": 48}})");
  CHECK(json.format == "perf-json");
  const BenchResult& a = json.results.at(0);
  CHECK(a.tool == "aiperf");
  CHECK(a.concurrency == 4);
  CHECK(a.ttft.mean == doctest::Approx(0.03));
  CHECK(a.tpot.mean == doctest::Approx(0.47 / 47));  // (500 - 30) ms / (48 - 1)
  CHECK(noted(a, "derived"));
  const auto record = [](const char* phase, const char* start, const char* error) {
    return std::string(R"({"metadata": {"request_start_ns": )") + start +
           R"(, "was_cancelled": false, "benchmark_phase": ")" + phase +
           R"("}, "metrics": {"input_sequence_length": {"value": 8, "unit": "tokens"}, )"
           R"("time_to_first_token": {"value": 200, "unit": "ms"}, "request_latency": {"value": 0.5, "unit": "s"}, )"
           R"("output_sequence_length": {"value": 4, "unit": "tokens"}, )"
           R"("time_to_first_token": {"value": 9, "unit": "ms"}, )"
           R"("inter_chunk_latency": {"value": [100, 100, 100], "unit": "ms"}}, "error": )" +
           error + "}\n";
  };
  const BenchFile records = read_bench_text(
      record("profiling", "2000000000000000000", "null") +
          record("warmup", "1900000000000000000", "null") +
          record("profiling", "1999999999000000000", "null") +
          record("profiling", "2000000000000000000", R"({"code": 499, "message": "cancelled"})"),
      "profile_export.jsonl");
  CHECK(records.format == "aiperf-records");
  check_account(records, 4, 2);
  CHECK(records.account.notes.size() == 1);
  const BenchResult& r = records.results.at(0);
  REQUIRE(r.requests.size() == 2);
  CHECK(r.requests[0].start_s == 0.0);  // sorted by start
  CHECK(r.requests[1].start_s == doctest::Approx(1.0));
  CHECK(r.requests[0].ttft_s == doctest::Approx(0.2));  // the first of the two
  CHECK(r.requests[0].tpot_s() == doctest::Approx(0.1));
  CHECK(r.itl.mean == doctest::Approx(0.1));
  CHECK(r.duration_s == doctest::Approx(1.5));
  CHECK(r.start_epoch_s == doctest::Approx(1999999999.0));
  CHECK(r.failed == 1);
}

namespace {
std::string stage(const char* rate, const char* latency, const char* token, int count = 10) {
  return std::string(R"({"load_summary": {"count": 10, "requested_rate": )") + rate +
         R"(, "achieved_rate": 3.0}, "successes": {"count": )" + std::to_string(count) +
         R"(, "latency": {"request_latency": {"mean": )" + latency +
         R"(, "median": 1.0}, "time_to_first_token": {"mean": 0.1}, "time_per_output_token": {"mean": )" +
         token + R"(, "p99": 0.02}, "inter_token_latency": {"mean": 0.005, "median": 0.0001}},
 "throughput": {"requests_per_sec": 2.5, "output_tokens_per_sec": 125},
 "prompt_len": {"mean": 200}, "output_len": {"mean": 51}}, "failures": {"count": 1}})";
}
}  // namespace

// (latency - ttft) / (output - 1) = (1.1 - 0.1) / 50 = 20 ms; the file says 10 ms: two pieces a
// token.
TEST_CASE("inference-perf: halved time per token is found; a folder is its stages in order") {
  const ScratchDirectory dir;
  dir.write("run/stage_10_lifecycle_metrics.json", stage("9.0", "1.1", "0.020"));
  dir.write("run/stage_2_lifecycle_metrics.json", stage("3.0", "1.1", "0.010"));
  dir.write("run/summary_lifecycle_metrics.json", stage("0.0", "1.1", "0.010"));
  dir.write("config.yaml",
            "load:\n  num_workers: 4\n  worker_max_concurrency: 10\nserver:\n"
            "  model_name: org/M-8B\n");
  const BenchFile file = read_bench(dir.path() + "/run");
  check_account(file, 2, 2);
  REQUIRE(file.results.size() == 2);
  const BenchResult& r = file.results[0];
  CHECK(r.label == "stage 2");
  CHECK(r.request_rate == 3.0);
  CHECK(r.even_spacing);
  CHECK(r.model == "org/M-8B");
  CHECK(r.concurrency == 40);
  CHECK(r.tpot.mean == doctest::Approx(0.020));
  CHECK(r.tpot.p99 == doctest::Approx(0.040));
  CHECK_FALSE(r.itl.known());
  CHECK(noted(r, "2 times what the file prints"));
  CHECK(r.output_tokens == 510.0);
  CHECK(r.duration_s == 4.0);
  CHECK(r.failed == 1);
  CHECK(file.results[1].tpot.mean == doctest::Approx(0.020));  // as printed
  CHECK(file.results[1].itl.known());
  CHECK(noted(file.results[1], "sent 3 of the 9"));
}

TEST_CASE("guidellm version 2: one result per benchmark; its inter-token latency is TPOT") {
  const auto metric = [](const char* name, const char* mean) {
    return std::string("\"") + name + R"(": {"successful": {"mean": )" + mean + R"(, "median": )" +
           mean + R"(, "percentiles": {"p90": )" + mean + "}}}";
  };
  const std::string metrics =
      R"("metrics": {"request_totals": {"successful": 4, "errored": 1}, )" +
      metric("request_latency", "1.5") + ", " + metric("time_to_first_token_ms", "500") + ", " +
      metric("inter_token_latency_ms", "100") + ", " + metric("time_per_output_token_ms", "136") +
      ", " + metric("prompt_token_count", "32") + ", " + metric("output_token_count", "11") + "}";
  const BenchFile file = read_bench_text(
      R"({"metadata": {"version": 2, "guidellm_version": "0.8"}, "config": {"spec": {"backend": {"model": "org/M"}}},
 "benchmarks": [{"config": {"strategy": {"type_": "poisson", "rate": 2.0}}, "duration": 2.0, "start_time": 100.0, )" +
      metrics +
      R"(}, {"config": {"strategy": {"type_": "concurrent", "streams": 8}}, "duration": 2.0, )" +
      metrics + "}]}");
  check_account(file, 2, 2);
  REQUIRE(file.results.size() == 2);
  const BenchResult& r = file.results[0];
  CHECK(r.version == "0.8");
  CHECK(r.model == "org/M");
  CHECK(r.request_rate == 2.0);
  CHECK_FALSE(r.even_spacing);
  CHECK(r.tpot.mean == doctest::Approx(0.1));
  CHECK(r.e2e.p90 == doctest::Approx(1.5));
  CHECK(r.mean_output() == 11.0);
  CHECK(r.output_tokens_per_s == 22.0);  // 4 x 11 in 2 s
  CHECK(r.start_epoch_s == 100.0);
  CHECK(file.results[1].concurrency == 8);
}

TEST_CASE("llmperf: summary with text numbers, and individual responses") {
  const BenchResult s =
      read_bench_text(R"({"version": "2023-08-31", "model": "org/M", "num_concurrent_requests": 5,
 "results_ttft_s_mean": 0.2, "results_ttft_s_quantiles_p50": 0.19, "results_end_to_end_latency_s_mean": 2.2,
 "results_number_input_tokens_mean": 550.0, "results_number_input_tokens_min": "550",
 "results_number_output_tokens_mean": 101.0, "results_num_completed_requests": 30,
 "results_num_completed_requests_per_min": 60.0, "results_inter_token_latency_s_mean": 0.021})")
          .results.at(0);
  CHECK(s.concurrency == 5);
  CHECK(s.input_length.min == 550.0);
  CHECK(s.requests_per_s == 1.0);
  CHECK(s.duration_s == 30.0);
  CHECK(s.tpot.mean == doctest::Approx(0.02));  // (2.2 - 0.2) / 100, not what is printed
  const BenchFile individual = read_bench_text(
      R"([{"error_code": null, "ttft_s": 0.5, "end_to_end_latency_s": 1.5, "number_output_tokens": 11, "number_input_tokens": 50},
 {"error_code": 429, "ttft_s": 0, "end_to_end_latency_s": 0, "number_output_tokens": 0, "number_input_tokens": 50}])");
  check_account(individual, 2, 1);
  CHECK(individual.results.at(0).tpot.mean == doctest::Approx(0.1));
}

TEST_CASE("multi-round CSV and the engine's own request log") {
  const BenchFile rounds = read_bench_text(
      "prompt_tokens,generation_tokens,ttft,generation_time,user_id,question_id,launch_time,"
      "finish_time\n"
      "100.0,11.0,0.5,1.0,2,1,1742757421.5,1742757423.0\n"
      "120.0,0.0,0.5,1.0,2,2,1742757422.5,1742757423.0\n"
      "120.0,21.0,0.25,2.0,3,1,1742757420.5,1742757422.75\n",
      "rounds.csv");
  CHECK(rounds.format == "multi-round-csv");
  check_account(rounds, 3, 2);
  const BenchResult& r = rounds.results.at(0);
  CHECK(r.requests.at(0).input == 120);  // by launch time
  CHECK(r.requests.at(1).start_s == doctest::Approx(1.0));
  CHECK(r.requests.at(1).e2e_s == doctest::Approx(1.5));
  CHECK(r.duration_s == doctest::Approx(2.5));
  const BenchResult log =
      read_bench_text(
          R"({"request_id": "b-0", "input_toks": 10, "output_toks": 5, "arrival_time": 1700000000.5, "queued_ts": 7.0, "scheduled_ts": 7.1, "first_token_ts": 7.5, "last_token_ts": 9.5}
{"request_id": "b-1", "input_toks": 20, "output_toks": 1, "arrival_time": 1700000001.5, "queued_ts": 8.0, "scheduled_ts": 8.1, "first_token_ts": 8.25, "last_token_ts": 8.25}
)",
          "requests.jsonl")
          .results.at(0);
  CHECK(log.server_side);
  CHECK(log.ttft.mean == doctest::Approx(0.375));
  CHECK(log.tpot.mean == doctest::Approx(0.5));  // of the one request with gaps: 2 s over 4
  CHECK(log.duration_s == doctest::Approx(2.5));
  CHECK(log.start_epoch_s == doctest::Approx(1700000000.5));
}
