#include <fmt/format.h>

#include <algorithm>

#include "sim/core/error.h"
#include "workloads/step_ops_layer.h"

namespace medley {

using enum Feature;

void LayerLowering::norm(const char* name) {
  // Fused residual add and RMSNorm: reads x and the residual, writes both.
  elementwise(name, kTokens, 2.0 * model_.hidden, 2.0 * model_.hidden, 5.0);
  out_.back().weight_bytes[kOne] = model_.hidden * weight_element(WeightPart::kNorm);
}

void LayerLowering::elementwise(std::string name, Feature rows, double read, double written,
                                double flops_per_element) {
  StepOp& op = add(std::move(name), OpClass::kElementwise, plain());
  op.flops[rows] = written * flops_per_element;
  op.activation_bytes[rows] = (read + written) * act_;
}

void LayerLowering::gemm(const Matrix& m, Feature rows, WeightPart part, std::string_view prefix) {
  StepOp& op = add(fmt::format("{}{}", prefix, m.name), OpClass::kGemm, gemm_dtype(part));
  op.stored = weight_format(part);
  op.block_scaled = block_scaled(op.dtype, op.stored);
  op.flops[rows] = 2.0 * m.elements();
  op.weight_bytes[kOne] = m.elements() * weight_element(part);
  op.activation_bytes[rows] = m.k * std::min(act_, bytes_of(op.dtype)) + m.n * act_;
}

void LayerLowering::reduce(const char* name, Feature rows, double elements) {
  if (tp_ == 1) return;
  StepOp& op = add(name, OpClass::kCollective, plain());
  op.message_bytes[rows] = elements * act_;
}

void LayerLowering::embedding() {
  if (model_.vocab == 0) return;
  repeats_ = 1;
  StepOp& op = add("embedding", OpClass::kEmbedding, plain());
  op.weight_bytes[kTokens] = model_.hidden * weight_element(WeightPart::kEmbedding) / tp_;
  op.activation_bytes[kTokens] = model_.hidden * act_;
  reduce("embedding_all_reduce", kTokens, model_.hidden);
}

void LayerLowering::head() {
  repeats_ = 1;
  norm("final_norm");
  if (model_.family != "decoder") return;
  const auto vocab = static_cast<double>(model_.vocab);
  gemm({"lm_head", double(model_.hidden), vocab / tp_}, kLogits, WeightPart::kHead);
  reduce("logits_gather", kLogits, vocab / 2.0);
  // Softmax with temperature, top-k/top-p and a draw: two passes over fp32 logits.
  StepOp& op = add("sampling", OpClass::kSampling, DType::kFp32);
  op.flops[kLogits] = 5.0 * vocab;
  op.activation_bytes[kLogits] = 2.0 * 4.0 * vocab;
}

void LayerLowering::layer(const LayerGroup& g, int repeats) {
  repeats_ = repeats;
  if (g.attention != AttentionKind::kNone) {
    norm("attention_norm");
    attention(g);
    reduce("attention_all_reduce", kTokens, model_.hidden);
  }
  if (g.mixer == MixerKind::kNone) return;
  norm("ffn_norm");
  if (g.mixer == MixerKind::kDense) {
    mlp(g, g.ffn_hidden, "");
    reduce("ffn_all_reduce", kTokens, model_.hidden);
    return;
  }
  if (g.shared_experts_hidden > 0) mlp(g, g.shared_experts_hidden, "shared_");
  experts(g);
  if (expert_parallel_ && tp_ > 1) {
    if (g.shared_experts_hidden > 0) reduce("shared_all_reduce", kTokens, model_.hidden);
  } else {
    reduce("ffn_all_reduce", kTokens, model_.hidden);
  }
}

void LayerLowering::mlp(const LayerGroup& g, int width, std::string_view prefix) {
  const double shard = double(width) / tp_;
  const std::vector<Matrix> matrices = mlp_matrices(model_, g.gated, shard);
  gemm(matrices[0], kTokens, WeightPart::kLinear, prefix);
  elementwise(fmt::format("{}activation", prefix), kTokens, matrices[0].n, shard, 5.0);
  gemm(matrices[1], kTokens, WeightPart::kLinear, prefix);
}

void LayerLowering::experts(const LayerGroup& g) {
  const double top_k = g.experts_per_token;
  const double hidden = model_.hidden;
  gemm({"router", hidden, double(g.experts)}, kTokens, WeightPart::kRouter);
  elementwise("router_top_k", kTokens, g.experts, top_k, 10.0);

  // Split by width, every rank works on all routed rows with a 1/tp slice of each expert; split
  // whole, on 1/tp of the rows with whole experts. Weights read are the same.
  const bool whole = expert_parallel_ && tp_ > 1;
  const double rows = whole ? top_k / tp_ : top_k;
  const double width = whole ? g.ffn_hidden : double(g.ffn_hidden) / tp_;
  const double ranks = whole ? tp_ : 1.0;
  const auto exchange = [&](const char* name) {
    if (!whole) return;
    StepOp& op = add(name, OpClass::kCollective, plain());
    op.all_to_all = true;
    op.message_bytes[kTokens] = rows * hidden * act_;
  };
  const auto grouped = [&](const char* name, const Matrix& m) {
    StepOp& op = add(name, OpClass::kGroupedGemm, gemm_dtype(WeightPart::kExpert));
    op.stored = weight_format(WeightPart::kExpert);
    op.block_scaled = block_scaled(op.dtype, op.stored);
    op.flops[kTokens] = 2.0 * m.elements() * rows;
    op.weight_bytes[kExpertsHit] = m.elements() * weight_element(WeightPart::kExpert) / ranks;
    op.activation_bytes[kTokens] = rows * (m.k * std::min(act_, bytes_of(op.dtype)) + m.n * act_);
  };

  const std::vector<Matrix> matrices = mlp_matrices(model_, g.gated, width);
  exchange("expert_dispatch");
  elementwise("expert_permute", kTokens, hidden, rows * hidden, 0.0);
  grouped(g.gated ? "expert_gate_up" : "expert_up", matrices[0]);
  elementwise("expert_activation", kTokens, rows * matrices[0].n, rows * width, 5.0);
  grouped("expert_down", matrices[1]);
  exchange("expert_combine");
  elementwise("expert_unpermute", kTokens, rows * hidden, hidden, 2.0 * top_k);
}

namespace {
bool same_kernel(const StepOp& a, const StepOp& b) {
  return a.name == b.name && a.op_class == b.op_class && a.dtype == b.dtype &&
         a.stored == b.stored && a.block_scaled == b.block_scaled && a.kernels == b.kernels &&
         a.flops == b.flops && a.weight_bytes == b.weight_bytes && a.kv_bytes == b.kv_bytes &&
         a.activation_bytes == b.activation_bytes && a.message_bytes == b.message_bytes &&
         a.all_to_all == b.all_to_all;
}

/// Ops that differ in nothing but their layer become one, at the place of the first.
std::vector<StepOp> merge_equal(const std::vector<StepOp>& ops) {
  std::vector<StepOp> merged;
  for (const StepOp& op : ops) {
    const auto it = std::find_if(merged.begin(), merged.end(),
                                 [&](const StepOp& m) { return same_kernel(m, op); });
    if (it == merged.end()) {
      merged.push_back(op);
    } else {
      it->repeats += op.repeats;
    }
  }
  return merged;
}

}  // namespace

std::vector<StepOp> lower_step(const ModelSpec& model, const Precision& precision, int tp, int pp,
                               int stage, bool expert_parallel) {
  if (const std::string why = plan_problem(model, tp, pp, expert_parallel); !why.empty()) {
    throw InputError(model.file, "", fmt::format("model {}: {}", model.name, why));
  }
  std::vector<StepOp> ops;
  LayerLowering lowering(model, precision, tp, expert_parallel, ops);
  const LayerRange range = stage_layers(model, pp, stage);
  if (stage == 0) lowering.embedding();
  int first = 0;
  for (const LayerGroup& g : model.layers) {
    const int here = std::min(range.last, first + g.count) - std::max(range.first, first);
    first += g.count;
    if (here > 0) lowering.layer(g, here);
  }
  if (stage == pp - 1) lowering.head();
  return merge_equal(ops);
}

}  // namespace medley
