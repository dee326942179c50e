#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "sim/core/sim_time.h"
#include "sim/cost/step_model.h"
#include "sim/serving/kv_backing.h"
#include "sim/serving/kv_pool.h"
#include "sim/serving/policy_spec.h"
#include "sim/serving/time_shares.h"
#include "workloads/request.h"

namespace medley {

/// What a replica tells its owner. Calls come in order of simulated time.
class ReplicaListener {
 public:
  virtual ~ReplicaListener() = default;
  virtual void on_scheduled(std::uint32_t request, SimTime now, std::int32_t cached_tokens) = 0;
  virtual void on_first_token(std::uint32_t request, SimTime now) = 0;
  /// `energy_j`: attributed to the request on this replica.
  virtual void on_finished(std::uint32_t request, SimTime now, double energy_j) = 0;
  virtual void on_preempted(std::uint32_t request) = 0;
  /// The request leaves this replica (finished or handed over): where its time here went.
  virtual void on_time(std::uint32_t request, const TimeShares& time) { (void)request, (void)time; }
  /// A request that came with tokens (Replica::enqueue) has its prompt and these in cache again.
  virtual void on_resumed(std::uint32_t request, SimTime now) { (void)request, (void)now; }
  /// Handoff only: a step that computes `tokens` more of a prompt (after `prior`) has begun; it
  /// ends at `end` unless something slows it down.
  virtual void on_chunk(std::uint32_t request, std::int64_t prior, std::int64_t tokens,
                        SimTime start, SimTime end) {
    (void)request, (void)prior, (void)tokens, (void)start, (void)end;
  }
  /// Handoff only: the prompt is computed; its KV waits under `slot` for Replica::release_export.
  virtual void on_prefilled(std::uint32_t request, std::uint32_t slot, SimTime now) {
    (void)request, (void)slot, (void)now;
  }
  /// Migration only: it decodes no longer; its KV (of `stored` tokens) waits under `slot` for
  /// Replica::release_export. `produced`: output tokens so far.
  virtual void on_left(std::uint32_t request, std::uint32_t slot, std::int64_t stored,
                       std::int32_t produced, SimTime now) {
    (void)request, (void)slot, (void)stored, (void)produced, (void)now;
  }
};

/// One advance of a replica: a step with prefill, or one or more decode steps of one batch. The
/// points of its steps are first + j slope, or `points` one by one where that is given.
struct Advance {
  SimTime start;
  SimTime end;
  std::int64_t steps = 1;
  DecodePoint first;
  DecodePoint slope;
  const DecodePoint* points = nullptr;  ///< `steps` of them, evaluated step by step
  double link_bytes = 0.0;              ///< of one step
  double clock = 1.0;
  const double* trust = nullptr;  ///< shares by provenance class
  Extrapolated extrapolated;
  std::int32_t sequences = 0;
  std::int32_t token_gaps = 0;  ///< tokens per step that follow an earlier one
  std::int32_t prompt_tokens = 0;
  double gap_s = 0.0;  ///< of the first step: time since the previous tokens
};
class AdvanceListener {
 public:
  virtual ~AdvanceListener() = default;
  virtual void on_advance(const Advance& advance) = 0;
  /// One gap between two tokens of a request that was preempted in between.
  virtual void on_long_gap(double seconds) = 0;
};

struct ReplicaConfig {
  BatchPolicy policy;
  std::int64_t blocks = 0;
  std::int64_t max_model_len = 0;  ///< prompt + output; 0: no limit
  int lanes = 1;                   ///< pipeline stages: that many steps in flight
  bool fast_forward = true;
  double floor_w = 0.0;  ///< active floor of all devices together; 0 where unknown
  /// Others share its devices or links: one step at a time, and the owner says when it ends.
  bool shared = false;
  /// What becomes of a computed prompt; kNone also on decode replicas.
  Handoff handoff = Handoff::kNone;
};

struct ReplicaCounters {
  std::int64_t steps = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t recomputed_tokens = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t recalled_tokens = 0;  ///< brought back from a tier, swapped ones included
  std::int64_t output_tokens = 0;
  std::int64_t preemptions = 0;
};

/// One engine replica: waiting queue, batch scheduler, paged KV cache and step clock.
///
/// Scheduling (chunked, as vLLM V1): every decode gets its token; running prefills continue within
/// the token budget; then waiting requests are admitted in order while all blocks of their prompt
/// fit and sequences are below max_num_seqs. A decode that finds no block preempts the request
/// admitted last (priority order: the least urgent); it loses its blocks, goes to the head of the
/// queue and is recomputed; nothing is admitted in that step.
/// A request finishes with its last token; its blocks return at that step's end.
///
/// Fast-forward: decode-only steps between two changes of the batch are one Advance (StepModel::
/// decode_batch); an arrival that can be admitted cuts it at the end of the step under way. With
/// fast_forward off every step is evaluated by itself; both agree to 1e-9.
///
/// Energy attribution (INV-5): of each step, decode attention goes to its sequences by context (its
/// growth per token of context; what does not grow in equal shares), prefill attention in
/// proportion to (query, key) pairs, everything else (weights, GEMMs, active floor x step time) in
/// equal shares per token. Sums over requests = energy of the steps.
///
/// Pipeline parallel: `lanes` batches in flight over one queue and one pool. A step starts when the
/// first stage is free: start >= last start + slowest stage of the last step, end = max(start + sum
/// of stages, last end + slowest stage).
///
/// Handoff (prefill/decode disaggregation): a replica with `handoff` set prefills only; the KV of a
/// prompt stays there until release_export. The other end takes blocks with reserve_import, and
/// enqueue_import lets the request join the batch when its KV is there, ahead of the waiting queue
/// (it needs no blocks). Its first step there has one token: the last of the prompt, or the one the
/// prefill replica made. A preempted import is recomputed like any other request.
///
/// KV tiers (with a KvBacking): a waiting request whose prefix goes on in a tier takes blocks for
/// its whole prompt and is fetched: it blocks nobody, and joins a batch ahead of the waiting queue
/// once its KV is there. With swapping the blocks of a preempted request go to a tier when they are
/// overwritten, and are fetched like a prefix. Write-through: offered at the end of the step that
/// computed them, else when they are overwritten.
///
/// Migration: a decoding sequence goes on elsewhere. Its blocks at the other end are taken with
/// reserve_import and grow_import while it still decodes here; `leave` takes it out of the batch at
/// the end of the step under way (on_left); settle_import and enqueue_import let it join the other
/// batch with its last token, release_export frees it here.
///
/// The owner calls `begin(lane, now)` once everything of the instant has happened, and
/// `complete(lane, now)` at `end(lane)`.
class Replica {
 public:
  Replica(const ReplicaConfig& config, const StepModel& model, const Trace& trace,
          ReplicaListener& listener, AdvanceListener& advances);

