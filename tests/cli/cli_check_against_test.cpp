#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/command_line.h"

using namespace medley;
using namespace medley::testing;
using Json = nlohmann::ordered_json;

namespace {
const char* kMeasured =
    R"({"backend": "vllm", "model_id": "llama-3.1-8b", "request_rate": "inf", "max_concurrency": 4,
 "duration": 2.0, "completed": 40, "total_input_tokens": 4000, "total_output_tokens": 800,
 "output_throughput": 400.0, "mean_ttft_ms": 20.0, "mean_tpot_ms": 8.0}
{"backend": "vllm", "model_id": "llama-3.1-8b", "request_rate": 5.0, "duration": 8.0, "completed": 40,
 "total_input_tokens": 4000, "total_output_tokens": 800, "mean_ttft_ms": 15.0, "mean_tpot_ms": 7.0}
)";
}

TEST_CASE("check-against: table, JSON, CSV and files agree; the rebuilt scenario gives the same") {
  const Shell shell;
  shell.write("r.json", kMeasured);
  const std::string command =
      "check-against r.json --node 8xH100-SXM --set "
      "pools.server.max_num_seqs=64";
  const Outcome table = shell.medley(command);
  CHECK_MESSAGE(table.code == 0, table.err);
  CHECK(has(table.out, "r.json: vllm-bench, 2 row(s) read, 2 kept"));
  CHECK(has(table.out, "1: 4 in flight"));
  CHECK(has(table.out, "2: 5 req/s Poisson"));
  CHECK(has(table.out, "tau"));
  CHECK(shell.medley(command).out == table.out);  // INV-6
  const Outcome json = shell.medley(command +
                                    " --format json --out o --scenario-out s.json "
                                    "--to-points p.csv");
  const Json parsed = Json::parse(json.out);
  CHECK(parsed["rows"].size() == 10);
  CHECK(parsed["summary"].size() == 5);
  CHECK(shell.medley(command + " --format csv").out == shell.read("o/check.csv"));
  CHECK(has(shell.read("o/check_summary.csv"), "ttft_mean,2,"));
  CHECK(has(shell.read("p.csv"),
            "llama-3.1-8b,H100-SXM5-80GB,1,1,vllm-2026,100,20,4,,0.02,0.008,400,"));
  CHECK(Json::parse(shell.read("s-1.json"))["pools"]["server"]["max_num_seqs"] == 64);
  const Outcome run = shell.medley("run s-1.json --out run --quiet");
  CHECK_MESSAGE(run.code == 0, run.err);
  const Json summary = Json::parse(shell.read("run/summary.json"));
  double predicted = 0.0;
  std::istringstream rows(shell.read("o/check.csv"));
  for (std::string line; std::getline(rows, line);) {
    const std::size_t at = line.find(",ttft_mean,s,0.02,");
    if (at != std::string::npos) predicted = std::stod(line.substr(at + 18));
  }
  CHECK(predicted > 0.0);
  CHECK(summary.dump().find("mean_ttft_ms") != std::string::npos);
  CHECK(summary["mean_ttft_ms"].get<double>() == doctest::Approx(1e3 * predicted).epsilon(1e-4));
}

TEST_CASE("check-against: a scenario of one's own, a power log, listed requests") {
  const Shell shell;
  shell.write(
      "log.jsonl",
      R"({"input_toks": 10, "output_toks": 5, "queued_ts": 7.0, "first_token_ts": 7.5, "last_token_ts": 9.5}
{"input_toks": 20, "output_toks": 3, "queued_ts": 8.0, "first_token_ts": 8.5, "last_token_ts": 9.0}
)");
  shell.write("p.csv", "timestamp,DCGM_FI_DEV_POWER_USAGE\n0,300\n9,300\n");
  const Outcome o = shell.medley(
      "check-against log.jsonl --device H100-SXM5-80GB --model llama-3.1-8b --power p.csv "
      "--scenario-out a/b.json");
  CHECK(o.code == 2);  // no such folder
  const Outcome fine = shell.medley(
      "check-against log.jsonl --device H100-SXM5-80GB --model llama-3.1-8b --power p.csv "
      "--scenario-out b.json");
  CHECK_MESSAGE(fine.code == 0, fine.err);
  CHECK(has(fine.out, "watts"));
  CHECK(has(fine.out, "2 request(s) at their own times"));
  CHECK(has(shell.read("b.json"), "b.requests.csv"));
  CHECK(shell.medley("check b.json").code == 0);
  const Outcome own = shell.medley("check-against log.jsonl --scenario b.json");
  CHECK_MESSAGE(own.code == 0, own.err);
  CHECK(has(own.out, "llama-3.1-8b on 1 x H100-SXM5-80GB"));
  CHECK(shell.medley("check-against log.jsonl --scenario s.json").code == 2);  // two models
  CHECK(shell.medley("check-against log.jsonl --scenario s.json --model llama-3.1-8b").code == 0);
}

TEST_CASE("check-against: bad input leaves with 2, says all, and writes nothing") {
  const Shell shell;
  shell.write("r.json", kMeasured);
  shell.write("bad.json", "{\"completed\": true, \"duration\": \"x\"}");
  shell.write("p.csv", "a,b\n");
  const Outcome o = shell.medley(
      "check-against bad.json nothing.json --node 8xH100-SXM --power p.csv --out o --to-points p2");
  CHECK(o.code == 2);
  CHECK(has(o.err, "bad.json:/completed"));
  CHECK(has(o.err, "bad.json:/duration"));
  CHECK(has(o.err, "nothing.json"));
  CHECK(has(o.err, "p.csv:line 1"));
  CHECK(o.out.empty());
  CHECK_FALSE(shell.exists("o"));
  CHECK_FALSE(shell.exists("p2"));
  CHECK(has(shell.medley("check-against r.json").err, "--node"));
  CHECK(has(shell.medley("check-against r.json --node 8xH100").err, "8xH100"));
  CHECK(has(shell.medley("check-against r.json --node 8xH100-SXM --rate fast").err, "`fast`"));
  CHECK(has(shell.medley("check-against r.json --node 8xH100-SXM --as vllm").err, "vllm-bench"));
  CHECK(shell.medley("check-against r.json --node 8xH100-SXM --set pools.server.max_num_seq=3")
            .code == 2);
}
