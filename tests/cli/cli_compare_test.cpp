#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/support/command_line.h"

using namespace medley;
using namespace medley::testing;
using Json = nlohmann::ordered_json;

TEST_CASE("run --uncertainty fills columns, writes every draw and says so") {
  const Shell shell;
  const Outcome o = shell.medley("run s.json --out a --uncertainty 20 --threads 2");
  REQUIRE(o.code == 0);
  CHECK(has(o.out, "nominal [5 %, 95 %] over 20 parameter draws (seed 1)"));
  REQUIRE(shell.medley("run s.json --out b -q --uncertainty 20 --threads 1").code == 0);
  CHECK(shell.sh("diff -r a b").code == 0);
  const Json manifest = Json::parse(shell.read("a/manifest.json"));
  CHECK(manifest["uncertainty"]["draws"] == 20);
  CHECK(manifest["uncertainty"]["seed"] == 1);
  const Json summary = Json::parse(shell.read("a/summary.json"));
  const Json& tpot = summary["draws"]["mean_tpot_ms"];
  CHECK(tpot["p5"] < tpot["p50"]);
  CHECK(tpot["p50"] < tpot["p95"]);
  CHECK(shell.sh("cut -d, -f1 a/uncertainty.csv | sort -un | tail -1").out == "20\n");
  // The nominal run is what it is without draws.
  REQUIRE(shell.medley("run s.json --out c -q").code == 0);
  CHECK(shell.sh("diff a/requests.csv c/requests.csv").code == 0);
  CHECK_FALSE(shell.exists("c/uncertainty.csv"));
  CHECK_FALSE(Json::parse(shell.read("c/manifest.json")).contains("uncertainty"));
  // Other draws, same nominal; few of them are warned of.
  const Outcome few = shell.medley("run s.json --out d --uncertainty 3 --draw-seed 9");
  CHECK(few.code == 0);
  CHECK(has(few.err, "3 draws are few"));
}

TEST_CASE("compare sets candidates side by side in three formats") {
  const Shell shell;
  shell.write("t.json", medley::test::scenario_with("\"replicas\": 4}", "\"replicas\": 3}"));
  const Outcome table = shell.medley("compare s.json t.json -q --uncertainty 20");
  REQUIRE(table.code == 0);
  CHECK(has(table.out, "A: s.json"));
  CHECK(has(table.out, "B against A, 20 paired draws: B cheaper in"));
  const Outcome csv = shell.medley("compare s.json t.json s.json -q --format csv");
  CHECK(csv.out.starts_with("candidate,scenario,hash,metric,unit,value,difference_pct,"));
  CHECK(has(csv.out, "\nC,"));
  const Outcome json = shell.medley("compare s.json s.json -q --format json --out cmp");
  REQUIRE(json.code == 0);
  const Json doc = Json::parse(json.out);
  CHECK(doc["candidates"][1]["metrics"]["ttft_p50_ms"]["difference_pct"] == 0.0);
  CHECK(json.out == shell.read("cmp/compare.json"));
  CHECK(shell.medley("compare s.json t.json -q --out cmp").code == 2);
  CHECK(shell.medley("compare s.json t.json -q --out cmp --overwrite").code == 0);
  CHECK(has(shell.read("cmp/compare.csv"), "\nB,"));
}

TEST_CASE("compare applies --set to every candidate and warns of unequal workloads") {
  const Shell shell;
  shell.write("t.json", medley::test::scenario_with("\"requests\": 20}", "\"requests\": 21}"));
  const Outcome o = shell.medley("compare s.json t.json --set pools.small.replicas=2");
  CHECK(o.code == 0);
  CHECK(has(o.err, "A and B serve different workloads"));
  CHECK(shell.medley("compare s.json s.json --set pools.small.replicas=-2").code == 2);
  // Overrides of one candidate alone.
  const Outcome own = shell.medley(
      "compare s.json 's.json@cluster.nodes.h100.power_limit=350 W@pools.small.replicas=2' -q "
      "--format json");
  REQUIRE(own.code == 0);
  const Json doc = Json::parse(own.out);
  CHECK(doc["candidates"][0]["hash"] != doc["candidates"][1]["hash"]);
  CHECK(doc["candidates"][1]["metrics"]["mean_w"]["difference_pct"] != 0.0);
  CHECK(has(shell.medley("compare s.json s.json@pools.small.replica=2").err,
            "did you mean \"replicas\"?"));
}
