#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/op.h"
#include "sim/core/units.h"

namespace medley {

enum class AttentionKind : std::uint8_t {
  kNone,       ///< feed-forward only
  kFull,       ///< multi-head / grouped-query over the whole context
  kSliding,    ///< the same over the last `window` tokens
  kLatent,     ///< MLA: one compressed latent per token, shared by all heads
  kLinear,     ///< linear attention / gated delta rule: constant state per sequence
  kStateSpace  ///< Mamba-2: constant state per sequence
};
enum class MixerKind : std::uint8_t { kNone, kDense, kMoe };  ///< the feed-forward part of a layer

/// Shape of a kLinear / kStateSpace layer. Both families fit one form (inner = heads * head_dim):
///   in-projection   hidden -> 2 inner + 2 groups state_dim + heads   (kStateSpace: z, x, B, C, dt)
///                   hidden -> 2 inner + 2 groups state_dim + 2 heads (kLinear: z, v, k, q, a, b)
///   state           heads * head_dim * state_dim, plus the tail of a short convolution
///   out-projection  inner -> hidden
/// Source: Mamba-2 (arXiv 2405.21060), gated delta networks (arXiv 2412.06464).
struct Recurrence {
  int heads = 0;        ///< value heads
  int head_dim = 0;     ///< value head width
  int state_dim = 0;    ///< key head width (delta rule) or SSM state size
  int groups = 0;       ///< key heads or B/C groups
  int conv_kernel = 0;  ///< width of the causal convolution in front of the scan; 0: none
  int chunk = 0;        ///< tokens per block of the parallel prefill form
  bool operator==(const Recurrence&) const = default;
};

/// A run of equal layers. Sizes are element counts of the whole model, before any sharding.
struct LayerGroup {
  int count = 0;
  AttentionKind attention = AttentionKind::kFull;
  bool causal = true;  ///< false: every token sees all others (encoders); no KV cache is kept
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;    ///< of queries and keys; kLatent: nope_head_dim + rope_head_dim
  int v_head_dim = 0;  ///< = head_dim unless kLatent
  /// kSliding: tokens seen, itself included. kLatent with an indexer: tokens picked (top-k).
  int window = 0;
  int q_lora_rank = 0;           ///< kLatent; 0: none
  int kv_lora_rank = 0;          ///< kLatent
  int rope_head_dim = 0;         ///< kLatent: the part of the key kept beside the latent
  int nope_head_dim = 0;         ///< kLatent
  int index_heads = 0;           ///< kLatent: sparse-attention indexer; 0: none
  int index_head_dim = 0;        ///< width of the indexer's one key per token
  bool output_gate = false;      ///< a sigmoid gate per attention output, projected with the query
  bool value_from_key = false;   ///< no value projection of its own
  bool cross_attention = false;  ///< encoder-decoder decoder layers (adds a second attention)
  Recurrence recurrent;          ///< kLinear / kStateSpace
  MixerKind mixer = MixerKind::kDense;
  int ffn_hidden = 0;  ///< per dense MLP or per expert
  bool gated = true;   ///< SwiGLU-like: three matrices instead of two
  int experts = 0;
  int experts_per_token = 0;
  int shared_experts_hidden = 0;  ///< total hidden width of always-on experts
  bool operator==(const LayerGroup&) const = default;
};

/// Which matrices a published quantisation covers.
enum class QuantizationScope : std::uint8_t {
  kLinear,  ///< every matrix of the layers; router, norms, embedding and head stay 16 bit
  kExperts  ///< the routed experts only (gpt-oss mxfp4, Kimi-K2.5 int4)
};

/// Architecture of one model, from our zoo schema or a Hugging Face config.json.
struct ModelSpec {
  std::string name;
  std::string family;  ///< "decoder", "encoder", "encoder_decoder", "cnn"
  std::vector<std::string> aliases;
  std::string source;  ///< citation or file
  std::string file;
  int hidden = 0;
  std::int64_t vocab = 0;  ///< 0: no token embedding (vision)
  bool tied_embeddings = false;
  bool rotary = true;                 ///< false: learned or fixed positions added once
  int max_positions = 0;              ///< 0: unknown
  DType dtype = DType::kBf16;         ///< of the published weights
  std::optional<DType> quantization;  ///< of the published weights, where quantised
  QuantizationScope quantization_scope = QuantizationScope::kLinear;
  /// The fp8 checkpoint carries a scale per block of 128 x 128 (DeepSeek, MiniMax, Qwen3).
  bool fp8_block_scaled = false;
  int quantization_group = 0;  ///< elements per 16-bit scale (int4, int8); 0: as bytes_of has it
  std::vector<LayerGroup> layers;     ///< in order
  double other_parameters = 0.0;      ///< position embeddings, vision tower, convolutions...
  double published_parameters = 0.0;  ///< as published, where known (zoo files); 0 otherwise
  double flops_per_item = 0.0;        ///< "cnn": multiply-adds count 2, one image; 0 otherwise
  int total_layers() const;
  /// Window of the sliding or index-picked layers; 0 where no layer has one. A model has at most
  /// one (the loaders refuse others).
  int window() const;
  int experts() const;            ///< routed experts of a MoE layer; 0: none
  int experts_per_token() const;  ///< likewise
};

/// Matrices, embeddings, and one norm vector of width `hidden` in front of every attention and FFN
/// and of the head. Left out (together under 0.1 % of any zoo model): biases, query/key and other
/// extra norms, short convolutions of recurrent layers. A multi-token-prediction head is not part
/// of the model. Tied embeddings count once. Exact for Llama, Mistral and Mixtral.
double total_parameters(const ModelSpec& model);
/// Those touched by one token (top-k experts and shared ones only; embedding and head in full).
double active_parameters(const ModelSpec& model);

/// Where a weight matrix sits, for quantisation.
enum class WeightPart : std::uint8_t { kLinear, kExpert, kRouter, kNorm, kEmbedding, kHead };
/// Storage format of `part` when the model is deployed with `weights`.
///   weights of 16 bits or more: everything in `weights`.
///   narrower: linear layers and experts in `weights`; router, norms, embedding and head in 16 bit
///   (the published 16-bit dtype, else bf16). Where the published checkpoint is already in
///   `weights` and covers its experts only, the other linear layers stay 16 bit too.
DType weight_dtype(const ModelSpec& model, WeightPart part, DType weights);
/// Bytes of one element in that format: bytes_of, but with the published checkpoint's own group
/// size where it is served as published.
double weight_element_bytes(const ModelSpec& model, WeightPart part, DType weights);
/// The format the published checkpoint is served in: its quantisation, else its dtype.
DType published_weights(const ModelSpec& model);

/// Bytes of weights on one rank of stage `stage` of a TP x PP plan.
///   Heads, FFN and experts split by tp (KV heads replicated once tp exceeds them, MLA's
///   down-projections, router, indexer and norms on every rank); embedding and head rows split by
///   tp, the embedding on the first stage and the head on the last (a second copy where tied and pp
///   > 1); other_parameters whole on the first stage.
Bytes stage_weight_bytes(const ModelSpec& model, int tp, int pp, int stage, DType weights);
/// The same on the heaviest stage.
Bytes weight_bytes(const ModelSpec& model, int tp, int pp, DType weights);

/// KV bytes one token of context adds on one rank of stage `stage`: per layer
///   2 * max(1, kv_heads/tp) * head_dim * bytes; MLA: (kv_lora_rank + rope_head_dim) * bytes on
///   every rank, plus one fp8 key and a 4-byte scale for an indexer. Linear, state-space and
///   encoder layers add nothing.
/// Sliding layers count in full: a pager with one block table per sequence (no hybrid allocator)
/// keeps their blocks. kv_bytes_for_context has what a window-aware allocator needs.
double kv_bytes_per_token(const ModelSpec& model, int tp, int pp, int stage, DType kv);
/// KV bytes of one sequence of `tokens` on one rank of `stage`, sliding layers holding at most
/// their window. Law: equals tokens * kv_bytes_per_token up to the window, never more after it.
double kv_bytes_for_context(const ModelSpec& model, int tp, int pp, int stage, DType kv,
                            std::int64_t tokens);
/// Bytes of constant per-sequence state (linear attention, state space) on one rank of `stage`.
/// Assumes: recurrent state in fp32, convolution tails in 16 bit (serving engines' defaults).
double state_bytes_per_sequence(const ModelSpec& model, int tp, int pp, int stage);

/// Layers [first, last) of pipeline stage `stage`: as even as possible, the remainder given to the
/// stages before the last one, from the back (vLLM's get_pp_indices; the last stage has the head).
struct LayerRange {
  int first = 0;
  int last = 0;
};
LayerRange stage_layers(const ModelSpec& model, int pp, int stage);

/// Why `model` cannot run as tp x pp (heads, KV heads, FFN width or experts that do not divide,
/// more stages than layers, no serving support); empty when it can.
std::string plan_problem(const ModelSpec& model, int tp, int pp, bool expert_parallel);

/// Reads our own zoo schema or a Hugging Face config.json (told apart by "schema"). Throws
/// InputError naming the unsupported part.
ModelSpec load_model(const std::string& path);

/// The zoo: <shipped data>/workloads/zoo/*.json and user directories, by name or alias,
/// case-insensitively, or a path ending in ".json". A later directory overrides an earlier one.
class ModelZoo {
 public:
  explicit ModelZoo(std::vector<std::string> directories);
  /// Throws InputError with a suggestion.
  ModelSpec find(const std::string& name_or_path) const;
  std::vector<ModelSpec> all() const;  ///< by name
  std::vector<std::string> names() const;

 private:
  std::vector<std::string> directories_;
};

}  // namespace medley
