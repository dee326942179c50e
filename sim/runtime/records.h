#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/provenance.h"
#include "sim/core/sim_time.h"
#include "sim/cost/step_model.h"
#include "sim/network/network.h"
#include "sim/runtime/histogram.h"
#include "sim/runtime/migration_record.h"
#include "sim/runtime/tier_record.h"
#include "sim/scenario/failure_spec.h"
#include "sim/serving/routing.h"
#include "sim/serving/time_shares.h"

namespace medley {

enum class RequestStatus : std::uint8_t {
  kFinished,
  kRejectedTooLong,    ///< prompt + output exceeds max_model_len everywhere it could run
  kRejectedNeverFits,  ///< needs more KV blocks than any replica has
  kRejectedNoModel,    ///< no pool serves its model
  kLost,               ///< on a replica that failed, and not retried (again)
  kShed,               ///< refused while replicas of its model were down
  kUnfinished          ///< still waiting or running at the horizon
};
std::string_view to_string(RequestStatus status);  ///< finish_reason column

/// What happened to one request; index i belongs to Scenario::trace.requests[i].
struct RequestRecord {
  SimTime arrival;    ///< closed-loop arrivals included
  SimTime scheduled;  ///< first admitted to a batch
  SimTime first_token;
  SimTime last_token;
  std::int32_t cached_tokens = 0;  ///< prefix-cache hits at first admission
  std::int32_t output_tokens = 0;  ///< produced so far
  std::uint16_t pool = 0xffff;
  std::uint16_t preemptions = 0;
  std::uint32_t replica = 0;  ///< within its pool
  std::uint16_t retries = 0;  ///< replicas that failed under it
  RequestStatus status = RequestStatus::kUnfinished;
  double energy_j = 0.0;                ///< attributed; NaN where power is unknown
  std::int32_t tier_cached_tokens = 0;  ///< of cached_tokens: recalled from a KV tier
  std::int32_t migrations = 0;          ///< times it moved to another replica while decoding
  double migration_s = 0.0;             ///< from its last token to all KV at the other replica
  double recall_s = 0.0;                ///< waited for recalls, those after preemptions included
  TimeShares time;  ///< in batches, on all replicas it has left; its front end counts as host
};

/// The way of a request from its prefill to its decode replica; index i belongs to request i.
/// RequestRecord::pool and replica are then those that decode.
struct HandoffRecord {
  std::uint16_t prefill_pool = 0xffff;  ///< 0xffff: served by one replica
  std::uint32_t prefill_replica = 0;
  SimTime prefilled;  ///< prompt computed
  SimTime paired;     ///< blocks taken at the decode replica
  SimTime arrived;    ///< all KV there
  SimTime joined;     ///< first scheduled there
  double bytes = 0.0;
  double prefill_energy_j = 0.0;  ///< part of RequestRecord::energy_j
};

/// Energy that a request had on a replica that failed; part of RequestRecord::energy_j.
struct EarlierWork {
  std::uint32_t request = 0;
  std::uint16_t pool = 0;
  double energy_j = 0.0;
};

/// A stretch in which a replica did not serve; SimTime::max(): not by the end of the run.
struct Outage {
  SimTime down;
  SimTime repaired = SimTime::max();  ///< everything it needs works again
  SimTime ready = SimTime::max();     ///< restarted (or failed again meanwhile)
};

/// A part that failed.
struct FailureRecord {
  FailingKind kind = FailingKind::kDevice;
  std::string name;
  SimTime down;
  SimTime up = SimTime::max();    ///< max: not by the end of the run
  std::uint32_t replicas = 0;     ///< that it took down
  std::int64_t requests_hit = 0;  ///< on board of those, or with KV on its way there
  std::int64_t retried = 0;
  std::int64_t lost = 0;
  std::int64_t shed = 0;
};

/// One replica over the whole run.
struct ReplicaRecord {
  std::uint16_t pool = 0;
  std::uint32_t replica = 0;       ///< within its pool
  std::uint32_t node = 0;          ///< index within the node group
  std::uint32_t first_device = 0;  ///< index within the node group
  double busy_s = 0.0;             ///< stepping
  double active_energy_j = 0.0;    ///< while busy, all its devices
  double idle_energy_j = 0.0;      ///< context idle, all its devices
  double attributed_j = 0.0;       ///< sum over requests; = active_energy_j
  double flops = 0.0;
  double bytes = 0.0;
  double link_bytes = 0.0;
  double limited_s = 0.0;        ///< time with the clock below 1
  bool shared = false;           ///< its steps share devices or links with others
  double waited_device_s = 0.0;  ///< kernels took longer than alone: others on the device
  double waited_link_s = 0.0;    ///< messages took longer than alone: others on the links
  std::int64_t steps = 0;
  std::int64_t prompt_tokens = 0;  ///< computed (cache hits and recomputation apart)
  std::int64_t recomputed_tokens = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t recalled_tokens = 0;  ///< from KV tiers
  std::int64_t output_tokens = 0;
  std::int64_t preemptions = 0;
  std::int64_t blocks = 0;
  std::int64_t peak_blocks = 0;
  std::int32_t loads = 0;                   ///< times it loaded its weights
  double load_s = 0.0;                      ///< that, and starting its engine
  double load_bytes = 0.0;                  ///< of weights
  SimTime drained;                          ///< when a drained replica had nothing left; 0: never
  double trust_s[kProvenanceClasses] = {};  ///< busy time by provenance class
  /// Busy time and active energy (floor and dynamic) of kernels outside the range of their model.
  double extrapolated_s = 0.0;
  double extrapolated_j = 0.0;
  double down_s = 0.0;         ///< failed and not yet repaired
  double unavailable_s = 0.0;  ///< the same and its restarts
  std::vector<Outage> outages;
  /// Energy above context idle in bins of RunResult::bin, all its devices [J]. Negative where it
  /// was down.
  std::vector<double> extra_energy_j;
  /// limited_s in the same bins (shorter or empty: 0 after its end).
  std::vector<double> limited_bin_s;
};

/// A wire of the cluster, or a device that several replicas share, over the run.
struct LinkRecord {
  enum class Kind : std::uint8_t { kWire, kArithmetic, kMemory, kDeviceTime };
  Kind kind = Kind::kWire;
  std::string name;
  std::string link;  ///< catalogue name it is made of; may be empty
  Provenance provenance = Provenance::kAssumed;
  double capacity = 0.0;  ///< [B/s]; devices other than memories: 1
  double bytes = 0.0;     ///< carried; devices other than memories: seconds at full rate
  double busy_s = 0.0;
  double saturated_s = 0.0;
  std::array<TrafficWaits, kTrafficKinds> waits;  ///< put down to it
  double waited_s() const {
    double sum = 0.0;
    for (const TrafficWaits& w : waits) sum += w.seconds;
    return sum;
  }
};
std::string_view to_string(LinkRecord::Kind kind);  ///< "wire", "arithmetic", "memory", "device"

/// State of one pool at a sampling instant.
struct PoolSample {
  SimTime time;
  std::uint16_t pool = 0;
  std::int32_t running = 0;
  std::int32_t waiting = 0;
  double kv_usage = 0.0;           ///< used blocks / blocks, over the pool
  std::int64_t prompt_tokens = 0;  ///< cumulative
  std::int64_t output_tokens = 0;  ///< cumulative
};

/// One span for the Chrome trace (only when asked for).
struct TraceSpan {
  std::uint16_t pool = 0;
  std::uint32_t replica = 0;
  SimTime start;
  SimTime end;
  std::int32_t sequences = 0;
  std::int32_t prompt_tokens = 0;
  std::int64_t steps = 1;
};

enum class Stability : std::uint8_t { kStable, kSaturated, kInconclusive };
std::string_view to_string(Stability s);

struct PoolRecord {
  MemoryAccount memory;
  ReplicaPower power;   ///< of one replica; the fields it lacks leave energy blank
  PoolProfile profile;  ///< what routers were told
  LogHistogram itl;     ///< gaps between tokens of one request
  Stability stability = Stability::kStable;
  std::string stability_reason;
  double backlog_slope = 0.0;  ///< waiting requests per second over the window
};

/// Whether prefill and decode of a request ran on different replicas.
inline bool handed_over(const HandoffRecord& h) {
  return h.arrived > SimTime();
}

struct RunResult {
  std::vector<RequestRecord> requests;
  std::vector<HandoffRecord> handoffs;  ///< empty unless some pool has a role
  std::vector<ReplicaRecord> replicas;  ///< pool by pool
  std::vector<PoolRecord> pools;
  std::vector<TierRecord> tiers;            ///< pool by pool, level by level
  std::vector<MigrationRecord> migrations;  ///< in order of their ends
  std::vector<LinkRecord> links;  ///< what carried something; empty where no transfer is simulated
  bool transfers = false;         ///< something moves between replicas, or they share something
  std::vector<PoolSample> samples;
  std::vector<TraceSpan> spans;
  SimTime end;                 ///< when the last event fired (or the horizon)
  Seconds bin = Seconds(1.0);  ///< of extra_energy_j
  Stability stability = Stability::kStable;
  std::string stability_reason;
  std::uint64_t fingerprint = 0;  ///< rolling hash of (time, entity, kind)
  std::uint64_t events = 0;
  std::int64_t arrived = 0, finished = 0, rejected = 0, unfinished = 0;
  std::int64_t lost = 0, shed = 0;
  std::vector<FailureRecord> failures;  ///< in order of time
  std::vector<EarlierWork> earlier;     ///< in order of time
  double loop_wall_s = 0.0;             ///< for stderr and benchmarks only, never in outputs
};

}  // namespace medley
