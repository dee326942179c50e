#include <doctest/doctest.h>

#include <algorithm>

#include "sim/core/error.h"
#include "tests/support/models.h"
#include "tests/support/scratch_directory.h"

using namespace medley;

namespace {
const ScratchDirectory& scratch() {
  static const ScratchDirectory directory;
  return directory;
}
ModelSpec load_text(const std::string& text) {
  return load_model(scratch().write("config.json", text));
}
/// The one message `text` is refused with, without the path.
std::string refusal(const std::string& text) {
  const std::string path = scratch().write("config.json", text);
  try {
    load_model(path);
  } catch (const InputError& e) {
    std::string message = e.what();
    for (std::size_t at = message.find(path); at != std::string::npos; at = message.find(path)) {
      message.erase(at, path.size());
    }
    return message;
  }
  return "accepted";
}
/// A Llama-like config with extra members (which may not repeat the ones here).
std::string llama(const std::string& extra, const std::string& heads = "8") {
  return R"({"model_type": "llama", "hidden_size": 512, "num_hidden_layers": 4,
    "num_attention_heads": )" +
         heads + R"(, "intermediate_size": 1024, "vocab_size": 1000)" + extra + "}";
}
std::string zoo(const std::string& attention, const std::string& ffn,
                const std::string& extra = "") {
  return R"({"schema": "medley.model/1", "name": "x", "family": "decoder", "source": "none",
    "dtype": "bf16", "hidden_size": 512, "vocab_size": 1000)" +
         extra + R"(, "layers": [{"count": 2, "attention": )" + attention + R"(, "ffn": )" + ffn +
         "}]}";
}
const std::string kHeads = R"({"kind": "full", "num_heads": 8, "num_kv_heads": 2, "head_dim": 64})";
const std::string kDense = R"({"kind": "dense", "intermediate_size": 1024})";
}  // namespace

