#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/core/json_reader.h"
#include "workloads/model_load.h"

namespace medley {

namespace {
using Json = nlohmann::ordered_json;

constexpr const char* kSchema = "medley.model/1";

int size(ObjectReader& r, const char* key, std::int64_t min = 1) {
  return static_cast<int>(r.integer(key, min, kMaxModelSize));
}
int size_or(ObjectReader& r, const char* key, int fallback, std::int64_t min = 1) {
  return static_cast<int>(r.integer_or(key, fallback, min, kMaxModelSize));
}

DType dtype(ObjectReader& r, const char* key) {
  const std::string text = r.text(key);
  const std::optional<DType> d = parse_dtype(text);
  if (!d && r.has(key)) {
    r.problem(key, fmt::format("unknown number format \"{}\"", text), suggest(text, dtype_names()));
  }
  return d.value_or(DType::kBf16);
}

void read_heads(ObjectReader& r, LayerGroup& g) {
  g.heads = size(r, "num_heads");
  g.kv_heads = size_or(r, "num_kv_heads", g.heads);
  g.head_dim = size(r, "head_dim");
  g.v_head_dim = size_or(r, "v_head_dim", g.head_dim);
  g.causal = r.boolean_or("causal", true);
  g.cross_attention = r.boolean_or("cross_attention", false);
  g.output_gate = r.boolean_or("output_gate", false);
  g.value_from_key = r.boolean_or("value_from_key", false);
}

void read_latent(ObjectReader& r, LayerGroup& g) {
  g.heads = size(r, "num_heads");
  g.kv_heads = 1;
  g.q_lora_rank = size_or(r, "q_lora_rank", 0);
  g.kv_lora_rank = size(r, "kv_lora_rank");
  g.nope_head_dim = size(r, "qk_nope_head_dim");
  g.rope_head_dim = size(r, "qk_rope_head_dim");
  g.head_dim = g.nope_head_dim + g.rope_head_dim;
  g.v_head_dim = size(r, "v_head_dim");
  if (r.has("index_n_heads")) {
    g.index_heads = size(r, "index_n_heads");
    g.index_head_dim = size(r, "index_head_dim");
    g.window = size(r, "index_topk");
  }
}

void read_recurrent(ObjectReader& r, LayerGroup& g) {
  g.recurrent.heads = size(r, "num_heads");
  g.recurrent.head_dim = size(r, "head_dim");
  g.recurrent.state_dim = size(r, "state_dim");
  g.recurrent.groups = size(r, "num_groups");
  g.recurrent.conv_kernel = size_or(r, "conv_kernel", 0, 0);
  g.recurrent.chunk = size(r, "chunk_size");
}

void read_attention(ObjectReader r, LayerGroup& g) {
  const std::vector<std::string> kinds = {"none",   "full",   "sliding",
                                          "latent", "linear", "state_space"};
  const std::string kind = r.choice("kind", kinds);
  if (kind == "none") {
    g.attention = AttentionKind::kNone;
  } else if (kind == "latent") {
    g.attention = AttentionKind::kLatent;
    read_latent(r, g);
  } else if (kind == "linear" || kind == "state_space") {
    g.attention = kind == "linear" ? AttentionKind::kLinear : AttentionKind::kStateSpace;
    read_recurrent(r, g);
  } else {
    read_heads(r, g);
    if (kind == "sliding") {
      g.attention = AttentionKind::kSliding;
      g.window = size(r, "sliding_window");
    }
  }
  r.finish();
}

void read_ffn(ObjectReader r, LayerGroup& g) {
  const std::string kind = r.choice("kind", {"none", "dense", "moe"});
  if (kind == "none") {
    g.mixer = MixerKind::kNone;
    g.gated = false;
  } else {
    g.ffn_hidden = size(r, "intermediate_size");
    g.gated = r.boolean_or("gated", true);
  }
  if (kind == "moe") {
    g.mixer = MixerKind::kMoe;
    g.experts = size(r, "num_experts");
    g.experts_per_token = size(r, "num_experts_per_tok");
    g.shared_experts_hidden = size_or(r, "shared_expert_intermediate_size", 0, 0);
  }
  r.finish();
}

std::int64_t layer_count(const std::vector<LayerGroup>& layers) {
  std::int64_t total = 0;
  for (const LayerGroup& g : layers) total += g.count;
  return total;
}

/// Either one group ({"count", "attention", "ffn"}) or a repeated pattern of them
/// ({"repeat", "layers"}), one level deep.
void read_group(ObjectReader r, std::vector<LayerGroup>& out, bool nested) {
  if (!nested && r.has("repeat")) {
    const int repeat = size(r, "repeat");
    std::vector<LayerGroup> pattern;
    r.each_element("layers",
                   [&](std::size_t, ObjectReader e) { read_group(std::move(e), pattern, true); });
    if (pattern.empty()) r.problem("layers", "a repeated pattern needs at least one layer group");
    if (layer_count(out) + repeat * layer_count(pattern) > kMostLayers) {
      r.problem("repeat", fmt::format("more than {} layers", kMostLayers));
    } else {
      for (int i = 0; i < repeat; ++i) {
        for (const LayerGroup& g : pattern) append_layers(out, g);
      }
    }
    r.finish();
    return;
  }
  LayerGroup g;
  g.count = size(r, "count");
  read_attention(r.object("attention"), g);
  read_ffn(r.object("ffn"), g);
  r.finish();
  if (layer_count(out) + g.count > kMostLayers) {
    r.problem("count", fmt::format("more than {} layers", kMostLayers));
    return;
  }
  append_layers(out, g);
}

void read_quantization(ObjectReader r, ModelSpec& m) {
  m.quantization = dtype(r, "dtype");
  if (r.choice_or("scope", {"linear", "experts"}, "linear") == "experts") {
    m.quantization_scope = QuantizationScope::kExperts;
  }
  m.quantization_group = size_or(r, "group_size", 0);
  r.finish();
}
}  // namespace

ModelSpec read_zoo_model(const Json& root, const std::string& file, Problems& problems) {
  ObjectReader r(root, file, "", problems);
  ModelSpec m;
  m.file = file;
  if (const std::string schema = r.text("schema"); schema != kSchema) {
    r.problem("schema", fmt::format("unknown schema \"{}\"", schema),
              fmt::format("this version reads \"{}\"", kSchema));
    return m;
  }
  m.name = r.text("name");
  m.family = r.choice("family", {"decoder", "encoder", "encoder_decoder", "cnn"});
  m.aliases = r.texts_or_empty("aliases");
  m.source = r.text("source");
  m.dtype = dtype(r, "dtype");
  if (auto q = r.maybe_object("quantization")) read_quantization(*q, m);
  m.fp8_block_scaled = r.boolean_or("fp8_block_scaled", false);
  m.other_parameters = r.number_or("other_parameters", 0.0, Range::non_negative());
  m.published_parameters = r.number_or("published_parameters", 0.0, Range::non_negative());
  if (m.family == "cnn") {
    m.flops_per_item = r.number("flops_per_item", Range::positive());
    r.finish();
    return m;
  }
  m.hidden = size(r, "hidden_size");
  m.vocab = m.family == "encoder" ? r.integer_or("vocab_size", 0, 0, kMaxModelSize)
                                  : r.integer("vocab_size", 1, kMaxModelSize);
  m.tied_embeddings = r.boolean_or("tie_word_embeddings", false);
  m.rotary = r.boolean_or("rotary", true);
  m.max_positions = size_or(r, "max_position_embeddings", 0);
  r.each_element("layers",
                 [&](std::size_t, ObjectReader e) { read_group(std::move(e), m.layers, false); });
  if (m.layers.empty()) r.problem("layers", "at least one layer group is needed");
  r.finish();
  if (problems.empty()) check_model(m, "/layers", problems);
  return m;
}

}  // namespace medley
