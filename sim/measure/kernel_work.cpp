#include "sim/measure/kernel_work.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string>
#include <utility>

#include "sim/core/error.h"

namespace medley {

namespace {
constexpr std::pair<std::string_view, KernelFormat> kKernelFormats[] = {
    {"fp8_block", {DType::kFp8, DType::kFp8, true}}, {"fp8_static", {DType::kFp8, DType::kFp8}},
    {"int8_wo", {DType::kBf16, DType::kInt8}},       {"int4_wo", {DType::kBf16, DType::kInt4}},
    {"w4a16", {DType::kBf16, DType::kInt4}},         {"w8a16", {DType::kBf16, DType::kInt8}},
    {"awq", {DType::kBf16, DType::kInt4}},           {"gptq", {DType::kBf16, DType::kInt4}},
    {"w4a16_mxfp4", {DType::kBf16, DType::kFp4}},    {"w4a8", {DType::kFp8, DType::kInt4}},
    {"w4afp8", {DType::kFp8, DType::kInt4}},         {"sq", {DType::kInt8, DType::kInt8}}};

ModelSpec one_layer(int hidden, const LayerGroup& group, DType wide) {
  ModelSpec model;
  model.name = "one kernel";
  model.family = "decoder";
  model.hidden = hidden;
  model.rotary = false;
  if (wide == DType::kFp16) model.dtype = DType::kFp16;
  model.layers = {group};
  return model;
}

void add(LinearForm& sum, const LinearForm& form) {
  for (std::size_t i = 0; i < sum.coefficient.size(); ++i) {
    sum.coefficient[i] += form.coefficient[i];
  }
}

LayerGroup one_group() {
  LayerGroup group;
  group.count = 1;
  group.attention = AttentionKind::kNone;
  group.mixer = MixerKind::kNone;
  return group;
}
}  // namespace

std::optional<KernelFormat> parse_kernel_format(std::string_view text) {
  std::string word(text);
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const auto& [name, format] : kKernelFormats) {
    if (name == word) return format;
  }
  if (const auto dtype = parse_dtype(word)) return KernelFormat{*dtype, *dtype};
  return std::nullopt;
}

KernelForms sum_of_ops(const std::vector<StepOp>& ops,
                       std::initializer_list<std::string_view> names) {
  KernelForms forms;
  for (const StepOp& op : ops) {
    if (std::find(names.begin(), names.end(), op.name) == names.end()) continue;
    if (forms.kernels == 0) {
      forms.op_class = op.op_class;
      forms.dtype = op.dtype;
    }
    forms.kernels += op.kernels;
    add(forms.flops, op.flops);
    add(forms.bytes, op.weight_bytes);
    add(forms.bytes, op.kv_bytes);
    add(forms.bytes, op.activation_bytes);
  }
  return forms;
}

KernelForms gemm_kernel(double k, double n, const KernelFormat& format) {
  LayerGroup group = one_group();
  group.attention = AttentionKind::kFull;
  group.heads = group.kv_heads = 1;
  group.head_dim = group.v_head_dim = static_cast<int>(k);
  const Precision precision{format.weights, format.arithmetic, DType::kBf16};
  const auto ops = lower_step(one_layer(static_cast<int>(n), group, format.arithmetic), precision,
                              1, 1, 0, false);
  KernelForms forms = sum_of_ops(ops, {"o_proj"});
  MEDLEY_CHECK(forms.kernels == 1, "a layer has one output projection");
  forms.weights = format.weights;
  forms.block_scaled = format.block_scaled;
  return forms;
}

KernelForms attention_kernel(const AttentionShape& shape, bool decode) {
  LayerGroup group = one_group();
  group.attention = shape.window > 0 ? AttentionKind::kSliding : AttentionKind::kFull;
  group.window = shape.window;
  group.heads = shape.heads;
  group.kv_heads = shape.kv_heads;
  group.head_dim = group.v_head_dim = shape.head_dim;
  Precision precision;
  precision.kv = shape.kv;
  if (bytes_of(shape.arithmetic) >= 2.0)
    precision.weights = precision.activations = shape.arithmetic;
  const auto ops =
      lower_step(one_layer(shape.head_dim, group, shape.arithmetic), precision, 1, 1, 0, false);
  KernelForms forms = decode ? sum_of_ops(ops, {"attention_decode", "attention_decode_window"})
                             : sum_of_ops(ops, {"attention_prefill", "attention_prefill_window"});
  MEDLEY_CHECK(forms.kernels == 1, "a layer has one attention of each kind");
  forms.dtype = shape.arithmetic;
  forms.weights = shape.kv;
  return forms;
}

