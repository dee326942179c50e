#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/core/json_reader.h"
#include "sim/scenario/document.h"
#include "tests/support/scenario_text.h"
#include "tests/support/scratch_directory.h"

using namespace medley;
using medley::test::load_text;
using medley::test::scenario_with;
using Json = nlohmann::ordered_json;

namespace {
Document document_of(const std::string& text) {
  Document d;
  d.file = "s.json";
  d.root = std::make_unique<Json>(parse_json(text, d.file));
  return d;
}

/// The document after one override.
Json after(const std::string& text, const std::string& override_text) {
  Document d = document_of(text);
  Problems problems;
  apply_override(override_text, d, problems);
  problems.throw_if_any();
  return *d.root;
}

/// The only problem of an override.
Problem refusal(const std::string& text, const std::string& override_text) {
  Document d = document_of(text);
  Problems problems;
  apply_override(override_text, d, problems);
  REQUIRE(problems.size() == 1);
  return problems.list().front();
}

Problem first_problem(const LoadOptions& options) {
  try {
    load_scenario(options);
  } catch (const InputError& error) {
    return error.problems().front();
  }
  return {};
}
}  // namespace

TEST_CASE("an override is JSON where it reads as JSON, else a string") {
  CHECK(after("{}", "seed=6")["seed"] == 6);
  CHECK(after("{}", "x=2.5")["x"] == 2.5);
  CHECK(after("{}", "x=true")["x"] == true);
  CHECK(after("{}", "x=500 W")["x"] == "500 W");
  CHECK(after("{}", "x=\"6\"")["x"] == "6");
  CHECK(after("{}", "x=")["x"] == "");
  CHECK(after("{}", "x=a=b")["x"] == "a=b");
  CHECK(after("{}", "x=[1, 2]")["x"] == Json({1, 2}));
  CHECK(after("{\"x\": 1}", "x=null")["x"].is_null());
  CHECK(after("{}", "x=1e999")["x"] == "1e999");  // strict reading refuses it later
}

TEST_CASE("an override walks names with dots, lists and missing maps") {
  CHECK(after("{}", "a.b.c=1")["a"]["b"]["c"] == 1);
  CHECK(after(R"({"a": {"b.c": {"d": 0}}})", "a.b.c.d=1")["a"]["b.c"]["d"] == 1);
  CHECK(after(R"({"a": {"b": {}, "b.c": 0}})", "a.b.c=1")["a"]["b.c"] == 1);
  CHECK(after(R"({"a": [{"x": 0}, {"x": 0}]})", "a.1.x=5")["a"][1]["x"] == 5);
  CHECK(after(R"({"a": null})", "a.b=1")["a"]["b"] == 1);
}

TEST_CASE("an override that has no place to go says so by name") {
  CHECK(refusal("{}", "nothing").file == "--set nothing");
  CHECK(refusal("{}", "=1").message == "expected path=value");
  CHECK(refusal("{}", "a..b=1").message == "expected path=value");
  CHECK(refusal("{}", "a={1").message.starts_with("the value looks like JSON but is not"));
  CHECK(refusal(R"({"a": 5})", "a.b=1").message == "is a number, it has no member \"b\"");
  CHECK(refusal(R"({"a": [1]})", "a.1=1").hint == "0 to 0");
  CHECK(refusal("{}", "include=x").message == "includes cannot be set from outside");
  const Problem p = refusal(R"({"pools": {"chat": {}}})", "pools.chta.replicas=6");
  CHECK(p.pointer == "/pools");
  CHECK(p.message == "there is no \"chta\" here");
  CHECK(p.hint == "did you mean \"chat\"?");
}

TEST_CASE("what an override set is blamed on it") {
  LoadOptions options = test::options_of(test::kScenario, {"pools.small.replicas=500"});
  Problem p = first_problem(options);
  CHECK(p.file == "--set pools.small.replicas=500");
  CHECK(p.pointer == "/pools/small/replicas");

  options.overrides = {"pools.small.replica=2"};
  p = first_problem(options);
  CHECK(p.file == "--set pools.small.replica=2");
  CHECK(p.message == "unknown key");
  CHECK(p.hint == "did you mean \"replicas\"?");

  options.overrides = {"powr.pue=1.2"};
  p = first_problem(options);
  CHECK(p.file == "--set powr.pue=1.2");
  CHECK(p.pointer == "/powr");
  CHECK(p.hint == "did you mean \"power\"?");

  options.overrides = {"seed=9", "seed=-9"};
  CHECK(first_problem(options).file == "--set seed=-9");
}