TEST_CASE("Hugging Face names and defaults") {
  SUBCASE("KV heads default to the heads, head_dim to hidden / heads, the name to the folder") {
    const ModelSpec m = load_text(llama(""));
    CHECK(m.layers.size() == 1);
    CHECK(m.layers[0].kv_heads == 8);
    CHECK(m.layers[0].head_dim == 64);
    CHECK(m.layers[0].gated);
    CHECK(!m.tied_embeddings);
    CHECK(m.dtype == DType::kBf16);
    CHECK(m.name == scratch().path().substr(scratch().path().rfind('/') + 1));
  }
  SUBCASE("unknown keys, null and list values are no matter") {
    const ModelSpec m = load_text(llama(
        R"(, "sliding_window": null, "eos_token_id": [1, 2], "rope_scaling": {"factor": Infinity},
        "banner": "say \"NaN\"", "x": -Infinity, "y": NaN, "torch_dtype": "float16")"));
    CHECK(m.layers[0].attention == AttentionKind::kFull);
    CHECK(m.dtype == DType::kFp16);
  }
  SUBCASE("GPT-2 names") {
    const ModelSpec m = load_text(
        R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257,
            "n_positions": 1024})");
    CHECK(m.layers[0].ffn_hidden == 3072);
    CHECK(!m.layers[0].gated);
    CHECK(m.tied_embeddings);
    CHECK(!m.rotary);
    // GPT-2 small: 124 M parameters.
    CHECK(std::abs(total_parameters(m) / 124.4e6 - 1.0) < 0.002);
  }
  SUBCASE("nested text_config") {
    const ModelSpec m = load_text(
        R"({"model_type": "qwen3_vl", "tie_word_embeddings": true, "text_config": )" +
        llama(R"(, "dtype": "bfloat16")") + R"(, "vision_config": {"depth": 2, "hidden_size": 64,
        "intermediate_size": 128, "patch_size": 4, "in_channels": 3}})");
    CHECK(m.hidden == 512);
    CHECK(m.tied_embeddings);
    // 2 (4 x 64^2 + 2 x 64 x 128) + 3 x 4 x 4 x 64.
    CHECK(m.other_parameters == 2.0 * (16384.0 + 16384.0) + 3072.0);
  }
  SUBCASE("windows by layer_types, by pattern and by family") {
    const ModelSpec typed = load_text(llama(
        R"(, "sliding_window": 128, "layer_types": ["sliding_attention", "full_attention",
        "sliding_attention", "sliding_attention"])"));
    CHECK(typed.layers.size() == 3);
    CHECK(typed.layers[0].window == 128);
    CHECK(typed.layers[2].count == 2);
    const ModelSpec pattern = load_text(
        R"({"model_type": "gemma3_text", "hidden_size": 512, "num_hidden_layers": 6,
        "num_attention_heads": 4, "head_dim": 128, "intermediate_size": 1024, "vocab_size": 10,
        "sliding_window": 512, "sliding_window_pattern": 3})");
    CHECK(pattern.layers.size() == 4);
    CHECK(pattern.layers[0].count == 2);
    CHECK(pattern.layers[1].attention == AttentionKind::kFull);
    CHECK(load_text(llama(R"(, "sliding_window": 4096)")).window() == 4096);
    CHECK(load_text(llama(R"(, "sliding_window": 4096, "use_sliding_window": false)")).window() ==
          0);
  }
  SUBCASE("Gemma 3 leaves its class's defaults out") {
    // The text part of the 4B model: 34 layers, 3.88 B parameters.
    const ModelSpec m = load_text(
        R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text",
        "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34,
        "sliding_window": 1024}})");
    CHECK(std::abs(total_parameters(m) / 3.88e9 - 1.0) < 0.005);
    CHECK(m.tied_embeddings);
    CHECK(m.window() == 1024);
  }
  SUBCASE("experts after dense layers, with shared ones") {
    const ModelSpec m = load_text(llama(
        R"(, "n_routed_experts": 16, "num_experts_per_tok": 2, "moe_intermediate_size": 128,
        "n_shared_experts": 2, "first_k_dense_replace": 1)"));
    CHECK(m.layers.size() == 2);
    CHECK(m.layers[0].mixer == MixerKind::kDense);
    CHECK(m.layers[1].count == 3);
    CHECK(m.layers[1].shared_experts_hidden == 256);
    CHECK(m.experts() == 16);
  }
  SUBCASE("quantised checkpoints") {
    CHECK(load_text(llama(R"(, "quantization_config": {"quant_method": "fp8"})")).quantization ==
          DType::kFp8);
    CHECK(load_text(llama(R"(, "quantization_config": {"quant_method": "gptq", "bits": 8})"))
              .quantization == DType::kInt8);
    const ModelSpec awq = load_text(
        llama(R"(, "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 64})"));
    CHECK(awq.quantization == DType::kInt4);
    CHECK(awq.quantization_group == 64);
    CHECK(weight_element_bytes(awq, WeightPart::kLinear, DType::kInt4) == 0.5 + 2.0 / 64.0);
    CHECK(weight_element_bytes(awq, WeightPart::kHead, DType::kInt4) == 2.0);
  }
}