  enum class Verdict : std::uint8_t { kAccepted, kTooLong, kNeverFits };
  /// Whether this request could ever run here.
  Verdict judge(std::int64_t input_tokens, std::int64_t output_tokens) const;
  /// Puts a request into the waiting queue, with the tokens it was given elsewhere: they are
  /// computed with its prompt. True when a running advance was shortened: its end(lane) has
  /// changed.
  struct Streamed {
    std::int32_t tokens = 0;
    SimTime last;
  };
  bool enqueue(std::uint32_t request, SimTime now, Streamed streamed);
  bool enqueue(std::uint32_t request, SimTime now) { return enqueue(request, now, Streamed()); }
  /// Everything stops at `now` and is gone: queue, KV, prefix cache. Whole decode steps that have
  /// ended count; of a step under way the energy until now, spread evenly over the step and given
  /// to its requests like that of whole steps, and none of its tokens. `out`: who was on board,
  /// with the tokens produced and the energy had here; prompts on their way here (reserve_import)
  /// are the owner's to tell.
  struct Evicted {
    std::uint32_t request = 0;
    Streamed streamed;
    double energy_j = 0.0;
  };
  void fail(SimTime now, std::vector<Evicted>& out);
  /// Takes blocks for the prompt of a request that is prefilled elsewhere and will come with
  /// `produced` (0 or 1) tokens. One block per running sequence stays free for its next tokens.
  struct Import {
    std::uint32_t slot = 0;
    std::int64_t cached_tokens = 0;  ///< found in the prefix cache: need not be sent
  };
  bool import_room(std::uint32_t request, std::int32_t produced) const {
    KvPool::Hit hit;
    return import_fits(request, produced, hit);
  }
  std::optional<Import> reserve_import(std::uint32_t request, std::int32_t produced);
  void cancel_import(std::uint32_t slot);
  /// Its KV has arrived. True when a running advance was shortened.
  bool enqueue_import(std::uint32_t slot, SimTime last_token, SimTime now);
  /// The KV of a prefilled request has left: its blocks return. Energy attributed to it here.
  double release_export(std::uint32_t slot);
  /// A decoding sequence: who could move.
  struct Decoding {
    std::uint32_t slot = 0;
    std::uint32_t request = 0;
    std::int64_t stored = 0;    ///< tokens with KV
    std::int32_t produced = 0;  ///< output tokens
  };
  /// Those of now, in order of admission.
  void decoding(SimTime now, std::vector<Decoding>& out) const;
  Decoding decoding(std::uint32_t slot, SimTime now) const;
  /// True when a running advance was shortened.
  bool leave(std::uint32_t slot, SimTime now);
  /// Blocks of an import for `produced` output tokens; false, with nothing changed: no room.
  bool grow_import(std::uint32_t slot, std::int32_t produced);
  /// The import comes with exactly so many; what was taken beyond is given back.
  /// It stopped decoding at `left`.
  void settle_import(std::uint32_t slot, std::int32_t produced, SimTime left);
  /// It does not leave after all; or it has left and comes back: like a preempted one, its blocks
  /// findable.
  void stay(std::uint32_t slot);
  void take_back(std::uint32_t slot);
  /// Takes requests that have not been started out of the waiting queue.
  void withdraw(std::vector<std::uint32_t>& requests);
  /// Tiers below this replica; before the first request.
  void set_backing(KvBacking* backing, bool write_through);
  /// What it asked KvBacking::fetch for is here. True when a running advance was shortened.
  bool fetched(std::uint32_t slot, SimTime now);
  /// Starts the next step of `lane` when there is one and the lane is idle. True when it did.
  bool begin(int lane, SimTime now);
  void complete(int lane, SimTime now);
  /// Shared only: what the step under way uses, and how long it waits for its turn in the pipeline
  /// beside; set_end says when it really ends, before complete.
  StepUse use(int lane);
  Seconds pipeline_wait(int lane) const;
  void set_end(int lane, SimTime end);
  /// Pipeline only: begin() waits for this.
  SimTime stage_free() const { return stage_free_; }
  bool has_work(int lane) const;
  bool busy(int lane) const { return lanes_[static_cast<std::size_t>(lane)].busy; }
  SimTime end(int lane) const { return lanes_[static_cast<std::size_t>(lane)].end; }
  int lanes() const { return static_cast<int>(lanes_.size()); }

