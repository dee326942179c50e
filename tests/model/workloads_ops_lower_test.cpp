#include <doctest/doctest.h>

#include "sim/core/error.h"
#include "tests/support/models.h"

using namespace medley;

namespace {
const Precision kBf16All;
Features features(const ModelSpec& m, const std::vector<PrefillChunk>& chunks,
                  const std::vector<std::int64_t>& decodes) {
  return make_features(feature_context(m), chunks, decodes);
}
}  // namespace

TEST_CASE("prefill of 1,000 tokens on Llama-3.1-8B costs 2 P n plus causal attention") {
  const ModelSpec m = zoo_model("llama-3.1-8b");
  const std::vector<StepOp> ops = lower_step(m, kBf16All, 1, 1, 0, false);
  const Features x = features(m, {{1000, 0, true}}, {});
  // Matrices of the layers 32 x 218,103,808; the head runs for one position.
  // Attention: 1000 x 1001 / 2 = 500,500 pairs x 32 heads x 2 (128 + 128) flops x 32 layers.
  const double linear = 2.0 * 32.0 * 218'103'808.0 * 1000.0 + 2.0 * 128'256.0 * 4096.0;
  const double attention = 500'500.0 * 32.0 * 512.0 * 32.0;
  CHECK(near(matrix_flops(ops, x), linear + attention));
  CHECK(find_op(ops, "attention_decode")->flops(x) == 0.0);
  CHECK(find_op(ops, "attention_all_reduce") == nullptr);
}

TEST_CASE("a chunk after a prefix pays for the prefix's keys only in attention") {
  const ModelSpec m = zoo_model("llama-3.1-8b");
  const std::vector<StepOp> ops = lower_step(m, kBf16All, 1, 1, 0, false);
  const double whole = matrix_flops(ops, features(m, {{1000, 0, true}}, {}));
  const double first = matrix_flops(ops, features(m, {{600, 0, false}}, {}));
  const double second = matrix_flops(ops, features(m, {{400, 600, true}}, {}));
  CHECK(near(first + second, whole));
}

