#include <fmt/format.h>

#include <algorithm>

#include "sim/measure/kernel_models.h"
#include "sim/measure/readers/profile_folder.h"
#include "sim/measure/readers/row_table.h"
#include "workloads/model_matrices.h"

namespace medley {

namespace {

/// Kernels of the older profiles: projections one by one, experts whole whatever the tp.
class OldLayers {
 public:
  explicit OldLayers(const ProfileFolder& folder)
      : folder_(folder),
        group_(folder.model.layers.front()),
        ops_(lower_step(folder.model, folder.precision, folder.tp, 1, 0, false)) {}

  /// kernels 0: no such kernel in the model's step.
  KernelForms forms(std::string_view layer) const {
    const double hidden = folder_.model.hidden;
    const double queries = heads_per_rank(group_, folder_.tp) * group_.head_dim;
    const double keys = kv_heads_per_rank(group_, folder_.tp) * group_.head_dim;
    const double width = double(group_.ffn_hidden) / folder_.tp;
    if (layer == "q_proj") return gemm(hidden, queries);
    if (layer == "k_proj" || layer == "v_proj") return gemm(hidden, keys);
    if (layer == "gate_proj" || layer == "up_proj") return gemm(hidden, width);
    if (layer == "expert.w1" || layer == "expert.w3") return gemm(hidden, group_.ffn_hidden);
    if (layer == "expert.w2") return gemm(group_.ffn_hidden, hidden);
    if (layer == "gate") return sum_of_ops(ops_, {"router", "router_top_k"});
    if (layer == "input_layernorm") return sum_of_ops(ops_, {"attention_norm"});
    if (layer == "post_layernorm") return sum_of_ops(ops_, {"ffn_norm"});
    if (layer == "final_layernorm") return sum_of_ops(ops_, {"final_norm"});
    if (layer == "rope") return sum_of_ops(ops_, {"rotary"});
    if (layer == "act_fn") return sum_of_ops(ops_, {"activation"});
    if (layer == "attn") return sum_of_ops(ops_, {"attention_prefill"});
    return sum_of_ops(ops_, {layer});  // o_proj, down_proj, lm_head, embedding
  }

 private:
  KernelForms gemm(double k, double n) const {
    return gemm_kernel(k, n, {folder_.precision.activations, folder_.precision.weights});
  }
  const ProfileFolder& folder_;
  const LayerGroup& group_;
  std::vector<StepOp> ops_;
};

/// layer_name,input,kv_cache,tp_size,latency(ns)
void read_old_layers(const KernelFile& file, KernelSink& sink) {
  RowTable t(file, sink);
  const auto layer_at = t.csv.need("layer_name"), tokens_at = t.csv.need("input");
  const auto prior_at = t.csv.need("kv_cache"), tp_at = t.csv.need("tp_size");
  t.set_time(t.csv.need("latency(ns)"), kNano);
  t.csv.start("llmservingsim-v0 layers");
  ProfileFolder folder = profile_folder(file, sink);
  std::int64_t tokens = 0, prior = 0, tp = 0;
  std::optional<OldLayers> layers;
  while (t.next()) {
    if (!t.counts({{tokens_at, &tokens}, {prior_at, &prior}, {tp_at, &tp}})) continue;
    if (!layers || tp != folder.tp) {
      folder.tp = static_cast<int>(tp);
      layers.emplace(folder);
    }
    const KernelCurve* curve = sink.curve(t.key({layer_at, prior_at, tp_at}), [&]() -> KernelCurve {
      const KernelForms forms = layers->forms(t.csv.text(layer_at));
      if (forms.kernels == 0) return {};
      return {std::string(t.csv.text(layer_at)),
              fmt::format("layer={},prior={},tp={}", t.csv.text(layer_at), prior, tp), forms};
    });
    if (curve == nullptr) {
      sink.drop(fmt::format("the model's step has no `{}`", t.csv.text(layer_at)));
      continue;
    }
    Features x = prefill_features(1.0, tokens, prior, 0);
    at(x, Feature::kLogits) = double(tokens);  // the head was timed over all of them
    t.add(*curve, x, double(tokens));
  }
}

/// batch_size, prefill_chunk_size, kv_cache_size (tokens cached before), is_prefill and a time in
/// ns. Decode adds the new token.
void read_old_attention(const KernelFile& file, KernelSink& sink) {
  RowTable t(file, sink);
  const auto chunk_at = t.csv.need("prefill_chunk_size"), prior_at = t.csv.need("kv_cache_size");
  const auto batch_at = t.csv.need("batch_size"), prefill_at = t.csv.need("is_prefill");
  t.set_time(t.csv.need("p50_ns"), kNano);
  t.csv.ignore({"mean_ns", "p90_ns", "max_ns"});
  t.csv.start("llmservingsim-v0 attention");
  const ProfileFolder folder = profile_folder(file, sink);
  const auto ops = lower_step(folder.model, folder.precision, folder.tp, 1, 0, false);
  std::int64_t chunk = 0, prior = 0, batch = 0;
  while (t.next()) {
    if (!t.counts({{chunk_at, &chunk}, {prior_at, &prior}, {batch_at, &batch}})) continue;
    const bool prefill = t.csv.text(prefill_at) == "True" || t.csv.text(prefill_at) == "1";
    if (batch == 0 || (prefill && chunk == 0)) {
      sink.drop("nothing to attend to");
      continue;
    }
    const auto& key =
        prefill ? t.key({prefill_at, batch_at, prior_at}) : t.key({prefill_at, batch_at});
    const KernelCurve* curve = sink.curve(key, [&]() -> KernelCurve {
      if (prefill) {
        return {"attention_prefill", fmt::format("batch={},prior={}", batch, prior),
                sum_of_ops(ops, {"attention_prefill"})};
      }
      return {"attention_decode", fmt::format("batch={}", batch),
              sum_of_ops(ops, {"attention_decode"})};
    });
    if (prefill) {
      t.add(*curve, prefill_features(double(batch), chunk, prior, 0), double(chunk));
    } else {
      t.add(*curve, decode_features(double(batch), prior + 1, 0), double(prior + 1));
    }
  }
}
}  // namespace

bool takes_llmservingsim_v0(const KernelFile& file) {
  return file.has({"layer_name", "input", "kv_cache", "tp_size", "latency(ns)"}) ||
         file.has({"prefill_chunk_size", "kv_cache_size", "batch_size", "is_prefill", "p50_ns"});
}

void read_llmservingsim_v0(const KernelFile& file, KernelSink& sink) {
  if (file.has({"layer_name"})) return read_old_layers(file, sink);
  read_old_attention(file, sink);
}

}  // namespace medley
