#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/core/text_file.h"
#include "sim/scenario/schema.h"
#include "tests/support/scenario_text.h"

using namespace medley;
using medley::test::load_text;

namespace {
const std::string kBegin =
    "<!-- keys: begin (written by the scenario tests with MEDLEY_UPDATE=1) -->\n";
const std::string kEnd = "\n<!-- keys: end -->";

/// Names directly below `prefix` in the schema.
std::set<std::string> documented(const std::string& prefix) {
  std::set<std::string> names;
  for (const SchemaSection& section : scenario_schema()) {
    for (const SchemaKey& key : section.keys) {
      if (!key.path.starts_with(prefix)) continue;
      const std::string rest = key.path.substr(prefix.size());
      names.insert(rest.substr(0, rest.find('.')));
    }
  }
  names.erase("");
  names.erase("<source>");
  names.erase("<arrivals>");
  names.erase("comment");
  std::erase_if(names, [](const std::string& n) { return n.starts_with("{"); });
  return names;
}

/// How many keys the reader of the object at `path` knows, from what it says of an unknown one.
std::size_t known_keys(const std::string& path, std::vector<std::string> overrides) {
  const std::string key = "qqqqqqqqqqqqqqqq";
  overrides.push_back((path.empty() ? key : path + "." + key) + "=1");
  try {
    load_text(test::kScenario, overrides);
  } catch (const InputError& error) {
    for (const Problem& p : error.problems()) {
      if (!p.pointer.ends_with(key)) continue;
      const std::string& hint = p.hint;
      REQUIRE(hint.starts_with("known: "));
      const auto listed = static_cast<std::size_t>(std::count(hint.begin(), hint.end(), ',')) + 1;
      const std::size_t more = hint.find(", ... ");
      if (more == std::string::npos) return listed;
      return listed - 1 + std::stoul(hint.substr(more + 6));
    }
    FAIL(error.what());
  }
  FAIL("accepted");
  return 0;
}

/// "/pools/small/replicas" -> "pools.<name>.replicas".
std::string documented_form(const nlohmann::json::json_pointer& pointer) {
  const std::map<std::string, std::string> maps = {
      {"/pools", "<name>"}, {"/cluster/nodes", "<name>"}, {"/slo", "<class>"}};
  nlohmann::json::json_pointer at;
  std::string out;
  std::vector<std::string> parts;
  for (auto p = pointer; !p.empty(); p.pop_back()) parts.insert(parts.begin(), p.back());
  for (const std::string& part : parts) {
    const auto it = maps.find(at.to_string());
    out += (out.empty() ? "" : ".") + (it == maps.end() ? part : it->second);
    at.push_back(part);
  }
  return out;
}
}  // namespace

TEST_CASE("the schema lists as many keys of each object as its reader knows") {
  const std::string chat = "workload.sources.chat";
  CHECK(known_keys("", {}) == documented("").size());  // workload for include
  CHECK(known_keys("cluster.nodes.h100", {}) == documented("cluster.nodes.<name>.").size());
  CHECK(known_keys("pools.small", {}) == documented("pools.<name>.").size());
  CHECK(known_keys("pools.small.step_model", {}) == documented("pools.<name>.step_model.").size());
  CHECK(known_keys("pools.small.backend_overrides", {"pools.small.backend_overrides={}"}) ==
        documented("pools.<name>.backend_overrides.").size());
  CHECK(known_keys("slo.chat", {}) == documented("slo.<class>.").size());
  CHECK(known_keys("price", {}) + known_keys("power", {"power.pue=1.1"}) ==
        documented("price.").size() + documented("power.").size());
  CHECK(known_keys("measure", {}) == documented("measure.").size());
  CHECK(known_keys("report", {"report.trace=true"}) == documented("report.").size());
  CHECK(known_keys(chat, {}) == documented("<source>.").size());
  CHECK(known_keys(chat + ".generate", {}) == documented("<source>.generate.").size());
  CHECK(known_keys(chat + ".trace", {chat + ".trace={}"}) == documented("<source>.trace.").size());
  CHECK(known_keys(chat + ".generate.session", {chat + ".generate.session={}"}) ==
        documented("<source>.generate.session.").size());
  CHECK(known_keys(chat + ".generate.shared_prefix", {chat + ".generate.shared_prefix={}"}) ==
        documented("<source>.generate.shared_prefix.").size());
}

