#include "sim/core/op.h"

#include <utility>

namespace medley {

namespace {
constexpr std::array<std::string_view, kDTypes> kDTypeNames = {
    "fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp6", "fp4", "int4"};
constexpr std::array<std::string_view, kOpClasses> kOpClassNames = {
    "gemm",     "grouped_gemm", "attention_prefill", "attention_decode", "elementwise", "embedding",
    "sampling", "conv",         "recurrent",         "collective",       "copy",        "host"};
constexpr std::pair<std::string_view, DType> kDTypeAliases[] = {
    {"float64", DType::kFp64}, {"double", DType::kFp64},    {"float32", DType::kFp32},
    {"float", DType::kFp32},   {"bfloat16", DType::kBf16},  {"float16", DType::kFp16},
    {"half", DType::kFp16},    {"fp8_e4m3", DType::kFp8},   {"fp8_e5m2", DType::kFp8},
    {"fp8_inc", DType::kFp8},  {"fbgemm_fp8", DType::kFp8}, {"w8a8", DType::kInt8},
    {"mxfp4", DType::kFp4},    {"nvfp4", DType::kFp4},      {"modelopt_fp4", DType::kFp4},
    {"awq", DType::kInt4},     {"gptq", DType::kInt4},      {"w4a16", DType::kInt4},
    {"mxfp6", DType::kFp6},    {"q8_0", DType::kInt8},      {"q4_0", DType::kInt4}};

template <std::size_t N>
std::vector<std::string> to_strings(const std::array<std::string_view, N>& names) {
  return {names.begin(), names.end()};
}
}  // namespace

std::string_view to_string(DType d) {
  return kDTypeNames[index(d)];
}
std::string_view to_string(OpClass c) {
  return kOpClassNames[index(c)];
}

std::optional<DType> parse_dtype(std::string_view text) {
  for (std::size_t i = 0; i < kDTypeNames.size(); ++i) {
    if (kDTypeNames[i] == text) return static_cast<DType>(i);
  }
  for (const auto& [alias, dtype] : kDTypeAliases) {
    if (alias == text) return dtype;
  }
  return std::nullopt;
}

double bytes_of(DType d) {
  switch (d) {
    case DType::kFp64:
      return 8.0;
    case DType::kFp32:
    case DType::kTf32:
      return 4.0;
    case DType::kBf16:
    case DType::kFp16:
      return 2.0;
    case DType::kFp8:
    case DType::kInt8:
      return 1.0;
    case DType::kFp6:
      return 0.75 + 1.0 / 32;  // one shared scale byte per 32 elements (OCP MX)
    case DType::kFp4:
      return 0.5 + 1.0 / 32;  // likewise
    case DType::kInt4:
      return 0.5 + 2.0 / 128;  // one fp16 scale per group of 128 (AWQ, GPTQ)
  }
  return 0.0;
}

std::optional<OpClass> parse_op_class(std::string_view text) {
  for (std::size_t i = 0; i < kOpClassNames.size(); ++i) {
    if (kOpClassNames[i] == text) return static_cast<OpClass>(i);
  }
  return std::nullopt;
}

const std::vector<std::string>& dtype_names() {
  static const std::vector<std::string> names = to_strings(kDTypeNames);
  return names;
}
const std::vector<std::string>& op_class_names() {
  static const std::vector<std::string> names = to_strings(kOpClassNames);
  return names;
}

}  // namespace medley