TEST_CASE("overrides apply in order and change what runs") {
  const Scenario s = load_text(test::kScenario, {"seed=9", "seed=11", "pools.small.replicas=3",
                                                 "slo.chat.ttft=2 s", "power.pue=1.3"});
  CHECK(s.seed == 11);
  CHECK(s.pools[1].replicas == 3);
  CHECK(s.slo.at("chat").ttft->value() == 2.0);
  CHECK(s.slo.at("chat").tpot->value() == doctest::Approx(0.05));
  CHECK(s.price.pue == 1.3);
}

TEST_CASE("includes are merged deeply, later ones and the including file win") {
  const ScratchDirectory dir;
  dir.write("base.json", scenario_with(R"("seed": 7)", R"("name": "base", "seed": 7)"));
  dir.write("late.json", R"({"name": "late", "seed": 8, "power": {"pue": 1.4}})");
  LoadOptions options;
  options.path = dir.write("top.json", R"({"schema": "medley.scenario/1",
    "include": ["base.json", "late.json"],
    "name": "top", "pools": {"small": {"replicas": 2}}, "slo": null})");
  const Scenario s = load_scenario(options);
  CHECK(s.name == "top");
  CHECK(s.seed == 8);
  CHECK(s.price.pue == 1.4);
  REQUIRE(s.pools.size() == 2);
  CHECK(s.pools[1].replicas == 2);
  CHECK(s.pools[1].model.name == "llama-3.1-8b");
  CHECK(s.slo.empty());  // null takes a part away
}

TEST_CASE("a problem in an included file names that file") {
  const ScratchDirectory dir;
  const std::string base =
      dir.write("parts/base.json", scenario_with(R"("replicas": 4)", R"("replicas": -4)"));
  LoadOptions options;
  options.path = dir.write("top.json", R"({"include": "parts/base.json", "seed": 3})");
  const Problem p = first_problem(options);
  CHECK(p.file == base);
  CHECK(p.pointer == "/pools/small/replicas");
}

TEST_CASE("a cyclic include shows the cycle") {
  const ScratchDirectory dir;
  const std::string a = dir.write("a.json", R"({"include": ["b.json"]})");
  const std::string b = dir.write("b.json", R"({"include": ["a.json"]})");
  LoadOptions options;
  options.path = a;
  const Problem p = first_problem(options);
  CHECK(p.file == b);
  CHECK(p.pointer == "/include/0");
  CHECK(p.message == "cyclic include: " + a + " -> " + b + " -> " + a);
}

TEST_CASE("including a file twice by two ways is no cycle") {
  const ScratchDirectory dir;
  dir.write("base.json", test::kScenario);
  dir.write("a.json", R"({"include": ["base.json"]})");
  dir.write("b.json", R"({"include": ["base.json"], "seed": 4})");
  LoadOptions options;
  options.path = dir.write("top.json", R"({"include": ["a.json", "b.json"]})");
  CHECK(load_scenario(options).seed == 4);
}

TEST_CASE("paths in an included file are relative to it") {
  const ScratchDirectory dir;
  dir.write("parts/requests.csv",
            "arrival_s,input_tokens,output_tokens\n0,10,5\n1.5,20,6\n2,30,7\n");
  std::string text = scenario_with(R"("generate": {
      "arrivals": {"process": "poisson", "rate": "2 req/s"},
      "input_tokens": 128, "output_tokens": 64, "requests": 20})",
                                   R"("trace": {"file": "requests.csv"})");
  dir.write("parts/base.json", text);
  LoadOptions options;
  options.path = dir.write("top.json", R"({"include": ["parts/base.json"]})");
  const Scenario s = load_scenario(options);
  CHECK(s.trace.requests.size() == 13);
  CHECK(s.resolved_json.find("\"parts/requests.csv\"") != std::string::npos);
  CHECK(s.resolved_json.find(dir.path()) == std::string::npos);

  // Absolute paths work and stay out of the resolved scenario too.
  text.replace(text.find("requests.csv"), 12, dir.path() + "/parts/requests.csv");
  options.path = dir.write("other.json", text);
  CHECK(load_scenario(options).resolved_json.find(dir.path()) == std::string::npos);
}
