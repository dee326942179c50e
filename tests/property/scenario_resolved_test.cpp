#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/core/json_reader.h"
#include "sim/core/rng.h"
#include "tests/support/scenario_text.h"

using namespace medley;
using medley::test::load_text;
using Json = nlohmann::ordered_json;

namespace {
/// One value for each of a handful of random keys.
std::vector<std::string> random_overrides(Rng& rng) {
  const std::vector<std::vector<std::string>> choices = {
      {"seed=1", "seed=9223372036854775807"},
      {"name=x", "tie_seed=3"},
      {"fast_forward=false", "assume_missing=true"},
      {"horizon=90 s", "horizon=1.5 h", "horizon=0.1 s"},
      {"measure.warmup=0.3 s", "measure.window=100 ms", "measure.window=7 min"},
      {"report.interval=0.7 s", "report.requests=sample:9", "report.trace=true"},
      {"power.pue=1.1", "power.pue=1"},
      {"price.carbon_intensity=0.4 kgCO2/kWh", "price.carbon_intensity=366.7 gCO2/kWh",
       "price.energy=80 USD/MWh"},
      {"price.basis=capex", "price.basis=rent"},
      {"slo.default.e2e=12 s", "slo.code.tpot=33.3 ms"},
      {"routing.policy=least_outstanding_tokens", "routing.policy=prefix_affinity",
       "routing.policy=central_queue", "routing.policy=power_of_two"},
      {"cluster.nodes.l40s.count=3", "cluster.nodes.l40s.power_limit=0.3 kW",
       "cluster.nodes.l40s.overrides.memory.bandwidth=0.9 TB/s"},
      {"pools.small.backend=sglang", "pools.small.backend=ideal", "pools.small.backend=vllm-2024"},
      {"pools.small.quantization=fp8", "pools.small.quantization=awq",
       "pools.small.kv_cache_dtype=fp8"},
      {"pools.small.max_model_len=4096", "pools.small.max_num_seqs=31",
       "pools.small.block_size=32"},
      {"pools.small.gpu_memory_utilization=0.83", "pools.small.num_gpu_blocks_override=1000"},
      {"pools.small.scheduler=static", "pools.small.scheduler=continuous",
       "pools.small.enable_chunked_prefill=true"},
      {"pools.big.step_model.kind=constant", "pools.big.data_parallel_size=1"},
      {"pools.big.step_model.decode_skew=0.03", "pools.big.dtype=float16"},
      {"workload.sources.chat.scale_rate=2.5", "workload.sources.code.thin=0.5"}};
  std::vector<std::string> picked;
  for (const auto& options : choices) {
    if (rng.below(3) == 0) continue;
    picked.push_back(options[rng.below(options.size())]);
  }
  return picked;
}

/// The same document with the members of every object in another order.
Json shuffled(const Json& value, Rng& rng) {
  if (!value.is_object()) return value;
  std::vector<std::string> keys;
  for (const auto& item : value.items()) keys.push_back(item.key());
  for (std::size_t i = keys.size(); i > 1; --i) std::swap(keys[i - 1], keys[rng.below(i)]);
  Json out = Json::object();
  for (const std::string& key : keys) out[key] = shuffled(value[key], rng);
  return out;
}

bool same_requests(const Trace& a, const Trace& b) {
  return std::equal(a.requests.begin(), a.requests.end(), b.requests.begin(), b.requests.end(),
                    [](const Request& x, const Request& y) {
                      return x.arrival == y.arrival && x.input_tokens == y.input_tokens &&
                             x.output_tokens == y.output_tokens && x.model == y.model &&
                             x.slo_class == y.slo_class;
                    });
}
}  // namespace

TEST_CASE("a resolved scenario loads to itself") {
  Rng rng(20250101, "scenario_resolved");
  int loaded = 0;
  for (int i = 0; i < 60; ++i) {
    const std::vector<std::string> overrides = random_overrides(rng);
    std::string all;
    for (const std::string& o : overrides) all += o + "; ";
    INFO("case " << i << ": " << all);
    Scenario first;
    try {
      first = load_text(test::kScenario, overrides);
    } catch (const InputError&) {
      continue;  // combinations that contradict each other
    }
    ++loaded;
    const Scenario second = load_text(first.resolved_json);
    CHECK(second.resolved_json == first.resolved_json);
    CHECK(second.hash8 == first.hash8);
    CHECK(same_requests(first.trace, second.trace));
    REQUIRE(second.pools.size() == first.pools.size());
    for (std::size_t p = 0; p < first.pools.size(); ++p) {
      CHECK(second.pools[p].replicas == first.pools[p].replicas);
      CHECK(second.pools[p].precision.weights == first.pools[p].precision.weights);
      CHECK(second.pools[p].precision.activations == first.pools[p].precision.activations);
      CHECK(second.pools[p].memory_utilization == first.pools[p].memory_utilization);
      CHECK(second.pools[p].batching.max_num_batched_tokens ==
            first.pools[p].batching.max_num_batched_tokens);
    }
    CHECK(second.price.carbon_g_per_joule == first.price.carbon_g_per_joule);
    CHECK(second.price.energy == first.price.energy);
  }
  CHECK(loaded >= 20);
}

TEST_CASE("the order of keys and comments changes nothing") {
  const Scenario plain = load_text(test::kScenario);
  Rng rng(42, "shuffle");
  for (int i = 0; i < 10; ++i) {
    Json json = shuffled(parse_json(test::kScenario, "test"), rng);
    json["comment"] = i;
    json["workload"]["comment"] = "about the workload";
    json["pools"]["$note"] = "about the pools";
    const Scenario s = load_text(json.dump());
    CHECK(s.resolved_json == plain.resolved_json);
    CHECK(same_requests(s.trace, plain.trace));
  }
}
