#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "hwmodels/device.h"
#include "sim/calibration/ramp_fit.h"
#include "sim/measure/kernel_table.h"

namespace medley {

struct KernelFitOptions {
  /// Fit to the rows of one half only, so that the other half stays unseen; else the shipped ramps
  /// rest on all rows (the error is the held-out half's in both cases).
  bool holdout = false;
  std::set<OpClass> only;  ///< empty: all that the samples hold
};

/// The fit of one op class with one pair of formats.
struct KernelFitRow {
  OpClass op_class = OpClass::kGemm;
  DType dtype = DType::kBf16;   ///< of the arithmetic
  DType stored = DType::kBf16;  ///< of weights or KV cache
  bool block_scaled = false;    ///< a scale per block of both operands
  int read = 0;
  std::map<std::string, int> dropped;  ///< by reason
  int fitted = 0;                      ///< rows the ramps rest on
  Residuals held_out;                  ///< on the rows of the other half
  std::vector<RampSample> judged;      ///< those rows
  RampPair ramps;
  int compute_rows = 0;  ///< of those fitted, rows that the compute side decides
  RampRates rates;
  double compute_ramp_s() const {
    return ramps.compute.half / (rates.peak * ramps.compute.fraction);
  }
  double memory_ramp_s() const {
    return ramps.memory.half / (rates.bandwidth * ramps.memory.fraction);
  }
  double low_flops = 0.0, high_flops = 0.0, low_bytes = 0.0, high_bytes = 0.0;
};

/// Ramps of a device from measured kernels.
///
/// t = launch_graph kernels + kernels overlapped(C(F / kernels), M(B / kernels)): kernels measured
/// in a loop pay the gap inside a graph; the rest of their own fixed time is in the ramps.
///
/// Rows are dropped, in this order, by reason:
///   "no rate": the device has no peak of the arithmetic's format (nor a wider one);
///   "window or head size not 128": attention of other shapes, where there is that of the usual
///   one; "another kernel of the format": of the kernels measured for one pair of formats (curves
///   say
///     format= and kernel=) the most frequent is fitted;
///   "narrow matrix": GEMMs with a side (n= or k= of the curve) under 512;
///   "faster than the data sheet": F or B over time is more than 1.03 of the device's rate, B of
///     more than the last-level cache;
///   "cache resident": B fits 1.25 times the last-level cache, is more than 3 us of bandwidth and,
///     by data-sheet rates, decides: a loop over it measures the cache, not the memory a serving
///     step reads from. The choice looks at work alone, never at time.
///   "loop bound by the host": formats whose shortest kernels (first percentile) take more than 25
///   us
///     and three times those of the class's 16-bit group were launched one by one: of them only
///     rows whose ideal compute time is above that floor are kept. They give a compute ramp, with
///     at most twice the 16-bit group's ramp time, and no memory ramp.
/// Halves: bit 0 of FNV-1a of the row's key; 0 is fitted, 1 is judged.
/// Rows are thinned to at most 40 per cell of one octave in F and in B, in the order of their hash,
/// so that the density of a grid does not decide; kernels under 20 us count in proportion to their
/// time (not below 1/4), decode contexts below 128 tokens a quarter.
///
/// Kernels that a row times along (KernelSample::companion_bytes) are taken off at 80 % of
/// bandwidth (the device's elementwise share where known): a step has them as ops of their own.
///
/// Per arithmetic format the pair (format, same format stored) goes first, then block-scaled ones,
/// then other stored formats; each gets a compute and a memory ramp (`compute`,
/// `compute_block_scaled`, `compute_by_format`). Where only block-scaled kernels were measured they
/// stand for the others (class derived). The 16-bit
/// pair's memory ramp (else the first's) is the op class's `memory`, the others' go to
/// `memory_by_format`. fp16 has bf16's ramps where the peaks agree (class derived), and the other
/// way round. A ramp with less than 2 % of the rows (or six) on its side is left out, unless
/// `serial` ties it in a fit of 100 rows and more.
struct KernelFit {
  std::vector<KernelFitRow> rows;
  PerOpClass<OpEfficiency> efficiency;  ///< `source` is left empty
};
KernelFit fit_kernels(const std::vector<KernelSample>& samples, const DeviceSpec& device,
                      const KernelFitOptions& options = {});

/// The half a row belongs to: bit 0 of the 64-bit FNV-1a of its key.
bool held_out(const KernelSample& sample);

}  // namespace medley