std::vector<StepOp> expert_ops(const ExpertShape& shape, const KernelFormat& format) {
  LayerGroup group = one_group();
  group.mixer = MixerKind::kMoe;
  group.ffn_hidden = shape.width;
  group.experts = shape.experts;
  group.experts_per_token = shape.top_k;
  group.gated = shape.gated;
  const Precision precision{format.weights, format.arithmetic, DType::kBf16};
  return lower_step(one_layer(shape.hidden, group, format.arithmetic), precision, 1, 1, 0, false);
}

KernelForms expert_kernels(const ExpertShape& shape, const KernelFormat& format) {
  const std::vector<StepOp> ops = expert_ops(shape, format);
  KernelForms forms = sum_of_ops(ops, {"expert_gate_up", "expert_up", "expert_down"});
  MEDLEY_CHECK(forms.kernels == 2, "experts are two grouped GEMMs");
  forms.weights = format.weights;
  forms.block_scaled = format.block_scaled;
  forms.companion_bytes =
      sum_of_ops(ops, {"expert_permute", "expert_activation", "expert_unpermute"}).bytes;
  return forms;
}

Features token_features(double tokens) {
  Features x{};
  at(x, Feature::kOne) = 1.0;
  at(x, Feature::kTokens) = tokens;
  return x;
}

Features prefill_features(double batch, std::int64_t tokens, std::int64_t prior, int window) {
  Features x = token_features(batch * static_cast<double>(tokens));
  at(x, Feature::kChunkTokens) = at(x, Feature::kTokens);
  at(x, Feature::kChunkPairs) = batch * chunk_pairs(tokens, prior);
  at(x, Feature::kChunkContext) = batch * chunk_context(tokens, prior);
  at(x, Feature::kChunkPairsWindow) = batch * chunk_pairs(tokens, prior, window);
  at(x, Feature::kChunkContextWindow) = batch * chunk_context(tokens, prior, window);
  at(x, Feature::kLogits) = at(x, Feature::kSequences) = batch;
  at(x, Feature::kHasChunks) = 1.0;
  return x;
}

Features decode_features(double batch, std::int64_t length, int window) {
  Features x = token_features(batch);
  at(x, Feature::kDecodes) = at(x, Feature::kLogits) = at(x, Feature::kSequences) = batch;
  at(x, Feature::kDecodeContext) = batch * decode_context(length);
  at(x, Feature::kDecodeContextWindow) = batch * decode_context(length, window);
  at(x, Feature::kHasDecodes) = 1.0;
  return x;
}

double balanced_experts_hit(double tokens, int experts, int top_k) {
  return std::min(double(experts), tokens * top_k);
}

double power_law_experts_hit(double tokens, int experts, int top_k, double exponent) {
  const double rows = tokens * top_k;
  const double most = balanced_experts_hit(tokens, experts, top_k);
  if (rows <= 1.0) return most;
  const bool many = rows > experts;
  const double low = many ? 1.0 : 0.01;
  const double high = many ? std::max(1.0, 0.8 * tokens) : 2.0;
  const double a = 1.0 - exponent;
  const double from = std::pow(low, a);
  const double to = std::pow(high, a);
  std::vector<double> loads;
  double sum = 0.0;
  for (int i = 0; i < experts; ++i) {
    const double u = (i + 0.5) / experts;
    const double x = std::fabs(a) < 1e-9 ? low * std::pow(high / low, u)
                                         : std::pow((to - from) * u + from, 1.0 / a);
    loads.push_back(x);
    sum += x;
  }
  double hit = 0.0;
  for (const double load : loads) hit += load / sum * rows >= 0.5 ? 1.0 : 0.0;
  return std::clamp(hit, 1.0, most);
}

}  // namespace medley