  std::int32_t running() const { return static_cast<std::int32_t>(running_.size()); }
  std::int32_t waiting() const {
    return static_cast<std::int32_t>(waiting_.size() + imports_.size() + fetching_.size() +
                                     fetched_.size());
  }
  /// Whether another request would start without queueing (as a controller polling it would guess).
  bool has_room(std::int64_t input_tokens) const;
  /// Blocks in use at `now`, inside an advance too.
  std::int64_t used_blocks(SimTime now) const;
  /// Output tokens produced until `now`, inside an advance too.
  std::int64_t output_tokens(SimTime now) const;
  std::int64_t total_blocks() const { return pool_.total(); }
  std::int64_t peak_blocks() const { return std::max(peak_before_, pool_.peak_used()); }
  const ReplicaCounters& counters() const { return counters_; }
  double attributed_j() const { return attributed_j_; }
  /// Energy given so far to requests still on board (for the horizon).
  void settle(std::vector<std::pair<std::uint32_t, double>>& energies) const;
  /// Tokens produced so far by requests still on board.
  void progress(SimTime now, std::vector<std::pair<std::uint32_t, std::int32_t>>& tokens) const;

 private:
  static constexpr std::uint32_t kNone = 0xffffffffU;
  struct Sequence {
    std::uint32_t request = 0;
    std::int32_t prompt = 0;     ///< tokens to have in cache before decoding (regenerated ones too)
    std::int32_t computed = 0;   ///< of `prompt`
    std::int32_t chunk = 0;      ///< tokens in the step under way
    std::int32_t produced = 0;   ///< output tokens before `joined`
    std::int32_t written = 0;    ///< leading ids offered to a write-through tier
    bool again = false;          ///< preempted before
    bool leaving = false;        ///< at the end of the step under way
    bool swapped = false;        ///< a tier may hold its own blocks
    bool imported = false;       ///< `chunk` is a decode token on KV made elsewhere
    bool moved = false;          ///< came with tokens, its prompt not yet computed
    std::int64_t joined = 0;     ///< lane's decode counter D when it started decoding
    std::int64_t base = 0;       ///< KV tokens stored - D
    std::int64_t finish = 0;     ///< D at its last token
    std::int64_t window_at = 0;  ///< D at which its context fills the sliding window
    double share_mark = 0.0, context_mark = 0.0, moment_mark = 0.0;  ///< lane's sums at joining
    double energy_j = 0.0;                                           ///< attributed before joining
    TimeShares time;      ///< before it last came aboard, less the lane's sums then
    SimTime left;         ///< preempted: when
    bool aboard = false;  ///< `time` has the lane's sums taken off
    SimTime last_token;
    KvLease lease;
    std::int16_t lane = 0;
    std::int16_t priority = 0;
    bool decoding = false;
    bool below_window = false;
  };
  struct Waiting {
    std::uint32_t request;
    std::uint32_t slot;  ///< of a preempted request; kNone for a fresh one
  };
  struct Due {
    std::int64_t at;  ///< decode counter
    std::uint32_t slot;
    bool operator>(const Due& o) const { return at != o.at ? at > o.at : slot > o.slot; }
  };
  struct Lane {
    std::vector<std::uint32_t> prefilling;  ///< slots, in order of admission
    std::vector<Due> finishes;  ///< min-heap over decoding sequences (stale ones skipped)
    std::vector<Due> windows;   ///< min-heap of sequences below the window
    std::int32_t decoding = 0;
    std::int64_t decode_steps = 0;  ///< D: decode steps taken, one token each per sequence
    std::int64_t context_base = 0;  ///< sum of base over decoding sequences
    std::int64_t window_base = 0;   ///< the same over those below the window
    std::int32_t window_below = 0;
    std::int64_t max_base = 0;
    bool max_stale = false;
    std::vector<std::int32_t> residues;  ///< count of base mod block over decoding sequences
    double share_j = 0.0, context_j = 0.0, moment_j = 0.0;  ///< running sums for attribution
    TimeShares time;                                        ///< likewise
    SimTime timed;                                          ///< until when `time` counts
    double pipeline_s = 0.0;  ///< of the step under way: waits for its turn
    LocalClock clock;
    bool busy = false;
    SimTime start, end;
    SimTime last_end;  ///< of the previous step: when its sequences got their latest token
    // The step or run under way.
    std::int64_t run_steps = 0;  ///< > 0: decode steps; 0: a step with prefill, in `cost`
    StepCost cost;
    double alone_s = 0.0;  ///< of the step under way
    std::int32_t chunk_tokens = 0;
    std::int32_t chunk_ends = 0;
    std::int32_t chunks = 0;
    std::int32_t joining = 0;  ///< imports with their first token here
    std::int64_t joining_context = 0, joining_window = 0, joining_longest = 0;
    double chunk_pairs = 0.0, chunk_context = 0.0, chunk_pairs_window = 0.0,
           chunk_context_window = 0.0;
    // Valid while the batch stays the same.
    DecodeBatch batch;
    std::int64_t batch_left = 0;      ///< steps for which its clock still holds; 0: none
    std::int64_t batch_offset = 0;    ///< steps taken on it
    DecodeLine line;                  ///< fast-forward: the piece under way
    std::vector<DecodePoint> points;  ///< step by step: the steps under way,
    std::vector<double> ends_s;       ///< and when each ends after `start`
  };

