#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "sim/measure/kernel_models.h"
#include "sim/measure/readers/kernel_readers.h"
#include "sim/measure/readers/row_table.h"

namespace medley {

namespace {

/// What all of these tables have beside their axes.
class PerfTable : public RowTable {
 public:
  PerfTable(const KernelFile& file, KernelSink& sink) : RowTable(file, sink) {
    set_time(csv.need("latency"), kMilli);
    set_power(csv.find("power"), csv.find("power_limit"));
    csv.ignore({"framework", "version", "op_name", "beam_width"});
    if (!csv.has("device")) {
      const std::string name = file.name();
      if (const std::size_t end = name.find("__"); end != std::string::npos) {
        sink.device(name.substr(0, end));
      }
    }
  }
};

void read_gemm(const KernelFile& file, KernelSink& sink) {
  PerfTable t(file, sink);
  const auto m_at = t.csv.need("m"), n_at = t.csv.need("n"), k_at = t.csv.need("k");
  const auto format_at = t.csv.find("gemm_dtype");
  const auto source_at = t.csv.find("kernel_source");
  t.csv.start("aiconfigurator gemm");
  std::int64_t m = 0, n = 0, k = 0;
  while (t.next()) {
    if (!t.counts({{m_at, &m}, {n_at, &n}, {k_at, &k}})) continue;
    const auto format = t.kernel_format(format_at);
    if (!format) continue;
    const KernelCurve* curve = sink.curve(t.key({n_at, k_at, format_at, source_at}), [&] {
      return KernelCurve{"gemm",
                         fmt::format("n={},k={}{}{}", n, k, t.suffix("format", format_at),
                                     t.suffix("kernel", source_at)),
                         gemm_kernel(double(k), double(n), *format)};
    });
    t.add(*curve, token_features(double(m)), double(m));
  }
}

struct AttentionColumns {
  explicit AttentionColumns(KernelCsv& csv)
      : batch(csv.need("batch_size")),
        isl(csv.find("isl")),
        step(csv.find("step")),
        heads(csv.need("num_heads")),
        kv_heads(csv.need("num_key_value_heads")),
        head_dim(csv.find("head_dim")),
        window(csv.find("window_size")),
        dtype(csv.find("attn_dtype")),
        kv(csv.find("kv_cache_dtype")),
        source(csv.find("kernel_source")) {}
  KernelCsv::Column batch, isl, step, heads, kv_heads, head_dim, window, dtype, kv, source;
};

struct AttentionRow {
  std::int64_t batch = 0, isl = 1, step = 0, heads = 0, kv_heads = 0, head_dim = 0, window = 0;
};

bool attention_row(PerfTable& t, const AttentionColumns& c, int default_dim, AttentionRow& r) {
  r = AttentionRow{};
  r.head_dim = default_dim;
  if (!t.counts({{c.batch, &r.batch}, {c.heads, &r.heads}, {c.kv_heads, &r.kv_heads}}))
    return false;
  if (c.isl != KernelCsv::kAbsent && !t.counts({{c.isl, &r.isl}})) return false;
  if (c.step != KernelCsv::kAbsent && !t.counts({{c.step, &r.step}})) return false;
  if (c.head_dim != KernelCsv::kAbsent && !t.counts({{c.head_dim, &r.head_dim}})) return false;
  if (c.window != KernelCsv::kAbsent && !t.counts({{c.window, &r.window}})) return false;
  if (r.kv_heads == 0) r.kv_heads = r.heads;  // as the source writes "no grouping"
  return true;
}

KernelCurve attention_curve(PerfTable& t, KernelSink& sink, const AttentionColumns& c,
                            const AttentionRow& r, bool decode, const AttentionShape& shape) {
  const std::string prior = !decode && r.step > 0 ? fmt::format(",prior={}", r.step) : "";
  const std::string work =
      fmt::format("{},{},{},{},{},{},{}", shape.heads, shape.kv_heads, shape.head_dim, shape.window,
                  to_string(shape.arithmetic), to_string(shape.kv), decode);
  return {decode ? "generation_attention" : "context_attention",
          fmt::format("heads={},kv={},d={},window={},batch={}{}{}{}", shape.heads, shape.kv_heads,
                      shape.head_dim, shape.window, r.batch, prior, t.suffix("kv_dtype", c.kv),
                      t.suffix("kernel", c.source)),
          sink.forms(work, [&] { return attention_kernel(shape, decode); }), shape.window};
}

/// Generation: one new token per sequence after `step` cached ones, so a context of isl + step.
void read_attention(const KernelFile& file, KernelSink& sink) {
  PerfTable t(file, sink);
  const AttentionColumns c(t.csv);
  t.csv.start("aiconfigurator attention");
  const std::string name = file.name();
  const bool named = name.find("generation_attention") != std::string::npos ||
                     name.find("context_attention") != std::string::npos;
  const bool named_decode = name.find("generation_attention") != std::string::npos;
  AttentionRow r;
  while (t.next()) {
    if (!attention_row(t, c, sink.options().head_dim, r)) continue;
    if (r.heads <= 0 || r.heads % r.kv_heads != 0) {
      sink.drop("heads are no multiple of KV heads");
      continue;
    }
    const auto arithmetic = t.kernel_format(c.dtype);
    const auto kv = arithmetic ? t.kernel_format(c.kv) : std::nullopt;
    if (!kv) continue;
    const bool decode = named ? named_decode : r.isl == 1 && r.step > 0;
    const auto& key = t.key({c.batch, c.heads, c.kv_heads, c.head_dim, c.window, c.dtype, c.kv,
                             c.source, decode ? KernelCsv::kAbsent : c.step});
    const KernelCurve* curve = sink.curve(decode ? key + "d" : key, [&] {
      const AttentionShape shape{int(r.heads),  int(r.kv_heads),        int(r.head_dim),
                                 int(r.window), arithmetic->arithmetic, kv->weights};
      return attention_curve(t, sink, c, r, decode, shape);
    });
    const auto batch = static_cast<double>(r.batch);
    if (decode) {
      const std::int64_t length = r.isl + r.step;
      t.add(*curve, decode_features(batch, length, curve->window), double(length));
    } else {
      t.add(*curve, prefill_features(batch, r.isl, r.step, curve->window), double(r.isl));
    }
  }
}

/// A DeepSeek attention layer as one module: projections, rotary, cache write and attention.
void read_mla(const KernelFile& file, KernelSink& sink) {
  PerfTable t(file, sink);
  const auto batch_at = t.csv.need("batch_size"), heads_at = t.csv.need("num_heads");
  const auto isl_at = t.csv.find("isl"), step_at = t.csv.find("step");
  const auto kv_at = t.csv.find("kv_cache_dtype"), gemm_at = t.csv.find("gemm_type");
  const auto model_at = t.csv.find("model"), source_at = t.csv.find("kernel_source");
  t.csv.ignore({"mla_dtype", "architecture", "tp_size"});
  t.csv.start("aiconfigurator mla module");
  const bool decode = file.name().find("generation") != std::string::npos;
  std::int64_t batch = 0, heads = 0, isl = 1, step = 0;
  while (t.next()) {
    if (!t.counts({{batch_at, &batch}, {heads_at, &heads}})) continue;
    if (isl_at != KernelCsv::kAbsent && !t.counts({{isl_at, &isl}})) continue;
    if (step_at != KernelCsv::kAbsent && !t.counts({{step_at, &step}})) continue;
    const auto kv = t.kernel_format(kv_at);
    const auto gemm = kv ? t.kernel_format(gemm_at) : std::nullopt;
    if (!gemm) continue;
    const std::string key = t.key({batch_at, heads_at, kv_at, gemm_at, model_at, source_at});
    const KernelCurve* curve = sink.curve(key, [&] {
      const std::string named(t.csv.text(model_at));
      const KernelForms& forms = sink.forms(t.key({heads_at, kv_at, gemm_at, model_at}), [&] {
        const ModelSpec model = kernel_model(
            sink.options(), named.empty() ? "deepseek-ai/DeepSeek-V3" : named, file.path);
        return latent_module(model, int(heads), *gemm, kv->weights, decode);
      });
      return KernelCurve{
          decode ? "mla_generation_module" : "mla_context_module",
          fmt::format("heads={},batch={}{}{}{}", heads, batch, t.suffix("kv_dtype", kv_at),
                      t.suffix("format", gemm_at), t.suffix("kernel", source_at)),
          forms};
    });
    const auto sequences = static_cast<double>(batch);
    if (decode) {
      t.add(*curve, decode_features(sequences, isl + step, 0), double(isl + step));
    } else {
      t.add(*curve, prefill_features(sequences, isl, step, 0), double(isl));
    }
  }
}

/// How rows were routed, from "balanced", "power_law_1.2".
struct Routing {
  bool power_law = false;
  double exponent = 0.0;
};
std::optional<Routing> routing_in(std::string_view text) {
  if (text.empty() || text == "balanced") return Routing{};
  if (!text.starts_with("power_law")) return std::nullopt;
  const auto exponent = number_in(text.substr(std::min(text.size(), std::size_t{10})));
  if (!exponent) return std::nullopt;
  return Routing{true, *exponent};
}

struct ExpertRow {
  std::int64_t tokens = 0, hidden = 0, inter = 0, top_k = 0, experts = 0, tp = 1, ep = 1;
};

/// What one rank of an expert-parallel group runs: its share of the routed rows over its own
/// experts.
std::optional<ExpertShape> rank_shape(const ExpertRow& r) {
  if (r.tp < 1 || r.ep < 1 || r.top_k < 1 || r.experts % r.ep != 0 || r.inter % r.tp != 0) {
    return std::nullopt;
  }
  const std::int64_t local = r.experts / r.ep;
  return ExpertShape{int(r.hidden), int(r.inter / r.tp), int(local), int(std::min(r.top_k, local)),
                     true};
}

/// Collectors have dealt tokens to ranks in two ways (ceil(tokens / ranks) tokens over local
/// experts; whatever a global dealing sends to the first rank). They agree, and with them the rows
/// a rank gets, once every expert gets a token and a rank has at least top-k experts.
bool shares_are_even(const ExpertRow& r) {
  return r.tokens * r.top_k >= r.experts && r.top_k <= r.experts / r.ep;
}

/// Hits of one routing are asked for again and again: the same token counts on every shape.
class HitCounts {
 public:
  double operator()(const Routing& routing, double tokens, const ExpertShape& shape) {
    if (!routing.power_law) return balanced_experts_hit(tokens, shape.experts, shape.top_k);
    const auto [at, is_new] =
        known_.try_emplace({tokens, routing.exponent, shape.experts, shape.top_k}, 0.0);
    if (is_new) {
      at->second = power_law_experts_hit(tokens, shape.experts, shape.top_k, routing.exponent);
    }
    return at->second;
  }

