#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "workloads/model_matrices.h"
#include "workloads/step_ops.h"

namespace medley {

/// Emits the ops of one layer shape; `repeats` of every op is the number of such layers.
class LayerLowering {
 public:
  LayerLowering(const ModelSpec& model, const Precision& precision, int tp, bool expert_parallel,
                std::vector<StepOp>& out)
      : model_(model),
        precision_(precision),
        tp_(tp),
        expert_parallel_(expert_parallel),
        wide_(precision.activations == DType::kFp32),
        act_(wide_ ? 4.0 : 2.0),
        out_(out) {}

  void embedding();
  void layer(const LayerGroup& g, int repeats);
  void head();

 private:
  void norm(const char* name);
  void gemm(const Matrix& m, Feature rows, WeightPart part, std::string_view prefix = "");
  void elementwise(std::string name, Feature rows, double read, double written,
                   double flops_per_element);
  void reduce(const char* name, Feature rows, double elements);
  void attention(const LayerGroup& g);
  void multi_head_core(const LayerGroup& g);
  void latent_core(const LayerGroup& g);
  void latent_indexer(const LayerGroup& g);
  void latent_prefill_expanded(const LayerGroup& g);
  void latent_absorbed(const LayerGroup& g, bool picked);
  void recurrent_core(const LayerGroup& g);
  void mlp(const LayerGroup& g, int width, std::string_view prefix);
  void experts(const LayerGroup& g);

  StepOp& add(std::string name, OpClass op_class, DType dtype) {
    StepOp op;
    op.name = std::move(name);
    op.op_class = op_class;
    op.dtype = dtype;
    op.stored = attention_class(op_class) ? precision_.kv : dtype;
    op.repeats = repeats_;
    return out_.emplace_back(std::move(op));
  }
  static bool attention_class(OpClass c) {
    return c == OpClass::kAttentionPrefill || c == OpClass::kAttentionDecode;
  }
  DType weight_format(WeightPart part) const {
    return weight_dtype(model_, part, precision_.weights);
  }
  double weight_element(WeightPart part) const {
    return weight_element_bytes(model_, part, precision_.weights);
  }
  DType plain() const {
    if (wide_) return precision_.activations;
    return precision_.activations == DType::kFp16 || model_.dtype == DType::kFp16 ? DType::kFp16
                                                                                  : DType::kBf16;
  }
  /// Arithmetic of a GEMM: the deployment's where its matrix is quantised, else the plain one.
  DType gemm_dtype(WeightPart part) const {
    const bool kept_wide =
        bytes_of(precision_.weights) < 2.0 && bytes_of(weight_format(part)) >= 2.0;
    return kept_wide ? plain() : precision_.activations;
  }
  bool block_scaled(DType arithmetic, DType weights) const {
    return model_.fp8_block_scaled && arithmetic == DType::kFp8 && weights == DType::kFp8;
  }

  const ModelSpec& model_;
  const Precision& precision_;
  int tp_;
  bool expert_parallel_;
  bool wide_;
  double act_;  ///< bytes of an activation between kernels
  std::vector<StepOp>& out_;
  int repeats_ = 1;
};

}  // namespace medley
