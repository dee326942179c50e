#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "sim/core/error.h"
#include "tests/support/models.h"

using namespace medley;

TEST_CASE("Llama-3.1-8B counts follow from its shape") {
  // One layer: qkv 4096 x (32 + 8 + 8) 128 = 25,165,824; o 4096 x 4096 = 16,777,216;
  // gate/up 4096 x 28672 = 117,440,512; down 14336 x 4096 = 58,720,256; two norms 8,192.
  // Sum 218,112,000, times 32 = 6,979,584,000. Embedding and head 2 x 128256 x 4096 =
  // 1,050,673,152; final norm 4,096.
  const ModelSpec m = zoo_model("llama-3.1-8b");
  CHECK(total_parameters(m) == 6'979'584'000.0 + 1'050'673'152.0 + 4'096.0);
  CHECK(total_parameters(m) == m.published_parameters);
  CHECK(active_parameters(m) == total_parameters(m));
  CHECK(weight_bytes(m, 1, 1, DType::kBf16) == Bytes(2.0 * 8'030'261'248.0));
  // 2 x 32 layers x 8 KV heads x 128 x 2 B.
  CHECK(kv_bytes_per_token(m, 1, 1, 0, DType::kBf16) == 131'072.0);
  CHECK(kv_bytes_per_token(m, 1, 1, 0, DType::kFp8) == 65'536.0);
  CHECK(kv_bytes_per_token(m, 8, 1, 0, DType::kBf16) == 131'072.0 / 8);
  // Beyond 8 ranks each keeps one whole KV head.
  CHECK(kv_bytes_per_token(m, 16, 1, 0, DType::kBf16) == 131'072.0 / 8);
  CHECK(state_bytes_per_sequence(m, 1, 1, 0) == 0.0);
}

TEST_CASE("Llama-3.1-8B on 24 GiB leaves 3,400 KV blocks of 16 tokens at utilisation 0.9") {
  // 0.9 x 24 GiB = 23,192,823,398 B; less 16,060,522,496 B of weights; a block is 16 x 131,072 B.
  // Counted without the 65 norm vectors it would be 3,401.
  const ModelSpec m = zoo_model("llama-3.1-8b");
  const double memory = 24.0 * 1024 * 1024 * 1024;
  const double block = 16.0 * kv_bytes_per_token(m, 1, 1, 0, DType::kBf16);
  const double weights = weight_bytes(m, 1, 1, DType::kBf16).value();
  CHECK(std::floor((0.9 * memory - weights) / block) == 3400.0);
  CHECK(std::floor((0.833919 * memory - weights) / block) == 2588.0);
}

TEST_CASE("Mixtral-8x7B: all experts weigh, two of eight work") {
  // Layer: attention 41,943,040; router 4096 x 8 = 32,768; one expert 3 x 4096 x 14336 =
  // 176,160,768; norms 8,192. Outside: 2 x 32000 x 4096 = 262,144,000 and 4,096.
  const ModelSpec m = zoo_model("mixtral-8x7b");
  const double shared = 41'943'040.0 + 32'768.0 + 8'192.0;
  const double outside = 262'144'000.0 + 4'096.0;
  CHECK(total_parameters(m) == 32.0 * (shared + 8.0 * 176'160'768.0) + outside);
  CHECK(active_parameters(m) == 32.0 * (shared + 2.0 * 176'160'768.0) + outside);
}

TEST_CASE("DeepSeek-V3: latent attention and shared experts") {
  // Attention: q_a and kv_a 7168 x (1536 + 512 + 64) = 15,138,816; q_b 1536 x 128 x 192 =
  // 37,748,736; kv_b 512 x 128 x (128 + 128) = 16,777,216; o 16384 x 7168 = 117,440,512:
  // 187,105,280 in each of 61 layers.
  // Three dense FFNs 3 x 7168 x 18432 = 396,361,728. 58 layers of 256 + 1 experts of
  // 3 x 7168 x 2048 = 44,040,192 and a router 7168 x 256 = 1,835,008; 8 + 1 experts are active.
  // Outside: 2 x 129280 x 7168 = 1,853,358,080; 123 norms x 7168 = 881,664.
  const ModelSpec m = zoo_model("deepseek-v3");
  const double rest =
      61.0 * 187'105'280.0 + 3.0 * 396'361'728.0 + 58.0 * 1'835'008.0 + 1'853'358'080.0 + 881'664.0;
  CHECK(total_parameters(m) == rest + 58.0 * 257.0 * 44'040'192.0);
  CHECK(near(active_parameters(m), rest + 58.0 * 9.0 * 44'040'192.0));
  // (512 + 64) x 2 B x 61, the same on every tensor-parallel rank.
  CHECK(kv_bytes_per_token(m, 1, 1, 0, DType::kBf16) == 70'272.0);
  CHECK(kv_bytes_per_token(m, 8, 1, 0, DType::kBf16) == 70'272.0);
  // fp8 covers the layers; embedding, head, routers and norms stay 16 bit.
  const double wide = 58.0 * 1'835'008.0 + 1'853'358'080.0 + 881'664.0;
  CHECK(weight_bytes(m, 1, 1, DType::kFp8) == Bytes(total_parameters(m) + wide));
  // The indexer of V3.2 adds one fp8 key of 128 and a 4-byte scale per token and layer.
  CHECK(kv_bytes_per_token(zoo_model("deepseek-v3.2"), 1, 1, 0, DType::kBf16) ==
        70'272.0 + 61.0 * 132.0);
}

TEST_CASE("gpt-oss: four-bit experts, 16-bit rest, windows hold less KV") {
  const ModelSpec m = zoo_model("gpt-oss-20b");
  // 24 layers x 32 experts x 3 x 2880 x 2880.
  const double experts = 24.0 * 32.0 * 3.0 * 2880.0 * 2880.0;
  const double rest = total_parameters(m) - experts;
  CHECK(
      near(weight_bytes(m, 1, 1, DType::kFp4).value(), experts * (0.5 + 1.0 / 32.0) + 2.0 * rest));
  // Half of the layers see 128 tokens: at 1,000 tokens 12 x (1000 + 128) of 2 x 8 x 64 x 2 B.
  CHECK(kv_bytes_for_context(m, 1, 1, 0, DType::kBf16, 1000) == 12.0 * 1128.0 * 2048.0);
  CHECK(kv_bytes_for_context(m, 1, 1, 0, DType::kBf16, 100) ==
        100.0 * kv_bytes_per_token(m, 1, 1, 0, DType::kBf16));
}

TEST_CASE("Kimi-K2.5: int4 experts with a 16-bit scale per 32 elements") {
  const ModelSpec m = zoo_model("kimi-k2.5");
  // 60 layers x 384 experts x 3 x 7168 x 2048.
  const double experts = 60.0 * 384.0 * 44'040'192.0;
  CHECK(near(weight_bytes(m, 1, 1, DType::kInt4).value(),
             experts * (0.5 + 2.0 / 32.0) + 2.0 * (total_parameters(m) - experts)));
}

TEST_CASE("Qwen3-Next: constant state of 36 delta-rule layers beside 12 attention layers") {
  const ModelSpec m = zoo_model("qwen3-next-80b-a3b");
  // 2 x 2 KV heads x 256 x 2 B x 12.
  CHECK(kv_bytes_per_token(m, 1, 1, 0, DType::kBf16) == 24'576.0);
  // fp32 state 32 x 128 x 128; three tails of (32 x 128 + 2 x 16 x 128) channels in 16 bit.
  CHECK(state_bytes_per_sequence(m, 1, 1, 0) ==
        36.0 * (32.0 * 128 * 128 * 4.0 + 3.0 * (4096.0 + 4096.0) * 2.0));
  CHECK(state_bytes_per_sequence(m, 2, 1, 0) == state_bytes_per_sequence(m, 1, 1, 0) / 2.0);
}

TEST_CASE("pipeline stages follow vLLM: the remainder before the last stage") {
  const ModelSpec m = zoo_model("deepseek-v3");  // 61 layers
  int covered = 0;
  std::vector<int> sizes;
  for (int s = 0; s < 4; ++s) {
    const LayerRange r = stage_layers(m, 4, s);
    CHECK(r.first == covered);
    covered = r.last;
    sizes.push_back(r.last - r.first);
  }
  CHECK(covered == 61);
  CHECK(sizes == std::vector<int>{15, 15, 16, 15});
}

TEST_CASE("zoo models agree with their published sizes") {
  // Published figures are often rounded (80B) or count what we leave out (vision parts).
  for (const ModelSpec& m : ModelZoo({zoo_directory()}).all()) {
    INFO(m.name);
    CHECK(m.published_parameters > 0.0);
    CHECK(std::abs(total_parameters(m) / m.published_parameters - 1.0) < 0.014);
    CHECK(!m.source.empty());
    if (m.family == "decoder") CHECK(plan_problem(m, 1, 1, false).empty());
  }
}

namespace {
struct Counts {
  double total = 0.0;
  double active = 0.0;
};
/// The table "| file | total B | active B |" of the shared notes.
std::map<std::string, Counts> published_counts(const std::string& notes) {
  std::map<std::string, Counts> all;
  std::ifstream in(notes);
  for (std::string line; std::getline(in, line);) {
    std::istringstream row(line);
    std::string bar, file;
    Counts c;
    if (row >> bar >> file >> bar >> c.total >> bar >> c.active >> bar) all[file] = c;
  }
  return all;
}
}  // namespace

TEST_CASE("shared Hugging Face configurations: every file parses or names what is unsupported") {
  const std::string folder = shared_models();
  if (folder.empty()) {
    MESSAGE("skipped: no shared model descriptions (set MEDLEY_SHARED_DATA)");
    return;
  }
  const std::map<std::string, Counts> expected = published_counts(folder + "/sources.md");
  CHECK(expected.size() > 30);
  int loaded = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const std::string file = entry.path().filename().string();
    INFO(file);
    try {
      const ModelSpec m = load_model(entry.path().string());
      ++loaded;
      const auto it = expected.find(file);
      if (it == expected.end() || file == "bert-large-reduced.json") continue;
      const auto agrees = [](double ours, double billions) {
        return std::abs(ours / 1e9 - billions) <= std::max(0.005 * billions, 0.006);
      };
      CHECK(agrees(total_parameters(m), it->second.total));
      CHECK(agrees(active_parameters(m), it->second.active));
    } catch (const InputError& e) {
      CHECK(e.problems().size() == 1);
      CHECK(std::string(e.what()).find("not supported") != std::string::npos);
      CHECK((file == "deepseek-v4-flash.json" || file == "sdxl-base-unet.json"));
    }
  }
  CHECK(loaded >= 52);
}

TEST_CASE("zoo entries equal the shared Hugging Face configurations they retell") {
  const std::string folder = shared_models();
  if (folder.empty()) {
    MESSAGE("skipped: no shared model descriptions (set MEDLEY_SHARED_DATA)");
    return;
  }
  for (const char* name : {"llama-2-7b",
                           "llama-3.1-8b",
                           "llama-3.1-405b",
                           "llama-3.2-1b",
                           "mistral-nemo-12b",
                           "mixtral-8x7b",
                           "mixtral-8x22b",
                           "qwen2.5-7b",
                           "qwen3-0.6b",
                           "qwen3-8b",
                           "qwen3-32b",
                           "qwen3-30b-a3b",
                           "qwen3-235b-a22b",
                           "qwen3-next-80b-a3b",
                           "qwen3.5-397b-a17b",
                           "deepseek-v2-lite",
                           "deepseek-v3",
                           "deepseek-v3.2",
                           "deepseek-r1",
                           "kimi-k2",
                           "kimi-k2.5",
                           "glm-5",
                           "minimax-m2.5",
                           "gpt-oss-20b",
                           "gpt-oss-120b",
                           "phi-4",
                           "yi-34b",
                           "nemotron-h-56b",
                           "opt-13b",
                           "whisper-large-v3"}) {
    INFO(name);
    const ModelSpec ours = zoo_model(name);
    const ModelSpec theirs = load_model(folder + "/" + name + ".json");
    CHECK(ours.layers == theirs.layers);
    CHECK(ours.hidden == theirs.hidden);
    CHECK(ours.vocab == theirs.vocab);
    CHECK(ours.tied_embeddings == theirs.tied_embeddings);
    CHECK(ours.rotary == theirs.rotary);
    CHECK(ours.quantization == theirs.quantization);
    CHECK(ours.quantization_group == theirs.quantization_group);
    CHECK(ours.quantization_scope == theirs.quantization_scope);
  }
}