TEST_CASE("a decode step of Llama-3.1-8B reads its weights and its KV") {
  const ModelSpec m = zoo_model("llama-3.1-8b");
  const std::vector<StepOp> ops = lower_step(m, kBf16All, 1, 1, 0, false);
  const Features x = features(m, {}, std::vector<std::int64_t>(16, 1000));
  // All weights but the embedding table, of which 16 rows are read.
  const double weights = 2.0 * (8'030'261'248.0 - 525'336'576.0) + 16.0 * 4096.0 * 2.0;
  CHECK(near(total(ops, &StepOp::weight_bytes, x), weights));
  // 16 sequences read 1,000 tokens each and write one.
  CHECK(near(total(ops, &StepOp::kv_bytes, x), 16.0 * 1001.0 * 131'072.0));
  CHECK(near(matrix_flops(ops, x),
             16.0 * (2.0 * (32.0 * 218'103'808.0 + 525'336'576.0) + 1000.0 * 32.0 * 512.0 * 32.0)));
}

TEST_CASE("tensor parallelism divides the work and adds two all-reduces per layer") {
  const ModelSpec m = zoo_model("llama-3.1-8b");
  const std::vector<StepOp> one = lower_step(m, kBf16All, 1, 1, 0, false);
  const std::vector<StepOp> four = lower_step(m, kBf16All, 4, 1, 0, false);
  const Features x = features(m, {{512, 128, true}}, {700, 900});
  CHECK(near(4.0 * matrix_flops(four, x), matrix_flops(one, x)));
  CHECK(near(4.0 * total(four, &StepOp::kv_bytes, x), total(one, &StepOp::kv_bytes, x)));
  for (const char* name : {"attention_all_reduce", "ffn_all_reduce"}) {
    const StepOp* op = find_op(four, name);
    REQUIRE(op);
    CHECK(op->op_class == OpClass::kCollective);
    CHECK(op->repeats == 32);
    CHECK(op->message_bytes(x) == 514.0 * 4096.0 * 2.0);
    CHECK(!op->all_to_all);
  }
}

TEST_CASE("beyond the KV heads every rank keeps one whole head") {
  const ModelSpec m = zoo_model("llama-3.1-8b");
  const Features x = features(m, {}, {1000});
  const auto kv = [&](int tp) {
    return find_op(lower_step(m, kBf16All, tp, 1, 0, false), "attention_decode")->kv_bytes(x);
  };
  CHECK(kv(8) == 1000.0 * 2.0 * 128.0 * 2.0);
  CHECK(kv(16) == kv(8));
}

TEST_CASE("latent attention: decode works in the latent space") {
  const ModelSpec m = zoo_model("deepseek-v3");
  const std::vector<StepOp> ops = lower_step(m, kBf16All, 1, 1, 0, false);
  const Features x = features(m, {}, {1000});
  const StepOp* decode = find_op(ops, "attention_decode");
  REQUIRE(decode);
  // 128 heads x 2 (512 + 64 for scores, 512 for values) per context token; one latent row read.
  CHECK(decode->flops(x) == 1000.0 * 128.0 * 2.0 * (576.0 + 512.0));
  CHECK(decode->kv_bytes(x) == 1000.0 * 576.0 * 2.0);
  CHECK(decode->repeats == 61);
  // Absorption reads kv_b_proj's halves: 128 heads x 512 x 128 each.
  CHECK(find_op(ops, "q_absorb")->weight_bytes(x) == 128.0 * 512.0 * 128.0 * 2.0);
  CHECK(find_op(ops, "v_absorb")->weight_bytes(x) == 128.0 * 512.0 * 128.0 * 2.0);
  CHECK(find_op(ops, "kv_b_proj")->weight_bytes(x) == 0.0);  // nothing to prefill
  // Prefill: 192-wide keys, 128-wide values.
  const Features p = features(m, {{100, 0, true}}, {});
  CHECK(find_op(ops, "attention_prefill")->flops(p) == 5050.0 * 128.0 * 2.0 * (192.0 + 128.0));
  CHECK(find_op(ops, "q_absorb")->weight_bytes(p) == 0.0);
}

TEST_CASE("experts: weights of the experts hit, work of the experts chosen") {
  const ModelSpec m = zoo_model("mixtral-8x7b");
  const std::vector<StepOp> ops = lower_step(m, kBf16All, 1, 1, 0, false);
  const Features x = features(m, {}, {100, 100});
  const StepOp* up = find_op(ops, "expert_gate_up");
  REQUIRE(up);
  CHECK(up->op_class == OpClass::kGroupedGemm);
  // Two tokens, two of eight experts each: 8 (1 - (3/4)^2) = 3.5 distinct.
  CHECK(near(up->weight_bytes(x), 3.5 * 4096.0 * 28672.0 * 2.0));
  CHECK(near(up->flops(x), 2.0 * 2.0 * 2.0 * 4096.0 * 28672.0));
}

TEST_CASE("expert parallelism moves tokens instead of summing slices") {
  const ModelSpec m = zoo_model("deepseek-v3");
  const std::vector<StepOp> split = lower_step(m, kBf16All, 8, 1, 0, false);
  const std::vector<StepOp> whole = lower_step(m, kBf16All, 8, 1, 0, true);
  const Features x = features(m, {}, std::vector<std::int64_t>(64, 500));
  CHECK(near(total(split, &StepOp::weight_bytes, x), total(whole, &StepOp::weight_bytes, x)));
  CHECK(near(matrix_flops(split, x), matrix_flops(whole, x)));
  const StepOp* dispatch = find_op(whole, "expert_dispatch");
  REQUIRE(dispatch);
  CHECK(dispatch->all_to_all);
  CHECK(dispatch->repeats == 58);
  // A rank's 64/8 tokens go to 8 experts each.
  CHECK(near(dispatch->message_bytes(x), 64.0 / 8.0 * 8.0 * 7168.0 * 2.0));
  CHECK(find_op(split, "expert_dispatch") == nullptr);
  CHECK(find_op(whole, "shared_all_reduce") != nullptr);
}

TEST_CASE("quantised deployment: narrow layers, 16-bit embedding and head") {
  const ModelSpec m = zoo_model("llama-3.1-8b");
  const std::vector<StepOp> ops =
      lower_step(m, {DType::kFp8, DType::kFp8, DType::kFp8}, 1, 1, 0, false);
  const Features x = features(m, {}, {10});
  CHECK(find_op(ops, "qkv_proj")->dtype == DType::kFp8);
  CHECK(find_op(ops, "qkv_proj")->weight_bytes(x) == 25'165'824.0);
  CHECK(find_op(ops, "lm_head")->dtype == DType::kBf16);
  CHECK(find_op(ops, "lm_head")->weight_bytes(x) == 2.0 * 525'336'576.0);
  CHECK(find_op(ops, "attention_decode")->dtype == DType::kBf16);
  CHECK(find_op(ops, "attention_decode")->kv_bytes(x) == 10.0 * 2048.0);

  SUBCASE("four-bit weights with 16-bit arithmetic") {
    const auto int4 = lower_step(m, {DType::kInt4, DType::kBf16, DType::kBf16}, 1, 1, 0, false);
    CHECK(find_op(int4, "qkv_proj")->dtype == DType::kBf16);
    CHECK(near(find_op(int4, "qkv_proj")->weight_bytes(x), 25'165'824.0 * bytes_of(DType::kInt4)));
  }
}

TEST_CASE("sliding layers use the window, full ones do not") {
  const ModelSpec m = zoo_model("gpt-oss-20b");
  const std::vector<StepOp> ops = lower_step(m, kBf16All, 1, 1, 0, false);
  const Features x = features(m, {}, {1000});
  const double row = 2.0 * 8.0 * 64.0 * 2.0;
  CHECK(find_op(ops, "attention_decode")->kv_bytes(x) == 1000.0 * row);
  CHECK(find_op(ops, "attention_decode_window")->kv_bytes(x) == 128.0 * row);
  CHECK(find_op(ops, "attention_decode")->repeats == 12);
  CHECK(find_op(ops, "qkv_proj")->repeats == 24);  // the same kernel in both
}

TEST_CASE("index-picked attention scans small keys and reads at most its top-k") {
  const ModelSpec m = zoo_model("deepseek-v3.2");
  const std::vector<StepOp> ops = lower_step(m, kBf16All, 1, 1, 0, false);
  const Features x = features(m, {}, {100'000});
  CHECK(find_op(ops, "indexer_decode")->kv_bytes(x) == 100'000.0 * 132.0);
  CHECK(find_op(ops, "attention_decode_picked")->kv_bytes(x) == 2048.0 * 576.0 * 2.0);
}

TEST_CASE("recurrent layers cost the same at any context") {
  const ModelSpec m = zoo_model("nemotron-h-8b");
  const std::vector<StepOp> ops = lower_step(m, kBf16All, 1, 1, 0, false);
  const StepOp* scan = find_op(ops, "recurrent_scan");
  REQUIRE(scan);
  CHECK(scan->repeats == 24);
  CHECK(scan->op_class == OpClass::kRecurrent);
  const Features near_start = features(m, {}, {10});
  const Features far = features(m, {}, {8000});
  CHECK(scan->flops(near_start) == scan->flops(far));
  // 128 heads x 64 x 128 elements, read and written in fp32.
  CHECK(scan->kv_bytes(far) == 2.0 * 128.0 * 64.0 * 128.0 * 4.0);
}

TEST_CASE("encoders prefill both triangles and keep no KV") {
  const ModelSpec m = zoo_model("bert-base");
  const std::vector<StepOp> ops =
      lower_step(m, {DType::kFp16, DType::kFp16, DType::kFp16}, 1, 1, 0, false);
  const Features x = features(m, {{128, 0, true}}, {});
  // n (n + 1) pairs for n^2: 128 x 129 x 12 heads x 2 (64 + 64).
  CHECK(find_op(ops, "attention_prefill")->flops(x) == 128.0 * 129.0 * 12.0 * 256.0);
  CHECK(total(ops, &StepOp::kv_bytes, x) == 0.0);
  CHECK(find_op(ops, "lm_head") == nullptr);
  CHECK(find_op(ops, "attention_decode") == nullptr);
}

TEST_CASE("plans that cannot run say why") {
  const ModelSpec llama = zoo_model("llama-3.1-8b");
  CHECK(plan_problem(llama, 8, 4, false).empty());
  CHECK(plan_problem(llama, 3, 1, false) == "32 attention heads do not divide by tp 3");
  CHECK(plan_problem(llama, 1, 33, false) == "33 pipeline stages for 32 layers");
  CHECK(plan_problem(zoo_model("phi-4"), 4, 1, false) ==
        "10 KV heads and tp 4 do not divide one another");
  CHECK(plan_problem(zoo_model("mixtral-8x7b"), 16, 1, true) ==
        "8 experts do not divide by 16 expert-parallel ranks");
  CHECK_THROWS_AS(lower_step(llama, kBf16All, 3, 1, 0, false), InputError);
  CHECK_THROWS_WITH_AS(lower_step(zoo_model("whisper-large-v3"), kBf16All, 1, 1, 0, false),
                       doctest::Contains("not supported yet"), InputError);
  CHECK_THROWS_AS(lower_step(zoo_model("resnet-50"), kBf16All, 1, 1, 0, false), InputError);
}
