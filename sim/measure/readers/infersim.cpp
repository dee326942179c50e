#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/measure/kernel_models.h"
#include "sim/measure/readers/profile_folder.h"
#include "sim/measure/readers/row_table.h"

namespace medley {

namespace {
/// GEMM tables say no format; their own mfu column is a share of the fp8 peak.
constexpr KernelFormat kGemmFormat{DType::kFp8, DType::kFp8};

/// Three sizes in the file's name: "32-8-128.csv".
std::optional<std::array<int, 3>> sizes_in_name(const KernelFile& file) {
  std::string name = file.name();
  if (!name.ends_with(".csv")) return std::nullopt;
  name.resize(name.size() - 4);
  std::array<int, 3> sizes{};
  std::string_view rest = name;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t end = i < 2 ? rest.find('-') : rest.size();
    if (end == std::string_view::npos) return std::nullopt;
    const auto value = number_in(rest.substr(0, end));
    if (!value || *value < 1.0 || *value > 1e6) return std::nullopt;
    sizes[i] = static_cast<int>(*value);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return sizes;
}

bool in_folder(const KernelFile& file, std::string_view name) {
  return file.path.find(fmt::format("/{}/", name)) != std::string::npos;
}

void read_gemm_rows(const KernelFile& file, KernelSink& sink) {
  RowTable t(file, sink);
  const auto m_at = t.csv.need("m"), k_at = t.csv.need("k"), n_at = t.csv.need("n");
  t.set_time(t.csv.need("latency_us"), kMicro);
  t.csv.ignore({"mfu"});
  t.csv.start("infersim gemm");
  std::int64_t m = 0, n = 0, k = 0;
  while (t.next()) {
    if (!t.counts({{m_at, &m}, {n_at, &n}, {k_at, &k}})) continue;
    const KernelCurve* curve = sink.curve(t.key({n_at, k_at}), [&] {
      return KernelCurve{"gemm", fmt::format("n={},k={}", n, k),
                         gemm_kernel(double(k), double(n), kGemmFormat)};
    });
    t.add(*curve, token_features(double(m)), double(m));
  }
}

/// Each row times the two grouped GEMMs apart, at tokens_per_expert rows for every local expert.
void read_grouped_rows(const KernelFile& file, KernelSink& sink) {
  RowTable t(file, sink);
  const auto local_at = t.csv.need("num_local_experts"), top_k_at = t.csv.need("topk");
  const auto hidden_at = t.csv.need("hidden_size"), width_at = t.csv.need("intermediate_size");
  const auto each_at = t.csv.need("tokens_per_expert");
  const auto up_at = t.csv.need("up_proj_us"), down_at = t.csv.need("down_proj_us");
  t.csv.ignore(
      {"num_experts", "num_gpus", "batch_size_per_gpu", "seq_len_per_gpu", "up_mfu", "down_mfu"});
  t.csv.start("infersim grouped gemm");
  const std::string layout = in_folder(file, "decode") ? "masked" : "contiguous";
  std::int64_t local = 0, top_k = 0, hidden = 0, width = 0;
  double each = 0.0;
  while (t.next()) {
    if (!t.counts(
            {{local_at, &local}, {top_k_at, &top_k}, {hidden_at, &hidden}, {width_at, &width}}) ||
        !t.numbers({{each_at, &each}})) {
      continue;
    }
    if (local < 1 || top_k < 1) {
      sink.drop("a size is not positive");
      continue;
    }
    const int k = static_cast<int>(std::min(top_k, local));
    Features x = token_features(each * double(local) / k);
    at(x, Feature::kExpertsHit) = double(local);
    const auto add = [&](const char* op, const char* name, KernelCsv::Column time) {
      const KernelCurve* curve =
          sink.curve(op + t.key({local_at, top_k_at, hidden_at, width_at}), [&] {
            KernelForms forms = sum_of_ops(
                expert_ops({int(hidden), int(width), int(local), k, true}, kGemmFormat), {name});
            forms.weights = kGemmFormat.weights;
            return KernelCurve{
                op, fmt::format("hidden={},inter={},experts={},{}", hidden, width, local, layout),
                forms};
          });
      const auto us = t.csv.number(time);
      return sink.try_add(*curve, curve->forms.flops(x), curve->forms.bytes(x),
                          {each * double(local), us.value_or(0.0) * kMicro, {}, {}});
    };
    const std::string_view up = add("up_proj", "expert_gate_up", up_at);
    const std::string_view down = add("down_proj", "expert_down", down_at);
    if (up.empty() || down.empty()) {
      sink.keep_row();
    } else {
      sink.drop(up);
    }
  }
}

/// mha: heads-kv_heads-head_dim in the name; mla: heads first, DeepSeek-V3's sizes.
KernelForms attention_forms(const KernelFile& file, KernelSink& sink, bool latent, bool decode,
                            const std::array<int, 3>& sizes, DType arithmetic, DType kv) {
  if (!latent) {
    return attention_kernel({sizes[0], sizes[1], sizes[2], 0, arithmetic, kv}, decode);
  }
  KernelForms forms =
      latent_core(kernel_model(sink.options(), "deepseek-ai/DeepSeek-V3", file.path), sizes[0],
                  {DType::kBf16, DType::kBf16}, kv, decode);
  forms.dtype = arithmetic;
  return forms;
}

void read_attention_table(const KernelFile& file, KernelSink& sink) {
  RowTable t(file, sink);
  const auto dtype_at = t.csv.need("dtype"), kv_at = t.csv.find("kv_dtype");
  const auto batch_at = t.csv.find("batch_size");
  const bool decode = t.csv.has("kv_len");
  const auto length_at = t.csv.need(decode ? "kv_len" : "seq_len");
  t.set_time(t.csv.need("latency_us"), kMicro);
  t.csv.ignore({"mfu"});
  t.csv.start("infersim attention");
  const auto sizes = sizes_in_name(file);
  if (!sizes) {
    throw InputError(file.path, "", "has no sizes in its name", "heads-kv_heads-head_dim.csv");
  }
  const bool latent = in_folder(file, "mla");
  const char* op =
      latent ? (decode ? "mla_decode" : "mla_prefill") : (decode ? "mha_decode" : "mha_prefill");
  std::int64_t batch = 1, length = 0;
  while (t.next()) {
    if (!t.counts({{batch_at, &batch}, {length_at, &length}})) continue;
    const auto arithmetic = t.kernel_format(dtype_at);
    const auto kv =
        !arithmetic || kv_at == KernelCsv::kAbsent ? arithmetic : t.kernel_format(kv_at);
    if (!kv) continue;
    const KernelCurve* curve = sink.curve(t.key({dtype_at, kv_at, batch_at}), [&] {
      return KernelCurve{
          op,
          fmt::format("heads={},kv={},d={},batch={}{}", (*sizes)[0], (*sizes)[1], (*sizes)[2],
                      batch, t.suffix("kv_dtype", kv_at)),
          attention_forms(file, sink, latent, decode, *sizes, arithmetic->arithmetic, kv->weights)};
    });
    t.add(*curve,
          decode ? decode_features(double(batch), length, 0)
                 : prefill_features(double(batch), length, 0, 0),
          double(length));
  }
}
}  // namespace

bool takes_infersim(const KernelFile& file) {
  return file.has({"m", "k", "n", "latency_us"}) ||
         file.has({"num_local_experts", "tokens_per_expert", "up_proj_us", "down_proj_us"}) ||
         ((file.has({"dtype", "kv_len", "latency_us"}) ||
           file.has({"dtype", "seq_len", "latency_us"})) &&
          sizes_in_name(file).has_value());
}

void read_infersim(const KernelFile& file, KernelSink& sink) {
  sink.device(device_after(file, {"gemm", "decode", "prefill"}));
  if (file.has({"m", "k", "n"})) return read_gemm_rows(file, sink);
  if (file.has({"up_proj_us"})) return read_grouped_rows(file, sink);
  read_attention_table(file, sink);
}

}  // namespace medley
