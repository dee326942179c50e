#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace medley {

enum class SchedulerKind : std::uint8_t {
  kChunked,     ///< vLLM V1: running first, chunked prefill within the token budget
  kContinuous,  ///< whole prompts join the running batch
  kStatic  ///< a batch is formed when the replica is empty and runs until its last request ends
};
enum class AdmissionOrder : std::uint8_t { kFcfs, kPriority };

/// Who makes the first token of a request whose prompt and output run on different replicas.
enum class Handoff : std::uint8_t {
  kNone,          ///< this replica does both
  kPrefillToken,  ///< the prefill replica (DistServe, Splitwise): it need not wait for the KV
  kDecodeToken    ///< the decode replica, from the last prompt token (vLLM's connectors)
};

/// Batch scheduling of one replica, in the serving engines' words.
struct BatchPolicy {
  SchedulerKind scheduler = SchedulerKind::kChunked;
  AdmissionOrder admission = AdmissionOrder::kFcfs;
  std::int32_t max_num_seqs = 256;
  std::int32_t max_num_batched_tokens = 2048;
  std::int32_t block_size = 16;
  bool prefix_caching = true;
};

/// A routing policy by registered name, with its parameters (defaults filled in).
struct RoutingPolicy {
  std::string name = "least_outstanding_requests";
  std::map<std::string, double> params;
};

}  // namespace medley
