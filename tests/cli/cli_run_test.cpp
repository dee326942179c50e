#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "sim/core/text_file.h"
#include "tests/support/command_line.h"

using namespace medley;
using namespace medley::testing;
using Json = nlohmann::ordered_json;

TEST_CASE("run writes a report and shows a table") {
  const Shell shell;
  const Outcome o = shell.medley("run s.json --out r");
  CHECK(o.code == 0);
  for (const char* word : {"pool", "small", "big", "fleet", "stability:", "fingerprint:",
                           "rests on", "report: r/", "30 arrived = 30 finished"}) {
    CHECK_MESSAGE(has(o.out, word), word);
  }
  CHECK_FALSE(has(o.out, "\x1b"));  // no colour in a pipe
  CHECK_FALSE(has(o.err, "\r"));    // no progress line in a pipe
  for (const char* file :
       {"manifest.json", "summary.json", "summary.csv", "requests.csv", "devices.csv", "links.csv",
        "energy.csv", "timeseries.csv", "columns.json"}) {
    CHECK_MESSAGE(shell.exists(std::string("r/") + file), file);
  }
  CHECK_FALSE(shell.exists("r/trace.json"));
  CHECK(shell.litter() == std::vector<std::string>{"r"});
}

TEST_CASE("the default directory is named after scenario and hash") {
  const Shell shell;
  const Outcome o = shell.medley("run s.json --format json");
  REQUIRE(o.code == 0);
  const auto names = shell.sh("ls results").out;
  CHECK(names.starts_with("s-"));
  CHECK(names.size() == std::string("s-12345678\n").size());
  CHECK(shell.medley("run s.json").code == 2);                               // it is there now
  CHECK(shell.medley("run s.json --set pools.small.replicas=3").code == 0);  // another hash
}

TEST_CASE("an earlier report is kept unless --overwrite, other files always") {
  const Shell shell;
  REQUIRE(shell.medley("run s.json --out r -q").code == 0);
  const std::string before = shell.read("r/manifest.json");
  const Outcome refused = shell.medley("run s.json --out r --set seed=8");
  CHECK(refused.code == 2);
  CHECK(has(refused.err, "r: the output directory is not empty"));
  CHECK(has(refused.err, "--overwrite"));
  CHECK(shell.read("r/manifest.json") == before);
  CHECK(shell.medley("run s.json --out r --set seed=8 --overwrite -q").code == 0);
  CHECK(shell.read("r/manifest.json") != before);
  shell.write("r/notes.txt", "mine");
  const Outcome other = shell.medley("run s.json --out r --overwrite");
  CHECK(other.code == 2);
  CHECK(has(other.err, "notes.txt"));
  CHECK(shell.read("r/notes.txt") == "mine");
  CHECK(shell.litter() == std::vector<std::string>{"r"});
}

TEST_CASE("the same scenario gives the same bytes, from anywhere") {
  const Shell shell;
  REQUIRE(shell.medley("run s.json --out one --trace -q").code == 0);
  REQUIRE(shell.medley("run ./s.json --out two --trace -q").code == 0);
  REQUIRE(shell
              .sh(std::string("mkdir d && cd d && '") + MEDLEY_BINARY +
                  "' run ../s.json --out ../three --trace -q")
              .code == 0);
  CHECK(shell.sh("diff -r one two").code == 0);
  CHECK(shell.sh("diff -r one three").code == 0);
  REQUIRE(shell.medley("run s.json --out other --trace -q --seed 8").code == 0);
  CHECK(shell.sh("diff -r one other").code == 1);
  CHECK_FALSE(has(shell.read("one/manifest.json"), shell.path()));
}

TEST_CASE("the resolved scenario of a manifest runs to the same report") {
  const Shell shell;
  REQUIRE(shell.medley("run s.json --out one -q --set pools.small.replicas=3 --seed 5").code == 0);
  const Json manifest = Json::parse(shell.read("one/manifest.json"));
  CHECK(manifest["seed"] == 5);
  shell.write("s.json", manifest["resolved"].dump());
  REQUIRE(shell.medley("run s.json --out two -q").code == 0);
  CHECK(shell.sh("diff -r one two").code == 0);
}

TEST_CASE("without fast-forward the numbers are the same") {
  const Shell shell;
  REQUIRE(shell.medley("run s.json --out fast -q").code == 0);
  REQUIRE(shell.medley("run s.json --out slow -q --no-fast-forward").code == 0);
  const Json fast = Json::parse(shell.read("fast/summary.json"));
  const Json slow = Json::parse(shell.read("slow/summary.json"));
  for (const char* key : {"mean_ttft_ms", "p99_tpot_ms", "mean_e2el_ms", "energy_devices"}) {
    CAPTURE(key);
    CHECK(fast["pools"]["big"][key].get<double>() ==
          doctest::Approx(slow["pools"]["big"][key].get<double>()).epsilon(1e-8));
  }
  CHECK(Json::parse(shell.read("slow/manifest.json"))["fast_forward"] == false);
}

TEST_CASE("--format json and csv give stdout the summary and nothing else") {
  const Shell shell;
  const Outcome json = shell.medley("run s.json --out a --format json");
  REQUIRE(json.code == 0);
  CHECK(Json::parse(json.out)["completed"] == 25);  // 5 arrive in the warm-up of 1 s
  CHECK(json.out == shell.read("a/summary.json"));
  const Outcome csv = shell.medley("run s.json --out b --format csv");
  CHECK(csv.out == shell.read("b/summary.csv"));
  CHECK(csv.out.starts_with("scope,name,metric,unit,count,mean,std,min,p50,p90,p95,p99,max,lo90,"));
  const Outcome quiet = shell.medley("run s.json --out c --quiet");
  CHECK(quiet.code == 0);
  CHECK(quiet.out.empty());
  CHECK(quiet.err.empty());
}

