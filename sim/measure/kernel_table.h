#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/op.h"
#include "workloads/request.h"

namespace medley {

/// One measured kernel (or a module of a few kernels): its work as the cost model counts it, and
/// its time. Work follows `lower_step` (workloads/step_ops.h), so that a fit and a prediction mean
/// the same flops and bytes.
struct KernelSample {
  OpClass op_class = OpClass::kGemm;
  DType dtype = DType::kBf16;    ///< of the arithmetic
  DType weights = DType::kBf16;  ///< of the weights (GEMMs) or the KV cache (attention)
  bool block_scaled = false;     ///< a scale per block of both operands
  double flops = 0.0;            ///< of one execution, one device
  double bytes = 0.0;            ///< device memory traffic of one execution
  /// Traffic of memory-bound kernels timed along that are ops of their own in lower_step.
  double companion_bytes = 0.0;
  int kernels = 1;  ///< launches inside the measured time
  double time_s = 0.0;
  std::optional<double> watts;        ///< mean board power while it loops
  std::optional<double> limit_watts;  ///< power limit then in force
  /// The axes of the table this row lies on, for screening and grid interpolation: `curve` names
  /// the row's curve (everything but `position`), along which time must not fall.
  std::string curve;        ///< "n=4096,k=14336", "heads=32,kv=8,d=128,batch=4", ...
  double position = 0.0;    ///< m, tokens, context length, ...
  std::string op;           ///< the source's own word: "gemm", "qkv_proj", "generation_attention"
  std::string key() const;  ///< curve + position: stable identity of the row, for halves
};

/// One measured collective or point-to-point transfer.
struct CollectiveSample {
  std::string op;       ///< "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv"
  std::string variant;  ///< "nccl", "custom_graph", "custom_eager", ...
  int devices = 0;
  double bytes = 0.0;  ///< payload per rank, as nccl-tests counts it
  double time_s = 0.0;
};

/// One whole request or batch, measured end to end: what tables of step times hold.
struct EndToEndPoint {
  std::string device;
  std::string model;
  int tp = 0;
  int batch = 0;
  int input = 0;           ///< prompt tokens per sequence
  int output = 0;          ///< generated tokens per sequence
  double prefill_s = 0.0;  ///< whole batch
  double token_s = 0.0;    ///< one decode step
  double total_s = 0.0;
  /// Shares of the power limit; empty where not measured.
  std::optional<double> mean_power, peak_power;
};

/// What a file of measured kernels held.
struct KernelTable {
  std::string format;  ///< of the reader that took it
  std::string device;  ///< as the file names it; empty where it does not
  std::vector<KernelSample> kernels;
  std::vector<CollectiveSample> collectives;
  std::vector<EndToEndPoint> points;
  ImportAccount account;  ///< rows read = kept + dropped by reason
};

}  // namespace medley
