#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/measure/kernel_models.h"
#include "sim/measure/readers/profile_folder.h"
#include "sim/measure/readers/row_table.h"

namespace medley {

namespace {

std::string median_of(std::string_view op) {
  return fmt::format("time_stats.{}.median", op);
}

/// Columns that say of which model a row is, and how it was split.
class ShapeColumns {
 public:
  ShapeColumns(const KernelFile& file, KernelSink& sink, KernelCsv& csv)
      : file_(file),
        sink_(sink),
        hidden(csv.need("n_embd")),
        heads(csv.find_any({"n_head", "n_q_head"})),
        kv_heads(csv.need("n_kv_head")),
        tp(csv.find("num_tensor_parallel_workers")),
        ffn(csv.find("n_expanded_embd")),
        vocab(csv.find("vocab_size")),
        gated(csv.find("use_gated_mlp")),
        qk_norm(csv.find("use_qk_norm")),
        precision(csv.find("profiling_precision")),
        quantised(csv.find("quant_signature")) {
    if (!sink.options().model.empty()) {
      known_ = kernel_model(sink.options(), "", file.path);
    } else {
      try {
        known_ = kernel_model(sink.options(), model_of_folder(file), file.path);
      } catch (const InputError&) {  // the columns will do
      }
    }
  }
  std::string key(RowTable& t) const {
    return t.key({hidden, heads, kv_heads, tp, ffn, vocab, gated, precision, quantised});
  }
  /// The step of such a model, one layer deep; empty when the row's sizes make none.
  std::vector<StepOp> ops(RowTable& t) const;
  /// n_embd / heads is the head size only where queries keep the model's width, which models that
  /// normalise queries and keys do not promise: then the model must be known.
  bool head_size_known(RowTable& t) const {
    return known_.has_value() || t.csv.text(qk_norm) != "True";
  }

 private:
  const KernelFile& file_;
  KernelSink& sink_;
  std::optional<ModelSpec> known_;

