#pragma once

#include <vector>

#include "workloads/model.h"

namespace medley {

/// When a weight matrix of a layer runs.
enum class MatrixRole : std::uint8_t {
  kInput,     ///< before attention or scan, once per token
  kOutput,    ///< after it, once per token
  kLatentUp,  ///< MLA's kv_b_proj: per context token in prefill, absorbed in decode
  kCross      ///< cross-attention projections (loaded and counted, never lowered)
};

/// One weight matrix k x n as it lies on one rank.
struct Matrix {
  const char* name;
  double k = 0.0;
  double n = 0.0;
  MatrixRole role = MatrixRole::kInput;
  double elements() const { return k * n; }
};

/// Heads on one rank of tp: queries split, keys replicated once tp exceeds them.
double heads_per_rank(const LayerGroup& group, int tp);
double kv_heads_per_rank(const LayerGroup& group, int tp);
/// Recurrent widths on one rank: value width, key width (all groups), heads.
struct RecurrentShard {
  double heads = 0.0;
  double inner = 0.0;     ///< heads * head_dim
  double keys = 0.0;      ///< groups * state_dim
  double state = 0.0;     ///< elements of the recurrent state
  double conv = 0.0;      ///< elements of the convolution tail
  double channels = 0.0;  ///< convolved channels
};
RecurrentShard recurrent_shard(const LayerGroup& group, int tp);

/// Matrices of the token mixer (attention or recurrence) on one rank, in order of use.
std::vector<Matrix> attention_matrices(const ModelSpec& model, const LayerGroup& group, int tp);
/// gate/up and down of one MLP of `width` hidden units.
std::vector<Matrix> mlp_matrices(const ModelSpec& model, bool gated, double width);

/// Weight elements of one layer on one rank, by storage format class.
struct LayerWeights {
  double linear = 0.0;
  double router = 0.0;
  double norms = 0.0;
  double experts = 0.0;  ///< all routed ones
};
LayerWeights layer_weights(const ModelSpec& model, const LayerGroup& group, int tp);

}  // namespace medley
