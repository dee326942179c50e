#include <doctest/doctest.h>

#include <algorithm>

#include "hwmodels/catalog.h"
#include "sim/measure/kernel_models.h"
#include "sim/measure/kernel_work.h"

namespace {
using medley::at;
using medley::Feature;
using medley::KernelForms;

/// A form of one kernel and the model's own op must agree on any batch.
void check_same(const KernelForms& forms, const std::vector<medley::StepOp>& ops,
                const std::string& name, const medley::Features& x) {
  const KernelForms own = medley::sum_of_ops(ops, {name});
  REQUIRE(own.kernels == 1);
  CAPTURE(name);
  CHECK(forms.op_class == own.op_class);
  CHECK(forms.dtype == own.dtype);
  CHECK(forms.flops(x) == doctest::Approx(own.flops(x)));
  CHECK(forms.bytes(x) == doctest::Approx(own.bytes(x)));
}
}  // namespace

TEST_CASE("a kernel by its sizes has the work of the same kernel in a model's step") {
  const medley::ModelZoo zoo({medley::shipped_data_directory() + "/workloads/zoo"});
  for (const char* name : {"llama-3.1-8b", "qwen3-32b", "mistral-7b"}) {
    const medley::ModelSpec model = zoo.find(name);
    const medley::LayerGroup& g = model.layers.front();
    for (const int tp : {1, 2, 4}) {
      for (const medley::KernelFormat format :
           {medley::KernelFormat{medley::DType::kBf16, medley::DType::kBf16},
            medley::KernelFormat{medley::DType::kFp8, medley::DType::kFp8},
            medley::KernelFormat{medley::DType::kBf16, medley::DType::kInt4}}) {
        const auto ops = medley::lower_step(
            model, {format.weights, format.arithmetic, medley::DType::kFp8}, tp, 1, 0, false);
        const medley::Features tokens = medley::token_features(37.0);
        const double queries = double(g.heads) / tp * g.head_dim;
        check_same(medley::gemm_kernel(queries, model.hidden, format), ops, "o_proj", tokens);
        check_same(medley::gemm_kernel(model.hidden, 2.0 * g.ffn_hidden / tp, format), ops,
                   "gate_up_proj", tokens);
        if (g.attention != medley::AttentionKind::kFull) continue;
        const medley::AttentionShape shape{g.heads / tp,         g.kv_heads / tp,    g.head_dim, 0,
                                           medley::DType::kBf16, medley::DType::kFp8};
        check_same(medley::attention_kernel(shape, false), ops, "attention_prefill",
                   medley::prefill_features(3.0, 100, 50, 0));
        check_same(medley::attention_kernel(shape, true), ops, "attention_decode",
                   medley::decode_features(5.0, 777, 0));
      }
    }
  }
}

TEST_CASE("features of one batch are those the step builder makes") {
  const medley::FeatureContext context{64, 0, 0};
  const auto chunks = medley::make_features(context, {{100, 30}, {100, 30}}, {});
  CHECK(medley::prefill_features(2.0, 100, 30, 64) == chunks);
  CHECK(medley::decode_features(3.0, 200, 64) ==
        medley::make_features(context, {}, {200, 200, 200}));
}

TEST_CASE("experts hit: between one and all, more tokens never hit fewer on balanced routing") {
  for (const int experts : {8, 60, 128, 384}) {
    for (const int top_k : {1, 2, 8}) {
      double before = 0.0;
      for (double tokens = 1.0; tokens < 1e5; tokens *= 2.0) {
        const double balanced = medley::balanced_experts_hit(tokens, experts, top_k);
        CHECK(balanced == std::min(double(experts), tokens * top_k));
        CHECK(balanced >= before);
        before = balanced;
        for (const double exponent : {1.0, 1.01, 1.2}) {
          const double hit = medley::power_law_experts_hit(tokens, experts, top_k, exponent);
          CHECK(hit >= 1.0);
          CHECK(hit <= balanced);
        }
      }
    }
  }
  // Four experts, eight rows of four tokens, exponent 1: loads at quantiles 1/8, 3/8, 5/8, 7/8 of
  // [1, 3.2] are 3.2^u: 1.157, 1.547, 2.069, 2.767, sum 7.540; scaled to 8: all above one half.
  CHECK(medley::power_law_experts_hit(4.0, 4, 2, 1.0) == 4.0);
  // Two rows over four experts (few: [0.01, 2]): 0.019, 0.073, 0.274, 1.032 of 1.398, times 2:
  // 0.028, 0.104, 0.392, 1.476: one.
  CHECK(medley::power_law_experts_hit(2.0, 4, 1, 1.0) == 1.0);
}

TEST_CASE("words for number formats tell arithmetic from weights") {
  using medley::DType;
  using medley::KernelFormat;
  CHECK(medley::parse_kernel_format("bfloat16") == KernelFormat{DType::kBf16, DType::kBf16});
  CHECK(medley::parse_kernel_format("BF16") == KernelFormat{DType::kBf16, DType::kBf16});
  CHECK(medley::parse_kernel_format("fp8_block") == KernelFormat{DType::kFp8, DType::kFp8, true});
  CHECK(medley::parse_kernel_format("nvfp4") == KernelFormat{DType::kFp4, DType::kFp4});
  CHECK(medley::parse_kernel_format("w4a16_mxfp4") == KernelFormat{DType::kBf16, DType::kFp4});
  CHECK(medley::parse_kernel_format("int8_wo") == KernelFormat{DType::kBf16, DType::kInt8});
  CHECK(!medley::parse_kernel_format("float3"));
}

// hidden 8, width 4, top-2, 16-bit: permutation reads 8 and writes 2 x 8 elements a token,
// activation reads 2 x (2 x 4) and writes 2 x 4, the way back reads 2 x 8 and writes 8: 72
// elements.
TEST_CASE("what a fused expert kernel does along is counted apart from its products") {
  const medley::KernelFormat block{medley::DType::kFp8, medley::DType::kFp8, true};
  const medley::KernelForms forms = medley::expert_kernels({8, 4, 16, 2, true}, block);
  CHECK(forms.block_scaled);
  CHECK(forms.companion_bytes(medley::token_features(3.0)) == doctest::Approx(3.0 * 72 * 2));
  CHECK(medley::gemm_kernel(64, 32, block).block_scaled);
  CHECK(medley::gemm_kernel(64, 32, block).companion_bytes(medley::token_features(3.0)) == 0.0);
}
