#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/scenario/missing.h"
#include "sim/scenario/placement.h"
#include "sim/scenario/validate.h"
#include "tests/support/scenario_text.h"
#include "tests/support/scratch_directory.h"

using namespace medley;
using medley::test::load_text;
using medley::test::scenario_with;

namespace {
const PoolSpec& pool_of(const Scenario& s, const std::string& name) {
  const auto it = std::find_if(s.pools.begin(), s.pools.end(),
                               [&](const PoolSpec& p) { return p.name == name; });
  REQUIRE(it != s.pools.end());
  return *it;
}

/// Message and hint of the only problem.
Problem only_problem(const std::string& text, std::vector<std::string> overrides = {}) {
  try {
    load_text(text, std::move(overrides));
  } catch (const InputError& error) {
    CHECK(error.problems().size() == 1);
    return error.problems().front();
  }
  FAIL("accepted");
  return {};
}

PoolSpec small_with(std::vector<std::string> overrides) {
  return pool_of(load_text(test::kScenario, std::move(overrides)), "small");
}
}  // namespace

TEST_CASE("defaults come from the backend and the model") {
  const PoolSpec p = small_with({});
  CHECK(p.backend.name == "vllm-2026");
  CHECK(p.max_model_len == 131072);
  CHECK(p.batching.scheduler == SchedulerKind::kChunked);
  CHECK(p.batching.admission == AdmissionOrder::kFcfs);
  CHECK(p.batching.max_num_seqs == p.backend.max_num_seqs);
  CHECK(p.batching.max_num_batched_tokens == p.backend.max_num_batched_tokens);
  CHECK(p.batching.block_size == 16);
  CHECK(p.batching.prefix_caching);
  CHECK(p.memory_utilization == *p.backend.memory_utilization);
  CHECK(p.num_blocks_override == 0);
  CHECK(p.step_model.kind == StepModelKind::kRoofline);
  CHECK(p.precision.weights == DType::kBf16);
  CHECK(p.precision.activations == DType::kBf16);
  CHECK(p.precision.kv == DType::kBf16);
}

TEST_CASE("an engine without chunked prefill gets whole prompts and a budget that holds them") {
  const PoolSpec old = small_with({"pools.small.backend=vllm-2024"});
  CHECK(old.batching.scheduler == SchedulerKind::kContinuous);
  CHECK(old.batching.max_num_batched_tokens == 131072);
  const PoolSpec shorter =
      small_with({"pools.small.backend=vllm-2024", "pools.small.max_model_len=2048"});
  CHECK(shorter.batching.max_num_batched_tokens == shorter.backend.max_num_batched_tokens);
  const PoolSpec chunked =
      small_with({"pools.small.backend=vllm-2024", "pools.small.enable_chunked_prefill=true"});
  CHECK(chunked.batching.scheduler == SchedulerKind::kChunked);
}

TEST_CASE("data_parallel_size multiplies replicas") {
  CHECK(small_with({"pools.small.replicas=2", "pools.small.data_parallel_size=2"}).replicas == 4);
}

TEST_CASE("quantization sets weights, arithmetic and KV") {
  struct Row {
    const char* quantization;
    DType weights, activations;
  };
  // fp8 and int8 compute in 8 bit; awq, gptq, int4 and mxfp4 only store.
  for (const Row& row :
       {Row{"none", DType::kBf16, DType::kBf16}, Row{"fp8", DType::kFp8, DType::kFp8},
        Row{"int8", DType::kInt8, DType::kInt8}, Row{"w8a8", DType::kInt8, DType::kInt8},
        Row{"awq", DType::kInt4, DType::kBf16}, Row{"gptq", DType::kInt4, DType::kBf16},
        Row{"mxfp4", DType::kFp4, DType::kBf16}}) {
    const PoolSpec p = small_with({std::string("pools.small.quantization=") + row.quantization});
    INFO(std::string(row.quantization));
    CHECK(p.precision.weights == row.weights);
    CHECK(p.precision.activations == row.activations);
    CHECK(p.precision.kv == DType::kBf16);
  }
  CHECK(small_with({"pools.small.kv_cache_dtype=fp8_e4m3"}).precision.kv == DType::kFp8);
  const PoolSpec half = small_with({"pools.small.dtype=half"});
  CHECK(half.precision.activations == DType::kFp16);
  CHECK(half.precision.kv == DType::kFp16);
  CHECK(half.model.dtype == DType::kFp16);
}

