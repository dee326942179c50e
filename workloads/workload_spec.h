#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/json_reader.h"
#include "sim/core/units.h"
#include "workloads/distribution.h"
#include "workloads/rate_curve.h"
#include "workloads/request.h"
#include "workloads/trace_fields.h"

namespace medley {

/// Where a request file is and how to read it.
struct TraceFileSpec {
  std::string file;  ///< as the user wrote it; what messages and the manifest say
  std::string path;  ///< where it was found
  std::string format = "auto";
  std::vector<ColumnChoice> columns;  ///< the user's word against the alias table
  enum class BadRow : std::uint8_t { kError, kDrop } on_bad_row = BadRow::kError;
  enum class Zero : std::uint8_t { kDrop, kClamp, kError };
  Zero zero_input = Zero::kDrop;
  Zero zero_output = Zero::kDrop;
  std::int32_t hash_block_tokens = 0;  ///< 0: the format's own
  bool use_prefix_ids = true;
  /// Turns of a session: kAuto keeps given times and chains turns that have only a delay; kClosed
  /// chains every turn after the first; kOpen requires a time on every row.
  enum class Sessions : std::uint8_t { kAuto, kOpen, kClosed } sessions = Sessions::kAuto;
  /// The rows of a session hold only each turn's new tokens; prompts are accumulated on reading.
  bool session_input_is_new = false;
  /// kFirst: time 0 is the first request's. kZero: times are kept as written.
  enum class Origin : std::uint8_t { kFirst, kZero } origin = Origin::kFirst;
  bool times_not_needed = false;  ///< the source brings its own arrivals; a file without is fine
};

/// When requests (or sessions) of a source start.
struct ArrivalSpec {
  enum class Gap : std::uint8_t { kConstant, kPoisson, kGamma, kWeibull, kClosedLoop };
  Gap gap = Gap::kPoisson;
  double cv = 1.0;  ///< of the gaps (gamma, Weibull) in operational time
  RateCurve rate = RateCurve::constant(1.0);
  // Closed loop: `concurrency` users, each with one request (or session) at a time; a user's next
  // starts a think time after the last one completes.
  std::int64_t concurrency = 0;
  Distribution think_time;         ///< s
  Seconds ramp_up = Seconds(0.0);  ///< users start spread evenly over it
  bool shared_queue = false;       ///< a free user takes the next request, not only its own
};

/// Requests come in sessions: turn t+1 arrives `think_time` after turn t completes, and its prompt
/// is turn t's prompt, its output, and new input tokens.
struct SessionSpec {
  Distribution turns = Distribution::fixed(1.0);
  Distribution think_time;                         ///< s, between turns (reading, or a tool call)
  std::optional<Distribution> first_input_tokens;  ///< of the first turn, else input_tokens
  std::int64_t max_context_tokens = 0;             ///< a session ends before exceeding it; 0: never
};

/// Shared prompt prefixes (system prompts, documents): each request or session picks one of
/// `groups` by Zipf popularity p_k ~ 1/k^zipf; its tokens come on top of the drawn input.
struct PrefixSpec {
  std::int64_t groups = 1;
  Distribution tokens;  ///< length of a group's prefix, drawn once for the group
  double zipf = 0.0;
  double share = 1.0;  ///< fraction of requests (sessions) with a shared prefix
};

struct GeneratorSpec {
  ArrivalSpec arrivals;
  Distribution input_tokens;
  Distribution output_tokens;
  std::optional<SessionSpec> session;
  std::optional<PrefixSpec> shared_prefix;
  std::optional<Seconds> duration;       ///< of the arrivals; at least one of the two is given
  std::optional<std::int64_t> requests;  ///< in all, all turns counted
  std::int32_t hash_block_tokens = 16;   ///< granularity of generated prefix identity
};

/// Weighted choice among names; empty: what the trace says, else "default".
struct Shares {
  std::vector<std::pair<std::string, double>> weights;
  std::vector<std::pair<std::string, std::string>> renames;  ///< the trace's name -> ours
};

/// Applied in this order; times are those of the source before any other transform.
/// Selection (slice, first, thin) acts on requests that arrive on the clock; whatever follows from
/// one (closed-loop turns) goes with it, and thinning keeps or drops whole sessions.
struct TransformSpec {
  std::optional<Seconds> slice_from, slice_to;  ///< [from, to); `from` becomes time 0
  std::optional<std::int64_t> first;            ///< the first N
  std::optional<double> thin;                   ///< keep each with this probability
  double scale_input = 1.0;
  double scale_output = 1.0;
  std::optional<std::int64_t> max_input_tokens, max_output_tokens;  ///< clamp, counted
  std::int64_t repeat = 1;                                          ///< copies, one after another
  std::optional<Seconds> repeat_period;  ///< start to start; absent: span plus one mean gap
  bool repeat_fresh_prefixes = true;     ///< copies share no prompt prefix with one another
  double scale_rate = 1.0;               ///< divides times
  std::optional<double> target_rate;     ///< 1/s; sets scale_rate from the source's mean rate
  std::vector<std::pair<double, double>> warp;  ///< (t, t') knots in s, linear between
  std::optional<Seconds> jitter;                ///< each arrival += U[0, jitter)
  std::optional<Seconds> time_step;             ///< times become multiples of it, to nearest
  Seconds shift = Seconds(0.0);
};

struct SourceSpec {
  std::string name;
  std::optional<TraceFileSpec> trace;
  std::optional<GeneratorSpec> generate;
  std::optional<ArrivalSpec> arrivals;  ///< replaces a trace's own times
  Shares model, slo_class, tenant;
  std::vector<std::pair<std::int16_t, double>> priority;  ///< empty: the trace's, else 0
  TransformSpec transform;
  std::string pointer;  ///< where in `file` it stands, for messages
};

struct WorkloadSpec {
  std::vector<SourceSpec> sources;  ///< in file order
  std::string file;
};

/// Reads the "workload" object of a scenario: {"sources": {name: source, ...}} or one source's keys
/// directly. Relative paths are looked up in `search_dirs` in order. Problems go where the reader's
/// go; the result is usable only when none were added.
WorkloadSpec load_workload(ObjectReader& reader, const std::vector<std::string>& search_dirs);

/// A trace recipe: {"seed": 7, "workload": {...}, "description": ...}, the way our sample traces
/// were made. Throws InputError.
struct TraceRecipe {
  std::uint64_t seed = 1;
  WorkloadSpec workload;
};
TraceRecipe load_trace_recipe(const std::string& path,
                              const std::vector<std::string>& search_dirs = {});

/// Reads, generates, transforms and superposes. Streams of random numbers are named
/// "<source>/<purpose>". Throws InputError (file, line) for unusable data.
Trace build_trace(const WorkloadSpec& spec, std::uint64_t seed);

}  // namespace medley
