#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "workloads/hf_config.h"
#include "workloads/model_load.h"

namespace medley {

namespace {
LayerGroup encoder_layers(int count, int hidden, int heads, int ffn) {
  LayerGroup g;
  g.count = count;
  g.causal = false;
  g.heads = heads;
  g.kv_heads = heads;
  g.head_dim = hidden / std::max(1, heads);
  g.v_head_dim = g.head_dim;
  g.ffn_hidden = ffn;
  g.gated = false;
  return g;
}

void check_heads(HfConfig& c, const char* key, int hidden, int heads) {
  if (hidden % std::max(1, heads) == 0) return;
  c.text.problem(key, fmt::format("hidden size {} is not a multiple of {} heads", hidden, heads));
}

double count_block(double hidden, double ffn) {
  return 4.0 * hidden * hidden + 2.0 * hidden * ffn;
}
}  // namespace

void read_hf_encoder(HfConfig& c, ModelSpec& m) {
  m.family = "encoder";
  m.hidden = c.need({"hidden_size"});
  m.vocab = c.need({"vocab_size"});
  const int heads = c.need({"num_attention_heads"});
  check_heads(c, "num_attention_heads", m.hidden, heads);
  const double h = m.hidden;
  m.layers.push_back(encoder_layers(c.need({"num_hidden_layers"}), m.hidden, heads,
                                    c.need({"intermediate_size"})));
  // Position and segment tables, and the pooler or masked-language-model transform.
  m.other_parameters = (m.max_positions + c.size_or({"type_vocab_size"}, 2)) * h + h * h;
}

void read_hf_vit(HfConfig& c, ModelSpec& m) {
  m.family = "encoder";
  m.hidden = c.need({"hidden_size"});
  const int heads = c.need({"num_attention_heads"});
  check_heads(c, "num_attention_heads", m.hidden, heads);
  m.layers.push_back(encoder_layers(c.need({"num_hidden_layers"}), m.hidden, heads,
                                    c.need({"intermediate_size"})));
  const double patch = c.need({"patch_size"});
  const double side = c.need({"image_size"}) / patch;
  const double tokens = side * side + 1.0;  // the class token
  m.max_positions = static_cast<int>(tokens);
  m.tied_embeddings = false;
  m.other_parameters = (c.need({"num_channels"}) * patch * patch + tokens) * m.hidden;
}

void read_hf_whisper(HfConfig& c, ModelSpec& m) {
  m.family = "encoder_decoder";
  m.hidden = c.need({"d_model"});
  m.vocab = c.need({"vocab_size"});
  const int encoder_heads = c.need({"encoder_attention_heads"});
  const int decoder_heads = c.need({"decoder_attention_heads"});
  check_heads(c, "encoder_attention_heads", m.hidden, encoder_heads);
  check_heads(c, "decoder_attention_heads", m.hidden, decoder_heads);
  m.layers.push_back(encoder_layers(c.need({"encoder_layers"}), m.hidden, encoder_heads,
                                    c.need({"encoder_ffn_dim"})));
  LayerGroup decoder = encoder_layers(c.need({"decoder_layers"}), m.hidden, decoder_heads,
                                      c.need({"decoder_ffn_dim"}));
  decoder.causal = true;
  decoder.cross_attention = true;
  m.layers.push_back(decoder);
  m.max_positions = c.need({"max_target_positions"});
  // Two convolutions of width 3 over the mel bins, and both position tables.
  const double h = m.hidden;
  m.other_parameters = 3.0 * h * (c.need({"num_mel_bins"}) + h) +
                       h * (c.need({"max_source_positions"}) + m.max_positions);
}

namespace {
/// Convolutions of a residual network, summed: weights and multiply-adds per image.
struct ConvSum {
  double parameters = 0.0;
  double multiply_adds = 0.0;
  void add(double in, double out, double kernel, double side) {
    parameters += in * out * kernel * kernel;
    multiply_adds += in * out * kernel * kernel * side * side;
  }
};
}  // namespace

void read_hf_resnet(HfConfig& c, ModelSpec& m) {
  // Bottleneck residual network (arXiv 1512.03385) on 224 x 224 images: a 7x7/2 stem and 3x3/2
  // pooling; each block 1x1, 3x3, 1x1 with a quarter of the width inside, the 3x3 carrying the
  // stage's stride (the "v1.5" placement); a 1x1 projection on each stage's first block.
  m.family = "cnn";
  if (c.text.text("layer_type") != "bottleneck") {
    c.unsupported("layer_type", "residual networks of other than bottleneck blocks are");
    return;
  }
  const std::vector<double> depths = c.text.numbers_or_empty("depths", Range::at_least(1.0));
  const std::vector<double> widths = c.text.numbers_or_empty("hidden_sizes", Range::at_least(4.0));
  if (depths.empty() || depths.size() != widths.size()) {
    c.text.problem("depths", "depths and hidden_sizes must be lists of the same length");
    return;
  }
  constexpr double kClasses = 1000.0;
  constexpr double kImage = 224.0;
  ConvSum sum;
  double in = c.need({"embedding_size"});
  double side = kImage / 2.0;
  sum.add(c.need({"num_channels"}), in, 7.0, side);
  side /= 2.0;
  for (std::size_t stage = 0; stage < depths.size(); ++stage) {
    const double out = widths[stage];
    const double inner = out / 4.0;
    const double stride = stage > 0 || c.boolean_or("downsample_in_first_stage", false) ? 2.0 : 1.0;
    sum.add(in, inner, 1.0, side);
    side /= stride;
    sum.add(inner, inner, 3.0, side);
    sum.add(inner, out, 1.0, side);
    sum.add(in, out, 1.0, side);
    for (double block = 1.0; block < depths[stage]; block += 1.0) {
      sum.add(out, inner, 1.0, side);
      sum.add(inner, inner, 3.0, side);
      sum.add(inner, out, 1.0, side);
    }
    in = out;
  }
  sum.add(in, kClasses, 1.0, 1.0);
  m.other_parameters = sum.parameters;
  m.flops_per_item = 2.0 * sum.multiply_adds;
}

double hf_vision_parameters(HfConfig& c) {
  const std::optional<ObjectReader> found = c.root.maybe_object("vision_config");
  if (!found) return 0.0;
  ObjectReader vision = *found;
  const auto first = [&](std::initializer_list<const char*> keys) {
    for (const char* key : keys) {
      if (vision.has(key)) return vision.number(key, Range::non_negative());
    }
    return 0.0;
  };
  const double hidden = first({"hidden_size", "vt_hidden_size"});
  const double ffn = first({"intermediate_size", "vt_intermediate_size"});
  const double depth = first({"depth", "num_hidden_layers", "vt_num_hidden_layers"});
  const double patch = first({"patch_size"});
  const double channels = vision.has("in_channels") ? first({"in_channels"}) : 3.0;
  return depth * count_block(hidden, ffn) + channels * patch * patch * hidden;
}

namespace {
std::optional<DType> integer_format(double bits) {
  if (bits == 4.0) return DType::kInt4;
  if (bits == 8.0) return DType::kInt8;
  return std::nullopt;
}

int group_size(ObjectReader& r) {
  return static_cast<int>(r.maybe_integer("group_size", -1, kMaxModelSize).value_or(0));
}

/// compressed-tensors keeps the format of each group of layers; the first group's is taken.
std::optional<DType> compressed_tensors(ObjectReader& q, ModelSpec& m) {
  std::optional<DType> format;
  q.each_member("config_groups", [&](const std::string&, ObjectReader group) {
    std::optional<ObjectReader> w = group.maybe_object("weights");
    if (!w || format) return;
    const double bits = w->number_or("num_bits", 8.0);
    m.quantization_group = group_size(*w);
    const bool real = w->text_or("type", "int") == "float";
    format = !real         ? integer_format(bits)
             : bits == 4.0 ? std::optional(DType::kFp4)
             : bits == 8.0 ? std::optional(DType::kFp8)
                           : std::nullopt;
  });
  return format;
}

std::optional<DType> quantized_format(ObjectReader& q, const std::string& method, ModelSpec& m) {
  if (method == "compressed-tensors") return compressed_tensors(q, m);
  if (method == "awq" || method == "gptq") {
    m.quantization_group = group_size(q);
    return integer_format(q.number_or("bits", 4.0));
  }
  if (method == "bitsandbytes") {
    return q.boolean_or("load_in_4bit", false) ? DType::kInt4 : DType::kInt8;
  }
  if (method == "modelopt") {
    return q.text_or("quant_algo", "FP8") == "FP8" ? DType::kFp8 : DType::kFp4;
  }
  return parse_dtype(method);
}
}  // namespace

void read_hf_quantization(HfConfig& c, ModelSpec& m) {
  std::optional<ObjectReader> found = c.text.maybe_object("quantization_config");
  if (!found) found = c.root.maybe_object("quantization_config");
  if (!found) return;
  ObjectReader q = *found;
  const std::string method = q.text_or("quant_method", "");
  m.quantization = quantized_format(q, method, m);
  m.fp8_block_scaled = m.quantization == DType::kFp8 && q.has("weight_block_size");
  m.quantization_group = std::max(0, m.quantization_group);  // -1: one scale per row
  if (!m.quantization) {
    q.problem(
        "quant_method", fmt::format("quantisation \"{}\" is not supported", method),
        "known: fp8, fbgemm_fp8, mxfp4, compressed-tensors, awq, gptq, bitsandbytes, modelopt");
    return;
  }
  // Attention left out means that only the experts are quantised.
  for (const char* key : {"modules_to_not_convert", "ignore"}) {
    for (const std::string& module : q.texts_or_empty(key)) {
      if (module.find("self_attn") != std::string::npos && m.experts() > 0) {
        m.quantization_scope = QuantizationScope::kExperts;
      }
    }
  }
}

}  // namespace medley
