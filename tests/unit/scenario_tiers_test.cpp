// KV tiers, load_weights and migration in scenario files.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/core/error.h"
#include "tests/support/scenario_text.h"

using namespace medley;
using medley::test::load_text;

namespace {
/// The problem that `overrides` give at `pointer`; empty where there is none.
std::string problem_at(const std::string& pointer, const std::vector<std::string>& overrides) {
  try {
    load_text(test::kScenario, overrides);
  } catch (const InputError& error) {
    for (const Problem& p : error.problems()) {
      if (p.pointer == pointer) return p.message + " | " + p.hint;
    }
    return std::string("elsewhere: ") + error.what();
  }
  return "";
}
bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
const std::string kHost = R"({"where": "host", "capacity": "100 GB"})";
}  // namespace

TEST_CASE("tiers, cold starts and migration as written") {
  const Scenario s = load_text(
      test::kScenario,
      {"pools.small.kv_tiers=[" + kHost + R"(, {"where": "nvme", "capacity": "2 TB"},
        {"where": "remote", "capacity": "1 TB", "node": "h100"}])",
       "pools.small.kv_offload=write_through", "pools.small.kv_recall=if_faster",
       "pools.small.preemption=swap", "pools.small.kv_staging=1 GB",
       R"(pools.big.load_weights={"from": "network", "node": "l40s", "engine_start": "20 s"})",
       R"(migration={"policy": "drain", "interval": "2 s",
          "drain": [{"pool": "small", "replica": 3, "at": "9 s"}]})"});
  const PoolSpec& big = s.pools[0];
  const KvTieringSpec& t = s.pools[1].tiering;
  REQUIRE(t.tiers.size() == 3);
  CHECK(t.tiers[0].where == KvTierSpec::Where::kHost);
  CHECK(t.tiers[0].scope == KvTierSpec::Scope::kNode);
  CHECK(t.tiers[0].capacity.value() == 100e9);
  CHECK(t.tiers[1].where == KvTierSpec::Where::kNvme);
  CHECK(t.tiers[2].scope == KvTierSpec::Scope::kCluster);
  CHECK(s.nodes[t.tiers[2].node_group].name == "h100");
  CHECK(t.write_through);
  CHECK(t.recall_if_faster);
  CHECK(t.swap);
  CHECK(t.staging.value() == 1e9);
  CHECK(big.tiering.tiers.empty());
  CHECK(big.load_weights.from == WeightLoadSpec::From::kNetwork);
  CHECK(big.load_weights.at_start);
  CHECK(big.load_weights.engine_start.value() == 20.0);
  CHECK(s.migration.policy == MigrationSpec::Policy::kDrain);
  REQUIRE(s.migration.drains.size() == 1);
  CHECK(s.migration.drains[0].pool == 1);
  CHECK(s.migration.drains[0].replica == 3);
  // The resolved form gives the same scenario.
  CHECK(load_text(s.resolved_json).resolved_json == s.resolved_json);
}

TEST_CASE("scenarios without them resolve as they always did") {
  const std::string resolved = load_text(test::kScenario).resolved_json;
  for (const char* key : {"kv_tiers", "kv_offload", "preemption", "load_weights", "migration"}) {
    CHECK_FALSE(says(resolved, std::string("\"") + key));
  }
}

TEST_CASE("what is wrong with them is said where it is, with what would be right") {
  const auto tier = [](const std::string& text) { return "pools.small.kv_tiers=[" + text + "]"; };
  CHECK(says(problem_at("/pools/small/kv_tiers/0/where",
                        {tier(R"({"where": "hots", "capacity": "1 GB"})")}),
             "host"));
  CHECK(says(problem_at("/pools/small/kv_tiers/0/where", {tier(R"({"capacity": "1 GB"})")}),
             "missing"));
  CHECK(says(problem_at("/pools/small/kv_tiers/0/capacity", {tier(R"({"where": "host"})")}),
             "missing"));
  CHECK(says(
      problem_at("/pools/small/kv_tiers/0/capacity", {tier(R"({"where": "host", "capacity": 5})")}),
      "unit"));
  CHECK(says(problem_at("/pools/small/kv_tiers/0/scope",
                        {tier(R"({"where": "host", "capacity": "1 GB", "scope": "cluster"})")}),
             "node"));
  CHECK(says(problem_at("/pools/small/kv_tiers/0/node",
                        {tier(R"({"where": "remote", "capacity": "1 GB", "node": "h200"})")}),
             "h100"));
  CHECK(says(problem_at("/pools/small/kv_tiers/0/node",
                        {tier(R"({"where": "nvme", "capacity": "1 GB", "node": "h100"})")}),
             "where its replicas are"));
  CHECK(says(problem_at("/pools/small/kv_tiers/0/where",
                        {tier(R"({"where": "cxl", "capacity": "1 GB"})")}),
             "memory pool"));
  CHECK(says(
      problem_at("/pools/small/kv_tiers", {tier(R"({"where": "host", "capacity": "900 TB"})")}),
      "DRAM"));
  CHECK(says(
      problem_at("/pools/small/kv_tiers", {tier(kHost), "pools.small.enable_prefix_caching=false"}),
      "prefix cache"));
  CHECK(says(problem_at("/pools/small/preemption", {"pools.small.preemption=swap"}), "no tier"));
  CHECK(
      says(problem_at("/pools/small/kv_offload", {tier(kHost), "pools.small.kv_offload=on_evcit"}),
           "on_evict"));
  CHECK(says(problem_at("/pools/small/load_weights/from", {"pools.small.load_weights={}"}),
             "missing"));
  CHECK(says(problem_at("/pools/small/load_weights/node",
                        {R"(pools.small.load_weights={"from": "network"})"}),
             "missing"));
  CHECK(says(problem_at("/pools/small/load_weights/engine_start",
                        {R"(pools.small.load_weights={"from": "nvme", "engine_start": "-1 s"})"}),
             "between"));
  CHECK(says(problem_at("/migration/policy", {"migration.policy=balnce"}), "balance"));
  CHECK(says(problem_at("/migration/drain", {"migration.policy=drain"}), "drains nothing"));
  CHECK(says(problem_at("/migration/drain/0/pool",
                        {R"(migration={"policy": "drain", "drain": [{"pool": "smal"}]})"}),
             "small"));
  CHECK(says(
      problem_at("/migration/drain/0/replica",
                 {R"(migration={"policy": "drain", "drain": [{"pool": "small", "replica": 4}]})"}),
      "4 replicas"));
  CHECK(says(problem_at("/migration/policy",
                        {"migration.policy=balance", "pools.small.pipeline_parallel_size=2"}),
             "pipeline"));
}
