#pragma once

#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "sim/core/json_reader.h"
#include "workloads/model.h"

namespace medley {

enum class HfKind : std::uint8_t { kDecoder, kEncoder, kVit, kWhisper, kResnet };

/// What a model_type leaves unsaid in its config.json (defaults of its configuration class).
struct HfFamily {
  const char* model_type;
  HfKind kind;
  bool tied;    ///< tie_word_embeddings when absent
  bool gated;   ///< SwiGLU-like FFN
  bool rotary;  ///< false: positions are learned, fixed or a bias on the scores
};
/// nullptr for an unknown one.
const HfFamily* find_hf_family(const std::string& model_type);
std::vector<std::string> hf_model_types();

/// A config.json under its many spellings. `text` is the language part (`text_config` where
/// nested).
class HfConfig {
 public:
  HfConfig(const nlohmann::ordered_json& root, const nlohmann::ordered_json& text,
           const std::string& text_pointer, const std::string& file, Problems& problems);

  using Keys = std::initializer_list<const char*>;
  /// The first of `keys` that is present and not null; nullptr when none is.
  const char* present(Keys keys) const;
  int need(Keys keys, std::int64_t min = 1);  ///< a problem at the first key when none is present
  int size_or(Keys keys, int fallback, std::int64_t min = 0);
  bool boolean_or(const char* key, bool fallback);
  void unsupported(const char* key, std::string what, std::string hint = "");

  ObjectReader root;
  ObjectReader text;
  std::string model_type;
  const HfFamily* family = nullptr;
};

void read_hf_decoder(HfConfig& config, ModelSpec& model);
void read_hf_encoder(HfConfig& config, ModelSpec& model);
void read_hf_vit(HfConfig& config, ModelSpec& model);
void read_hf_whisper(HfConfig& config, ModelSpec& model);
void read_hf_resnet(HfConfig& config, ModelSpec& model);
void read_hf_quantization(HfConfig& config, ModelSpec& model);

/// Parameters of the vision tower beside a language model: transformer blocks and patch embedding;
/// projectors are left out (under 0.1 % of any known model). 0 where there is none.
double hf_vision_parameters(HfConfig& config);

}  // namespace medley