TEST_CASE("broken Hugging Face configurations: one message each, with pointer and hint") {
  CHECK(refusal(R"({"model_type": "llama", "num_hidden_layers": 4, "num_attention_heads": 8,
      "intermediate_size": 1024, "vocab_size": 1000})")
            .find(":/hidden_size: missing required key") == 0);
  CHECK(refusal(R"({"model_type": "llama", "hidden_size": 512, "num_hidden_layers": -4,
      "num_attention_heads": 8, "intermediate_size": 1024, "vocab_size": 1000})")
            .find(":/num_hidden_layers: must be between 1 and") == 0);
  CHECK(refusal(llama("", "7")) ==
        ":/num_attention_heads: hidden size 512 is not a multiple of 7 heads (give head_dim)");
  CHECK(refusal(llama(R"(, "num_key_value_heads": 3)"))
            .find("8 attention heads are not a multiple of 3 KV heads") != std::string::npos);
  CHECK(refusal(R"({"model_type": "lama", "hidden_size": 512})")
            .find(":/model_type: unknown model_type \"lama\" (did you mean \"llama\"?") == 0);
  CHECK(refusal(R"({"hidden_size": 512})").find(":/model_type: missing required key") == 0);
  CHECK(refusal(R"({"model_type": "deepseek_v4"})").find("compress_ratios") != std::string::npos);
  CHECK(refusal(R"({"_class_name": "UNet2DConditionModel"})")
            .find(":/_class_name: diffusion models (UNet2DConditionModel) are not supported") == 0);
  CHECK(refusal(llama(R"(, "layer_types": ["full_attention"])")) ==
        ":/layer_types: 1 entries for 4 layers");
  CHECK(refusal(llama(R"(, "layer_types": ["full_attention", "full_attention", "conv",
      "full_attention"])"))
            .find(":/layer_types: layer 2: attention type \"conv\" is not supported") == 0);
  CHECK(refusal(llama(R"(, "num_local_experts": 4, "num_experts_per_tok": 5)"))
            .find("5 experts per token of 4 experts") != std::string::npos);
  CHECK(refusal(llama(R"(, "num_local_experts": 4)"))
            .find(":/num_experts_per_tok: missing required key") == 0);
  CHECK(
      refusal(llama(R"(, "torch_dtype": "bloat16")"))
          .find(":/torch_dtype: unknown number format \"bloat16\" (did you mean \"bfloat16\"?)") ==
      0);
  CHECK(refusal(llama(R"(, "quantization_config": {"quant_method": "magic"})"))
            .find(":/quantization_config/quant_method: quantisation \"magic\" is not supported") ==
        0);
  CHECK(refusal(llama(R"(, "head_dim": 64, "head_dim": 128)")).find("head_dim") !=
        std::string::npos);
  CHECK(refusal(llama(R"(, "head_dim": 64.5)")).find(":/head_dim: expected an integer") == 0);
  CHECK(refusal(llama(R"(, "head_dim": "64")")).find(":/head_dim: expected an integer") == 0);
  CHECK(refusal(llama(R"(, "head_dim": 1e300)")).find(":/head_dim: must be between") == 0);
  CHECK(refusal("[1, 2]") == ": a model description is a JSON object");
  CHECK(refusal("{\"model_type\": ").find("line 1") != std::string::npos);
  CHECK(refusal("") != "accepted");
  CHECK_THROWS_AS(load_model(scratch().path() + "/absent.json"), InputError);
}

