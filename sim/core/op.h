#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace medley {

/// Number formats of weights, activations, KV caches and arithmetic.
enum class DType : std::uint8_t {
  kFp64,
  kFp32,
  kTf32,
  kBf16,
  kFp16,
  kFp8,
  kInt8,
  kFp6,
  kFp4,
  kInt4
};
inline constexpr int kDTypes = 10;
std::string_view to_string(
    DType d);  ///< "fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp6", "fp4", "int4"
/// Also reads the serving engines' words: bfloat16, float16, half, float, fp8_e4m3, fp8_e5m2,
/// mxfp4, nvfp4, w8a8, awq, gptq (int4)...
std::optional<DType> parse_dtype(std::string_view text);
/// Bytes of one element in memory, block scales included where the format has them (fp4: 0.5 + 1/32
/// scale byte per 32 elements as in OCP MX).
double bytes_of(DType d);
const std::vector<std::string>& dtype_names();

/// Classes of operation, each with its own efficiency on a device.
enum class OpClass : std::uint8_t {
  kGemm,
  kGroupedGemm,  ///< MoE experts
  kAttentionPrefill,
  kAttentionDecode,
  kElementwise,  ///< normalisation, rotary, activation, residual
  kEmbedding,
  kSampling,
  kConv,
  kRecurrent,  ///< linear attention / state-space scan
  kCollective,
  kCopy,
  kHost
};
inline constexpr int kOpClasses = 12;
std::string_view to_string(OpClass c);  ///< "gemm", "grouped_gemm", "attention_prefill", ...
std::optional<OpClass> parse_op_class(std::string_view text);
const std::vector<std::string>& op_class_names();

template <class T>
using PerDType = std::array<T, kDTypes>;
template <class T>
using PerOpClass = std::array<T, kOpClasses>;
constexpr std::size_t index(DType d) {
  return static_cast<std::size_t>(d);
}
constexpr std::size_t index(OpClass c) {
  return static_cast<std::size_t>(c);
}

}  // namespace medley
