#include "hwmodels/device.h"

namespace medley {

namespace {
/// Formats that hold every value of `wanted` (block scales apart), as kernels choose them.
std::vector<DType> chain(DType wanted) {
  using D = DType;
  switch (wanted) {
    case D::kFp4:
    case D::kInt4:
    case D::kFp6:
    case D::kFp8:
    case D::kInt8:  // 8-bit integers do not fit the 4-bit significand of fp8
      return {wanted, D::kBf16, D::kFp16, D::kTf32, D::kFp32, D::kFp64};
    case D::kBf16:
      return {wanted, D::kFp16, D::kTf32, D::kFp32, D::kFp64};
    case D::kFp16:
      return {wanted, D::kBf16, D::kTf32, D::kFp32, D::kFp64};
    case D::kTf32:
      return {wanted, D::kFp32, D::kFp64};
    case D::kFp32:
      return {wanted, D::kFp64};
    case D::kFp64:
      return {wanted};
  }
  return {wanted};
}
}  // namespace

const Sourced<Ramp>& OpEfficiency::compute_of(DType arithmetic, DType stored,
                                              bool block_scaled) const {
  const Sourced<Ramp>& blocks = compute_block_scaled[index(arithmetic)];
  if (block_scaled && blocks.known()) return blocks;
  if (bytes_of(stored) < bytes_of(arithmetic)) {
    const Sourced<Ramp>& own = compute_by_format[index(stored)];
    if (own.known()) return own;
  }
  return compute[index(arithmetic)];
}

std::optional<DType> compute_fallback(const DeviceSpec& device, DType wanted) {
  for (const DType d : chain(wanted)) {
    if (device.peak[index(d)].known()) return d;
  }
  return std::nullopt;
}

}  // namespace medley
