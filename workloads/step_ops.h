#pragma once

#include <array>
#include <cstdint>
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
  // The same for layers with a window, the model's (equal to the above where it has none):
  kChunkPairsWindow,
  kChunkContextWindow,
  kDecodeContextWindow,
  kExpertsHit,  ///< expected distinct experts hit per MoE layer: E (1 - (1 - k/E)^tokens)
  kSequences,   ///< prefill chunks + decodes
  kHasChunks,   ///< 1 when the step has any prefill chunk
  kHasDecodes,  ///< 1 when the step has any decode
};
inline constexpr int kFeatures = 15;
using Features = std::array<double, kFeatures>;

inline double& at(Features& x, Feature f) {
  return x[static_cast<std::size_t>(f)];
}
inline double at(const Features& x, Feature f) {
  return x[static_cast<std::size_t>(f)];
}

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
  bool operator==(const LinearForm&) const = default;
};

/// What a model's features depend on beside the batch.
struct FeatureContext {
  std::int64_t window = 0;  ///< 0: none
  int experts = 0;          ///< 0: dense
  int experts_per_token = 0;
};
FeatureContext feature_context(const ModelSpec& model);

/// Closed forms of one sequence's contribution. A token at position p (from 0) sees min(p + 1,
/// window) tokens; window 0 means no window.
double chunk_pairs(std::int64_t tokens, std::int64_t prior, std::int64_t window = 0);
double chunk_context(std::int64_t tokens, std::int64_t prior, std::int64_t window = 0);
double decode_context(std::int64_t kv_length, std::int64_t window = 0);
/// Expected distinct experts under uniform independent routing: E (1 - (1 - k/E)^tokens).
double experts_hit(double tokens, int experts, int experts_per_token);

/// One prefill chunk: `tokens` new ones after `prior` already in the cache.
struct PrefillChunk {
  std::int64_t tokens = 0;
  std::int64_t prior = 0;
  bool ends_prompt = true;  ///< its last token's logits are sampled
};

/// Builds Features sequence by sequence, in O(1) each.
class FeatureBuilder {
 public:
  explicit FeatureBuilder(const FeatureContext& context) : context_(context) {}
  void add_chunk(const PrefillChunk& chunk);
  void add_decode(std::int64_t kv_length);  ///< the new token included
  Features features() const;                ///< indicators and experts hit filled in
 private:
  FeatureContext context_;
  Features sums_{};
};
Features make_features(const FeatureContext& context, const std::vector<PrefillChunk>& chunks,
                       const std::vector<std::int64_t>& decode_kv_lengths);

/// One kind of kernel of a step on one rank of one stage, `repeats` times (once per layer).
/// flops and bytes are of ONE repeat. Bytes split into weights and the rest (for energy
/// attribution) and KV (read and written; recurrent state counts as KV). A kernel whose forms are
/// all zero for a step is not launched.
struct StepOp {
  std::string name;  ///< "qkv_proj", "attention_decode", "expert_gate_up", ...
  OpClass op_class = OpClass::kGemm;
  DType dtype = DType::kBf16;   ///< of the arithmetic
  DType stored = DType::kBf16;  ///< of the weights (GEMMs) or the KV cache (attention)
  bool block_scaled = false;    ///< 8-bit arithmetic on operands with a scale per block
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

/// The kernels of one step of `model` on one rank of stage `stage` of a tp x pp plan, layers of the
/// same shape counted together (`repeats`).
///   Per layer: norm, qkv, rotary and KV write, attention (prefill and decode apart), output
///   projection, all-reduce (tp > 1), norm, gate/up, activation, down (or router + grouped GEMMs),
///   all-reduce.
///   First stage: embedding; last: final norm, lm_head over Logits, sampling (decoders only).
/// GEMM: flops 2 m k n, bytes (k n) weights + m (k + n) activations.
/// Attention over c context pairs: flops 2 (d_k + d_v) heads per pair. MLA: prefill expands the
///   latent of the whole context (kv_b_proj over ChunkContext) and runs as multi-head; decode works
///   in the latent space (absorbed: queries and outputs go through kv_b_proj's two halves).
///   With an indexer prefill is absorbed too, over the picked tokens (window features), each latent
///   read from memory once; the indexer itself scans the whole context. Sliding layers use the
///   window features.
///   Encoder layers count both triangles: 2 ChunkPairs, n (n + 1) for n^2.
/// Recurrent layers, per token: prefill heads (4 d_v d_s + chunk (d_v + d_s)) flops (block-parallel
///   form), decode heads 7 d_v d_s; the state is read and written once per sequence and step.
/// Collectives: message = bytes reduced on each rank. The gather of the logits is written as an
///   all-reduce of half its size (a ring moves half as much for a gather).
/// expert_parallel: experts are split whole over tp ranks; dispatch and combine are all-to-all with
///   tokens/tp * top-k rows of payload per rank each way, in place of the FFN's all-reduce; shared
///   experts stay split by tp with an all-reduce of their own.
/// Arithmetic: GEMMs of quantised matrices in precision.activations, others and attention in the
///   16-bit dtype (fp32 where activations are). Activations between kernels are 16 bit (fp32).
/// Assumes: uniform expert routing; weights read once per kernel; no reuse of KV between sequences;
///   transfers between pipeline stages are not ops (stage_bytes_per_token).
/// Throws InputError with plan_problem's text where the plan cannot run.
/// Law: every coefficient is non-negative; flops of a prefill of n tokens = 2 * (active parameters
///   without embedding) * n plus attention, head counted once per sequence; tp and pp partition:
///   sums over ranks and stages equal the whole but for what is replicated.
std::vector<StepOp> lower_step(const ModelSpec& model, const Precision& precision, int tp, int pp,
                               int stage, bool expert_parallel);

/// Bytes per token between two pipeline stages: hidden state and residual, 16 bit (fp32) each.
double stage_bytes_per_token(const ModelSpec& model, const Precision& precision);

}  // namespace medley
