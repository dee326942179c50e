#include "workloads/model.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/core/error.h"
#include "workloads/model_matrices.h"

namespace medley {

int ModelSpec::total_layers() const {
  int total = 0;
  for (const LayerGroup& g : layers) total += g.count;
  return total;
}
int ModelSpec::window() const {
  for (const LayerGroup& g : layers) {
    if (g.window > 0) return g.window;
  }
  return 0;
}
int ModelSpec::experts() const {
  for (const LayerGroup& g : layers) {
    if (g.mixer == MixerKind::kMoe) return g.experts;
  }
  return 0;
}
int ModelSpec::experts_per_token() const {
  for (const LayerGroup& g : layers) {
    if (g.mixer == MixerKind::kMoe) return g.experts_per_token;
  }
  return 0;
}

namespace {
bool is_16_bit(DType d) {
  return d == DType::kBf16 || d == DType::kFp16;
}
double embedding_elements(const ModelSpec& m) {
  return static_cast<double>(m.vocab) * m.hidden;
}

/// Everything but the layers: embedding, head, final norm, the rest.
double outer_parameters(const ModelSpec& m) {
  const double final_norm = m.layers.empty() ? 0.0 : m.hidden;
  return embedding_elements(m) * (m.tied_embeddings ? 1.0 : 2.0) + final_norm + m.other_parameters;
}
}  // namespace

double total_parameters(const ModelSpec& model) {
  double total = outer_parameters(model);
  for (const LayerGroup& g : model.layers) {
    const LayerWeights w = layer_weights(model, g, 1);
    total += g.count * (w.linear + w.router + w.norms + w.experts);
  }
  return total;
}

double active_parameters(const ModelSpec& model) {
  double total = outer_parameters(model);
  for (const LayerGroup& g : model.layers) {
    const LayerWeights w = layer_weights(model, g, 1);
    const double used = g.experts > 0 ? double(g.experts_per_token) / g.experts : 0.0;
    total += g.count * (w.linear + w.router + w.norms + w.experts * used);
  }
  return total;
}

DType weight_dtype(const ModelSpec& model, WeightPart part, DType weights) {
  if (bytes_of(weights) >= 2.0) return weights;
  const DType base = is_16_bit(model.dtype) ? model.dtype : DType::kBf16;
  const bool experts_only =
      model.quantization == weights && model.quantization_scope == QuantizationScope::kExperts;
  switch (part) {
    case WeightPart::kExpert:
      return weights;
    case WeightPart::kLinear:
      return experts_only ? base : weights;
    case WeightPart::kRouter:
    case WeightPart::kNorm:
    case WeightPart::kEmbedding:
    case WeightPart::kHead:
      return base;
  }
  return weights;
}

double weight_element_bytes(const ModelSpec& model, WeightPart part, DType weights) {
  const DType d = weight_dtype(model, part, weights);
  const bool grouped = d == DType::kInt4 || d == DType::kInt8;
  if (!grouped || model.quantization != d || model.quantization_group == 0) return bytes_of(d);
  return (d == DType::kInt4 ? 0.5 : 1.0) + 2.0 / model.quantization_group;
}

DType published_weights(const ModelSpec& model) {
  return model.quantization.value_or(model.dtype);
}

Bytes stage_weight_bytes(const ModelSpec& model, int tp, int pp, int stage, DType weights) {
  const auto bytes = [&](WeightPart part) { return weight_element_bytes(model, part, weights); };
  const LayerRange range = stage_layers(model, pp, stage);
  double total = 0.0;
  int first = 0;
  for (const LayerGroup& g : model.layers) {
    const int here = std::min(range.last, first + g.count) - std::max(range.first, first);
    first += g.count;
    if (here <= 0) continue;
    const LayerWeights w = layer_weights(model, g, tp);
    total += here * (w.linear * bytes(WeightPart::kLinear) + w.router * bytes(WeightPart::kRouter) +
                     w.norms * bytes(WeightPart::kNorm) + w.experts * bytes(WeightPart::kExpert));
  }
  const double table = embedding_elements(model) / tp;
  if (stage == 0) {
    total += table * bytes(WeightPart::kEmbedding) +
             model.other_parameters * bytes(WeightPart::kEmbedding);
  }
  if (stage == pp - 1) total += model.hidden * bytes(WeightPart::kNorm);
  const bool own_head = !model.tied_embeddings || (pp > 1 && model.family == "decoder");
  if (stage == pp - 1 && own_head) total += table * bytes(WeightPart::kHead);
  return Bytes(total);
}

Bytes weight_bytes(const ModelSpec& model, int tp, int pp, DType weights) {
  Bytes most;
  for (int stage = 0; stage < pp; ++stage) {
    most = std::max(most, stage_weight_bytes(model, tp, pp, stage, weights));
  }
  return most;
}

namespace {
/// KV bytes of one token in one layer of `g` on one rank.
double layer_kv_bytes(const LayerGroup& g, int tp, DType kv) {
  if (!g.causal) return 0.0;
  switch (g.attention) {
    case AttentionKind::kFull:
    case AttentionKind::kSliding:
      return kv_heads_per_rank(g, tp) * (g.head_dim + g.v_head_dim) * bytes_of(kv);
    case AttentionKind::kLatent: {
      const double index = g.index_heads > 0 ? g.index_head_dim * bytes_of(DType::kFp8) + 4.0 : 0.0;
      return (g.kv_lora_rank + g.rope_head_dim) * bytes_of(kv) + index;
    }
    case AttentionKind::kNone:
    case AttentionKind::kLinear:
    case AttentionKind::kStateSpace:
      return 0.0;
  }
  return 0.0;
}

/// Sum over the layers of a stage of per_layer(group).
template <class F>
double sum_stage(const ModelSpec& model, int pp, int stage, F per_layer) {
  const LayerRange range = stage_layers(model, pp, stage);
  double total = 0.0;
  int first = 0;
  for (const LayerGroup& g : model.layers) {
    const int here = std::min(range.last, first + g.count) - std::max(range.first, first);
    first += g.count;
    if (here > 0) total += here * per_layer(g);
  }
  return total;
}
}  // namespace

double kv_bytes_per_token(const ModelSpec& model, int tp, int pp, int stage, DType kv) {
  return sum_stage(model, pp, stage,
                   [&](const LayerGroup& g) { return layer_kv_bytes(g, tp, kv); });
}

double kv_bytes_for_context(const ModelSpec& model, int tp, int pp, int stage, DType kv,
                            std::int64_t tokens) {
  return sum_stage(model, pp, stage, [&](const LayerGroup& g) {
    const bool holds_window = g.attention == AttentionKind::kSliding && g.window > 0;
    const auto held = holds_window ? std::min<std::int64_t>(tokens, g.window) : tokens;
    return static_cast<double>(held) * layer_kv_bytes(g, tp, kv);
  });
}

double state_bytes_per_sequence(const ModelSpec& model, int tp, int pp, int stage) {
  return sum_stage(model, pp, stage, [&](const LayerGroup& g) {
    const RecurrentShard r = recurrent_shard(g, tp);
    return r.state * bytes_of(DType::kFp32) + r.conv * bytes_of(DType::kBf16);
  });
}

LayerRange stage_layers(const ModelSpec& model, int pp, int stage) {
  MEDLEY_CHECK(pp >= 1 && stage >= 0 && stage < pp, "pipeline stage out of range");
  const int layers = model.total_layers();
  const int even = layers / pp;
  const int remainder = layers % pp;
  // The `remainder` stages just before the last one hold one layer more.
  const auto size = [&](int s) { return even + (s < pp - 1 && s >= pp - 1 - remainder ? 1 : 0); };
  LayerRange range;
  for (int s = 0; s < stage; ++s) range.first += size(s);
  range.last = range.first + size(stage);
  return range;
}

std::string plan_problem(const ModelSpec& model, int tp, int pp, bool expert_parallel) {
  if (model.family == "cnn" || model.family == "encoder_decoder") {
    return fmt::format("serving a {} model is not supported yet (decoders and encoders are)",
                       model.family);
  }
  if (tp < 1 || pp < 1) return "tensor and pipeline parallel sizes must be at least 1";
  if (pp > model.total_layers()) {
    return fmt::format("{} pipeline stages for {} layers", pp, model.total_layers());
  }
  for (const LayerGroup& g : model.layers) {
    if (g.heads % tp != 0)
      return fmt::format("{} attention heads do not divide by tp {}", g.heads, tp);
    if (g.kv_heads > 0 && g.kv_heads % tp != 0 && tp % g.kv_heads != 0) {
      return fmt::format("{} KV heads and tp {} do not divide one another", g.kv_heads, tp);
    }
    if (g.recurrent.heads % tp != 0) {
      return fmt::format("{} recurrent heads do not divide by tp {}", g.recurrent.heads, tp);
    }
    const bool whole_experts = expert_parallel && g.mixer == MixerKind::kMoe;
    if (whole_experts && g.experts % tp != 0) {
      return fmt::format("{} experts do not divide by {} expert-parallel ranks", g.experts, tp);
    }
    if ((!whole_experts && g.ffn_hidden % tp != 0) || g.shared_experts_hidden % tp != 0) {
      return fmt::format(
          "FFN width {} does not divide by tp {}",
          !whole_experts && g.ffn_hidden % tp != 0 ? g.ffn_hidden : g.shared_experts_hidden, tp);
    }
  }
  return "";
}

}  // namespace medley
