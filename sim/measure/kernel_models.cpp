#include "sim/measure/kernel_models.h"

#include <fmt/format.h>

#include <algorithm>

#include "hwmodels/catalog.h"
#include "sim/core/error.h"

namespace medley {

ModelSpec kernel_model(const KernelReadOptions& options, const std::string& named,
                       const std::string& file) {
  const std::string& name = options.model.empty() ? named : options.model;
  if (name.empty()) {
    throw InputError(file, "", "does not say of which model its kernels are",
                     "name one of the zoo (medley list models) with --model");
  }
  std::vector<std::string> folders = {shipped_data_directory() + "/workloads/zoo"};
  folders.insert(folders.end(), options.zoo_directories.begin(), options.zoo_directories.end());
  const ModelZoo zoo(folders);
  std::vector<std::string> spellings = {name};
  if (const std::size_t slash = name.rfind('/'); slash != std::string::npos) {
    spellings.push_back(name.substr(slash + 1));
  }
  for (const char* suffix : {"-FP8", "-hf", "-Instruct", "-Instruct-FP8", "-Instruct-2507"}) {
    const std::string last = spellings.back();
    if (last.ends_with(suffix)) {
      spellings.push_back(last.substr(0, last.size() - std::string_view(suffix).size()));
    }
  }
  for (const std::string& spelling : spellings) {
    try {
      return zoo.find(spelling);
    } catch (const InputError&) {
      if (spelling.ends_with(".json")) throw;
    }
  }
  throw InputError(file, "",
                   fmt::format("kernels of the model `{}`, which the zoo does not have", name),
                   "name one of the zoo (medley list models) or a .json with --model");
}

namespace {
std::vector<StepOp> latent_ops(const ModelSpec& model, int heads, const KernelFormat& gemm,
                               DType kv) {
  const auto latent =
      std::find_if(model.layers.begin(), model.layers.end(), [](const LayerGroup& g) {
        return g.attention == AttentionKind::kLatent && g.index_heads == 0;
      });
  if (latent == model.layers.end()) {
    throw InputError(model.file, "", fmt::format("{} has no latent attention", model.name));
  }
  ModelSpec one = model;
  one.layers = {*latent};
  LayerGroup& group = one.layers.front();
  group.count = 1;
  group.mixer = MixerKind::kNone;
  group.heads = heads;
  if (group.kv_heads > 1) group.kv_heads = heads;
  one.quantization.reset();
  return lower_step(one, {gemm.weights, gemm.arithmetic, kv}, 1, 1, 0, false);
}
}  // namespace

KernelForms latent_core(const ModelSpec& model, int heads, const KernelFormat& gemm, DType kv,
                        bool decode) {
  KernelForms forms = sum_of_ops(latent_ops(model, heads, gemm, kv),
                                 {decode ? "attention_decode" : "attention_prefill"});
  forms.weights = kv;
  return forms;
}

KernelForms latent_module(const ModelSpec& model, int heads, const KernelFormat& gemm, DType kv,
                          bool decode) {
  const auto ops = latent_ops(model, heads, gemm, kv);
  KernelForms forms =
      decode ? sum_of_ops(ops, {"qkv_a_proj", "q_b_proj", "q_proj", "kv_a_proj", "rotary",
                                "kv_write", "q_absorb", "attention_decode", "v_absorb", "o_proj"})
             : sum_of_ops(ops, {"qkv_a_proj", "q_b_proj", "q_proj", "kv_a_proj", "rotary",
                                "kv_write", "kv_b_proj", "attention_prefill", "o_proj"});
  const KernelForms core = latent_core(model, heads, gemm, kv, decode);
  forms.op_class = core.op_class;
  forms.dtype = core.dtype;
  forms.weights = kv;
  return forms;
}

}  // namespace medley