TEST_CASE("a checkpoint published quantised is served that way unless told otherwise") {
  const std::string text = scenario_with(R"("big": {"node": "h100", "model": "llama-3.1-70b",)",
                                         R"("big": {"node": "h100", "model": "gpt-oss-120b",)");
  const std::string served = R"("model": "gpt-oss-120b", "class")";
  std::string full = text;
  full.replace(full.find(R"("model": "llama-3.1-70b", "class")"), 33, served);
  const Precision own = pool_of(load_text(full), "big").precision;
  CHECK(own.weights == DType::kFp4);
  CHECK(own.activations == DType::kBf16);
  const Precision wide = pool_of(load_text(full, {"pools.big.quantization=none"}), "big").precision;
  CHECK(wide.weights == DType::kBf16);
}

TEST_CASE("a format the device lacks runs only with leave") {
  const std::string v100 = scenario_with("4xL40S", "8xV100-SXM2");
  CHECK(only_problem(v100).message ==
        "V100-SXM2-32GB has no native bf16; it would be converted and computed in fp16");
  const PoolSpec p = pool_of(load_text(v100, {"pools.small.allow_dtype_fallback=true"}), "small");
  CHECK(p.precision.weights == DType::kBf16);
  CHECK(p.precision.activations == DType::kFp16);
  CHECK(load_text(v100, {"pools.small.dtype=fp16"}).pools[1].precision.activations == DType::kFp16);
  // 8-bit floats on Ampere: stored in 8 bit, computed in 16.
  const std::string a100 = scenario_with("4xL40S", "8xA100-SXM-80GB");
  const Problem why = only_problem(a100, {"pools.small.quantization=fp8"});
  CHECK(why.message ==
        "A100-SXM4-80GB has no native fp8; it would be converted and computed in bf16");
  const Precision fallback = pool_of(load_text(a100, {"pools.small.quantization=fp8",
                                                      "pools.small.allow_dtype_fallback=true"}),
                                     "small")
                                 .precision;
  CHECK(fallback.weights == DType::kFp8);
  CHECK(fallback.activations == DType::kBf16);
}

TEST_CASE("a backend must run on the device") {
  const Problem p = only_problem(scenario_with("4xL40S", "2xXeon-8480+"),
                                 {"pools.small.replicas=2", "pools.small.backend=tensorrt-llm"});
  CHECK(p.pointer == "/pools/small/backend");
  CHECK(p.message == "tensorrt-llm does not run on Xeon Platinum 8480+, a cpu");
}

TEST_CASE("catalogue values can be overridden, nested or dotted") {
  const std::string dotted =
      R"({"memory.bandwidth": "1 TB/s", "power.energy_per_flop.bf16": "1 pJ/flop",
    "efficiency": {"gemm": {"compute": {"bf16": 0.5}, "memory.fraction": 0.6}},
    "node.power.overhead": "800 W", "node": {"price": {"rent": {"value": "9 USD/h",
      "class": "datasheet", "source": "our invoice"}}}})";
  const Scenario s =
      load_text(scenario_with(R"("4xL40S", )", R"("4xL40S", "overrides": )" + dotted + ", "),
                {"cluster.nodes.l40s.overrides.power.active_floor=120 W"});
  const NodeGroup& g = s.nodes[1];
  CHECK((*g.device.memory_bandwidth).value() == 1e12);
  CHECK(g.device.memory_bandwidth.provenance == Provenance::kAssumed);
  CHECK(g.device.memory_bandwidth.source == "given in the scenario");
  CHECK((*g.device.power.energy_per_flop[index(DType::kBf16)]).value() == 1e-12);
  CHECK((*g.device.power.active_floor).value() == 120.0);
  CHECK((*g.device.efficiency[index(OpClass::kGemm)].compute[index(DType::kBf16)]).fraction == 0.5);
  CHECK((*g.device.efficiency[index(OpClass::kGemm)].memory).fraction == 0.6);
  CHECK((*g.type.overhead).value() == 800.0);
  CHECK((*g.type.rent).value() == doctest::Approx(9.0 / 3600.0));
  CHECK(g.type.rent.provenance == Provenance::kDatasheet);
  CHECK(g.type.rent.source == "our invoice");
  CHECK(g.device.peak[index(DType::kBf16)].provenance == Provenance::kDatasheet);  // untouched
}

