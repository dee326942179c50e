#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "sim/core/error.h"
#include "tests/support/scenario_text.h"

using namespace medley;
using medley::test::load_text;
using medley::test::scenario_with;

namespace {
struct Broken {
  const char* what;
  std::string from, to;  ///< replacement in the valid scenario
  std::string pointer;
  std::string message;  ///< substring
  std::string hint;     ///< substring
};

const std::vector<Broken>& broken() {
  static const std::vector<Broken> all = {
      // syntax
      {"trailing comma", R"({"warmup": "1 s"})", R"({"warmup": "1 s",})", "/measure/warmup",
       "line 23, column 31", ""},
      {"two commas", R"("seed": 7,)", R"("seed": 7,,)", "/seed", "line 3, column 13", ""},
      {"open string", R"("round_robin")", R"("round_robin)", "/routing/policy", "line 13", ""},
      {"duplicate key", R"("seed": 7,)", R"("seed": 7, "seed": 8,)", "/seed", "duplicate key", ""},
      {"NaN", R"("seed": 7)", R"("seed": NaN)", "/seed", "line 3, column 11", ""},
      {"1e999", R"("seed": 7)", R"("seed": 1e999)", "/seed", "1e999", ""},
      // keys
      {"unknown top key", R"("seed": 7)", R"("sead": 7)", "/sead", "unknown key", "seed"},
      {"unknown pool key", R"("replicas": 4)", R"("replica": 4)", "/pools/small/replica",
       "unknown key", "replicas"},
      {"missing schema", R"("schema": "medley.scenario/1",)", "", "/schema", "missing", ""},
      {"other schema", "medley.scenario/1", "medley.scenario/9", "/schema", "unknown value",
       "medley.scenario/1"},
      {"missing node", R"("node": "l40s", )", "", "/pools/small/node", "missing required key", ""},
      {"missing model", R"("node": "l40s", "model": "llama-3.1-8b")", R"("node": "l40s")",
       "/pools/small/model", "missing required key", ""},
      {"no workload", R"("workload": {)", R"("$workload": {)", "/workload", "missing required key",
       ""},
      // types
      {"text for number", R"("replicas": 4)", R"("replicas": "4")", "/pools/small/replicas",
       "expected an integer", "\"4\""},
      {"fraction of a replica", R"("replicas": 4)", R"("replicas": 2.5)", "/pools/small/replicas",
       "expected an integer", "2.5"},
      {"negative", R"("replicas": 4)", R"("replicas": -4)", "/pools/small/replicas",
       "must be between 1 and", "-4"},
      {"overflow", R"("replicas": 4)", R"("replicas": 99999999999999999999)",
       "/pools/small/replicas", "must be between 1 and", ""},
      {"list for map", R"("routing": {"policy": "round_robin"})", R"("routing": [])", "/routing",
       "expected an object", ""},
      {"bare seconds", R"("ttft": "500 ms")", R"("ttft": 0.5)", "/slo/chat/ttft", "unit", ""},
      {"wrong unit", R"("ttft": "500 ms")", R"("ttft": "500 W")", "/slo/chat/ttft", "W", ""},
      {"no such unit", R"("tpot": "50 ms")", R"("tpot": "50 lightyears")", "/slo/chat/tpot",
       "lightyears", ""},
      {"negative time", R"("warmup": "1 s")", R"("warmup": "-1 s")", "/measure/warmup",
       "must be between 0", ""},
      {"carbon in watts", "400 gCO2/kWh", "400 W", "/price/carbon_intensity", "no carbon intensity",
       "400 gCO2/kWh"},
      {"pue below one", R"("measure")", R"("power": {"pue": 0.8}, "measure")", "/power/pue",
       "must be at least 1", ""},
      {"empty objective", R"({"ttft": "500 ms", "tpot": "50 ms"})", "{}", "/slo/chat",
       "no objective", "ttft"},
      // names
      {"node type", "8xH100-SXM", "8xH100-SMX", "/cluster/nodes/h100/type", "unknown node type",
       "8xH100-SXM"},
      {"node group", R"("node": "l40s")", R"("node": "l40")", "/pools/small/node",
       "no node group \"l40\"", "l40s"},
      {"model", R"("node": "l40s", "model": "llama-3.1-8b")",
       R"("node": "l40s", "model": "llama-3.1-9b")", "/pools/small/model", "unknown model",
       "llama-3.1-8b"},
      {"backend", R"("replicas": 4)", R"("backend": "vllm-2036")", "/pools/small/backend",
       "unknown backend", "vllm-2026"},
      {"policy", "round_robin", "round_robbin", "/routing/policy", "unknown routing policy",
       "round_robin"},
      {"policy parameter", R"("round_robin")", R"("round_robin", "spread": 2)", "/routing/spread",
       "unknown key", ""},
      {"class", R"("slo": {"chat")", R"("slo": {"chatt")", "/slo/chatt", "no request is of class",
       "chat"},
      {"served model", R"("model": "llama-3.1-70b", "class")",
       R"("model": "llama-3.1-7b", "class")", "/workload/sources/code/model",
       "no pool serves model \"llama-3.1-7b\"", "llama-3.1-70b"},
      {"empty workload", R"("chat": {"model": "llama-3.1-8b", "class": "chat", "generate": {
      "arrivals": {"process": "poisson", "rate": "2 req/s"},
      "input_tokens": 128, "output_tokens": 64, "requests": 20}},
    "code": {"model": "llama-3.1-70b", "class": "code", "generate": {
      "arrivals": {"process": "constant", "rate": "1 req/s"},
      "input_tokens": 512, "output_tokens": 32, "requests": 10}})",
       "", "/workload/sources", "is empty", ""},
      {"requests name no model", R"("model": "llama-3.1-70b", "class")", R"("class")", "/workload",
       "requests name no model", "model"},
      {"dtype", R"("replicas": 4)", R"("dtype": "bf61")", "/pools/small/dtype",
       "no format of activations", "bf16"},
      {"quantised by dtype", R"("replicas": 4)", R"("dtype": "fp8")", "/pools/small/dtype",
       "no format of activations", "\"quantization\": \"fp8\""},
      {"quantization", R"("replicas": 4)", R"("quantization": "fp88")", "/pools/small/quantization",
       "unknown quantization", "fp8"},
      {"kv dtype", R"("replicas": 4)", R"("kv_cache_dtype": "fp5")", "/pools/small/kv_cache_dtype",
       "unknown number format", "fp8"},
      {"scheduler", R"("replicas": 4)", R"("scheduler": "chunky")", "/pools/small/scheduler",
       "unknown value", "chunked"},
      // rules across fields
      {"no pools",
       R"("big": {"node": "h100", "model": "llama-3.1-70b", "replicas": 2, "tensor_parallel_size": 4},
    "small": {"node": "l40s", "model": "llama-3.1-8b", "replicas": 4})",
       "", "/pools", "no pool serves anything", "node"},
      {"no nodes", R"("h100": {"type": "8xH100-SXM", "count": 1},
    "l40s": {"type": "4xL40S", "count": 1})",
       "", "/cluster/nodes", "no nodes", "type"},
      {"heads", R"("tensor_parallel_size": 4)", R"("tensor_parallel_size": 3)",
       "/pools/big/tensor_parallel_size", "3", "possible here: 1, 2, 4, 8"},
      {"replica larger than a node", R"("tensor_parallel_size": 4)",
       R"("tensor_parallel_size": 4, "pipeline_parallel_size": 3)",
       "/pools/big/tensor_parallel_size", "does not fit in one node of 8", "whole stages"},
      {"one pool too large", R"("replicas": 4)", R"("replicas": 5)", "/pools/small/replicas",
       "needs 5 devices", "--set cluster.nodes.l40s.count=2"},
      {"experts of a dense model", R"("replicas": 4)", R"("enable_expert_parallel": true)",
       "/pools/small/enable_expert_parallel", "no experts", ""},
      {"power limit raised", R"("4xL40S", )", R"("4xL40S", "power_limit": "500 W", )",
       "/cluster/nodes/l40s/power_limit", "above the limit of L40S", "only be lowered"},
      {"power limit below the floor", R"("4xL40S", )", R"("4xL40S", "power_limit": "100 W", )",
       "/cluster/nodes/l40s/power_limit", "no work", ""},
      {"override of nothing", R"("4xL40S", )",
       R"("4xL40S", "overrides": {"power.context_idel": "1 W"}, )",
       "/cluster/nodes/l40s/overrides/power/context_idel", "unknown key", "context_idle"},
      {"override in the wrong unit", R"("4xL40S", )",
       R"("4xL40S", "overrides": {"memory.bandwidth": "864 GB"}, )",
       "/cluster/nodes/l40s/overrides/memory/bandwidth", "GB", ""},
      {"device renamed", R"("4xL40S", )", R"("4xL40S", "overrides": {"name": "x"}, )",
       "/cluster/nodes/l40s/overrides/name", "unknown key", ""},
      {"type and inline", R"("4xL40S", )", R"("4xL40S", "devices": 3, )",
       "/cluster/nodes/l40s/devices", "spelled out", "overrides"},
      {"format the device lacks", R"("type": "4xL40S")", R"("type": "8xV100-SXM2")",
       "/pools/small/dtype", "has no native bf16", "\"dtype\": \"fp16\""},
      {"pools that oversubscribe", R"("node": "l40s")", R"("node": "h100")",
       "/cluster/nodes/h100/count", "big (2 x 4) and small (4 x 1) together need 12 devices",
       "--set cluster.nodes.h100.count=2"},
      {"backend without the format", R"("replicas": 4)",
       R"("backend": "vllm-2024", "quantization": "mxfp4")", "/pools/small/quantization",
       "has no kernels for fp4", "int4"},
      {"budget below sequences", R"("replicas": 4)",
       R"("max_num_seqs": 512, "max_num_batched_tokens": 256)",
       "/pools/small/max_num_batched_tokens", "256", "max_num_seqs"},
      {"prompts beyond an unchunked step", R"("replicas": 4)",
       R"("scheduler": "continuous", "max_num_batched_tokens": 8192)",
       "/pools/small/max_num_batched_tokens", "must fit in one step", "max_model_len"},
      {"scheduler against chunking", R"("replicas": 4)",
       R"("scheduler": "static", "enable_chunked_prefill": true)",
       "/pools/small/enable_chunked_prefill", "contradicts", ""},
      {"tables without a folder", R"("replicas": 4)",
       R"("step_model": {"kind": "tables", "tables": "no/such/folder"})",
       "/pools/small/step_model/tables", "no folder", "dense.csv"},
      {"constant steps of no length", R"("replicas": 4)", R"("step_model": {"kind": "constant"})",
       "/pools/small/step_model", "no time", "per_step"},
      {"constants beside a roofline", R"("replicas": 4)", R"("step_model": {"per_step": "1 ms"})",
       "/pools/small/step_model/per_step", "constant", "kind"},
      {"ideal with overheads", R"("replicas": 4)",
       R"("backend": "ideal", "backend_overrides": {"host_per_step": "1 ms"})",
       "/pools/small/backend_overrides", "no overheads", ""},
      {"amortised rent", R"("energy")", R"("amortization": "3 years", "energy")",
       "/price/amortization", "no effect", "capex"},
      {"sample size", R"("measure")", R"("report": {"requests": "sample:x"}, "measure")",
       "/report/requests", "no sample size", "sample:1000"},
      {"name with a slash", R"("seed": 7)", R"("name": "a/b")", "/name", "result folder", ""},
      {"missing include", R"("seed": 7)", R"("include": ["nowhere.json"])", "/include/0",
       "no such file", "relative"},
      {"missing catalogue", R"("seed": 7)", R"("catalog": ["nowhere"])", "/catalog", "no folder",
       "relative"},
      {"unknown memory", R"("type": "4xL40S")", R"("device": "Hailo-8", "devices": 4)",
       "/pools/small/dtype", "no bf16 rate of Hailo-8", "overrides.peak.bf16="},
  };
  return all;
}
}  // namespace