  // replica_failure.cpp
  void stop_lane(Lane& lane, SimTime now);
  void lose_decode_step(Lane& lane, SimTime from, SimTime now);
  void lose_mixed_step(Lane& lane, SimTime now);
  void emit_lost(const Lane& lane, Advance& a, SimTime from, SimTime now);
  void evict(std::vector<Evicted>& out) const;
  void clear();

  // replica_handoff.cpp
  bool import_fits(std::uint32_t request, std::int32_t produced, KvPool::Hit& hit) const;
  void admit_imports(Lane& lane, int lane_index, SimTime now, std::int64_t& budget);
  void announce_chunks(const Lane& lane);
  std::int64_t blocks_under_way() const;
  bool cut_run(Lane& lane, SimTime now);

  // replica_migration.cpp
  Decoding state_of(std::uint32_t slot, SimTime now) const;
  void let_go(std::uint32_t slot, SimTime now);
  void let_leaving_go(Lane& lane, SimTime now);

  // replica_tiers.cpp
  void find_parts(const Waiting& w, const KvPool::Hit& hit, std::int64_t prompt);
  bool start_fetch(const Waiting& w, const KvPool::Hit& hit, std::int64_t prompt);
  double recompute_seconds(std::int64_t tokens, std::int64_t prior) const;
  void admit_fetched(Lane& lane, int lane_index, SimTime now, std::int64_t& budget);
  void write_through(Sequence& s, std::int64_t stored);
  void leave_tiers(const Sequence& s);

