#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/sim_time.h"
#include "sim/network/network.h"
#include "sim/scenario/scenario.h"

namespace medley {

/// One flow of a KV transfer, in devices counted within their replicas.
struct KvPath {
  int from = 0;
  int to = 0;
  double bytes_per_token = 0.0;
  double bytes_per_sequence = 0.0;  ///< recurrent state: goes with the last tokens
};

/// What each device of a decode replica needs from the devices of a prefill replica.
///   Decode rank r of stage s holds kv_bytes_per_token(tp_d, pp_d, s) for the layers of its stage.
///   It reads them from the prefill stage that holds its middle layer; there from rank
///   floor(r tp_p / tp_d), or in equal parts from the tp_p / tp_d ranks it merges.
/// Assumes: stages of nearly equal layer counts; sliding windows are not cut (an upper bound).
/// Law: bytes into the decode replica per token = sum over its devices of their KV bytes per token.
std::vector<KvPath> kv_paths(const PoolSpec& prefill, const PoolSpec& decode);

/// A request between its prefill and its decode replica.
struct HandoffState {
  static constexpr std::uint32_t kNone = 0xffffffffU;
  std::uint32_t request = kNone;
  std::uint32_t prefill_unit = kNone;
  std::uint32_t export_slot = kNone;  ///< set once prefilled
  std::uint32_t decode_unit = kNone;  ///< set once paired
  std::uint32_t import_slot = kNone;
  std::int64_t prompt = 0;
  std::int64_t cached = 0;    ///< tokens the decode replica has already
  std::int64_t computed = 0;  ///< tokens whose KV exists at the prefill replica
  std::int64_t sent = 0;      ///< tokens whose flows have started
  std::int32_t flows_left = 0;
  bool prefilled = false;
  bool queued = false;                ///< in the queue of prompts without a decode replica
  std::vector<TransferHandle> flows;  ///< under way
  std::vector<TransferHandle> paced;  ///< of `flows`: bounded by the step that computes their bytes
};

}  // namespace medley