TEST_CASE("every broken scenario gets a message that says where and what would be right") {
  CHECK(broken().size() >= 60);
  for (const Broken& b : broken()) {
    std::string all = "no error";
    bool found = false;
    try {
      load_text(scenario_with(b.from, b.to));
    } catch (const InputError& error) {
      all = error.what();
      for (const Problem& p : error.problems()) {
        found = found || (p.file == "configs/scenarios/test.json" && p.pointer == b.pointer &&
                          p.message.find(b.message) != std::string::npos &&
                          (p.message + p.hint).find(b.hint) != std::string::npos);
      }
    }
    INFO(std::string(b.what) << " -> " << all);
    CHECK(found);
  }
}

TEST_CASE("the valid scenario is valid") {
  const Scenario s = load_text(medley::test::kScenario);
  CHECK(s.pools.size() == 2);
  CHECK(s.trace.requests.size() == 30);
}

TEST_CASE("all problems of a scenario are reported at once") {
  std::string text = scenario_with(R"("seed": 7)", R"("seed": -7)");
  text.replace(text.find("500 ms"), 6, "500 GB");
  text.replace(text.find("round_robin"), 11, "robin_round");
  text.replace(text.find("8xH100-SXM"), 10, "9xH100-SXM");
  try {
    load_text(text);
    FAIL("accepted");
  } catch (const InputError& error) {
    REQUIRE(error.problems().size() == 4);
    CHECK(error.problems()[0].pointer == "/seed");
    CHECK(error.problems()[1].pointer == "/cluster/nodes/h100/type");
    CHECK(error.problems()[2].pointer == "/routing/policy");
    CHECK(error.problems()[3].pointer == "/slo/chat/ttft");
  }
}