TEST_CASE("a power limit caps the device and leaves the catalogue's class") {
  const Scenario s =
      load_text(scenario_with(R"("4xL40S", )", R"("4xL40S", "power_limit": "200 W", )"));
  CHECK((*s.nodes[1].device.power.limit).value() == 200.0);
}

TEST_CASE("a node can be spelled out") {
  const std::string node = R"("device": "L40S", "devices": 2, "fabric": {"kind": "host",
    "link": "PCIe 4.0 x16"}, "host": {"cpu": "EPYC 9654", "cpus": 1, "memory": "512 GB"},
    "power": {"overhead": "300 W", "psu_efficiency": 0.93}, "price": {"rent": "4 USD/h"}, "count": 2)";
  const Scenario s = load_text(scenario_with(R"("type": "4xL40S", "count": 1)", node));
  const NodeGroup& g = s.nodes[1];
  CHECK(g.type.name == "l40s");
  CHECK(g.type.devices == 2);
  CHECK(g.count == 2);
  CHECK(g.type.fabric == FabricKind::kHost);
  CHECK((*g.type.overhead).value() == 300.0);
  REQUIRE(g.cpu.has_value());
  CHECK(g.cpu->name == "EPYC 9654");
  CHECK(g.device.name == "L40S");
}

TEST_CASE("values that are missing are warned of with the line that supplies them") {
  const Scenario s = load_text(scenario_with("8xH100-SXM", "8xMI300X"));
  const auto has = [&](const std::string& text) {
    return std::any_of(s.warnings.begin(), s.warnings.end(),
                       [&](const std::string& w) { return w.find(text) != std::string::npos; });
  };
  CHECK(has("--set 'cluster.nodes.h100.overrides.power.active_floor=... W'"));
  CHECK(has("--set 'cluster.nodes.h100.overrides.power.energy_per_flop.bf16=... pJ/flop'"));
  CHECK(has("--set 'cluster.nodes.h100.overrides.node.price.rent=... USD/h'"));

  // The line works as printed, with a number in place of the dots.
  const Scenario told = load_text(scenario_with("8xH100-SXM", "8xMI300X"),
                                  {"cluster.nodes.h100.overrides.power.active_floor=130 W"});
  CHECK((*told.nodes[0].device.power.active_floor).value() == 130.0);
}

TEST_CASE("assume_missing fills power and price and says so") {
  LoadOptions options = test::options_of(scenario_with("8xH100-SXM", "8xMI300X"));
  options.assume_missing = true;
  const Scenario s = load_scenario(options);
  const std::vector<DType> used = {DType::kBf16};
  CHECK(unknown_power(s.nodes[0].device, s.nodes[0].type, used).empty());
  CHECK(unknown_price(s.nodes[0].device, s.nodes[0].type, false).empty());
  CHECK(s.nodes[0].device.power.active_floor.provenance == Provenance::kAssumed);
  REQUIRE_FALSE(s.warnings.empty());
  CHECK(s.warnings[0] ==
        "cluster.nodes.h100 (MI300X): assumed from class priors: node.power.overhead, "
        "node.price.rent, power.active_floor, power.context_idle, power.energy_per_byte, "
        "power.energy_per_flop.bf16");
  CHECK(s.resolved_json.find("\"assume_missing\": true") != std::string::npos);
}

TEST_CASE("memory that a run needs is an error with the line that supplies it") {
  const std::string text =
      scenario_with(R"("type": "4xL40S")", R"("device": "Hailo-8", "devices": 4)");
  const std::vector<std::string> peak = {"cluster.nodes.l40s.overrides.peak.bf16=10 TFLOP/s"};
  try {
    load_text(text, peak);
    FAIL("accepted");
  } catch (const InputError& error) {
    const std::string all = error.what();
    CHECK(all.find("overrides.memory.capacity=... GB") != std::string::npos);
    CHECK(all.find("overrides.memory.bandwidth=... TB/s") != std::string::npos);
  }
}

