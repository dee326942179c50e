#include "workloads/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "workloads/model_load.h"

namespace medley {

namespace {
using Json = nlohmann::ordered_json;

constexpr HfKind kDec = HfKind::kDecoder;
//                                   tied   gated  rotary
constexpr HfFamily kFamilies[] = {
    {"llama", kDec, false, true, true},
    {"llama4", kDec, false, true, true},
    {"llama4_text", kDec, false, true, true},
    {"mistral", kDec, false, true, true},
    {"mistral3", kDec, false, true, true},
    {"mixtral", kDec, false, true, true},
    {"qwen2", kDec, false, true, true},
    {"qwen2_moe", kDec, false, true, true},
    {"qwen2_vl", kDec, false, true, true},
    {"qwen2_5_vl", kDec, false, true, true},
    {"qwen3", kDec, false, true, true},
    {"qwen3_moe", kDec, false, true, true},
    {"qwen3_next", kDec, false, true, true},
    {"qwen3_vl", kDec, false, true, true},
    {"qwen3_vl_text", kDec, false, true, true},
    {"qwen3_vl_moe", kDec, false, true, true},
    {"qwen3_vl_moe_text", kDec, false, true, true},
    {"qwen3_5", kDec, false, true, true},
    {"qwen3_5_text", kDec, false, true, true},
    {"qwen3_5_moe", kDec, false, true, true},
    {"qwen3_5_moe_text", kDec, false, true, true},
    {"gemma", kDec, true, true, true},
    {"gemma2", kDec, true, true, true},
    {"gemma3", kDec, true, true, true},
    {"gemma3_text", kDec, true, true, true},
    {"gemma4", kDec, true, true, true},
    {"gemma4_text", kDec, true, true, true},
    {"phi", kDec, false, false, true},
    {"phi3", kDec, false, true, true},
    {"phimoe", kDec, false, true, true},
    {"gpt_oss", kDec, false, true, true},
    {"deepseek_v2", kDec, false, true, true},
    {"deepseek_v3", kDec, false, true, true},
    {"deepseek_v32", kDec, false, true, true},
    {"kimi_k2", kDec, false, true, true},
    {"kimi_k25", kDec, false, true, true},
    {"glm4", kDec, false, true, true},
    {"glm4_moe", kDec, false, true, true},
    {"glm_moe_dsa", kDec, false, true, true},
    {"minimax_m2", kDec, false, true, true},
    {"nemotron", kDec, false, false, true},
    {"nemotron_h", kDec, false, false, false},
    {"granite", kDec, false, true, true},
    {"granitemoe", kDec, false, true, true},
    {"olmo2", kDec, false, true, true},
    {"olmoe", kDec, false, true, true},
    {"cohere", kDec, true, true, true},
    {"cohere2", kDec, true, true, true},
    {"exaone4", kDec, false, true, true},
    {"internlm2", kDec, false, true, true},
    {"smollm3", kDec, true, true, true},
    {"stablelm", kDec, false, true, true},
    {"starcoder2", kDec, true, false, true},
    {"falcon", kDec, true, false, true},
    {"bloom", kDec, true, false, false},
    {"opt", kDec, true, false, false},
    {"gpt2", kDec, true, false, false},
    {"gpt_bigcode", kDec, true, false, false},
    {"gptj", kDec, false, false, true},
    {"gpt_neox", kDec, false, false, true},
    {"bert", HfKind::kEncoder, true, false, false},
    {"roberta", HfKind::kEncoder, true, false, false},
    {"xlm-roberta", HfKind::kEncoder, true, false, false},
    {"vit", HfKind::kVit, false, false, false},
    {"whisper", HfKind::kWhisper, true, false, false},
    {"resnet", HfKind::kResnet, false, false, false},
};
/// llm-analysis dumps without a model_type: plain GPT blocks, embedding and head counted apart.
constexpr HfFamily kReduced = {"", kDec, false, false, false};

/// Known by name, with a part we do not model.
struct Unsupported {
  const char* model_type;
  const char* part;
};
constexpr Unsupported kUnsupported[] = {
    {"deepseek_v4", "compressed attention (compress_ratios) with hyper-connections (hc_mult)"},
    {"mllama", "cross attention into image features"},
    {"gemma3n", "per-layer embeddings"},
    {"t5", "relative-position encoder-decoders"},
    {"mamba", "selective scans of the first Mamba generation"},
    {"jamba", "selective scans of the first Mamba generation"},
    {"rwkv", "RWKV time mixing"},
};

/// The member that holds the language model of a multimodal config, "" when none does.
std::string text_member(const Json& root) {
  for (const char* key : {"text_config", "llm_config", "language_config"}) {
    if (root.contains(key) && root[key].is_object()) return key;
  }
  return "";
}

/// "config.json" names nothing: its folder does.
std::string name_from_path(const std::string& file) {
  const std::filesystem::path path(file);
  const std::string stem = path.stem().string();
  const std::string folder = path.parent_path().filename().string();
  return stem == "config" && !folder.empty() ? folder : stem;
}

void read_dtype(HfConfig& c, ModelSpec& m) {
  for (ObjectReader* r : {&c.text, &c.root}) {
    for (const char* key : {"dtype", "torch_dtype"}) {
      const std::optional<std::string> text = r->maybe_text(key);
      if (!text) continue;
      if (const std::optional<DType> d = parse_dtype(*text)) {
        m.dtype = *d;
      } else {
        r->problem(key, fmt::format("unknown number format \"{}\"", *text),
                   suggest(*text, {"bfloat16", "float16", "float32"}));
      }
      return;
    }
  }
}

/// Finds the family; false (with a problem) when the file is of no kind we read.
bool find_family(HfConfig& c) {
  if (c.root.has("_class_name")) {
    c.root.problem(
        "_class_name",
        fmt::format("diffusion models ({}) are not supported", c.root.text("_class_name")),
        "language models, encoders, ViT, Whisper and ResNet are");
    return false;
  }
  const bool nested = c.text.has("model_type");
  ObjectReader& holder = nested ? c.text : c.root;
  c.model_type = holder.text_or("model_type", "");
  if (c.model_type.empty()) {
    const bool reduced = c.root.has("n_head") && c.root.has("hidden_dim");
    if (reduced) {
      c.family = &kReduced;
    } else {
      c.root.problem("model_type", "missing required key",
                     "neither a Hugging Face config.json nor a description with \"schema\": "
                     "\"medley.model/1\"");
    }
    return reduced;
  }
  c.family = find_hf_family(c.model_type);
  const auto* refused =
      std::find_if(std::begin(kUnsupported), std::end(kUnsupported),
                   [&](const Unsupported& u) { return c.model_type == u.model_type; });
  if (refused != std::end(kUnsupported)) {
    holder.problem("model_type", fmt::format("model_type \"{}\" needs {}, which is not supported",
                                             c.model_type, refused->part));
  } else if (!c.family) {
    holder.problem("model_type", fmt::format("unknown model_type \"{}\"", c.model_type),
                   suggest(c.model_type, hf_model_types()) +
                       "; another architecture can be described in our own schema");
  }
  return c.family != nullptr;
}
}  // namespace

const HfFamily* find_hf_family(const std::string& model_type) {
  const auto* it = std::find_if(std::begin(kFamilies), std::end(kFamilies),
                                [&](const HfFamily& f) { return model_type == f.model_type; });
  return it == std::end(kFamilies) ? nullptr : it;
}
std::vector<std::string> hf_model_types() {
  std::vector<std::string> all;
  for (const HfFamily& f : kFamilies) all.emplace_back(f.model_type);
  return all;
}

HfConfig::HfConfig(const Json& root_node, const Json& text_node, const std::string& text_pointer,
                   const std::string& file, Problems& problems)
    : root(root_node, file, "", problems), text(text_node, file, text_pointer, problems) {}

const char* HfConfig::present(Keys keys) const {
  for (const char* key : keys) {
    if (text.has(key)) return key;
  }
  return nullptr;
}
int HfConfig::need(Keys keys, std::int64_t min) {
  const char* key = present(keys);
  return static_cast<int>(text.integer(key ? key : *keys.begin(), min, kMaxModelSize));
}
int HfConfig::size_or(Keys keys, int fallback, std::int64_t min) {
  const char* key = present(keys);
  return key ? static_cast<int>(text.integer(key, min, kMaxModelSize)) : fallback;
}
bool HfConfig::boolean_or(const char* key, bool fallback) {
  if (text.has(key)) return text.boolean_or(key, fallback);
  return root.boolean_or(key, fallback);
}
void HfConfig::unsupported(const char* key, std::string what, std::string hint) {
  text.problem(key, what + " not supported", std::move(hint));
}

ModelSpec read_hf_config(const Json& root, const std::string& file, Problems& problems) {
  const std::string member = text_member(root);
  HfConfig c(root, member.empty() ? root : root[member], member.empty() ? "" : "/" + member, file,
             problems);
  ModelSpec m;
  m.file = file;
  m.source = file;
  m.name = name_from_path(file);
  if (!find_family(c)) return m;
  const std::string origin = c.root.text_or("_name_or_path", "");
  if (origin.find('/') != std::string::npos && origin.find_first_of("./") != 0) {
    m.aliases.push_back(origin);
  }
  read_dtype(c, m);
  m.tied_embeddings = c.boolean_or("tie_word_embeddings", c.family->tied);
  m.rotary = c.family->rotary;
  m.max_positions =
      c.size_or({"max_position_embeddings", "n_positions", "max_seq_len", "seq_length"}, 0);
  switch (c.family->kind) {
    case HfKind::kDecoder:
      read_hf_decoder(c, m);
      break;
    case HfKind::kEncoder:
      read_hf_encoder(c, m);
      break;
    case HfKind::kVit:
      read_hf_vit(c, m);
      break;
    case HfKind::kWhisper:
      read_hf_whisper(c, m);
      break;
    case HfKind::kResnet:
      read_hf_resnet(c, m);
      break;
  }
  read_hf_quantization(c, m);
  if (problems.empty()) check_model(m, member.empty() ? "" : "/" + member, problems);
  return m;
}

}  // namespace medley
