#include "workloads/model_matrices.h"

#include <algorithm>

namespace medley {

double heads_per_rank(const LayerGroup& group, int tp) {
  return static_cast<double>(group.heads) / tp;
}
double kv_heads_per_rank(const LayerGroup& group, int tp) {
  return std::max(1.0, static_cast<double>(group.kv_heads) / tp);
}

RecurrentShard recurrent_shard(const LayerGroup& group, int tp) {
  const Recurrence& r = group.recurrent;
  RecurrentShard s;
  if (r.heads == 0) return s;
  s.heads = static_cast<double>(r.heads) / tp;
  s.inner = s.heads * r.head_dim;
  s.keys = std::max(1.0, static_cast<double>(r.groups) / tp) * r.state_dim;
  s.state = s.inner * r.state_dim;
  s.channels = s.inner + 2.0 * s.keys;
  s.conv = s.channels * std::max(0, r.conv_kernel - 1);
  return s;
}

namespace {
std::vector<Matrix> multi_head_matrices(double hidden, const LayerGroup& g, int tp) {
  const double heads = heads_per_rank(g, tp);
  const double kv = kv_heads_per_rank(g, tp);
  const double q_width = heads * g.head_dim * (g.output_gate ? 2.0 : 1.0);
  const double k_width = kv * g.head_dim;
  const double v_width = g.value_from_key ? 0.0 : kv * g.v_head_dim;
  std::vector<Matrix> all = {
      {"qkv_proj", hidden, q_width + k_width + v_width, MatrixRole::kInput},
      {"o_proj", heads * g.v_head_dim, hidden, MatrixRole::kOutput},
  };
  if (g.cross_attention) {
    all.push_back({"cross_qkv_proj", hidden, heads * g.head_dim + k_width + kv * g.v_head_dim,
                   MatrixRole::kCross});
    all.push_back({"cross_o_proj", heads * g.v_head_dim, hidden, MatrixRole::kCross});
  }
  return all;
}

std::vector<Matrix> latent_matrices(double hidden, const LayerGroup& g, int tp) {
  const double heads = heads_per_rank(g, tp);
  const double q_width = heads * (g.nope_head_dim + g.rope_head_dim);
  const double kv_a = g.kv_lora_rank + g.rope_head_dim;
  std::vector<Matrix> all;
  if (g.q_lora_rank > 0) {
    all.push_back({"qkv_a_proj", hidden, g.q_lora_rank + kv_a, MatrixRole::kInput});
    all.push_back({"q_b_proj", double(g.q_lora_rank), q_width, MatrixRole::kInput});
  } else {
    all.push_back({"q_proj", hidden, q_width, MatrixRole::kInput});
    all.push_back({"kv_a_proj", hidden, kv_a, MatrixRole::kInput});
  }
  if (g.index_heads > 0) {
    const double q_from = g.q_lora_rank > 0 ? g.q_lora_rank : hidden;
    all.push_back(
        {"index_q_proj", q_from, double(g.index_heads) * g.index_head_dim, MatrixRole::kInput});
    all.push_back(
        {"index_k_proj", hidden, double(g.index_head_dim) + g.index_heads, MatrixRole::kInput});
  }
  all.push_back({"kv_b_proj", double(g.kv_lora_rank), heads * (g.nope_head_dim + g.v_head_dim),
                 MatrixRole::kLatentUp});
  all.push_back({"o_proj", heads * g.v_head_dim, hidden, MatrixRole::kOutput});
  return all;
}

std::vector<Matrix> recurrent_matrices(double hidden, const LayerGroup& g, int tp) {
  const RecurrentShard r = recurrent_shard(g, tp);
  const double gates = r.heads * (g.attention == AttentionKind::kLinear ? 2.0 : 1.0);
  return {{"recurrent_in_proj", hidden, 2.0 * r.inner + 2.0 * r.keys + gates, MatrixRole::kInput},
          {"recurrent_out_proj", r.inner, hidden, MatrixRole::kOutput}};
}
}  // namespace

std::vector<Matrix> attention_matrices(const ModelSpec& model, const LayerGroup& group, int tp) {
  switch (group.attention) {
    case AttentionKind::kNone:
      return {};
    case AttentionKind::kFull:
    case AttentionKind::kSliding:
      return multi_head_matrices(model.hidden, group, tp);
    case AttentionKind::kLatent:
      return latent_matrices(model.hidden, group, tp);
    case AttentionKind::kLinear:
    case AttentionKind::kStateSpace:
      return recurrent_matrices(model.hidden, group, tp);
  }
  return {};
}

std::vector<Matrix> mlp_matrices(const ModelSpec& model, bool gated, double width) {
  return {{gated ? "gate_up_proj" : "up_proj", double(model.hidden), gated ? 2.0 * width : width,
           MatrixRole::kInput},
          {"down_proj", width, double(model.hidden), MatrixRole::kOutput}};
}

LayerWeights layer_weights(const ModelSpec& model, const LayerGroup& group, int tp) {
  LayerWeights w;
  const int norms = (group.attention != AttentionKind::kNone ? 1 : 0) +
                    (group.cross_attention ? 1 : 0) + (group.mixer != MixerKind::kNone ? 1 : 0);
  w.norms = static_cast<double>(norms) * model.hidden;
  for (const Matrix& m : attention_matrices(model, group, tp)) w.linear += m.elements();
  const auto mlp = [&](double width) {
    double sum = 0.0;
    for (const Matrix& m : mlp_matrices(model, group.gated, width)) sum += m.elements();
    return sum;
  };
  if (group.mixer == MixerKind::kDense) {
    w.linear += mlp(double(group.ffn_hidden) / tp);
  } else if (group.mixer == MixerKind::kMoe) {
    w.router = double(model.hidden) * group.experts;
    w.experts = group.experts * mlp(double(group.ffn_hidden) / tp);
    w.linear += mlp(double(group.shared_experts_hidden) / tp);
  }
  return w;
}

}  // namespace medley
