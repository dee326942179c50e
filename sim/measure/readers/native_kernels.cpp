#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/measure/readers/row_table.h"

namespace medley {

namespace {
struct TimeUnit {
  const char* column;
  double seconds;
};
constexpr std::array<TimeUnit, 4> kTimeUnits = {
    {{"time_s", 1.0}, {"time_ms", 1e-3}, {"time_us", 1e-6}, {"time_ns", 1e-9}}};

struct NativeColumns {
  explicit NativeColumns(KernelCsv& csv)
      : op_class(csv.need("op_class")),
        dtype(csv.find("dtype")),
        weights(csv.find("weights")),
        op(csv.find("op")),
        curve(csv.find("curve")),
        position(csv.find("position")),
        flops(csv.find("flops")),
        bytes(csv.find("bytes")),
        kernels(csv.find("kernels")),
        m(csv.find("m")),
        n(csv.find("n")),
        k(csv.find("k")),
        batch(csv.find("batch")),
        heads(csv.find("heads")),
        kv_heads(csv.find("kv_heads")),
        head_dim(csv.find("head_dim")),
        context(csv.find("context")),
        prior(csv.find("prior")),
        window(csv.find("window")),
        tokens(csv.find("tokens")),
        hidden(csv.find("hidden")),
        width(csv.find("width")),
        experts(csv.find("experts")),
        top_k(csv.find("top_k")),
        hit(csv.find("experts_hit")),
        variant(csv.find("variant")),
        devices(csv.find("devices")) {}
  using C = KernelCsv::Column;
  C op_class, dtype, weights, op, curve, position, flops, bytes, kernels, m, n, k, batch, heads,
      kv_heads, head_dim, context, prior, window, tokens, hidden, width, experts, top_k, hit,
      variant, devices;
};

class NativeTable {
 public:
  NativeTable(const KernelFile& file, KernelSink& sink) : t_(file, sink), sink_(sink), c_(t_.csv) {
    int times = 0;
    for (const TimeUnit& unit : kTimeUnits) {
      const auto column = t_.csv.find(unit.column);
      if (column == KernelCsv::kAbsent) continue;
      t_.set_time(column, unit.seconds);
      ++times;
    }
    t_.set_power(t_.csv.find("watts"), t_.csv.find("limit_watts"));
    Problems problems;
    if (times != 1) {
      problems.add(file.path, "line 1", fmt::format("has {} columns of time", times),
                   "one of time_s, time_ms, time_us, time_ns");
    }
    unknown_columns(file, problems);
    problems.throw_if_any();
    t_.csv.start("native kernels");
  }

  void read() {
    while (t_.next()) {
      const auto op_class = parse_op_class(t_.csv.text(c_.op_class));
      if (!op_class) {
        sink_.drop(fmt::format("unknown op class `{}`", t_.csv.text(c_.op_class)));
      } else if (*op_class == OpClass::kCollective) {
        collective();
      } else {
        kernel(*op_class);
      }
    }
  }

 private:
  void unknown_columns(const KernelFile& file, Problems& problems) {
    static const std::vector<std::string> known = {
        "op_class", "dtype",    "weights", "op",          "curve",   "position",   "flops",
        "bytes",    "kernels",  "m",       "n",           "k",       "batch",      "heads",
        "kv_heads", "head_dim", "context", "prior",       "window",  "tokens",     "hidden",
        "width",    "experts",  "top_k",   "experts_hit", "variant", "devices",    "device",
        "time_s",   "time_ms",  "time_us", "time_ns",     "watts",   "limit_watts"};
    for (const std::string& name : t_.csv.header()) {
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        problems.add(file.path, "line 1", fmt::format("unknown column `{}`", name),
                     suggest(name, known));
      }
    }
  }
  bool filled(KernelCsv::Column column) const { return !t_.csv.text(column).empty(); }

  std::optional<KernelFormat> format() {
    const auto arithmetic = t_.kernel_format(filled(c_.dtype) ? c_.dtype : KernelCsv::kAbsent);
    if (!arithmetic || !filled(c_.weights)) return arithmetic;
    const auto weights = t_.kernel_format(c_.weights);
    if (!weights) return std::nullopt;
    return KernelFormat{arithmetic->arithmetic, weights->weights};
  }

  void collective() {
    double devices = 0.0, bytes = 0.0;
    if (!filled(c_.devices) || !filled(c_.bytes)) {
      sink_.drop("a collective without devices and bytes");
      return;
    }
    if (!t_.numbers({{c_.devices, &devices}, {c_.bytes, &bytes}})) return;
    const auto time_s = t_.time();
    if (!sink_.take_time(time_s)) return;
    const std::string op(filled(c_.op) ? t_.csv.text(c_.op) : "all_reduce");
    sink_.add(CollectiveSample{op, std::string(t_.csv.text(c_.variant)), static_cast<int>(devices),
                               bytes, *time_s});
  }

  void kernel(OpClass op_class) {
    const auto told = format();
    if (!told) return;
    if (filled(c_.flops) || filled(c_.bytes)) return direct(op_class, *told);
    if (op_class == OpClass::kGemm && filled(c_.m)) return gemm(*told);
    if (op_class == OpClass::kAttentionPrefill || op_class == OpClass::kAttentionDecode) {
      return attention(op_class == OpClass::kAttentionDecode, *told);
    }
    if (op_class == OpClass::kGroupedGemm && filled(c_.tokens)) return experts(*told);
    sink_.drop("neither flops and bytes nor the sizes of its op class");
  }

