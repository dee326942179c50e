// A measured run rebuilt as a scenario: loads, lengths, and what is compared.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "sim/core/error.h"
#include "sim/measure/power_log.h"
#include "sim/validation/check_against.h"
#include "tests/support/scratch_directory.h"

using namespace medley;

namespace {

/// 40 requests of 100 in and 20 out at 4 in flight.
BenchResult closed_result() {
  BenchResult r;
  r.tool = "vllm bench serve";
  r.source = "r.json";
  r.model = "llama-3.1-8b";
  r.request_rate = std::numeric_limits<double>::infinity();
  r.concurrency = 4;
  r.completed = 40;
  r.input_tokens = 4000;
  r.output_tokens = 800;
  r.duration_s = 2.0;
  r.output_tokens_per_s = 400.0;
  r.ttft.mean = 0.02;
  r.tpot.mean = 0.01;
  r.e2e.mean = 0.21;
  return r;
}

/// Steps of exactly 10 ms, whatever they hold.
CheckDeployment ten_ms_steps() {
  CheckDeployment d;
  d.node = "8xH100-SXM";
  d.backend = "ideal";
  d.sets = {"pools.server.step_model.kind=constant", "pools.server.step_model.per_step=10 ms"};
  return d;
}

double predicted(const CheckedRun& run, const std::string& metric) {
  for (const CheckRow& row : run.rows) {
    if (row.metric == metric) return row.predicted;
  }
  FAIL("no row ", metric);
  return 0.0;
}

bool says(const CheckedRun& run, const std::string& part) {
  for (const std::string& note : run.notes) {
    if (note.find(part) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

// Every step takes 10 ms. A request arrives as a step ends, gets its prompt and first token in the
// next step and one token in each of 19 more: TTFT 10 ms, TPOT 10 ms, E2E 200 ms. Four in flight,
// ten rounds: 40 requests in 2 s, 400 tokens per second.
TEST_CASE("a closed loop is rebuilt: times and throughput by hand") {
  const CheckedRun run = check_against(closed_result(), ten_ms_steps(), {});
  CHECK(run.load == "4 in flight");
  CHECK(run.concurrency == 4);
  CHECK_FALSE(run.rate.has_value());
  CHECK(predicted(run, "ttft_mean") == doctest::Approx(0.010));
  CHECK(predicted(run, "tpot_mean") == doctest::Approx(0.010));
  CHECK(predicted(run, "e2e_mean") == doctest::Approx(0.200));
  CHECK(predicted(run, "output_tokens_per_s") == doctest::Approx(400.0));
  REQUIRE(run.rows.size() == 4);  // what was not measured is not compared
  CHECK(run.rows[0].error_pct() == doctest::Approx(-50.0));
  CHECK(says(run, "measured at the client"));
  CHECK(run.scenario_json.find("\"per_step\": \"10 ms\"") != std::string::npos);
}

// One request a second of 20 steps: nobody waits for anybody. All have the load they were offered:
// the last of 40 arrives 39 s after the first and takes 0.2 s.
TEST_CASE("an open loop meets its rate exactly, evenly spaced or Poisson") {
  for (const bool even : {true, false}) {
    BenchResult r = closed_result();
    r.request_rate = 1.0;
    r.even_spacing = even;
    r.requests_per_s = 1.0;
    r.concurrency.reset();
    const CheckedRun run = check_against(r, ten_ms_steps(), {});
    CHECK(run.rate == 1.0);
    CHECK(predicted(run, "requests_per_s") == doctest::Approx(40.0 / 39.2).epsilon(0.002));
  }
}

// Little: 20 req/s x 0.21 s = 4.2 in flight reaches a limit of 4, not one of 64.
TEST_CASE("a rate with a limit on requests in flight is a closed loop where the limit binds") {
  BenchResult r = closed_result();
  r.request_rate = 25.0;
  r.requests_per_s = 20.0;
  CHECK(check_against(r, ten_ms_steps(), {}).load == "4 in flight");
  r.concurrency = 64;
  CHECK(check_against(r, ten_ms_steps(), {}).load == "25 req/s Poisson");
  r.sent_rate = 20.0;  // the generator could not keep up
  CHECK(check_against(r, ten_ms_steps(), {}).load == "all at once");
  r.burstiness = 0.25;
  CheckLoad load;
  load.rate = 5.0;
  CHECK(check_against(r, ten_ms_steps(), load).load == "5 req/s gamma, burstiness 0.25");
}

// Requests 0 and 1 start at 0 s and 0.005 s with 3 and 2 tokens: 0 runs in steps [0, 10), [10, 20),
// [20, 30) ms; 1 joins the second: first token at 20 ms, so TTFT 15 ms, last at 30 ms.
TEST_CASE("listed requests keep their lengths and times") {
  BenchResult r = closed_result();
  r.requests = {{0.0, 10, 3, 0.01, 0.03, {}}, {0.005, 20, 2, 0.02, 0.03, {}}};
  r.completed = 2;
  r.ttft.min = 0.01;
  r.ttft.p50 = 0.015;
  const CheckedRun run = check_against(r, ten_ms_steps(), {});
  CHECK(run.load == "2 request(s) at their own times");
  CHECK(predicted(run, "ttft_p50") == doctest::Approx(0.0125));  // of 10 and 15 ms
  CHECK(run.trace_csv == "arrival_s,input_tokens,output_tokens\n0,10,3\n0.005,20,2\n");
  CHECK(run.scenario_json.find("requests.csv") != std::string::npos);
}

TEST_CASE(
    "random lengths: SGLang from N x ratio to N, vLLM around the mean, at the measured mean") {
  BenchResult r = closed_result();
  CheckLoad load;
  load.range_ratio = 0.5;
  CheckedRun run = check_against(r, ten_ms_steps(), load);
  CHECK(says(run, "input uniform from 50 to 150; output uniform from 10 to 30"));
  r.tool = "sglang bench_serving";
  r.random_input = 128;
  run = check_against(r, ten_ms_steps(), load);
  CHECK(says(run, "input uniform from 64 to 128; output uniform from 13 to 26.6"));
  // 800 output tokens were measured; the predicted throughput counts as many to 0.2 %.
  const double seconds = 40.0 / (predicted(run, "output_tokens_per_s") / 20.0);
  CHECK(seconds > 2.0);  // longest of each are waited for
  load.input = "lognormal:100:1.5";
  load.output = "7";
  CHECK(says(check_against(r, ten_ms_steps(), load), "input lognormal:100:1.5; output 7"));
}

TEST_CASE("power: mean of the log against the devices; unknown power is said") {
  const ScratchDirectory dir;
  const PowerLog log = read_power_log(dir.write("p.csv",
                                                "timestamp,DCGM_FI_DEV_POWER_USAGE\n100,50\n110,"
                                                "50\n110.5,400\n112.5,400\n112.6,50\n120,50\n"));
  CheckDeployment d;
  d.node = "8xH100-SXM";
  BenchResult r = closed_result();
  const CheckedRun part = check_against(r, d, {}, {&log, 10.5, 12.5});
  REQUIRE(part.measured_watts.has_value());
  CHECK(*part.measured_watts == doctest::Approx(400.0));
  CHECK(predicted(part, "watts") > 60.0);
  CHECK(predicted(part, "watts") < 700.0);
  r.start_epoch_s = 110.5;  // Unix time of both: no part needed
  const CheckedRun aligned = check_against(r, d, {}, {&log, {}, {}});
  CHECK(*aligned.measured_watts == doctest::Approx(400.0));
  CHECK(says(aligned, "the run's own time"));
  d.node = "1xrtx-4090";
  const CheckedRun unknown = check_against(r, d, {}, {&log, {}, {}});
  CHECK(says(unknown, "not predicted"));
  CHECK(std::isnan(predicted(unknown, "watts")));
}

TEST_CASE("deployments: a device alone, replicas, a scenario of the user's; what is missing") {
  CheckDeployment d;
  d.device = "H100-SXM5-80GB";
  d.gpus = 4;
  d.tensor_parallel = 2;
  const CheckedRun run = check_against(closed_result(), d, {});
  CHECK(run.gpus == 4);
  CHECK(run.device == "H100-SXM5-80GB");
  const ScratchDirectory dir;
  CheckDeployment file;
  file.scenario = dir.write("s.json", run.scenario_json);
  const CheckedRun again = check_against(closed_result(), file, {});
  REQUIRE(again.rows.size() == run.rows.size());
  for (std::size_t i = 0; i < run.rows.size(); ++i) {
    CHECK(again.rows[i].predicted == run.rows[i].predicted);
  }
  BenchResult r = closed_result();
  r.model.clear();
  CHECK_THROWS_AS(check_against(r, d, {}), InputError);
  CHECK_THROWS_AS(check_against(closed_result(), {}, {}), InputError);
  r = closed_result();
  r.concurrency.reset();
  r.request_rate.reset();
  CHECK_THROWS_AS(check_against(r, ten_ms_steps(), {}), InputError);
  CheckLoad odd;
  odd.input = "triangular:1:2";
  CHECK_THROWS_AS(check_against(closed_result(), ten_ms_steps(), odd), InputError);
  r = closed_result();
  r.input_tokens = 40.0 * 1e6;
  CHECK_THROWS_AS(check_against(r, ten_ms_steps(), {}), InfeasibleError);
}

// Errors +10 %, -10 % and +50 %: bias 16.7 %, median of 10, 10, 50 is 10 %, 90th percentile 42 %.
TEST_CASE("summary over runs, and the files for spreadsheets and calibrate") {
  std::vector<CheckedRun> runs(3);
  const double measured[] = {1.0, 2.0, 4.0}, simulated[] = {1.1, 1.8, 6.0};
  for (std::size_t i = 0; i < 3; ++i) {
    runs[i].measured = closed_result();
    runs[i].model = "m";
    runs[i].device = "d";
    runs[i].gpus = 2;
    runs[i].tensor_parallel = 2;
    runs[i].backend = "b";
    runs[i].concurrency = 4;
    runs[i].measured_watts = 500.0;
    runs[i].rows = {{"ttft_mean", "s", measured[i], simulated[i]}};
  }
  const std::vector<CheckSummary> s = summarise_checks(runs);
  REQUIRE(s.size() == 1);
  CHECK(s[0].n == 3);
  CHECK(s[0].bias_pct == doctest::Approx(50.0 / 3));
  CHECK(s[0].median_pct == doctest::Approx(10.0));
  CHECK(s[0].p90_pct == doctest::Approx(42.0));
  CHECK(*s[0].tau == doctest::Approx(1.0));
  runs[1].gpus = 4;  // two replicas: each has half the load
  const std::string points = check_points_csv(runs);
  CHECK(points.find("\nm,d,2,2,b,100,20,2,,0.02,0.01,200,125\n") != std::string::npos);
  CHECK(points.find("\nm,d,2,2,b,100,20,4,,0.02,0.01,400,250\n") != std::string::npos);
}