 public:
  KernelCsv::Column hidden, heads, kv_heads, tp, ffn, vocab, gated, qk_norm, precision, quantised;
};

std::vector<StepOp> ShapeColumns::ops(RowTable& t) const {
  std::int64_t sizes[6] = {0, 0, 0, 1, 0, 0};
  if (!t.counts({{hidden, &sizes[0]},
                 {heads, &sizes[1]},
                 {kv_heads, &sizes[2]},
                 {tp, &sizes[3]},
                 {ffn, &sizes[4]},
                 {vocab, &sizes[5]}})) {
    return {};
  }
  ModelSpec model;
  model.name = model_of_folder(file_);
  model.family = "decoder";
  model.hidden = static_cast<int>(sizes[0]);
  model.vocab = sizes[5];
  LayerGroup group;
  group.count = 1;
  group.heads = static_cast<int>(sizes[1]);
  group.kv_heads = static_cast<int>(sizes[2]);
  if (group.heads <= 0 || sizes[3] <= 0) return {};
  group.head_dim = group.v_head_dim = model.hidden / group.heads;
  if (known_ && known_->layers.front().heads == group.heads) {
    group.head_dim = group.v_head_dim = known_->layers.front().head_dim;
  }
  group.ffn_hidden = static_cast<int>(sizes[4]);
  group.gated = t.csv.text(gated) != "False";
  group.mixer = sizes[4] > 0 ? MixerKind::kDense : MixerKind::kNone;
  model.layers = {group};
  Precision p{sink_.options().dtype, sink_.options().dtype, sink_.options().dtype};
  if (const auto told = parse_kernel_format(t.csv.text(precision))) {
    p = {told->weights, told->arithmetic, told->weights};
  }
  if (t.csv.text(quantised).starts_with("method=fp8")) p.weights = p.activations = DType::kFp8;
  if (!plan_problem(model, static_cast<int>(sizes[3]), 1, false).empty()) return {};
  return lower_step(model, p, static_cast<int>(sizes[3]), 1, 0, false);
}

/// What the model's step calls each timed part.
constexpr std::pair<std::string_view, std::string_view> kParts[] = {
    {"emb", "embedding"},
    {"input_layernorm", "attention_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"attn_pre_proj", "qkv_proj"},
    {"attn_rope", "rotary"},
    {"attn_post_proj", "o_proj"},
    {"mlp_act", "activation"},
    {"mlp_down_proj", "down_proj"}};

/// One row times several parts at one token count.
class PartsRow {
 public:
  PartsRow(RowTable& t, KernelSink& sink) : t_(t), sink_(sink) {}
  void begin() {
    kept_ = 0;
    fault_ = {};
  }
  void take(const KernelCurve* curve, KernelCsv::Column time, const Features& x, double position) {
    if (curve == nullptr || t_.csv.text(time).empty()) return;
    const auto ms = t_.csv.number(time);
    const std::string_view fault =
        ms ? sink_.try_add(*curve, curve->forms.flops(x), curve->forms.bytes(x),
                           {position, *ms * kMilli, std::nullopt, std::nullopt})
           : "time cannot be read";
    if (fault.empty()) {
      ++kept_;
    } else if (fault_.empty()) {
      fault_ = fault;
    }
  }
  void end() {
    if (kept_ > 0) {
      sink_.keep_row();
    } else {
      sink_.drop(fault_.empty() ? "holds no kernel of the model's step" : fault_);
    }
  }

 private:
  RowTable& t_;
  KernelSink& sink_;
  int kept_ = 0;
  std::string_view fault_;
};

void read_linear(const KernelFile& file, KernelSink& sink) {
  RowTable t(file, sink);
  const auto tokens_at = t.csv.need("num_tokens");
  const ShapeColumns shape(file, sink, t.csv);
  std::array<KernelCsv::Column, std::size(kParts)> times{};
  for (std::size_t i = 0; i < times.size(); ++i) times[i] = t.csv.find(median_of(kParts[i].first));
  const auto up_at = t.csv.find(median_of("mlp_up_proj"));
  t.csv.ignore_rest();
  t.csv.start("vidur linear operators");
  PartsRow row(t, sink);
  double tokens = 0.0;
  while (t.next()) {
    if (!t.numbers({{tokens_at, &tokens}})) continue;
    const std::string key = shape.key(t);
    std::vector<StepOp> ops;
    const auto curve = [&](std::string_view part, std::initializer_list<std::string_view> names) {
      return sink.curve(fmt::format("{}|{}", part, key), [&]() -> KernelCurve {
        const bool heads =
            part == "attn_pre_proj" || part == "attn_rope" || part == "attn_post_proj";
        if (heads && !shape.head_size_known(t)) {
          sink.note(
              fmt::format("{}: the head size is not told; name the model with --model to use "
                          "its attention projections",
                          file.path));
          return {};
        }
        if (ops.empty()) ops = shape.ops(t);
        const KernelForms forms = sum_of_ops(ops, names);
        if (forms.kernels == 0) return {};
        return {std::string(part), fmt::format("{},tp={}", part, t.csv.text(shape.tp)), forms};
      });
    };
    row.begin();
    const Features x = token_features(tokens);
    for (std::size_t i = 0; i < times.size(); ++i) {
      row.take(curve(kParts[i].first, {kParts[i].second}), times[i], x, tokens);
    }
    row.take(curve("mlp_up_proj", {"gate_up_proj", "up_proj"}), up_at, x, tokens);
    row.end();
  }
}

/// batch_size sequences: prompts of prefill_chunk_size after kv_cache_size cached tokens, or
/// decodes of kv_cache_size cached tokens and the new one.
void read_attention_rows(const KernelFile& file, KernelSink& sink) {
  RowTable t(file, sink);
  const auto batch_at = t.csv.need("batch_size"), chunk_at = t.csv.need("prefill_chunk_size");
  const auto cached_at = t.csv.need("kv_cache_size"), prefill_at = t.csv.need("is_prefill");
  const ShapeColumns shape(file, sink, t.csv);
  const auto prefill_time = t.csv.need(median_of("attn_prefill"));
  const auto decode_time = t.csv.need(median_of("attn_decode"));
  const auto mixed_at = t.csv.find("is_mixed_batch"), both_at = t.csv.find("is_true_mixed_batch");
  const auto mode_at = t.csv.find("mode"), arch_at = t.csv.find("attention_backend");
  t.csv.ignore_rest();
  t.csv.start("vidur attention");
  std::int64_t batch = 0, chunk = 0, cached = 0;
  while (t.next()) {
    const std::string_view mode = t.csv.text(mode_at);
    if (t.csv.text(mixed_at) == "True" || t.csv.text(both_at) == "True" ||
        !(mode.empty() || mode == "even")) {
      sink.drop("a batch of unequal sequences");
      continue;
    }
    if (!t.counts({{batch_at, &batch}, {chunk_at, &chunk}, {cached_at, &cached}})) continue;
    const bool prefill = t.csv.text(prefill_at) == "True";
    if (batch == 0 || (prefill && chunk == 0)) {
      sink.drop("nothing to attend to");
      continue;
    }
    std::string key = shape.key(t);
    key += t.key({batch_at, arch_at, prefill ? cached_at : KernelCsv::kAbsent, prefill_at});
    const KernelCurve* curve = sink.curve(key, [&]() -> KernelCurve {
      if (!shape.head_size_known(t)) return {};
      const KernelForms forms =
          sum_of_ops(shape.ops(t), {prefill ? "attention_prefill" : "attention_decode"});
      if (forms.kernels == 0) return {};
      return {prefill ? "attn_prefill" : "attn_decode",
              prefill ? fmt::format("tp={},batch={},prior={}", t.csv.text(shape.tp), batch, cached)
                      : fmt::format("tp={},batch={}", t.csv.text(shape.tp), batch),
              forms};
    });
    if (curve == nullptr) {
      sink.drop("the head size is not told: name the model");
      continue;
    }
    t.set_time(prefill ? prefill_time : decode_time, kMilli);
    if (prefill) {
      t.add(*curve, prefill_features(double(batch), chunk, cached, 0), double(chunk));
    } else {
      t.add(*curve, decode_features(double(batch), cached + 1, 0), double(cached + 1));
    }
  }
}

/// Grouped GEMMs of one device of an expert-parallel group: total_routed_tokens rows over its own
/// experts, of which the share expert_utilization got any.
void read_expert_rows(const KernelFile& file, KernelSink& sink) {
  RowTable t(file, sink);
  const auto tokens_at = t.csv.need("num_tokens"), rows_at = t.csv.need("total_routed_tokens");
  const auto local_at = t.csv.need("num_experts_per_device"),
             used_at = t.csv.need("expert_utilization");
  const auto top_k_at = t.csv.need("router_topk"), hidden_at = t.csv.need("hidden_dim");
  const auto width_at = t.csv.need("expert_hidden_dim"), gated_at = t.csv.need("use_gated");
  const auto tp_at = t.csv.need("num_tensor_parallel_workers");
  const auto precision_at = t.csv.find("profiling_precision"), seed_at = t.csv.find("seed");
  const auto backend_at = t.csv.find("moe_grouped_gemm_backend");
  const auto ep_at = t.csv.find("expert_parallel_size"), total_at = t.csv.find("num_experts");
  t.set_time(t.csv.need(median_of("moe_grouped_gemm")), kMilli);
  t.csv.ignore_rest();
  t.csv.start("vidur experts");
  std::int64_t local = 0, top_k = 0, hidden = 0, width = 0, tp = 1;
  double tokens = 0.0, rows = 0.0, used = 0.0;
  while (t.next()) {
    if (!t.counts({{local_at, &local},
                   {top_k_at, &top_k},
                   {hidden_at, &hidden},
                   {width_at, &width},
                   {tp_at, &tp}}) ||
        !t.numbers({{tokens_at, &tokens}, {rows_at, &rows}, {used_at, &used}})) {
      continue;
    }
    const auto format = t.kernel_format(precision_at);
    if (!format) continue;
    if (local < 1 || top_k < 1 || tp < 1 || width % tp != 0) {
      sink.drop("experts do not divide by their ranks");
      continue;
    }
    const std::string key = t.key({local_at, top_k_at, hidden_at, width_at, tp_at, gated_at,
                                   precision_at, seed_at, backend_at, ep_at, total_at, used_at});
    const KernelCurve* curve = sink.curve(key, [&] {
      const ExpertShape shape{int(hidden), int(width / tp), int(local), int(std::min(top_k, local)),
                              t.csv.text(gated_at) != "False"};
      return KernelCurve{
          "moe_grouped_gemm",
          fmt::format("hidden={},inter={},topk={},experts={},tp={},ep={},used={}{}{}", hidden,
                      width, top_k, local, tp, t.csv.text(ep_at), t.csv.text(used_at),
                      t.suffix("seed", seed_at), t.suffix("kernel", backend_at)),
          expert_kernels(shape, *format)};
    });
    Features x = token_features(rows / double(std::min(top_k, local)));
    at(x, Feature::kExpertsHit) = std::min(1.0, used) * double(local);
    t.add(*curve, x, rows);
  }
}

/// collective, num_workers, devices_per_node (of those that take part), size in bytes.
void read_network(const KernelFile& file, KernelSink& sink) {
  RowTable t(file, sink);
  const auto op_at = t.csv.need("collective"), devices_at = t.csv.need("num_workers");
  const auto size_at = t.csv.need("size"), per_node_at = t.csv.find("devices_per_node");
  const auto rank_at = t.csv.find("rank");
  const auto all_reduce = t.csv.find(median_of("all_reduce"));
  const auto send_recv = t.csv.find(median_of("send_recv"));
  t.csv.ignore_rest();
  t.csv.start("vidur network");
  double devices = 0.0, size = 0.0, per_node = 0.0;
  while (t.next()) {
    if (!t.numbers({{devices_at, &devices}, {size_at, &size}, {per_node_at, &per_node}})) continue;
    if (rank_at != KernelCsv::kAbsent && t.csv.text(rank_at) != "0") {
      sink.drop("the same transfer, seen by another rank");
      continue;
    }
    const auto ms = t.csv.number(all_reduce != KernelCsv::kAbsent ? all_reduce : send_recv);
    if (!sink.take_time(ms)) continue;
    CollectiveSample s;
    s.op = std::string(t.csv.text(op_at));
    s.variant = per_node > 0.0 && per_node < devices
                    ? fmt::format("nccl_{}_per_node", static_cast<int>(per_node))
                    : "nccl";
    s.devices = static_cast<int>(devices);
    s.bytes = size;
    s.time_s = *ms * kMilli;
    sink.add(std::move(s));
  }
}
}  // namespace

bool takes_vidur(const KernelFile& file) {
  return file.has({"time_stats.attn_prefill.median", "n_embd", "kv_cache_size"}) ||
         file.has({"time_stats.attn_pre_proj.median", "n_embd", "num_tokens"}) ||
         file.has({"time_stats.moe_grouped_gemm.median", "total_routed_tokens"}) ||
         file.has({"num_workers", "collective", "size"});
}

void read_vidur(const KernelFile& file, KernelSink& sink) {
  sink.device(device_after(file, {"compute", "network"}));
  if (file.has({"kv_cache_size"})) return read_attention_rows(file, sink);
  if (file.has({"time_stats.moe_grouped_gemm.median"})) return read_expert_rows(file, sink);
  if (file.has({"num_workers"})) return read_network(file, sink);
  read_linear(file, sink);
}

}  // namespace medley
