#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/request.h"

namespace medley {

struct LengthStats {
  double mean = 0.0;
  std::int64_t min = 0, p50 = 0, p90 = 0, p99 = 0, max = 0;  ///< nearest rank
};

/// What `medley trace show` prints of a trace.
struct TraceStats {
  std::int64_t requests = 0;
  std::int64_t open = 0;    ///< arrive on the clock
  std::int64_t closed = 0;  ///< wait for another request
  std::int64_t sessions = 0;
  double span_s = 0.0;      ///< first to last arrival on the clock
  double rate_per_s = 0.0;  ///< (open - 1) / span; 0 when undefined
  /// Variance over mean of the arrivals in each full second of the span; 1 for a Poisson process.
  double burstiness = 0.0;
  std::int64_t busiest_second = 0;
  double longest_gap_s = 0.0;
  std::int64_t most_at_once = 0;  ///< requests with one and the same arrival
  LengthStats input, output;
  std::int64_t input_tokens = 0, output_tokens = 0;
  std::int32_t hash_block_tokens = 0;
  /// Share of all input tokens found in an infinite, shared prefix cache that serves requests in
  /// trace order and keeps prompts (not outputs): the tokens under each request's leading ids that
  /// were seen before in the same place of the same prefix. What no id covers counts as new.
  double ideal_prefix_reuse = 0.0;
  struct Share {
    std::string name;
    std::int64_t requests = 0;
  };
  std::vector<Share> models, classes, tenants;
};

TraceStats trace_stats(const Trace& trace);

/// The account of one import as lines of text: "12,031 rows read = 12,031 kept", reasons, notes.
std::string account_text(const ImportAccount& account);

}  // namespace medley
