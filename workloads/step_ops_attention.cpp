#include "workloads/step_ops_layer.h"

namespace medley {

using enum Feature;

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
  expand.stored = weight_format(WeightPart::kLinear);
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
  absorb.stored = weight_format(WeightPart::kLinear);
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
  out.stored = weight_format(WeightPart::kLinear);
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

}  // namespace medley
