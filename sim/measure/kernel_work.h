#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "workloads/step_ops.h"

namespace medley {

/// Number formats of one kernel.
struct KernelFormat {
  DType arithmetic = DType::kBf16;
  DType weights = DType::kBf16;
  bool block_scaled = false;  ///< a scale per block of both operands
  bool operator==(const KernelFormat&) const = default;
};
/// Reads the words of measured tables: everything parse_dtype knows (arithmetic and weights alike),
/// and fp8_block (fp8, block-scaled), fp8_static (fp8); int8_wo, int4_wo, w4a16, w8a16,
/// w4a16_mxfp4, awq, gptq (weights only, arithmetic bf16); sq (int8 both); w4a8 (int4 weights, fp8
/// arithmetic). Any letter case.
std::optional<KernelFormat> parse_kernel_format(std::string_view text);

/// Work of one kind of kernel as linear forms over a step's Features. It is read off `lower_step`
/// of a model made of one layer that holds just this kernel, so that what was measured and what is
/// predicted are counted by the same code. Bytes are weights, KV and activations together.
struct KernelForms {
  OpClass op_class = OpClass::kGemm;
  DType dtype = DType::kBf16;    ///< of the arithmetic
  DType weights = DType::kBf16;  ///< of the weights, or of the KV cache
  bool block_scaled = false;
  int kernels = 0;
  LinearForm flops;
  LinearForm bytes;
  LinearForm
      companion_bytes;  ///< of memory-bound kernels that a table times along, ops of their own
};

/// m x k times k x n; m is Feature::kTokens.
KernelForms gemm_kernel(double k, double n, const KernelFormat& format);

/// Attention of one layer on one device over queries of `heads` and keys of `kv_heads` heads.
/// `arithmetic` is told by the table; traffic of queries and outputs stays 16 bit, as in
/// lower_step.
struct AttentionShape {
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int window = 0;  ///< 0: none
  DType arithmetic = DType::kBf16;
  DType kv = DType::kBf16;
};
KernelForms attention_kernel(const AttentionShape& shape, bool decode);

/// The grouped GEMMs of a mixture of experts on one device: gate/up and down (2 kernels). Router,
/// permutation and activation are not in it; the traffic of the last two, which fused kernels do
/// along, is in companion_bytes. Forms over kTokens and kExpertsHit.
struct ExpertShape {
  int hidden = 0;
  int width = 0;  ///< of one expert, on this device
  int experts = 0;
  int top_k = 0;
  bool gated = true;
};
std::vector<StepOp> expert_ops(const ExpertShape& shape, const KernelFormat& format);
KernelForms expert_kernels(const ExpertShape& shape, const KernelFormat& format);

/// Sum of the named ops (those there are) of a lowered step, `repeats` left aside: a module of
/// several kernels. op_class and dtype are the first one's. `kernels` is 0 when none is there.
KernelForms sum_of_ops(const std::vector<StepOp>& ops,
                       std::initializer_list<std::string_view> names);

/// Features of one kernel's batch.
Features token_features(double tokens);
/// `batch` equal prompts of `tokens` new tokens after `prior` cached ones.
Features prefill_features(double batch, std::int64_t tokens, std::int64_t prior, int window);
/// `batch` sequences of `length` tokens of context, the new one included.
Features decode_features(double batch, std::int64_t length, int window);
/// Experts that get a token.
///   balanced: tokens dealt out evenly, min(E, tokens * k).
///   uniform: E (1 - (1 - k/E)^tokens), what lower_step assumes.
///   power law with exponent a: loads drawn from a density x^-a on [1, 0.8 tokens] ([0.01, 2] when
///   tokens * k <= E), scaled to tokens * k and rounded; counted here at E equally likely
///   quantiles. Source: how AIConfigurator's collector draws them (ai-dynamo/aiconfigurator,
///   collector of vllm moe). Assumes the mean over draws equals the count at the quantiles.
/// Law: 1 <= hit <= min(E, tokens * k) for tokens >= 1.
double balanced_experts_hit(double tokens, int experts, int top_k);
double power_law_experts_hit(double tokens, int experts, int top_k, double exponent);

}  // namespace medley