  std::string op_or(const char* otherwise) const {
    return filled(c_.op) ? std::string(t_.csv.text(c_.op)) : otherwise;
  }

  void direct(OpClass op_class, const KernelFormat& told) {
    double flops = 0.0, bytes = 0.0, position = 0.0;
    std::int64_t kernels = 1;
    const auto number = [&](KernelCsv::Column column, double& into) {
      const auto value = filled(column) ? t_.csv.number(column) : std::optional(0.0);
      if (value && *value >= 0.0) into = *value;
      return value && *value >= 0.0;
    };
    if (!number(c_.flops, flops) || !number(c_.bytes, bytes) || !number(c_.position, position)) {
      return sink_.drop("a size cannot be read");
    }
    if (filled(c_.kernels) && !t_.counts({{c_.kernels, &kernels}})) return;
    const auto& key = t_.key({c_.op_class, c_.dtype, c_.weights, c_.op, c_.curve, c_.kernels,
                              filled(c_.position) ? KernelCsv::kAbsent : c_.flops,
                              filled(c_.position) ? KernelCsv::kAbsent : c_.bytes});
    const KernelCurve* curve = sink_.curve(key, [&] {
      KernelForms forms;
      forms.op_class = op_class;
      forms.dtype = told.arithmetic;
      forms.weights = told.weights;
      forms.kernels = static_cast<int>(kernels);
      return KernelCurve{op_or(std::string(to_string(op_class)).c_str()),
                         std::string(t_.csv.text(c_.curve)), forms};
    });
    t_.add(*curve, flops, bytes, position);
  }

  void gemm(const KernelFormat& told) {
    std::int64_t m = 0, n = 0, k = 0;
    if (!t_.counts({{c_.m, &m}, {c_.n, &n}, {c_.k, &k}})) return;
    if (m * n * k == 0) return sink_.drop("a size is not positive");
    const KernelCurve* curve =
        sink_.curve(t_.key({c_.op_class, c_.dtype, c_.weights, c_.op, c_.n, c_.k}), [&] {
          return KernelCurve{op_or("gemm"), fmt::format("n={},k={}", n, k),
                             gemm_kernel(double(k), double(n), told)};
        });
    t_.add(*curve, token_features(double(m)), double(m));
  }

  void attention(bool decode, const KernelFormat& told) {
    std::int64_t batch = 1, heads = 0, kv = 0, dim = sink_.options().head_dim, context = 0,
                 prior = 0, window = 0;
    for (const auto& [column, into] : {std::pair{c_.batch, &batch},
                                       {c_.heads, &heads},
                                       {c_.kv_heads, &kv},
                                       {c_.head_dim, &dim},
                                       {c_.context, &context},
                                       {c_.prior, &prior},
                                       {c_.window, &window}}) {
      if (filled(column) && !t_.counts({{column, into}})) return;
    }
    if (kv == 0) kv = heads;
    if (heads == 0 || heads % kv != 0 || dim == 0 || batch == 0 || context == 0) {
      return sink_.drop("neither flops and bytes nor the sizes of its op class");
    }
    const auto& key = t_.key({c_.op_class, c_.dtype, c_.weights, c_.op, c_.batch, c_.heads,
                              c_.kv_heads, c_.head_dim, c_.prior, c_.window});
    const KernelCurve* curve = sink_.curve(key, [&] {
      const AttentionShape shape{int(heads),  int(kv),         int(dim),
                                 int(window), told.arithmetic, told.weights};
      return KernelCurve{op_or(decode ? "attention_decode" : "attention_prefill"),
                         fmt::format("heads={},kv={},d={},window={},batch={},prior={}", heads, kv,
                                     dim, window, batch, prior),
                         attention_kernel(shape, decode)};
    });
    t_.add(*curve,
           decode ? decode_features(double(batch), context, int(window))
                  : prefill_features(double(batch), context, prior, int(window)),
           double(context));
  }

  void experts(const KernelFormat& told) {
    std::int64_t tokens = 0, hidden = 0, width = 0, count = 0, top_k = 0;
    if (!t_.counts({{c_.tokens, &tokens},
                    {c_.hidden, &hidden},
                    {c_.width, &width},
                    {c_.experts, &count},
                    {c_.top_k, &top_k}})) {
      return;
    }
    if (tokens * hidden * width * count * top_k == 0 || top_k > count) {
      return sink_.drop("neither flops and bytes nor the sizes of its op class");
    }
    double hit = experts_hit(double(tokens), int(count), int(top_k));
    if (filled(c_.hit) && !t_.numbers({{c_.hit, &hit}})) return;
    const auto& key = t_.key(
        {c_.op_class, c_.dtype, c_.weights, c_.op, c_.hidden, c_.width, c_.experts, c_.top_k});
    const KernelCurve* curve = sink_.curve(key, [&] {
      return KernelCurve{
          op_or("experts"),
          fmt::format("hidden={},inter={},topk={},experts={}", hidden, width, top_k, count),
          expert_kernels({int(hidden), int(width), int(count), int(top_k), true}, told)};
    });
    Features x = token_features(double(tokens));
    at(x, Feature::kExpertsHit) = hit;
    t_.add(*curve, x, double(tokens));
  }

  RowTable t_;
  KernelSink& sink_;
  NativeColumns c_;
};
}  // namespace

bool takes_native_kernels(const KernelFile& file) {
  return file.has({"op_class"});
}

void read_native_kernels(const KernelFile& file, KernelSink& sink) {
  NativeTable(file, sink).read();
}

}  // namespace medley
