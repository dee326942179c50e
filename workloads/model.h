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
  kStateSpace  ///< Mamba: constant state per sequence
};
enum class MixerKind : std::uint8_t { kNone, kDense, kMoe };  ///< the feed-forward part of a layer

/// A run of equal layers. Sizes are element counts of the whole model, before any sharding.
struct LayerGroup {
  int count = 0;
  AttentionKind attention = AttentionKind::kFull;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int v_head_dim = 0;                       ///< = head_dim unless MLA
  int window = 0;                           ///< kSliding
  int q_lora_rank = 0;                      ///< kLatent; 0: none
  int kv_lora_rank = 0;                     ///< kLatent
  int rope_head_dim = 0;                    ///< kLatent: the part of the key kept beside the latent
  int nope_head_dim = 0;                    ///< kLatent
  double state_elements = 0.0;              ///< kLinear / kStateSpace: per sequence and layer
  double mixer_parameters = 0.0;            ///< kLinear / kStateSpace: projection weights per layer
  double extra_attention_parameters = 0.0;  ///< indexers, output gates, sinks...
  bool cross_attention = false;  ///< encoder-decoder decoder layers (adds a second attention)
  MixerKind mixer = MixerKind::kDense;
  int ffn_hidden = 0;  ///< per dense MLP or per expert
  bool gated = true;   ///< SwiGLU-like: three matrices instead of two
  int experts = 0;
  int experts_per_token = 0;
  int shared_experts_hidden = 0;  ///< total hidden width of always-on experts
};

/// Architecture of one model, from our zoo schema or a Hugging Face config.json.
struct ModelSpec {
  std::string name;
  std::string family;  ///< "decoder", "encoder", "encoder_decoder", "cnn", "diffusion"
  std::vector<std::string> aliases;
  std::string source;  ///< citation or file
  std::string file;
  int hidden = 0;
  std::int64_t vocab = 0;
  bool tied_embeddings = false;
  int max_positions = 0;              ///< 0: unknown
  DType dtype = DType::kBf16;         ///< of the published weights
  std::optional<DType> quantization;  ///< of the published weights, where quantised
  std::vector<LayerGroup> layers;     ///< in order
  double other_parameters = 0.0;  ///< position embeddings, vision tower, heads not in a layer...
  double published_parameters = 0.0;  ///< as published, where known (zoo files); 0 otherwise
  int total_layers() const;
};

/// Matrix and embedding parameters (norms and biases left out).
double total_parameters(const ModelSpec& model);
/// Those touched by one token (top-k experts and shared ones only).
double active_parameters(const ModelSpec& model);
/// Bytes of weights on the heaviest rank of a TP x PP plan.
///   Heads, FFN and experts split by tp; an embedding row split by tp (vocab parallel); layers
///   split in order into pp stages as evenly as possible, embedding on the first and head on the
///   last.
Bytes weight_bytes(const ModelSpec& model, int tp, int pp, DType weights);
/// KV bytes one token of context adds on one rank of stage `stage`: per layer
///   2 * max(1, kv_heads/tp) * head_dim * bytes; MLA: (kv_lora_rank + rope_head_dim) * bytes on
///   every rank; sliding layers hold at most `window` tokens and are counted up to it; linear and
///   state-space layers add nothing per token.
double kv_bytes_per_token(const ModelSpec& model, int tp, int pp, int stage, DType kv);
/// Bytes of constant per-sequence state (linear attention, state space) on one rank of `stage`.
double state_bytes_per_sequence(const ModelSpec& model, int tp, int pp, int stage);
/// Layers [first, last) of pipeline stage `stage`.
struct LayerRange {
  int first = 0;
  int last = 0;
};
LayerRange stage_layers(const ModelSpec& model, int pp, int stage);

/// Reads our own zoo schema or a Hugging Face config.json (told apart by "schema"). Throws
/// InputError naming the unsupported part.
ModelSpec load_model(const std::string& path);

/// The zoo: <shipped data>/workloads/zoo/*.json and user directories, by name or alias,
/// case-insensitively, or a path ending in ".json".
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