TEST_CASE("--fail-on turns a condition into exit code 1 and keeps the report") {
  const Shell shell;
  const Outcome holds = shell.medley("run s.json --out a -q --fail-on 'completed>0'");
  CHECK(holds.code == 1);
  CHECK(has(holds.err, "--fail-on 'completed>0' holds: it is"));
  CHECK(shell.exists("a/manifest.json"));
  CHECK(shell.medley("run s.json --out b -q --fail-on 'completed<1' --fail-on 'p99_ttft_ms>1e9'")
            .code == 0);
  CHECK(shell
            .medley(
                "run s.json --out c -q --fail-on 'completed<1' --fail-on pool.small.completed\\>1")
            .code == 1);
  SUBCASE("and is checked before anything runs") {
    const Outcome bad = shell.medley("run s.json --out d --fail-on 'slo_atainment<1'");
    CHECK(bad.code == 2);
    CHECK(has(bad.err, "did you mean \"slo_attainment\"?"));
    CHECK(shell.medley("run s.json --out d --fail-on 'pool.tiny.completed<1'").code == 2);
    CHECK_FALSE(shell.exists("d"));
  }
}

TEST_CASE("--requests chooses rows, --trace adds a trace, and the manifest says so") {
  const Shell shell;
  REQUIRE(shell.medley("run s.json --out a -q --requests sample:5 --trace").code == 0);
  CHECK(shell.sh("wc -l < a/requests.csv").out == "6\n");
  CHECK(Json::parse(shell.read("a/trace.json"))["traceEvents"].size() > 30);
  const Json manifest = Json::parse(shell.read("a/manifest.json"));
  CHECK(manifest["resolved"]["report"]["requests"] == "sample:5");
  REQUIRE(shell.medley("run s.json --out b -q --requests none").code == 0);
  CHECK_FALSE(shell.exists("b/requests.csv"));
  const Outcome bad = shell.medley("run s.json --out c --requests some");
  CHECK(bad.code == 2);
  CHECK(has(bad.err, "report.requests=some"));
  CHECK_FALSE(shell.exists("c"));
}

TEST_CASE("--profile tells on stderr, never in the report") {
  const Shell shell;
  const Outcome o = shell.medley("run s.json --out a -q --profile");
  CHECK(o.code == 0);
  CHECK(has(o.err, "profile: load"));
  CHECK(has(o.err, "events/s"));
  CHECK_FALSE(has(shell.read("a/manifest.json"), "wall"));
}

TEST_CASE("unknown power: blank cells, and the line that supplies them on stderr") {
  const Shell shell;
  shell.write("s.json",
              medley::test::scenario_with(R"("type": "4xL40S", "count": 1)",
                                          R"("device": "Gaudi3", "devices": 4, "count": 1)"));
  const Outcome o = shell.medley("run s.json --out a");
  REQUIRE(o.code == 0);
  CHECK(has(o.err, "overrides.power.energy_per_byte="));
  CHECK(has(o.out, "missing: power.energy_per_byte of l40s"));
  const Json summary = Json::parse(shell.read("a/summary.json"));
  CHECK(summary["pools"]["small"]["energy_devices"].is_null());
  CHECK(summary["pools"]["big"]["energy_devices"].is_number());
  CHECK(has(shell.read("a/summary.csv"), ",missing:power."));
  const Outcome assumed = shell.medley("run s.json --out b --assume-missing");
  REQUIRE(assumed.code == 0);
  CHECK(has(assumed.err, "assumed from class priors"));
  CHECK(Json::parse(shell.read("b/summary.json"))["pools"]["small"]["energy_devices"].is_number());
}

TEST_CASE("--bottlenecks tells what more of each resource gains, on any number of threads") {
  const Shell shell;
  const Outcome o = shell.medley("run s.json --out r --bottlenecks --threads 2");
  REQUIRE(o.code == 0);
  CHECK(has(o.out, "what limits this fleet"));
  CHECK(has(o.out, "memory bandwidth"));
  CHECK(shell.exists("r/bottlenecks.csv"));
  CHECK(Json::parse(shell.read("r/manifest.json")).contains("bottlenecks"));
  REQUIRE(shell.medley("run s.json --out q -q --bottlenecks --threads 1").code == 0);
  CHECK(shell.read("q/bottlenecks.csv") == shell.read("r/bottlenecks.csv"));
  CHECK(shell.read("q/summary.csv") == shell.read("r/summary.csv"));
}

TEST_CASE("--fidelity runs folded, layered or both, and the manifest says which") {
  const Shell shell;
  REQUIRE(shell.medley("run s.json --out r -q --fidelity layered").code == 0);
  CHECK(Json::parse(shell.read("r/manifest.json"))["contention"]["fidelity"] == "layered");
  const Outcome both = shell.medley("run s.json --out b --fidelity both");
  REQUIRE(both.code == 0);
  CHECK(has(both.out, "no step shares a device or link"));
  CHECK(has(both.out, "links: no shared link"));
  const Json contention = Json::parse(shell.read("b/manifest.json"))["contention"];
  CHECK(contention["fidelity"] == "folded");
  CHECK(contention["layered_over_folded_pct"]["ttft_p50"] == 0.0);
  CHECK(shell.medley("run s.json --out x --fidelity fine").code == 2);
}