 private:
  std::map<std::tuple<double, double, int, int>, double> known_;
};

void read_moe(const KernelFile& file, KernelSink& sink) {
  PerfTable t(file, sink);
  const auto tokens_at = t.csv.need("num_tokens"), hidden_at = t.csv.need("hidden_size");
  const auto inter_at = t.csv.need("inter_size"), top_k_at = t.csv.need("topk");
  const auto experts_at = t.csv.need("num_experts");
  const auto tp_at = t.csv.find("moe_tp_size"), ep_at = t.csv.find("moe_ep_size");
  const auto routing_at = t.csv.find("distribution"), format_at = t.csv.find("moe_dtype");
  const auto source_at = t.csv.find("kernel_source");
  t.csv.start("aiconfigurator moe");
  ExpertRow r;
  HitCounts hits;
  while (t.next()) {
    if (!t.counts({{tokens_at, &r.tokens},
                   {hidden_at, &r.hidden},
                   {inter_at, &r.inter},
                   {top_k_at, &r.top_k},
                   {experts_at, &r.experts}})) {
      continue;
    }
    if (tp_at != KernelCsv::kAbsent && !t.counts({{tp_at, &r.tp}})) continue;
    if (ep_at != KernelCsv::kAbsent && !t.counts({{ep_at, &r.ep}})) continue;
    const auto routing = routing_in(t.csv.text(routing_at));
    const auto shape = rank_shape(r);
    if (!routing || !shape) {
      sink.drop(routing ? "experts do not divide by their ranks" : "unknown routing");
      continue;
    }
    if (routing->power_law && r.ep > 1) {
      sink.drop("power-law routing over expert-parallel ranks: the busiest one's rows are unknown");
      continue;
    }
    if (r.ep > 1 && !shares_are_even(r)) {
      sink.drop("too few tokens over expert-parallel ranks: the rank's share is not recorded");
      continue;
    }
    const auto format = t.kernel_format(format_at);
    if (!format) continue;
    const auto& key = t.key({hidden_at, inter_at, top_k_at, experts_at, tp_at, ep_at, routing_at,
                             format_at, source_at});
    const KernelCurve* curve = sink.curve(key, [&] {
      return KernelCurve{
          "moe",
          fmt::format("hidden={},inter={},topk={},experts={},tp={},ep={}{}{}{}", r.hidden, r.inter,
                      r.top_k, r.experts, r.tp, r.ep, t.suffix("routing", routing_at),
                      t.suffix("format", format_at), t.suffix("kernel", source_at)),
          expert_kernels(*shape, *format)};
    });
    const double tokens = double(r.tokens) / double(r.ep);
    Features x = token_features(tokens);
    at(x, Feature::kExpertsHit) = hits(*routing, tokens, *shape);
    const KernelForms& f = curve->forms;
    // Rows of other ranks' experts are skipped by the products alone.
    t.add(*curve, f.flops(x), f.bytes(x), double(r.tokens),
          f.companion_bytes(token_features(double(r.tokens))));
  }
}
}  // namespace

bool takes_aiconfigurator(const KernelFile& file) {
  return file.has({"m", "n", "k", "latency"}) || file.has({"batch_size", "num_heads", "latency"}) ||
         file.has({"num_tokens", "hidden_size", "inter_size", "topk", "num_experts", "latency"}) ||
         takes_aiconfigurator_comm(file);
}

void read_aiconfigurator(const KernelFile& file, KernelSink& sink) {
  if (takes_aiconfigurator_comm(file)) return read_aiconfigurator_comm(file, sink);
  if (file.has({"num_tokens", "inter_size"})) return read_moe(file, sink);
  if (file.has({"batch_size", "num_heads", "num_key_value_heads"})) {
    return read_attention(file, sink);
  }
  if (file.has({"batch_size", "num_heads"})) return read_mla(file, sink);
  read_gemm(file, sink);
}

}  // namespace medley
