#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/measure/kernel_models.h"
#include "sim/measure/readers/profile_folder.h"
#include "sim/measure/readers/row_table.h"

namespace medley {

namespace {

/// What the model's step calls each kernel of a bundle.
constexpr std::pair<std::string_view, std::string_view> kLayerNames[] = {
    {"layernorm", "attention_norm"},
    {"final_layernorm", "final_norm"},
    {"rotary_emb", "rotary"},
    {"act_fn", "activation"},
    {"sampler", "sampling"},
    {"embedding", "embedding"},
    {"qkv_proj", "qkv_proj"},
    {"o_proj", "o_proj"},
    {"gate_up_proj", "gate_up_proj"},
    {"down_proj", "down_proj"},
    {"lm_head", "lm_head"}};

std::vector<StepOp> ops_of(const KernelFile& file, KernelSink& sink) {
  const ProfileFolder folder = profile_folder(file, sink);
  return lower_step(folder.model, folder.precision, folder.tp, 1, 0, false);
}

/// layer,tokens|sequences,time_us: one kernel kind per row.
void read_layers(const KernelFile& file, KernelSink& sink, const char* axis) {
  RowTable t(file, sink);
  const auto layer_at = t.csv.need("layer"), rows_at = t.csv.need(axis);
  t.set_time(t.csv.need("time_us"), kMicro);
  t.csv.start("llmservingsim layers");
  const std::vector<StepOp> ops = ops_of(file, sink);
  double rows = 0.0;
  while (t.next()) {
    const KernelCurve* curve = sink.curve(t.key({layer_at}), [&]() -> KernelCurve {
      const auto name =
          std::find_if(std::begin(kLayerNames), std::end(kLayerNames),
                       [&](const auto& n) { return n.first == t.csv.text(layer_at); });
      if (name == std::end(kLayerNames)) return {};
      KernelForms forms = sum_of_ops(ops, {name->second});
      if (forms.kernels == 0) return {};
      return {std::string(t.csv.text(layer_at)), fmt::format("layer={}", t.csv.text(layer_at)),
              forms};
    });
    if (curve == nullptr) {
      sink.drop(fmt::format("the model's step has no `{}`", t.csv.text(layer_at)));
      continue;
    }
    if (!t.numbers({{rows_at, &rows}})) continue;
    Features x = token_features(rows);
    at(x, Feature::kLogits) = rows;
    t.add(*curve, x, rows);
  }
}

/// prefill_chunk,kv_prefill,n_decode,kv_decode: one attention over one chunk with kv_prefill tokens
/// cached before it and n_decode sequences of kv_decode tokens, the new one included.
void read_bundle_attention(const KernelFile& file, KernelSink& sink) {
  RowTable t(file, sink);
  const auto chunk_at = t.csv.need("prefill_chunk"), prior_at = t.csv.need("kv_prefill");
  const auto decodes_at = t.csv.need("n_decode"), length_at = t.csv.need("kv_decode");
  t.set_time(t.csv.need("time_us"), kMicro);
  t.csv.start("llmservingsim attention");
  const std::vector<StepOp> ops = ops_of(file, sink);
  const KernelForms prefill = sum_of_ops(ops, {"attention_prefill"});
  const KernelForms decode = sum_of_ops(ops, {"attention_decode"});
  KernelForms both = sum_of_ops(ops, {"attention_prefill", "attention_decode"});
  both.kernels = 1;
  std::int64_t chunk = 0, prior = 0, decodes = 0, length = 0;
  while (t.next()) {
    if (!t.counts({{chunk_at, &chunk},
                   {prior_at, &prior},
                   {decodes_at, &decodes},
                   {length_at, &length}})) {
      continue;
    }
    if (chunk == 0 && decodes * length == 0) {
      sink.drop("nothing to attend to");
      continue;
    }
    Features x{};
    if (chunk > 0) x = prefill_features(1.0, chunk, prior, 0);
    if (decodes > 0) {
      const Features y = decode_features(double(decodes), length, 0);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
    }
    const bool mixed = chunk > 0 && decodes > 0;
    const std::string told = mixed       ? t.key({chunk_at, prior_at, decodes_at})
                             : chunk > 0 ? "p" + t.key({prior_at})
                                         : "d" + t.key({decodes_at});
    const KernelCurve* curve = sink.curve(told, [&]() -> KernelCurve {
      if (mixed) {
        return {"attention_mixed",
                fmt::format("chunk={},prior={},n_decode={}", chunk, prior, decodes), both};
      }
      if (chunk > 0) return {"attention_prefill", fmt::format("prior={}", prior), prefill};
      return {"attention_decode", fmt::format("n_decode={}", decodes), decode};
    });
    t.add(*curve, x, double(chunk > 0 && !mixed ? chunk : length));
  }
}

/// tokens,activated_experts,time_us: the experts of one layer, with the hits they were given.
void read_bundle_experts(const KernelFile& file, KernelSink& sink) {
  RowTable t(file, sink);
  const auto tokens_at = t.csv.need("tokens"), hit_at = t.csv.need("activated_experts");
  t.set_time(t.csv.need("time_us"), kMicro);
  t.csv.start("llmservingsim moe");
  const KernelForms forms = sum_of_ops(ops_of(file, sink), {"expert_gate_up", "expert_down"});
  if (forms.kernels == 0) throw InputError(file.path, "", "times experts of a model that has none");
  double tokens = 0.0, hit = 0.0;
  while (t.next()) {
    if (!t.numbers({{tokens_at, &tokens}, {hit_at, &hit}})) continue;
    const KernelCurve* curve = sink.curve(t.key({hit_at}), [&] {
      return KernelCurve{"moe", fmt::format("activated={}", hit), forms};
    });
    Features x = token_features(tokens);
    at(x, Feature::kExpertsHit) = hit;
    t.add(*curve, x, tokens);
  }
}
}  // namespace

bool takes_llmservingsim(const KernelFile& file) {
  return file.has({"layer", "tokens", "time_us"}) || file.has({"layer", "sequences", "time_us"}) ||
         file.has({"prefill_chunk", "kv_prefill", "n_decode", "kv_decode", "time_us"}) ||
         file.has({"tokens", "activated_experts", "time_us"});
}

void read_llmservingsim(const KernelFile& file, KernelSink& sink) {
  if (file.has({"layer", "tokens"})) return read_layers(file, sink, "tokens");
  if (file.has({"layer", "sequences"})) return read_layers(file, sink, "sequences");
  if (file.has({"prefill_chunk"})) return read_bundle_attention(file, sink);
  read_bundle_experts(file, sink);
}

}  // namespace medley