TEST_CASE("requests find their model by any of its names") {
  const Scenario s =
      load_text(scenario_with(R"("model": "llama-3.1-8b", "class")",
                              R"("model": "meta-llama/Llama-3.1-8B-Instruct", "class")"));
  CHECK(std::find(s.trace.models.begin(), s.trace.models.end(), "llama-3.1-8b") !=
        s.trace.models.end());
  CHECK(s.trace.models.size() == 2);
  for (const Request& r : s.trace.requests) {
    CHECK(s.trace.models[r.model] ==
          (s.trace.classes[r.slo_class] == "chat" ? "llama-3.1-8b" : "llama-3.1-70b"));
  }
}

TEST_CASE("models and hardware of one's own come from folders of the scenario or the command") {
  const ScratchDirectory dir;
  dir.write("mine/nodes/one-card.json", R"({"schema": "medley.node/1", "name": "one-card",
    "device": "my card", "devices": 4})");
  dir.write("mine/devices/my-card.json", R"({"schema": "medley.device/1", "name": "my card",
    "vendor": "me", "kind": "gpu", "sources": {"s": "a test"},
    "peak": {"bf16": {"value": "100 TFLOP/s", "class": "assumed", "source": "s"}},
    "memory": {"capacity": {"value": "48 GB", "class": "assumed", "source": "s"},
               "bandwidth": {"value": "1 TB/s", "class": "assumed", "source": "s"}}})");
  dir.write("models/tiny/config.json", R"({"model_type": "llama", "hidden_size": 256,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4,
    "intermediate_size": 512, "vocab_size": 1000, "max_position_embeddings": 2048,
    "torch_dtype": "bfloat16"})");
  std::string text = scenario_with("4xL40S", "one-card");
  const std::string model = R"("node": "l40s", "model": "llama-3.1-8b")";
  text.replace(text.find(model), model.size(),
               R"("node": "l40s", "model": "models/tiny/config.json")");
  const std::string asked = R"("model": "llama-3.1-8b", "class")";
  text.replace(text.find(asked), asked.size(), R"("model": "tiny", "class")");
  LoadOptions options;
  options.path = dir.write("s.json", text);
  options.catalog_dirs = {dir.path() + "/mine"};
  const Scenario s = load_scenario(options);
  CHECK(s.nodes[1].device.vendor == "me");
  CHECK(pool_of(s, "small").model.total_layers() == 2);
  CHECK(pool_of(s, "small").max_model_len == 2048);
  // The resolved form names the folder relative to the file and loads without the option.
  CHECK(s.resolved_json.find("\"mine\"") != std::string::npos);
  CHECK(s.resolved_json.find(dir.path()) == std::string::npos);
  LoadOptions again;
  again.path = options.path;
  again.text = s.resolved_json;
  CHECK(load_scenario(again).resolved_json == s.resolved_json);
  // In the scenario itself.
  options.catalog_dirs.clear();
  options.overrides = {R"(catalog=["mine"])"};
  CHECK(load_scenario(options).resolved_json == s.resolved_json);
}

TEST_CASE("a model that cannot be served is refused with the reason") {
  const Problem p = only_problem(
      test::kScenario, {"pools.small.model=resnet-50", "workload.sources.chat.model=resnet-50"});
  CHECK(p.pointer == "/pools/small/model");
  CHECK(p.message.starts_with("serving a cnn model is not supported"));
}

TEST_CASE("without a trace the same scenario resolves the same") {
  LoadOptions options = test::options_of(test::kScenario);
  options.build_trace = false;
  const Scenario s = load_scenario(options);
  CHECK(s.trace.requests.empty());
  CHECK(s.hash8 == load_text(test::kScenario).hash8);
  CHECK(s.hash8.size() == 8);
}

TEST_CASE("a model that does not fit is infeasible, for every pool that has one") {
  LoadOptions options = test::options_of(
      test::kScenario, {"pools.big.tensor_parallel_size=1", "pools.small.model=llama-3.1-405b",
                        "workload.sources.chat.model=llama-3.1-405b"});
  const LoadedScenario loaded = load_with_catalog(options);
  try {
    check_feasible(*loaded.catalog, loaded.scenario);
    FAIL("fits");
  } catch (const InfeasibleError& error) {
    const std::string what = error.what();
    CHECK(what.find("pools.big: llama-3.1-70b on H100") != std::string::npos);
    CHECK(what.find("pools.small: llama-3.1-405b on L40S") != std::string::npos);
  }
  const LoadedScenario fine = load_with_catalog(test::options_of(test::kScenario));
  const auto accounts = check_feasible(*fine.catalog, fine.scenario);
  REQUIRE(accounts.size() == 2);
  CHECK(accounts[1].blocks > 1000);
}

