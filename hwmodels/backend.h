#pragma once

#include <string>
#include <vector>

#include "sim/core/op.h"
#include "sim/core/provenance.h"
#include "sim/core/units.h"

namespace medley {

/// How host work of a step relates to the device's: one after the other (engines of 2024) or the
/// slower of the two (asynchronous scheduling).
enum class HostMode { kSerial, kOverlapped };

/// Which tensor-parallel sizes of a prefill and a decode replica an engine can pair.
enum class KvTransferSupport { kNone, kEqual, kDecodeMultiple, kAny };

/// A serving engine apart from the hardware it runs on.
///   issue = host_per_kernel * kernels of a step that no captured graph replays, else 0
///   host  = host_per_step + host_per_sequence * sequences in the step
///   sync  = sync_per_step + sync_per_sequence * sequences: what asynchronous scheduling cannot
///   hide step  = max(device, issue) + host + sync         (serial)
///         = max(device, issue, host) + sync          (overlapped)
/// A request besides spends request_overhead + prompt_token_overhead * prompt in the front end
/// (HTTP, streaming; tokenisation, which grows with the text): it is part of TTFT and end-to-end
/// time, not of the gaps between tokens, and keeps no device busy. Assumes: one thread issues
/// kernels ahead of the device; overheads do not depend on the device.
struct BackendSpec {
  std::string name;  ///< "vllm-2026", "sglang", "ideal", ...
  std::vector<std::string> aliases;
  std::string file;
  std::string notes;
  HostMode host_mode = HostMode::kSerial;
  Sourced<Seconds> host_per_step;
  Sourced<Seconds> host_per_sequence;
  Sourced<Seconds> sync_per_step;          ///< unknown: none
  Sourced<Seconds> sync_per_sequence;      ///< unknown: none
  Sourced<Seconds> host_per_kernel;        ///< unknown: the device's launch gap alone counts
  Sourced<Seconds> request_overhead;       ///< unknown: none
  Sourced<Seconds> prompt_token_overhead;  ///< front end, per token of the prompt; unknown: none
  bool graph_capture = false;              ///< decode steps replay a captured graph
  int graph_max_sequences = 0;             ///< largest captured batch
  double kernels_fused = 1.0;              ///< kernel launches over the unfused count, (0, 1]
  Sourced<double> memory_utilization;      ///< default gpu_memory_utilization
  Sourced<Bytes> context_reserve;          ///< driver context, graphs, workspaces per device
  Sourced<double> activation_factor;  ///< peak activation bytes over tokens * hidden * dtype bytes
  /// Skew of KV lengths in a decode batch: attention takes t(mean) + skew (t(max) - t(mean)).
  Sourced<double> decode_skew;
  int block_size = 16;
  int max_num_seqs = 256;
  int max_num_batched_tokens = 8192;
  bool chunked_prefill = true;
  bool prefix_caching = true;
  KvTransferSupport kv_transfer = KvTransferSupport::kAny;
  std::vector<DType> weight_dtypes;  ///< operator coverage: formats it has kernels for
  std::vector<DType> kv_dtypes;
  std::vector<std::string> device_kinds;  ///< "gpu", "cpu", ...: where it runs
  bool ideal() const { return name == "ideal"; }
};

}  // namespace medley
