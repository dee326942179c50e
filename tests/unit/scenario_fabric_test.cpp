#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/core/error.h"
#include "tests/support/scenario_text.h"

using namespace medley;
using medley::test::load_text;

namespace {
std::string with_fabric(const std::string& fabric) {
  return test::scenario_with("\"cluster\": {\"nodes\": {",
                             "\"cluster\": {\"fabric\": " + fabric + ", \"nodes\": {");
}
std::vector<Problem> problems_of(const std::string& text, std::vector<std::string> sets = {}) {
  try {
    load_text(text, std::move(sets));
  } catch (const InputError& error) {
    return error.problems();
  }
  return {};
}
}  // namespace

TEST_CASE("a scenario's fabric is a name, a structure, a list, or several side by side") {
  CHECK_FALSE(load_text(test::kScenario).fabric.given());
  const Scenario named = load_text(with_fabric("\"RoCE-leaf-spine-2to1\""));
  REQUIRE(named.fabric.network);
  CHECK(named.fabric.network->kind == "leaf-spine");
  CHECK(nlohmann::json::parse(named.resolved_json)["cluster"]["fabric"] == "RoCE-leaf-spine-2to1");

  const Scenario kind =
      load_text(with_fabric(R"({"kind": "leaf-spine", "link": "RoCE 400G", "comment": "x",
                                "oversubscription": 2})"));
  CHECK(kind.fabric.network->number("oversubscription", 1.0) == 2.0);
  const auto resolved = nlohmann::json::parse(kind.resolved_json)["cluster"]["fabric"];
  CHECK(resolved == nlohmann::json::parse(
                        R"({"kind": "leaf-spine", "link": "RoCE 400G", "oversubscription": 2})"));

  const Scenario list = load_text(with_fabric(R"({"nodes": {"s": {"kind": "switch"}}, "links": [
      {"from": "h100/*", "to": "s", "link": "RoCE 400G"},
      {"from": "l40s/0", "to": "s", "link": "RoCE 100G"}]})"));
  CHECK(list.fabric.network->kind == "list");

  const Scenario parts = load_text(with_fabric(R"({
      "network": "Ethernet-25G-switch", "storage": {"link": "NVMe Gen5 x4", "count": 8},
      "pool": {"kind": "cxl-pool", "modules": 2, "link": "CXL 2.0 x16"}, "nics_per_node": 2})"));
  CHECK(parts.fabric.network->kind == "switch");
  CHECK(parts.fabric.pool->kind == "cxl-pool");
  CHECK(parts.fabric.storage.count == 8);
  CHECK(parts.fabric.nics_per_node == 2);
  CHECK(parts.hash8 != kind.hash8);
}

TEST_CASE("--set reaches into the fabric") {
  const Scenario s = load_text(with_fabric(R"({"kind": "switch", "link": "RoCE 400G"})"),
                               {"cluster.fabric.link=RoCE 100G"});
  CHECK(s.fabric.network->links.at("link").link == "RoCE 100G");
}

TEST_CASE("what is wrong with a fabric is said where it stands") {
  const auto unknown = problems_of(with_fabric("\"RoCE-leaf-spine-2to2\""));
  REQUIRE(unknown.size() == 1);
  CHECK(unknown[0].pointer == "/cluster/fabric");
  CHECK(unknown[0].hint == "did you mean \"RoCE-leaf-spine-2to1\"?");

  const auto many = problems_of(
      with_fabric(R"({"kind": "leaf-spine", "lin": "RoCE 400G", "leaves": 0, "routing": "emcp"})"));
  CHECK(many.size() == 3);

  const auto small = problems_of(
      with_fabric(R"({"kind": "switch", "ports": 4, "link": "RoCE 400G"})"));  // 8 NICs and one
  REQUIRE(small.size() == 1);
  CHECK(small[0].pointer == "/cluster/fabric/ports");

  const auto link = problems_of(with_fabric(R"({"kind": "switch", "link": "RoCE 40G"})"));
  REQUIRE(link.size() == 1);
  CHECK(link[0].pointer == "/cluster/fabric/link");
  CHECK(link[0].file == "configs/scenarios/test.json");
}
