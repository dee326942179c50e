#include <fmt/format.h>

#include <algorithm>

#include "sim/scenario/missing.h"
#include "sim/scenario/read.h"

namespace medley {

namespace {
struct Scheme {
  const char* name;
  DType weights;
  bool arithmetic;  ///< GEMMs compute in it too
};
constexpr Scheme kSchemes[] = {{"fp8", DType::kFp8, true},    {"int8", DType::kInt8, true},
                               {"w8a8", DType::kInt8, true},  {"awq", DType::kInt4, false},
                               {"gptq", DType::kInt4, false}, {"int4", DType::kInt4, false},
                               {"mxfp4", DType::kFp4, false}, {"nvfp4", DType::kFp4, true}};

const Scheme* find_scheme(const std::string& name) {
  for (const Scheme& s : kSchemes) {
    if (name == s.name) return &s;
  }
  return nullptr;
}

std::vector<std::string> scheme_names() {
  std::vector<std::string> names = {"auto", "none"};
  for (const Scheme& s : kSchemes) names.push_back(s.name);
  return names;
}

/// How the checkpoint as published is served.
std::string published_scheme(const ModelSpec& model) {
  if (!model.quantization) return "none";
  switch (*model.quantization) {
    case DType::kFp8:
      return "fp8";
    case DType::kInt8:
      return "int8";
    case DType::kInt4:
      return "int4";
    case DType::kFp4:
    case DType::kFp6:
      return "mxfp4";
    default:
      return "none";
  }
}

bool is_compute_dtype(DType d) {
  return d == DType::kBf16 || d == DType::kFp16 || d == DType::kFp32;
}

/// "auto" for a checkpoint: its own format; 32-bit ones are served in 16 bit where the device can.
DType auto_dtype(const ModelSpec& model, const DeviceSpec& device) {
  if (is_compute_dtype(model.dtype) && model.dtype != DType::kFp32) return model.dtype;
  if (device.peak[index(DType::kBf16)].known()) return DType::kBf16;
  if (device.peak[index(DType::kFp16)].known()) return DType::kFp16;
  return DType::kBf16;
}

bool covers(const std::vector<DType>& list, DType d) {
  return std::find(list.begin(), list.end(), d) != list.end();
}

std::string names_of(const std::vector<DType>& list) {
  std::string out;
  for (const DType d : list) out += (out.empty() ? "" : ", ") + std::string(to_string(d));
  return out;
}

/// What the user changes to get the format `to`.
std::string remedy(std::string_view key, DType to) {
  if (key == "dtype") return fmt::format("set \"dtype\": \"{}\"", to_string(to));
  if (to == DType::kFp8 || to == DType::kInt8) {
    return fmt::format("set \"quantization\": \"{}\"", to_string(to));
  }
  return "set \"quantization\": \"none\"";
}

/// The format that `device` computes `wanted` in; a conversion needs the user's leave.
DType arithmetic(ResolvingReader& pool, std::string_view key, DType wanted,
                 const DeviceSpec& device, bool allowed, const std::string& group) {
  if (device.peak[index(wanted)].known()) return wanted;
  const std::optional<DType> other = compute_fallback(device, wanted);
  if (!other) {
    const std::string field = fmt::format("peak.{}", to_string(wanted));
    pool.problem(key,
                 fmt::format("the catalogue knows no {} rate of {} ({}), nor of a format that {} "
                             "could be converted to",
                             to_string(wanted), device.name, field, to_string(wanted)),
                 "supply it with " + set_line(group, field));
    return wanted;
  }
  if (allowed) return *other;
  pool.problem(key,
               fmt::format("{} has no native {}; it would be converted and computed in {}",
                           device.name, to_string(wanted), to_string(*other)),
               fmt::format("{}, or accept the conversion with \"allow_dtype_fallback\": true",
                           remedy(key, *other)));
  return *other;
}

DType read_dtype(ResolvingReader& pool, const ModelSpec& model, const DeviceSpec& device) {
  const std::string text = pool.in().text_or("dtype", "auto");
  DType dtype = auto_dtype(model, device);
  if (text != "auto") {
    const std::optional<DType> parsed = parse_dtype(text);
    if (parsed && is_compute_dtype(*parsed)) {
      dtype = *parsed;
    } else {
      pool.problem("dtype", fmt::format("\"{}\" is no format of activations", text),
                   parsed ? fmt::format("narrower weights are set by \"quantization\": \"{}\"",
                                        to_string(*parsed))
                          : suggest(text, {"auto", "bf16", "fp16", "fp32"}));
    }
  }
  pool.set("dtype", std::string(to_string(dtype)));
  return dtype;
}

DType read_kv(ResolvingReader& pool, DType dtype, const BackendSpec& backend) {
  const std::string text = pool.in().text_or("kv_cache_dtype", "auto");
  DType kv = dtype;
  if (text != "auto") {
    if (const std::optional<DType> parsed = parse_dtype(text)) {
      kv = *parsed;
    } else {
      pool.problem("kv_cache_dtype", fmt::format("unknown number format \"{}\"", text),
                   suggest(text, dtype_names()));
    }
  }
  if (!covers(backend.kv_dtypes, kv)) {
    pool.problem("kv_cache_dtype",
                 fmt::format("backend {} keeps no KV cache in {}", backend.name, to_string(kv)),
                 "it does in " + names_of(backend.kv_dtypes));
  }
  pool.set("kv_cache_dtype", std::string(to_string(kv)));
  return kv;
}
}  // namespace

Precision read_precision(ResolvingReader& pool, ModelSpec& model, const DeviceSpec& device,
                         const BackendSpec& backend, const std::string& group) {
  const bool allowed = pool.boolean_or("allow_dtype_fallback", false);
  const DType dtype = read_dtype(pool, model, device);
  const DType native = arithmetic(pool, "dtype", dtype, device, allowed, group);
  Precision precision{dtype, native, read_kv(pool, dtype, backend)};

  std::string name = pool.in().text_or("quantization", "auto");
  if (name == "auto") name = published_scheme(model);
  const Scheme* scheme = find_scheme(name);
  if (!scheme && name != "none") {
    pool.problem("quantization", fmt::format("unknown quantization \"{}\"", name),
                 suggest(name, scheme_names()));
  }
  if (scheme) {
    precision.weights = scheme->weights;
    if (scheme->arithmetic) {
      precision.activations =
          arithmetic(pool, "quantization", scheme->weights, device, allowed, group);
    }
  }
  if (!covers(backend.weight_dtypes, precision.weights)) {
    pool.problem(scheme ? "quantization" : "dtype",
                 fmt::format("backend {} has no kernels for {} weights", backend.name,
                             to_string(precision.weights)),
                 "it has for " + names_of(backend.weight_dtypes));
  }
  pool.set("quantization", name);
  model.dtype = native == DType::kFp32 ? dtype : native;
  return precision;
}

}  // namespace medley