TEST_CASE("our own schema is strict") {
  CHECK(refusal(zoo(kHeads, kDense)) == "accepted");
  CHECK(refusal(zoo(kHeads, kDense, R"(, "max_position_embedings": 4096)")) ==
        ":/max_position_embedings: unknown key (did you mean \"max_position_embeddings\"?)");
  CHECK(refusal(R"({"schema": "medley.model/9"})") ==
        ":/schema: unknown schema \"medley.model/9\" (this version reads \"medley.model/1\")");
  CHECK(refusal(zoo(R"({"kind": "ful", "num_heads": 8, "head_dim": 64})", kDense))
            .find(":/layers/0/attention/kind: unknown value \"ful\"") == 0);
  CHECK(refusal(
            zoo(R"({"kind": "full", "num_heads": 8, "head_dim": 64, "sliding_window": 9})", kDense))
            .find(":/layers/0/attention/sliding_window: unknown key") == 0);
  CHECK(refusal(zoo(R"({"kind": "full", "num_heads": 0, "head_dim": 64})", kDense))
            .find(":/layers/0/attention/num_heads: must be between 1 and") == 0);
  CHECK(refusal(zoo(kHeads, R"({"kind": "moe", "intermediate_size": 10, "num_experts": 2,
      "num_experts_per_tok": 3})"))
            .find(":/layers: 3 experts per token of 2 experts") == 0);
  CHECK(refusal(R"({"schema": "medley.model/1", "name": "x", "family": "decoder",
      "source": "none", "dtype": "bf16", "hidden_size": 512, "vocab_size": 1000,
      "layers": [{"repeat": 9000, "layers": [{"count": 5000, "attention": )" +
                kHeads + R"(, "ffn": )" + kDense + "}]}]}")
            .find(":/layers/0/repeat: more than 10000 layers") == 0);
  CHECK(refusal(R"({"schema": "medley.model/1", "name": "x", "family": "decoder",
      "source": "none", "dtype": "bf16", "hidden_size": 512, "vocab_size": 1000})")
            .find(":/layers: at least one layer group is needed") == 0);
  // Both problems of one file at once.
  const std::string both = refusal(zoo(R"({"kind": "full", "head_dim": 64})", R"({"kind": "x"})"));
  CHECK(both.find("/layers/0/attention/num_heads: missing") != std::string::npos);
  CHECK(both.find("/layers/0/ffn/kind: unknown value") != std::string::npos);
}

TEST_CASE("a repeated pattern spells out its layers in order") {
  const std::string sliding =
      R"({"kind": "sliding", "sliding_window": 64, "num_heads": 8, "head_dim": 64})";
  const std::string group = R"({"count": 2, "attention": )" + sliding + R"(, "ffn": )" + kDense +
                            R"(}, {"count": 1, "attention": )" + kHeads + R"(, "ffn": )" + kDense +
                            "}";
  const ModelSpec m = load_text(
      R"({"schema": "medley.model/1", "name": "x", "family": "decoder", "source": "none",
      "dtype": "bf16", "hidden_size": 512, "vocab_size": 1000, "layers": [{"repeat": 3,
      "layers": [)" +
      group + "]}]}");
  CHECK(m.total_layers() == 9);
  CHECK(m.layers.size() == 6);
  CHECK(m.window() == 64);
}

TEST_CASE("the zoo finds by name, alias, any case, path, and suggests") {
  const ModelZoo models({zoo_directory()});
  CHECK(models.names().size() >= 50);
  CHECK(models.find("Llama-3.1-8B").name == "llama-3.1-8b");
  CHECK(models.find("meta-llama/Llama-3.1-8B-Instruct").name == "llama-3.1-8b");
  CHECK(models.find("QWEN/QWEN3-8B").name == "qwen3-8b");
  CHECK(models.find(zoo_directory() + "/phi-4.json").name == "phi-4");
  CHECK_THROWS_WITH_AS(models.find("lama-3.1-8b"),
                       "unknown model \"lama-3.1-8b\" (did you mean \"llama-3.1-8b\"?)",
                       InputError);
  CHECK_THROWS_AS(ModelZoo({scratch().path() + "/none"}).all(), InputError);
}

TEST_CASE("a later directory overrides, and no two zoo models share a name") {
  const ScratchDirectory own;
  own.write("mine.json", zoo(kHeads, kDense));
  own.write("llama-3.1-8b.json",
            R"({"schema": "medley.model/1", "name": "llama-3.1-8b", "family": "decoder",
      "source": "mine", "dtype": "bf16", "hidden_size": 512, "vocab_size": 1000, "layers": [
      {"count": 1, "attention": )" +
                kHeads + R"(, "ffn": )" + kDense + "}]}");
  const ModelZoo models({zoo_directory(), own.path()});
  CHECK(models.find("llama-3.1-8b").source == "mine");
  CHECK(models.find("x").hidden == 512);
  std::vector<std::string> words;
  for (const ModelSpec& m : ModelZoo({zoo_directory()}).all()) {
    words.push_back(m.name);
    words.insert(words.end(), m.aliases.begin(), m.aliases.end());
  }
  std::sort(words.begin(), words.end());
  CHECK(std::adjacent_find(words.begin(), words.end()) == words.end());
}
