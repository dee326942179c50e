#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "sim/core/error.h"
#include "workloads/model_matrices.h"
#include "workloads/step_ops.h"

namespace medley {

namespace {

using enum Feature;

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
    op.repeats = repeats_;
    return out_.emplace_back(std::move(op));
  }
  DType weight_format(WeightPart part) const {
    return weight_dtype(model_, part, precision_.weights);
  }
  double weight_element(WeightPart part) const { return bytes_of(weight_format(part)); }
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

  const ModelSpec& model_;
  const Precision& precision_;
  int tp_;
  bool expert_parallel_;
  bool wide_;
  double act_;  ///< bytes of an activation between kernels
  std::vector<StepOp>& out_;
  int repeats_ = 1;
};

void LayerLowering::norm(const char* name) {
  // Fused residual add and RMSNorm: reads x and the residual, writes both.
  elementwise(name, kTokens, 2.0 * model_.hidden, 2.0 * model_.hidden, 5.0);
}

void LayerLowering::elementwise(std::string name, Feature rows, double read, double written,
                                double flops_per_element) {
  StepOp& op = add(std::move(name), OpClass::kElementwise, plain());
  op.flops[rows] = written * flops_per_element;
  op.activation_bytes[rows] = (read + written) * act_;
}

void LayerLowering::gemm(const Matrix& m, Feature rows, WeightPart part, std::string_view prefix) {
  StepOp& op = add(fmt::format("{}{}", prefix, m.name), OpClass::kGemm, gemm_dtype(part));
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

void LayerLowering::attention(const LayerGroup& g) {
  const std::vector<Matrix> matrices = attention_matrices(model_, g, tp_);
  for (const Matrix& m : matrices) {
    if (m.role == MatrixRole::kInput) gemm(m, kTokens, WeightPart::kLinear);
  }
  switch (g.attention) {
    case AttentionKind::kNone:
      break;
    case AttentionKind::kFull:
    case AttentionKind::kSliding:
      multi_head_core(g);
      break;
    case AttentionKind::kLatent:
      latent_core(g);
      break;
    case AttentionKind::kLinear:
    case AttentionKind::kStateSpace:
      recurrent_core(g);
      break;
  }
  for (const Matrix& m : matrices) {
    if (m.role == MatrixRole::kOutput) gemm(m, kTokens, WeightPart::kLinear);
  }
}

void LayerLowering::multi_head_core(const LayerGroup& g) {
  const double heads = heads_per_rank(g, tp_);
  const double qk = g.head_dim;
  const double both = g.head_dim + g.v_head_dim;
  const double kv_row = kv_heads_per_rank(g, tp_) * both;
  const bool window = g.attention == AttentionKind::kSliding;
  const std::string suffix = window ? "_window" : "";

  if (model_.rotary) {
    const double rotated = heads * qk + kv_heads_per_rank(g, tp_) * qk;
    elementwise("rotary", kTokens, rotated, rotated, 3.0);
  }
  if (g.causal) {
    StepOp& write = add("kv_write", OpClass::kElementwise, plain());
    write.activation_bytes[kTokens] = kv_row * act_;
    write.kv_bytes[kTokens] = kv_row * bytes_of(precision_.kv);
  }
  StepOp& prefill = add("attention_prefill" + suffix, OpClass::kAttentionPrefill, plain());
  const Feature pairs = window ? kChunkPairsWindow : kChunkPairs;
  prefill.flops[pairs] = 2.0 * both * heads * (g.causal ? 1.0 : 2.0);
  prefill.activation_bytes[kChunkTokens] = heads * both * act_;
  const Feature context = window ? kChunkContextWindow : kChunkContext;
  if (g.causal) {
    prefill.kv_bytes[context] = kv_row * bytes_of(precision_.kv);
  } else {
    prefill.activation_bytes[context] = kv_row * act_;
  }
  if (!g.causal) return;
  StepOp& decode = add("attention_decode" + suffix, OpClass::kAttentionDecode, plain());
  const Feature length = window ? kDecodeContextWindow : kDecodeContext;
  decode.flops[length] = 2.0 * both * heads;
  decode.kv_bytes[length] = kv_row * bytes_of(precision_.kv);
  decode.activation_bytes[kDecodes] = heads * both * act_;
  if (g.output_gate) {
    const double width = heads * g.v_head_dim;
    elementwise("output_gate", kTokens, 2.0 * width, width, 4.0);
  }
}

void LayerLowering::latent_indexer(const LayerGroup& g) {
  // Scores every cached key with index_heads small heads (fp8), then picks the top `window`.
  const double row = g.index_head_dim * bytes_of(DType::kFp8) + 4.0;
  const double per_pair = 2.0 * g.index_heads * g.index_head_dim;
  const DType dtype = bytes_of(precision_.activations) < 2.0 ? precision_.activations : plain();
  StepOp& prefill = add("indexer_prefill", OpClass::kAttentionPrefill, dtype);
  prefill.flops[kChunkPairs] = per_pair;
  prefill.kv_bytes[kChunkContext] = row;
  prefill.activation_bytes[kChunkPairs] = 2.0 * 4.0;  // fp32 scores written, read by the top-k
  StepOp& decode = add("indexer_decode", OpClass::kAttentionDecode, dtype);
  decode.flops[kDecodeContext] = per_pair;
  decode.kv_bytes[kDecodeContext] = row;
  decode.activation_bytes[kDecodeContext] = 2.0 * 4.0;
}

void LayerLowering::latent_core(const LayerGroup& g) {
  const double heads = heads_per_rank(g, tp_);
  const double row = g.kv_lora_rank + g.rope_head_dim;
  const double kv = bytes_of(precision_.kv);
  const bool picked = g.index_heads > 0;

  const double rotated = (heads + 1.0) * g.rope_head_dim;
  elementwise("rotary", kTokens, rotated, rotated, 3.0);
  StepOp& write = add("kv_write", OpClass::kElementwise, plain());
  write.activation_bytes[kTokens] = row * act_;
  write.kv_bytes[kTokens] =
      row * kv + (picked ? g.index_head_dim * bytes_of(DType::kFp8) + 4.0 : 0.0);
  if (picked) latent_indexer(g);

  if (!picked) latent_prefill_expanded(g);
  latent_absorbed(g, picked);
}

void LayerLowering::latent_prefill_expanded(const LayerGroup& g) {
  const double heads = heads_per_rank(g, tp_);
  const double rank = g.kv_lora_rank;
  const double both = g.head_dim + g.v_head_dim;
  const double expanded = heads * (g.nope_head_dim + g.v_head_dim);
  StepOp& expand = add("kv_b_proj", OpClass::kGemm, gemm_dtype(WeightPart::kLinear));
  expand.flops[kChunkContext] = 2.0 * rank * expanded;
  expand.weight_bytes[kHasChunks] = rank * expanded * weight_element(WeightPart::kLinear);
  expand.kv_bytes[kChunkContext] = (rank + g.rope_head_dim) * bytes_of(precision_.kv);
  expand.activation_bytes[kChunkContext] = expanded * act_;
  StepOp& prefill = add("attention_prefill", OpClass::kAttentionPrefill, plain());
  prefill.flops[kChunkPairs] = 2.0 * both * heads;
  prefill.activation_bytes[kChunkContext] = heads * both * act_;
  prefill.activation_bytes[kChunkTokens] = heads * both * act_;
}

void LayerLowering::latent_absorbed(const LayerGroup& g, bool picked) {
  // Queries and outputs pass through the two halves of kv_b_proj; attention is over the latent
  // itself, shared by all heads. With picked tokens prefill runs this way too.
  const double heads = heads_per_rank(g, tp_);
  const double rank = g.kv_lora_rank;
  const double row = rank + g.rope_head_dim;
  const double kv = bytes_of(precision_.kv);
  const double element = weight_element(WeightPart::kLinear);
  const Feature rows = picked ? kTokens : kDecodes;
  const Feature any = picked ? kOne : kHasDecodes;
  StepOp& absorb = add("q_absorb", OpClass::kGemm, plain());
  absorb.flops[rows] = 2.0 * heads * g.nope_head_dim * rank;
  absorb.weight_bytes[any] = heads * g.nope_head_dim * rank * element;
  absorb.activation_bytes[rows] = heads * (g.nope_head_dim + rank) * act_;
  if (picked) {
    StepOp& prefill = add("attention_prefill_picked", OpClass::kAttentionPrefill, plain());
    prefill.flops[kChunkPairsWindow] = 2.0 * (row + rank) * heads;
    prefill.kv_bytes[kChunkContext] = row * kv;
    prefill.activation_bytes[kChunkTokens] = heads * (row + rank) * act_;
  }
  StepOp& decode = add(picked ? "attention_decode_picked" : "attention_decode",
                       OpClass::kAttentionDecode, plain());
  const Feature length = picked ? kDecodeContextWindow : kDecodeContext;
  decode.flops[length] = 2.0 * (row + rank) * heads;
  decode.kv_bytes[length] = row * kv;
  decode.activation_bytes[kDecodes] = heads * (row + rank) * act_;
  StepOp& out = add("v_absorb", OpClass::kGemm, plain());
  out.flops[rows] = 2.0 * heads * rank * g.v_head_dim;
  out.weight_bytes[any] = heads * rank * g.v_head_dim * element;
  out.activation_bytes[rows] = heads * (rank + g.v_head_dim) * act_;
}

void LayerLowering::recurrent_core(const LayerGroup& g) {
  const RecurrentShard r = recurrent_shard(g, tp_);
  const Recurrence& shape = g.recurrent;
  if (shape.conv_kernel > 0) {
    StepOp& conv = add("short_conv", OpClass::kElementwise, plain());
    conv.flops[kTokens] = 2.0 * r.channels * shape.conv_kernel;
    conv.activation_bytes[kTokens] = 2.0 * r.channels * act_;
    conv.kv_bytes[kSequences] = 2.0 * r.conv * bytes_of(DType::kBf16);
  }
  StepOp& scan = add("recurrent_scan", OpClass::kRecurrent, plain());
  const double block = double(shape.chunk) * (shape.head_dim + shape.state_dim);
  scan.flops[kChunkTokens] = 4.0 * r.state + r.heads * block;
  scan.flops[kDecodes] = 7.0 * r.state;
  scan.kv_bytes[kSequences] = 2.0 * r.state * bytes_of(DType::kFp32);
  scan.activation_bytes[kTokens] = (r.channels + r.inner) * act_;
  // Gated norm of the scan's output.
  elementwise("recurrent_gate", kTokens, 2.0 * r.inner, r.inner, 8.0);
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

bool same_kernel(const StepOp& a, const StepOp& b) {
  return a.name == b.name && a.op_class == b.op_class && a.dtype == b.dtype &&
         a.kernels == b.kernels && a.flops == b.flops && a.weight_bytes == b.weight_bytes &&
         a.kv_bytes == b.kv_bytes && a.activation_bytes == b.activation_bytes &&
         a.message_bytes == b.message_bytes && a.all_to_all == b.all_to_all;
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