TEST_CASE("every documented key is one the loader knows") {
  std::vector<std::string> overrides = {"workload.sources.chat.trace={}",
                                        "workload.sources.chat.generate.session={}",
                                        "workload.sources.chat.generate.shared_prefix={}"};
  const auto replace = [](std::string& path, const std::string& from, const std::string& to) {
    if (path.starts_with(from)) path = to + path.substr(from.size());
  };
  std::vector<std::string> pointers;
  for (const SchemaSection& section : scenario_schema()) {
    for (const SchemaKey& key : section.keys) {
      std::string path = key.path;
      if (path.empty() || path.starts_with("{") || path.starts_with("<arrivals>") ||
          path.find(".<field>") != std::string::npos || path == "include" || path == "comment" ||
          path.starts_with("routing.") || path == "catalog" || path == "zoo") {
        continue;
      }
      replace(path, "<source>", "workload.sources.chat");
      replace(path, "pools.<name>", "pools.small");
      replace(path, "cluster.nodes.<name>", "cluster.nodes.h100");
      replace(path, "slo.<class>", "slo.chat");
      overrides.push_back(path + "=null");
    }
  }
  std::string unknown;
  try {
    load_text(test::kScenario, overrides);
  } catch (const InputError& error) {
    for (const Problem& p : error.problems()) {
      if (p.message == "unknown key") unknown += p.pointer + " ";
    }
  }
  CHECK(unknown == "");
}

TEST_CASE("every resolved key is documented") {
  const Scenario s = load_text(
      test::kScenario,
      {"horizon=9 s", "tie_seed=1", "measure.window=5 s", "cluster.nodes.l40s.power_limit=300 W",
       "cluster.nodes.l40s.overrides.price.rent=1 USD/h", "price.basis=capex",
       "pools.small.backend_overrides.host_per_step=1 ms", "pools.small.step_model.kind=constant",
       "pools.small.step_model.per_step=1 ms", "pools.small.num_gpu_blocks_override=99",
       "slo.default.e2e=9 s", "routing.policy=prefix_affinity"});
  std::set<std::string> known;
  for (const SchemaSection& section : scenario_schema()) {
    for (const SchemaKey& key : section.keys) known.insert(key.path);
  }
  const nlohmann::json flat = nlohmann::json::parse(s.resolved_json).flatten();
  for (const auto& item : flat.items()) {
    if (item.key().starts_with("/workload/")) continue;
    std::string path = documented_form(nlohmann::json::json_pointer(item.key()));
    const std::size_t override_at = path.find(".overrides.");
    if (override_at != std::string::npos) path.resize(override_at + 11), path += "<field>";
    INFO(path);
    CHECK(known.count(path) == 1);
  }
}

TEST_CASE("configs/README.md holds the schema as it is") {
  const std::string path = std::string(MEDLEY_SOURCE_DIR) + "/configs/README.md";
  const std::string text = read_file(path);
  const std::size_t begin = text.find(kBegin);
  const std::size_t end = text.find(kEnd);
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  const std::size_t from = begin + kBegin.size();
  const std::string wanted = schema_markdown();
  if (std::getenv("MEDLEY_UPDATE") != nullptr) {
    write_file(path, text.substr(0, from) + wanted + text.substr(end));
    MESSAGE("configs/README.md rewritten");
    return;
  }
  INFO("run the tests once with MEDLEY_UPDATE=1 to rewrite it");
  CHECK(text.substr(from, end - from) == wanted);
}
