#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/core/op.h"
#include "workloads/model.h"

namespace medley {

/// What is in one serving step, as sums over its sequences: all that step cost depends on.
/// A sequence contributes either a prefill chunk or one decode token.
enum class Feature : std::uint8_t {
  kOne,           ///< 1 when the step has any token
  kTokens,        ///< tokens in the step: sum of chunks + decode sequences
  kLogits,        ///< sequences whose logits are needed: decodes + chunks that end their prompt
  kChunkTokens,   ///< sum of prefill chunk lengths
  kChunkPairs,    ///< sum over chunks of chunk * prior + chunk (chunk + 1) / 2: causal (q, k) pairs
  kChunkContext,  ///< sum over chunks of prior + chunk: KV tokens read
  kDecodes,       ///< decode sequences
  kDecodeContext,  ///< sum over decodes of KV length, the new token included
  // The same four for sliding-window layers, window of the model's sliding groups:
  kChunkPairsWindow,
  kChunkContextWindow,
  kDecodeContextWindow,
  kExpertsHit,  ///< expected distinct experts hit per MoE layer: E (1 - (1 - k/E)^tokens)
  kSequences,   ///< prefill chunks + decodes
};
inline constexpr int kFeatures = 13;
using Features = std::array<double, kFeatures>;

/// A linear form over Features.
struct LinearForm {
  Features coefficient{};
  double operator()(const Features& x) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += coefficient[i] * x[i];
    return sum;
  }
  double& operator[](Feature f) { return coefficient[static_cast<std::size_t>(f)]; }
  double operator[](Feature f) const { return coefficient[static_cast<std::size_t>(f)]; }
};

/// One kind of kernel of a step on one rank of one stage, `repeats` times (once per layer).
/// flops and bytes are of ONE repeat. Bytes split into weights and the rest (for energy
/// attribution) and KV (read and written).
struct StepOp {
  std::string name;  ///< "qkv_proj", "attention_decode", "expert_gate_up", ...
  OpClass op_class = OpClass::kGemm;
  DType dtype = DType::kBf16;  ///< of the arithmetic
  int repeats = 0;
  int kernels = 1;  ///< launches per repeat
  LinearForm flops;
  LinearForm weight_bytes;
  LinearForm kv_bytes;
  LinearForm activation_bytes;
  LinearForm message_bytes;  ///< payload of a collective (kCollective only), per rank
  bool all_to_all = false;   ///< kCollective: all-to-all instead of all-reduce
};

/// Number formats of a deployment.
struct Precision {
  DType weights = DType::kBf16;
  DType activations = DType::kBf16;  ///< arithmetic of GEMMs (W8A8: fp8; weight-only int4: bf16)
  DType kv = DType::kBf16;
};

/// The kernels of one step of `model` on one rank of stage `stage` of a tp x pp plan.
///   Per layer: norm, qkv, rotary, attention (prefill and decode apart), output projection,
///   all-reduce (tp > 1), norm, gate/up, activation, down (or router + grouped GEMMs), all-reduce.
///   First stage: embedding; last: final norm, lm_head over Logits, sampling.
/// GEMM: flops 2 m k n, bytes (k n) weights + m (k + n) activations. Attention over c context
/// pairs:
///   flops 2 (d_k + d_v) heads per pair; MLA decode works in the latent space (absorbed).
/// expert_parallel: experts are split whole over tp ranks and dispatch/combine are all-to-all.
/// Assumes: uniform expert routing; weights read once per kernel; no reuse of KV between sequences.
/// Law: every form is non-negative; flops of a prefill of n tokens ~ 2 * active parameters * n plus
/// attention.
std::vector<StepOp> lower_step(const ModelSpec& model, const Precision& precision, int tp, int pp,
                               int stage, bool expert_parallel);

}  // namespace medley