  // replica.cpp: queue, admission, preemption
  std::uint64_t resume_key(std::uint32_t request) const {
    return (std::uint64_t{1} << 63) | request;
  }
  const std::uint64_t* ids_of(const Request& r) const {
    return trace_.hash_ids.data() + r.hash_begin;
  }
  std::uint32_t prompt_ids(const Request& r) const;
  void push_waiting(Waiting w);
  /// A sequence comes aboard a lane, or leaves it: marks on the lane's sums of time.
  void board(Sequence& s, SimTime now);
  void alight(Sequence& s);
  void count_time(Lane& lane, double seconds, double busy, double memory, double link,
                  double launch, double wall);
  bool fits_now(const Waiting& w, std::int64_t reserved, KvPool::Hit& hit) const;
  bool could_admit_head() const;
  bool plan(Lane& lane, int lane_index, SimTime now);
  void plan_prefills(Lane& lane, std::int64_t& budget, std::int64_t& reserved);
  bool admit_head(Lane& lane, int lane_index, SimTime now, std::int64_t& budget,
                  std::int64_t reserved);
  void set_chunk(Lane& lane, Sequence& s, std::int64_t tokens);
  bool make_room(Lane& lane, int lane_index);
  void preempt(std::uint32_t slot);
  std::uint32_t victim(int lane_index) const;
  std::uint32_t new_slot();
  void remove_running(std::uint32_t slot);

  // replica_step.cpp: cost, time and energy of steps
  Features features(Lane& lane) const;
  std::int64_t max_context(Lane& lane) const;
  void pass_windows(Lane& lane);
  std::int64_t new_blocks(const Lane& lane, std::int64_t steps) const;
  std::int64_t run_limit(const Lane& lane, std::int64_t most) const;
  void ensure_batch(Lane& lane);
  double run_seconds(const Lane& lane, std::int64_t steps) const;
  std::int64_t steps_until(const Lane& lane, SimTime now) const;
  void start_decodes(Lane& lane);
  void start_mixed(Lane& lane);
  void enter_pipeline(Lane& lane, double slowest_stage_s);
  void finish_decodes(Lane& lane);
  void finish_mixed(Lane& lane, SimTime now);
  void emit(Lane& lane, const Advance& advance);
  void end_prefill(Lane& lane, std::uint32_t slot, SimTime now);
  void join_decode(Lane& lane, std::uint32_t slot);
  void leave_decode(Lane& lane, Sequence& s);
  double decode_energy(const Lane& lane, const Sequence& s) const;
  void finish_due(Lane& lane, SimTime now);
  void finish(std::uint32_t slot, SimTime now);
  void rebase(Lane& lane);

  ReplicaConfig config_;
  const StepModel& model_;
  const Trace& trace_;
  ReplicaListener& listener_;
  AdvanceListener& advances_;
  KvPool pool_;
  FeatureContext context_;
  std::vector<Lane> lanes_;
  std::vector<Sequence> sequences_;
  std::vector<std::uint32_t> spare_;
  std::vector<std::uint32_t> running_;  ///< slots in order of admission
  std::deque<Waiting> waiting_;
  std::deque<std::uint32_t> imports_;   ///< slots whose KV is here
  std::vector<std::uint32_t> exports_;  ///< slots whose KV waits to leave
  std::vector<std::uint32_t> leaving_;
  KvBacking* backing_ = nullptr;
  bool write_through_ = false;
  std::vector<std::uint32_t> fetching_;  ///< slots whose KV is on its way up
  std::deque<std::uint32_t> fetched_;    ///< and those where it is here
  std::vector<KvBacking::Part> parts_;
  ReplicaCounters counters_;
  double attributed_j_ = 0.0;
  std::int64_t peak_before_ = 0;  ///< blocks, before the last failure
  bool preempted_now_ = false;
  SimTime stage_free_;    ///< pipeline: when the first stage can take another step
  SimTime pipeline_end_;  ///< pipeline: end of the latest step
};

}  // namespace medley
