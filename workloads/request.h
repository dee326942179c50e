#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/sim_time.h"

namespace medley {

/// One request of a trace, as the simulator's oracle knows it. Policies get PublicRequest.
/// Prefix identity: the prompt is covered by `hash_count` ids from Trace::hash_ids starting at
/// `hash_begin`, each standing for Trace::hash_block_tokens tokens (the last one may be partial).
/// Two requests share a prefix exactly as long as their leading ids are equal. Ids past
/// ceil(input_tokens / block) cover the output tokens that follow the prompt, where the trace knows
/// them (session turns): once generated, those blocks can be hit by the next turn.
struct Request {
  SimTime arrival;
  std::int32_t input_tokens = 0;
  std::int32_t output_tokens = 0;  ///< the future; >= 1
  std::uint32_t hash_begin = 0;
  std::uint32_t hash_count = 0;
  std::uint32_t session = kNone;  ///< index into Trace::sessions
  std::uint16_t turn = 0;         ///< 0-based within the session
  std::uint16_t model = 0;        ///< index into Trace::models
  std::uint16_t slo_class = 0;    ///< index into Trace::classes
  std::uint16_t tenant = 0;       ///< index into Trace::tenants
  std::int16_t priority = 0;      ///< lower is served first (vLLM's order)
  std::uint32_t row = 0;          ///< row of the source, for request_id and stable ties
  static constexpr std::uint32_t kNone = 0xffffffffU;
};

/// What a real controller may see at admission.
struct PublicRequest {
  std::uint32_t id = 0;  ///< index in arrival order
  SimTime arrival;
  std::int32_t input_tokens = 0;
  double expected_output_tokens = 0.0;  ///< a class-wide estimate, never the true length
  std::uint16_t model = 0;
  std::uint16_t slo_class = 0;
  std::uint16_t tenant = 0;
  std::int16_t priority = 0;
  std::uint32_t session = Request::kNone;
  const std::uint64_t* hash_ids = nullptr;
  std::uint32_t hash_count = 0;
};

/// A closed-loop follow-up: request `next` arrives `delay` after `previous` completes.
/// With `loop` > 0 it belongs to a shared queue instead: every completion of one of the loop's
/// requests (both ends of its links) starts the loop's first waiting `next`, so that a fixed number
/// of requests is in flight until the queue is empty. Links of one loop are in order of `next`.
struct FollowUp {
  std::uint32_t previous = 0;
  std::uint32_t next = 0;
  Seconds delay;
  std::uint32_t loop = 0;
};

/// rows read = kept + sum(dropped by reason); printed and kept in the manifest.
struct ImportAccount {
  std::string source;  ///< as the user wrote it
  std::string format;
  std::int64_t rows_read = 0;
  std::int64_t kept = 0;
  std::vector<std::pair<std::string, std::int64_t>> dropped;   ///< reason -> rows
  std::vector<std::pair<std::string, std::int64_t>> adjusted;  ///< what was changed -> rows kept so
  std::vector<std::string> notes;                              ///< warnings worth reading
};

/// A whole workload, ready to run. `requests` is sorted by (arrival, row); open-loop requests come
/// with their arrival, closed-loop ones (targets of a FollowUp) have arrival SimTime::max() until
/// their predecessor completes, and stand after the open ones.
struct Trace {
  std::vector<Request> requests;
  std::vector<std::uint64_t> hash_ids;
  std::int32_t hash_block_tokens = 0;  ///< 0: no prefix identity in this trace
  std::vector<FollowUp> follow_ups;    ///< sorted by `previous`
  /// Session turns extend the previous prompt and output: input_tokens already includes them; ids
  /// of turn t's prompt start with those of turn t-1's prompt and output.
  std::vector<std::string> sessions;
  std::vector<std::string> models;   ///< names as the workload wrote them; at least one
  std::vector<std::string> classes;  ///< SLO classes; at least one ("default")
  std::vector<std::string> tenants;  ///< at least one ("default")
  std::vector<ImportAccount> accounts;
};

}  // namespace medley
