#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/support/command_line.h"

using namespace medley;
using namespace medley::testing;
using Json = nlohmann::ordered_json;

namespace {
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// The number behind `before` in `text`.
double number_after(const std::string& text, const std::string& before) {
  const std::size_t at = text.find(before);
  REQUIRE_MESSAGE(at != std::string::npos, text);
  return std::stod(text.substr(at + before.size()));
}
}  // namespace

TEST_CASE("lists say the same in a table, JSON and CSV") {
  const Shell shell;
  for (const char* what :
       {"devices", "links", "nodes", "backends", "models", "policies", "formats", "scenarios"}) {
    CAPTURE(what);
    const std::string list = std::string("list ") + what;
    const Json json = Json::parse(shell.medley(list + " --format json").out);
    CHECK(json.size() >= 4);
    const auto csv = lines_of(shell.medley(list + " --format csv").out);
    CHECK(csv.size() == json.size() + 1);
    const auto table = lines_of(shell.medley(list).out);
    CHECK(table.size() >= json.size() + 2);
    CHECK(table[1].find_first_not_of('-') == std::string::npos);
  }
  const Json devices = Json::parse(shell.medley("list devices --format json").out);
  const auto h100 = std::find_if(devices.begin(), devices.end(),
                                 [](const Json& d) { return d["device"] == "H100-SXM5-80GB"; });
  REQUIRE(h100 != devices.end());
  CHECK((*h100)["bandwidth"] == "3.35 TB/s");
  CHECK((*h100)["bandwidth_class"] == "datasheet");
  CHECK(has(shell.medley("list devices").out, "3.35 TB/s s"));
}

TEST_CASE("listed pool policies are those that a scenario may name") {
  const Shell shell;
  for (const Json& p : Json::parse(shell.medley("list policies --format json").out)) {
    std::string key = p["kind"].get<std::string>();
    const std::size_t name = key.find("<name>");
    if (name != std::string::npos) key.replace(name, 6, "small");
    const std::string set = " --set " + key + "=" + p["policy"].get<std::string>();
    CAPTURE(set);
    const Outcome o = shell.medley("check s.json" + set);
    CHECK_MESSAGE(o.code == 0, o.err);
  }
}

TEST_CASE("show gives every value its class and source") {
  const Shell shell;
  const Json device = Json::parse(shell.medley("show device h100 --format json").out);
  std::size_t sourced = 0;
  for (const Json& row : device) {
    if (row["class"].is_null()) continue;
    ++sourced;
    CHECK_MESSAGE(!row["source"].is_null(), row["field"].get<std::string>());
  }
  CHECK(sourced > 20);
  CHECK(has(shell.medley("show link NVLink4").out, "bandwidth"));
  CHECK(has(shell.medley("show node 8xH100-SXM").out, "8 x H100-SXM5-80GB"));
  CHECK(has(shell.medley("show backend vllm-2026").out, "host_per_step"));
  const std::string model = shell.medley("show model meta-llama/Llama-3.1-8B").out;
  CHECK(has(model, "8.03 B"));
  CHECK(has(model, "131072"));
}

TEST_CASE("topologies are listed, summed up and drawn") {
  const Shell shell;
  CHECK(has(shell.medley("list topologies").out, "DGX-H100-SuperPOD"));
  const std::string text = shell.medley("show topology mi300x-fabric").out;
  CHECK(has(text, "bisection"));
  CHECK(has(text, "xGMI MI300X"));
  CHECK(has(shell.medley("show topology 8xH100-SXM").out, "nvswitch (switch)"));
  const Outcome dot = shell.medley("show topology tpu-v4-cube --dot");
  CHECK(dot.code == 0);
  CHECK(dot.out.starts_with("graph \"TPU-v4-cube\" {"));
  const Outcome unknown = shell.medley("show topology mi300x-mush");
  CHECK(unknown.code == 2);
  CHECK(has(unknown.err, "MI300X-mesh"));
  CHECK(shell.medley("show device h100 --dot").code == 2);
}

TEST_CASE("a catalogue folder of one's own is listed and shown") {
  const Shell shell;
  shell.write("mine/devices/toy.json", R"({"schema": "medley.device/1", "name": "Toy",
    "vendor": "me", "kind": "gpu", "sources": {"x": "my bench"},
    "peak": {"bf16": {"value": "1 TFLOP/s", "class": "measured", "source": "x"}}})");
  CHECK(has(shell.medley("list devices --catalog mine").out, "1 TFLOP/s m"));
  CHECK(has(shell.medley("show device toy --catalog mine").out, "my bench"));
  CHECK(shell.medley("show device toy").code == 2);
}