TEST_CASE("replicas stay within a node and larger ones are placed first") {
  // 8 devices: two of 2 and one of 4 fill a node in that order only if the 4 goes first.
  Scenario s;
  s.nodes.resize(1);
  s.nodes[0].type.devices = 8;
  s.nodes[0].count = 2;
  s.pools.resize(2);
  s.pools[0].replicas = 4;
  s.pools[0].tensor_parallel = 2;
  s.pools[1].replicas = 2;
  s.pools[1].tensor_parallel = 4;
  Placement p = place_replicas(s);
  CHECK(p.complete());
  CHECK(p.pools[1][0].node == 0);
  CHECK(p.pools[1][0].first_device == 0);
  CHECK(p.pools[1][1].node == 0);
  CHECK(p.pools[1][1].first_device == 4);
  CHECK(p.pools[0][0].node == 1);
  CHECK(p.pools[0][3].first_device == 6);
  // Three of 3 devices do not pack into two nodes of 4, although 9 > 8 is not the reason for two.
  s.nodes[0].type.devices = 4;
  s.pools.resize(1);
  s.pools[0].replicas = 2;
  s.pools[0].tensor_parallel = 3;
  CHECK(place_replicas(s).complete());
  s.pools[0].tensor_parallel = 2;
  s.pools[0].replicas = 5;
  p = place_replicas(s);
  CHECK_FALSE(p.complete());
  CHECK(p.missing[0] == 1);
}

TEST_CASE("replicas that do not pack are told apart from too few devices") {
  // 4 devices per node, 3 per replica (pp 3): two nodes of 4 hold two, not the third (9 > 8); three
  // replicas on 3 nodes of 4 pack. With 2 nodes and 2 + 1 x 2 more the sum fits but not the nodes.
  const Problem p =
      only_problem(test::kScenario, {"cluster.nodes.l40s.count=3", "pools.small.replicas=4",
                                     "pools.small.pipeline_parallel_size=3"});
  CHECK(p.message.find("do not pack into nodes of 4 devices") != std::string::npos);
}

TEST_CASE("every scenario value reaches the frozen scenario") {
  const Scenario s = load_text(
      test::kScenario,
      {"horizon=90 s", "tie_seed=5", "fast_forward=false", "report.interval=2 s",
       "report.requests=sample:7", "report.trace=true", "measure.window=20 s", "price.basis=capex",
       "price.amortization=35040 h", "pools.small.scheduling_policy=priority",
       "pools.small.step_model.kind=constant", "pools.small.step_model.per_step=10 ms",
       "pools.small.num_gpu_blocks_override=77", "pools.big.backend_overrides.host_per_step=3 ms",
       "pools.big.step_model.decode_skew=0.07"});
  CHECK(s.horizon->ns() == 90'000'000'000);
  CHECK(s.tie_seed == 5U);
  CHECK_FALSE(s.fast_forward);
  CHECK(s.report.interval.value() == 2.0);
  CHECK(s.report.requests == ReportSpec::Requests::kSample);
  CHECK(s.report.sample == 7);
  CHECK(s.report.chrome_trace);
  CHECK(s.measure.warmup.ns() == 1'000'000'000);
  CHECK(s.measure.window->value() == 20.0);
  CHECK(s.price.prefer_capex);
  CHECK(s.price.amortization.value() == 35040.0 * 3600.0);
  CHECK((*s.price.energy).value() == doctest::Approx(0.12 / 3.6e6));
  CHECK(*s.price.carbon_g_per_joule == doctest::Approx(400.0 / 3.6e6));
  CHECK(s.pools[1].batching.admission == AdmissionOrder::kPriority);
  CHECK(s.pools[1].step_model.kind == StepModelKind::kConstant);
  CHECK(s.pools[1].step_model.per_step.value() == doctest::Approx(0.01));
  CHECK(s.pools[1].num_blocks_override == 77);
  CHECK((*s.pools[0].backend.host_per_step).value() == doctest::Approx(0.003));
  CHECK(*s.pools[0].step_model.decode_skew == 0.07);
  CHECK(s.routing.name == "round_robin");
}
