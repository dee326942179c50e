#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "workloads/hf_config.h"
#include "workloads/model_load.h"

namespace medley {

namespace {

/// Gemma 3 files leave out what equals its configuration class's defaults.
struct Defaults {
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int vocab = 0;
};
constexpr Defaults kGemma3 = {8, 4, 256, 262'208};

/// Builds the layers of a decoder one by one; equal neighbours are joined.
class DecoderReader {
 public:
  DecoderReader(HfConfig& config, ModelSpec& model) : c_(config), m_(model) {}
  void read();

 private:
  bool refuse_unknown_parts();
  void read_heads();
  void read_latent();
  void read_moe();
  void read_recurrence();
  void read_windows();
  void read_layer_types();
  void read_nemotron_pattern();
  void set_attention(LayerGroup& g, int layer);
  void set_mixer(LayerGroup& g, int layer);
  bool is_moe(int layer) const;
  bool is(std::initializer_list<const char*> types) const {
    return std::any_of(types.begin(), types.end(),
                       [&](const char* t) { return c_.model_type == t; });
  }
  double learned_positions() const;

  HfConfig& c_;
  ModelSpec& m_;
  int layers_ = 0;
  LayerGroup base_;  ///< attention of an ordinary layer
  Recurrence recurrence_;
  std::vector<AttentionKind> kinds_;  ///< per layer
  int window_ = 0;
  int dense_width_ = 0;
  int expert_width_ = 0;
  int experts_ = 0;
  int top_k_ = 0;
  int shared_width_ = 0;
  int first_dense_ = 0;
  int moe_step_ = 1;
  std::vector<double> dense_layers_;  ///< listed by index
};

bool DecoderReader::refuse_unknown_parts() {
  const auto refuse = [&](const char* key, const char* what) {
    if (c_.text.has(key)) c_.unsupported(key, what);
    return c_.text.has(key);
  };
  const auto refuse_nonzero = [&](const char* key, const char* what) {
    if (c_.size_or({key}, 0) == 0) return false;
    c_.unsupported(key, what);
    return true;
  };
  return refuse("compress_ratios", "compressed attention is") ||
         refuse("cross_attention_layers", "cross attention into image features is") ||
         refuse_nonzero("hidden_size_per_layer_input", "per-layer embeddings are") ||
         refuse_nonzero("num_kv_shared_layers", "KV sharing between layers is") ||
         (c_.size_or({"word_embed_proj_dim"}, m_.hidden) != m_.hidden &&
          refuse("word_embed_proj_dim", "an embedding narrower than the model is"));
}

void DecoderReader::read_heads() {
  const Defaults d = is({"gemma3", "gemma3_text"}) ? kGemma3 : Defaults{};
  base_.heads = d.heads > 0 ? c_.size_or({"num_attention_heads"}, d.heads, 1)
                            : c_.need({"num_attention_heads", "n_head", "num_heads"});
  const bool multi_query = c_.boolean_or("multi_query", false) && is({"falcon", "gpt_bigcode"}) &&
                           !c_.boolean_or("new_decoder_architecture", false);
  base_.kv_heads = c_.size_or({"num_key_value_heads", "num_kv_heads"},
                              multi_query   ? 1
                              : d.heads > 0 ? d.kv_heads
                                            : base_.heads,
                              1);
  if (const char* key = c_.present({"head_dim", "attention_head_dim"})) {
    base_.head_dim = c_.need({key});
  } else if (d.heads > 0) {
    base_.head_dim = d.head_dim;
  } else if (m_.hidden % base_.heads != 0) {
    c_.text.problem(
        "num_attention_heads",
        fmt::format("hidden size {} is not a multiple of {} heads", m_.hidden, base_.heads),
        "give head_dim");
  } else {
    base_.head_dim = m_.hidden / base_.heads;
  }
  base_.v_head_dim = base_.head_dim;
  base_.output_gate = c_.boolean_or("attn_output_gate", is({"qwen3_next"}));
}

void DecoderReader::read_latent() {
  base_ = LayerGroup{};
  base_.attention = AttentionKind::kLatent;
  base_.heads = c_.need({"num_attention_heads"});
  base_.kv_heads = 1;
  base_.q_lora_rank = c_.size_or({"q_lora_rank"}, 0);
  base_.kv_lora_rank = c_.need({"kv_lora_rank"});
  base_.nope_head_dim = c_.need({"qk_nope_head_dim"});
  base_.rope_head_dim = c_.need({"qk_rope_head_dim"});
  base_.head_dim = base_.nope_head_dim + base_.rope_head_dim;
  base_.v_head_dim = c_.need({"v_head_dim"});
  if (c_.text.has("index_n_heads")) {
    base_.index_heads = c_.need({"index_n_heads"});
    base_.index_head_dim = c_.need({"index_head_dim"});
    base_.window = c_.need({"index_topk"});
  }
}

void DecoderReader::read_moe() {
  experts_ = c_.size_or({"num_local_experts", "num_experts", "n_routed_experts"}, 0);
  const bool four_times = is({"bloom", "falcon", "gpt2", "gptj", "gpt_bigcode"});
  const char* width =
      c_.present({"intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size", "ffn_embed_dim"});
  if (width) {
    dense_width_ = c_.need({width});
  } else if (four_times) {
    dense_width_ = 4 * m_.hidden;
  } else if (experts_ == 0 || !c_.text.has("moe_intermediate_size")) {
    dense_width_ = c_.need({"intermediate_size"});
  }
  if (experts_ == 0) return;
  top_k_ = c_.need({"num_experts_per_tok", "experts_per_token", "top_k_experts"});
  expert_width_ = c_.size_or({"moe_intermediate_size"}, dense_width_, 1);
  const std::int64_t shared =
      std::int64_t{c_.size_or({"n_shared_experts"}, 0)} * std::int64_t{expert_width_};
  if (shared > kMaxModelSize) c_.text.problem("n_shared_experts", "shared experts too wide");
  shared_width_ = static_cast<int>(std::min(shared, kMaxModelSize));
  if (shared_width_ == 0) {
    shared_width_ = c_.size_or({"shared_expert_intermediate_size", "shared_intermediate_size",
                                "moe_shared_expert_intermediate_size"},
                               0);
  }
  if (is({"llama4", "llama4_text"})) {
    shared_width_ = expert_width_;
    dense_width_ = c_.size_or({"intermediate_size_mlp"}, dense_width_, 1);
    moe_step_ = c_.size_or({"interleave_moe_layer_step"}, 1, 1);
  } else if (is({"gemma4", "gemma4_text"})) {
    shared_width_ = dense_width_;  // a dense MLP beside the experts of every layer
  } else {
    moe_step_ = c_.size_or({"decoder_sparse_step"}, 1, 1);
  }
  first_dense_ = c_.size_or({"first_k_dense_replace"}, 0);
  dense_layers_ = c_.text.numbers_or_empty("mlp_only_layers", Range::non_negative());
  if (c_.size_or({"moe_layer_freq"}, 1) != 1) {
    c_.unsupported("moe_layer_freq", "experts in every n-th layer are");
  }
}

void DecoderReader::read_recurrence() {
  constexpr int kDeltaRuleChunk = 64;  // block of the flash-linear-attention kernels
  if (c_.text.has("linear_num_value_heads")) {
    recurrence_ = {c_.need({"linear_num_value_heads"}), c_.need({"linear_value_head_dim"}),
                   c_.need({"linear_key_head_dim"}),    c_.need({"linear_num_key_heads"}),
                   c_.need({"linear_conv_kernel_dim"}), kDeltaRuleChunk};
  } else if (c_.text.has("mamba_num_heads")) {
    recurrence_ = {c_.need({"mamba_num_heads"}), c_.need({"mamba_head_dim"}),
                   c_.need({"ssm_state_size"}),  c_.need({"n_groups", "mamba_n_groups"}),
                   c_.need({"conv_kernel"}),     c_.need({"chunk_size", "mamba_chunk_size"})};
  }
}

void DecoderReader::read_layer_types() {
  const std::vector<std::string> types = c_.text.texts_or_empty("layer_types");
  if (types.empty()) return;
  if (static_cast<int>(types.size()) != layers_) {
    c_.text.problem("layer_types", fmt::format("{} entries for {} layers", types.size(), layers_));
    return;
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    const std::string& t = types[i];
    if (t == "full_attention" || t == "attention") {
      kinds_[i] = base_.attention;
    } else if (t == "sliding_attention" || t == "chunked_attention") {
      kinds_[i] = AttentionKind::kSliding;
    } else if (t == "linear_attention") {
      kinds_[i] = AttentionKind::kLinear;
    } else {
      const std::string where = fmt::format("layer_types/{}", i);
      c_.text.problem("layer_types",
                      fmt::format("layer {}: attention type \"{}\" is not supported", i, t),
                      "known: full_attention, sliding_attention, chunked_attention, "
                      "linear_attention");
      return;
    }
  }
}

void DecoderReader::read_windows() {
  const auto slide_where = [&](auto slides) {
    for (int i = 0; i < layers_; ++i) {
      if (slides(i)) kinds_[static_cast<std::size_t>(i)] = AttentionKind::kSliding;
    }
  };
  const bool typed = c_.text.has("layer_types");
  if (const int interval = c_.size_or({"full_attention_interval"}, 0); interval > 0 && !typed) {
    for (int i = 0; i < layers_; ++i) {
      if ((i + 1) % interval != 0) kinds_[static_cast<std::size_t>(i)] = AttentionKind::kLinear;
    }
  }
  if (is({"llama4", "llama4_text"})) {
    // Chunked attention sees on average half its block; counted as a window of one block.
    window_ = c_.size_or({"attention_chunk_size"}, 0);
    constexpr int kGlobalEvery = 4;  // no_rope_layers' default
    if (window_ > 0 && !typed) slide_where([](int i) { return (i + 1) % kGlobalEvery != 0; });
    return;
  }
  window_ = c_.size_or({"sliding_window"}, 0);
  if (window_ == 0 || typed || !c_.boolean_or("use_sliding_window", true)) return;
  if (is({"gemma2", "gpt_oss"})) {
    slide_where([](int i) { return i % 2 == 0; });
  } else if (is({"gemma3", "gemma3_text", "gemma4", "gemma4_text", "cohere2", "exaone4"})) {
    const int pattern = c_.size_or({"sliding_window_pattern", "_sliding_window_pattern"},
                                   is({"cohere2", "exaone4"}) ? 4 : 6, 1);
    slide_where([&](int i) { return (i + 1) % pattern != 0; });
  } else if (is({"qwen2", "qwen3", "qwen2_moe", "qwen3_moe", "qwen2_vl", "qwen2_5_vl"})) {
    const int from = c_.size_or({"max_window_layers"}, layers_);
    slide_where([&](int i) { return i >= from; });
  } else {
    slide_where([](int) { return true; });
  }
}

void DecoderReader::set_attention(LayerGroup& g, int layer) {
  const AttentionKind kind = kinds_[static_cast<std::size_t>(layer)];
  if (kind == AttentionKind::kLinear) {
    g.attention = kind;
    g.recurrent = recurrence_;
    return;
  }
  g = base_;
  g.attention = kind;
  if (kind == AttentionKind::kSliding) g.window = window_;
  const bool global = kind == AttentionKind::kFull && c_.text.has("global_head_dim");
  if (!global) return;
  g.head_dim = c_.need({"global_head_dim"});
  g.v_head_dim = g.head_dim;
  g.kv_heads = c_.size_or({"num_global_key_value_heads"}, g.kv_heads, 1);
  g.value_from_key = c_.boolean_or("attention_k_eq_v", false);
}

bool DecoderReader::is_moe(int layer) const {
  return experts_ > 0 && layer >= first_dense_ && (layer + 1) % moe_step_ == 0 &&
         std::find(dense_layers_.begin(), dense_layers_.end(), layer) == dense_layers_.end();
}

void DecoderReader::set_mixer(LayerGroup& g, int layer) {
  g.gated = c_.family->gated || c_.boolean_or("mlp_gated_linear_units", false);
  if (!is_moe(layer)) {
    g.mixer = MixerKind::kDense;
    g.ffn_hidden = dense_width_;
    if (dense_width_ == 0) c_.need({"intermediate_size"});
    return;
  }
  g.mixer = MixerKind::kMoe;
  g.ffn_hidden = expert_width_;
  g.experts = experts_;
  g.experts_per_token = top_k_;
  g.shared_experts_hidden = shared_width_;
}

void DecoderReader::read_nemotron_pattern() {
  const std::string pattern = c_.text.text("hybrid_override_pattern");
  if (static_cast<int>(pattern.size()) != layers_) {
    c_.text.problem("hybrid_override_pattern",
                    fmt::format("{} letters for {} layers", pattern.size(), layers_));
    return;
  }
  for (const char letter : pattern) {
    LayerGroup g;
    g.gated = false;
    g.mixer = MixerKind::kNone;
    if (letter == 'M') {
      g.attention = AttentionKind::kStateSpace;
      g.recurrent = recurrence_;
    } else if (letter == '*') {
      g = base_;
      g.gated = false;
      g.mixer = MixerKind::kNone;
    } else if (letter == '-' || letter == 'E') {
      g.attention = AttentionKind::kNone;
      g.mixer = letter == 'E' ? MixerKind::kMoe : MixerKind::kDense;
      g.ffn_hidden = letter == 'E' ? expert_width_ : dense_width_;
      if (letter == 'E') {
        g.experts = experts_;
        g.experts_per_token = top_k_;
        g.shared_experts_hidden = shared_width_;
      }
    } else {
      c_.text.problem("hybrid_override_pattern", fmt::format("unknown layer letter '{}'", letter),
                      "M Mamba-2, * attention, - MLP, E experts");
      return;
    }
    g.count = 1;
    append_layers(m_.layers, g);
  }
}

double DecoderReader::learned_positions() const {
  const double rows = is({"opt"}) ? m_.max_positions + 2.0  // OPT's offset
                      : is({"gpt2", "gpt_bigcode"}) || c_.model_type.empty() ? m_.max_positions
                                                                             : 0.0;
  return rows * m_.hidden;
}

void DecoderReader::read() {
  m_.family = "decoder";
  m_.hidden = c_.need({"hidden_size", "n_embd", "d_model", "hidden_dim"});
  layers_ = c_.need({"num_hidden_layers", "n_layer", "num_layers", "n_layers"});
  m_.vocab = is({"gemma3", "gemma3_text"}) ? c_.size_or({"vocab_size"}, kGemma3.vocab, 1)
                                           : c_.need({"vocab_size"});
  if (layers_ > kMostLayers) {
    c_.text.problem(c_.present({"num_hidden_layers", "n_layer", "num_layers", "n_layers"}),
                    fmt::format("must be at most {}", kMostLayers));
    return;
  }
  if (refuse_unknown_parts()) return;
  if (c_.text.has("kv_lora_rank")) {
    read_latent();
  } else {
    read_heads();
  }
  read_moe();
  read_recurrence();
  kinds_.assign(static_cast<std::size_t>(layers_), base_.attention);
  if (is({"nemotron_h"})) {
    read_nemotron_pattern();
    return;
  }
  read_windows();
  read_layer_types();
  const bool any_linear =
      std::find(kinds_.begin(), kinds_.end(), AttentionKind::kLinear) != kinds_.end();
  if (any_linear && recurrence_.heads == 0) c_.need({"linear_num_value_heads"});
  const bool any_window =
      std::find(kinds_.begin(), kinds_.end(), AttentionKind::kSliding) != kinds_.end();
  if (any_window && window_ == 0) c_.need({"sliding_window"});
  for (int i = 0; i < layers_; ++i) {
    LayerGroup g;
    set_attention(g, i);
    set_mixer(g, i);
    g.count = 1;
    append_layers(m_.layers, g);
  }
  m_.other_parameters = learned_positions() + hf_vision_parameters(c_);
}

}  // namespace

void read_hf_decoder(HfConfig& config, ModelSpec& model) {
  DecoderReader(config, model).read();
}

}  // namespace medley