TEST_CASE("check accounts for memory and imports") {
  const Shell shell;
  const Outcome o = shell.medley("check s.json");
  CHECK(o.code == 0);
  for (const char* word : {"s.json: valid", "2 pools, 30 requests", "blocks", "128k", "imports"}) {
    CHECK_MESSAGE(has(o.out, word), word);
  }
  CHECK(shell.litter().empty());
  // 24 GiB x 0.9 - 14.96 GiB of weights over 131,072 B per token: the serving engines' own count.
  const Outcome set = shell.medley("check s.json --set pools.small.num_gpu_blocks_override=1000");
  CHECK(has(set.out, "1000 (set)"));
}

// Device time must be the sum of the rows, whatever the plan and batch.
TEST_CASE("explain adds up") {
  const Shell shell;
  for (const char* pool : {"big", "small"}) {
    for (const char* batch :
         {"decode:32x1024", "prefill:512@0", "prefill:2x512@1024,decode:7x90"}) {
      CAPTURE(pool);
      CAPTURE(batch);
      const std::string arguments =
          std::string("explain s.json --pool ") + pool + " --batch " + batch;
      const Outcome o = shell.medley(arguments);
      REQUIRE(o.code == 0);
      const double sum = number_after(o.out, "sum of the totals: ");
      const double device = number_after(o.out, "device: ");
      CHECK(sum == doctest::Approx(device).epsilon(1e-6));
      double rows = 0.0;
      for (const Json& row : Json::parse(shell.medley(arguments + " --format json").out)) {
        const double repeats = row["repeats"].get<double>();
        const double compute = row["compute_us"].get<double>();
        const double memory = row["memory_us"].get<double>();
        const double each = std::max(compute, memory) +
                            row["serial"].get<double>() * std::min(compute, memory) +
                            row["launch_us"].get<double>();
        const double total = row["total_us"].get<double>();
        rows += total;
        if (row["bound"] != "link") CHECK(total == doctest::Approx(repeats * each).epsilon(2e-3));
      }
      CHECK(rows == doctest::Approx(sum).epsilon(1e-5));
    }
  }
}

TEST_CASE("traces are generated, converted and described") {
  const Shell shell;
  REQUIRE(shell.medley("trace generate s.json --out t.csv --seed 7").code == 0);
  const Outcome exists = shell.medley("trace generate s.json --out t.csv");
  CHECK(exists.code == 2);
  CHECK(has(exists.err, "--overwrite"));
  REQUIRE(shell.medley("trace convert t.csv --out u.csv.gz").code == 0);
  CHECK(shell.sh("gzip -dc u.csv.gz | cmp - t.csv").code == 0);
  const Outcome show = shell.medley("trace show u.csv.gz --format json");
  REQUIRE(show.code == 0);
  CHECK(has(show.err, "30 rows read = 30 kept"));
  const Json stats = Json::parse(show.out);
  CHECK(stats[0]["what"] == "requests");
  CHECK(stats[0]["value"] == 30);
  CHECK(has(shell.medley("trace show s.json").out, "class code"));
  shell.write("bad.csv", "arrival_s,input_tokens,output_tokens\n0,10,10\n1,x,10\n");
  const Outcome bad = shell.medley("trace show bad.csv");
  CHECK(bad.code == 2);
  CHECK(has(bad.err, "line 3"));
  CHECK(shell.medley("trace show bad.csv --drop-bad-rows").code == 0);
}

TEST_CASE("completion scripts load and complete") {
  const Shell shell;
  REQUIRE(shell.medley("completion bash > c.bash").code == 0);
  CHECK(shell.sh("bash -n c.bash").code == 0);
  const auto complete = [&](const std::string& words) {
    return shell
        .sh("bash -c 'source ./c.bash; COMP_WORDS=(" + words +
            "); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _medley; echo \"${COMPREPLY[*]}\"'")
        .out;
  };
  CHECK(complete("medley ru") == "run\n");
  CHECK(complete("medley trace \"\"") == "show generate convert\n");
  CHECK(complete("medley run --over") == "--overwrite\n");
  CHECK(complete("medley run s.json --format j") == "json\n");
  CHECK(complete("medley list dev") == "devices\n");
  CHECK(complete(std::string("\"") + MEDLEY_BINARY + "\" show backend id") == "ideal\n");
  for (const std::string other : {"zsh", "fish"}) {
    CAPTURE(other);
    CHECK(shell.medley("completion " + other + " > c." + other).code == 0);
    CHECK(has(shell.read("c." + other), "overwrite"));
    if (shell.sh("command -v " + other).code == 0) {
      CHECK(shell.sh(other + " -n c." + other).code == 0);
    }
  }
}
