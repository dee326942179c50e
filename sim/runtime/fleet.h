#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "sim/engine/engine.h"
#include "sim/runtime/failures.h"
#include "sim/runtime/footprint.h"
#include "sim/runtime/handoff.h"
#include "sim/runtime/kv_tiers.h"
#include "sim/runtime/meter.h"
#include "sim/runtime/migration.h"
#include "sim/runtime/shared_loops.h"
#include "sim/runtime/simulation.h"
#include "sim/runtime/step_player.h"
#include "sim/runtime/transport.h"
#include "sim/scenario/placement.h"

namespace medley {

inline double watts_or_zero(const std::optional<Watts>& w) {
  return w ? w->value() : 0.0;
}

/// The replicas of a run with their routers and queues, and the events that move them.
///
/// Events: a request's arrival, the end of a replica's step or run (completion), a pipeline's first
/// stage becoming free (schedule), a sample. Steps begin only once everything of the instant has
/// happened, in order of replica, so simultaneous events cannot race.
class Fleet final : private ReplicaListener,
                    private RouterView,
                    private ArrivalSource,
                    private Transport::Listener,
                    private StepPlayer::Listener,
                    private KvTiers::Listener {
 public:
  Fleet(const Catalog& catalog, const Scenario& scenario, const RunHooks& hooks);
  RunResult run();

 private:
  enum Kind : std::uint32_t {
    kArrive = 1,
    kStepEnd,
    kStageFree,
    kTakeSample,
    kBegin,
    kNetwork,
    kJoin,
    kFailure,
    kLoadWeights,
    kReady,
    kMigrate,
    kDrain
  };
  struct Unit {  ///< one replica and what the router knows of it
    std::unique_ptr<Replica> replica;
    std::unique_ptr<ReplicaMeter> meter;
    std::uint16_t pool = 0;
    PoolRole role = PoolRole::kUnified;
    DevicePlace place;  ///< of its first device
    /// Between the engine's last step and the client: request_overhead, prompt_token_overhead.
    Seconds per_request, per_prompt_token;
    Seconds front_end(const Request& r) const {
      return per_request + static_cast<double>(r.input_tokens) * per_prompt_token;
    }
    double requests = 0.0;
    double tokens = 0.0;
    double prompt_tokens = 0.0;
    std::vector<EventHandle> ends;  ///< by lane
    EventHandle wake;
    bool dirty = false;
    bool shared = false;    ///< its steps are played
    bool up = true;         ///< works
    bool loading = false;   ///< its weights are on their way, or its engine starts
    bool draining = false;  ///< takes nothing new
  };
  /// Mean output length of what has ended, by class: all that a controller can expect.
  struct Expectation {
    double sum = 0.0;
    double count = 0.0;
    double mean() const { return count > 0.0 ? sum / count : kFirstGuess; }
    static constexpr double kFirstGuess = 256.0;
  };

  void build_pools(const Catalog& catalog);
  void build_replicas();
  PoolProfile profile_pool(std::size_t pool) const;
  std::unique_ptr<Router> make_router(const RoutingPolicy& policy, const char* pointer,
                                      const std::vector<std::vector<std::uint32_t>>& groups) const;

  // events
  void on_event(const Event& event);
  void end_event();
  void arrive(std::uint32_t request);
  void route_request(std::uint32_t request);
  void reject(std::uint32_t request, RequestStatus status);
  void dispatch(std::uint32_t request, std::uint32_t replica);
  void hold(std::uint32_t request);
  void pull(std::uint32_t replica);
  void mark(std::uint32_t replica);
  void begin_marked();
  void begin_lanes(std::uint32_t replica);
  void follow_up(std::uint32_t request);
  void sample();
  void take_sample();
  void count_ended();
  PublicRequest public_view(std::uint32_t request) const;
  Replica::Verdict judge_at(std::uint32_t unit, const Request& r) const;
  void load_changed(std::uint32_t replica) {
    router_->load_changed(replica, *this);
    if (pairing_) pairing_->load_changed(replica, *this);
  }

  // fleet_sharing.cpp: steps that others slow down
  void build_sharing(const Catalog& catalog);
  void need_transport(const Catalog& catalog);
  void share_devices(const std::vector<ReplicaSite>& sites, std::vector<StepFootprint>& footprints);
  void share_hosts(const std::vector<ReplicaSite>& sites, std::vector<StepFootprint>& footprints);
  void begin_shared(std::uint32_t replica, int lane);
  void on_activity(std::uint64_t tag) override { player_->on_activity(tag); }
  void on_step_played(std::uint32_t unit, int lane, SimTime end) override;

  // fleet_handoff.cpp: from prefill to decode replicas
  void build_handoff(const Catalog& catalog);
  std::uint32_t open_handoff(std::uint32_t request);
  HandoffState* handoff_of(std::uint32_t request);
  bool pair(HandoffState& h);
  void pair_waiting(std::uint16_t pool);
  void pair_all_waiting();
  void send(HandoffState& h, std::int64_t upto, double pace_s, bool last);
  void release_pace(HandoffState& h);
  void deliver(HandoffState& h);
  void drop_handoff(HandoffState& h);
  void join(std::uint32_t unit, std::uint32_t slot, SimTime last_token);
  void close_handoff(HandoffState& h);
  void on_handoff_arrived(std::uint64_t tag);
  void on_chunk(std::uint32_t request, std::int64_t prior, std::int64_t tokens, SimTime start,
                SimTime end) override;
  void on_prefilled(std::uint32_t request, std::uint32_t slot, SimTime now) override;

  // fleet_failures.cpp: replicas that fail and come back
  void build_failures(const Catalog& catalog);
  std::vector<FailingPart> served_parts() const;
  std::vector<std::uint32_t> units_needing(const FailingPart& part) const;
  ReplicaSite site_of(std::uint32_t unit) const;
  Seconds ready_after(std::uint32_t unit) const;
  bool find_wires(std::uint32_t unit);
  void arm_failures();
  void on_failure_event();
  void apply_failures();
  void change_part(const FailureTimeline::Change& change);
  void change_cables(const FailingPart& part, bool down, std::uint32_t failure);
  void hit_unit(std::uint32_t unit, std::uint32_t failure);
  void take_down(std::uint32_t unit, std::uint32_t failure);
  void bring_up(std::uint32_t unit);
  void try_restart(std::uint32_t unit);
  void fail_handoffs(std::uint32_t unit, std::uint32_t failure);
  void unpair(HandoffState& h);
  void fail_joins(std::uint32_t unit, std::uint32_t failure);
  SimTime joined(std::uint32_t unit, std::uint32_t slot, SimTime last_token);
  void keep_energy(std::uint32_t unit, const Replica::Evicted& e);
  void settle_stranded();
  void release_waiting();
  const std::vector<std::uint32_t>* healthy_of(std::uint32_t request,
                                               const std::vector<std::uint32_t>& candidates);
  bool sheds(std::uint32_t request) const;
  void give_up(std::uint32_t request, RequestStatus status);
  void finish_failures();
  void count_model_down(std::uint32_t unit, int by);
  Replica::Streamed kept(std::uint32_t request) const {
    return failures_ ? failures_->kept[request] : Replica::Streamed();
  }
  /// Tokens to compute before it decodes.
  std::int32_t prompt_of(std::uint32_t request) const {
    return trace_.requests[request].input_tokens + kept(request).tokens;
  }

  /// Upper bits of a flow's tag: whose it is.
  enum Flow : std::uint64_t {
    kHandoffFlow = 0,
    kTierFlow = std::uint64_t{1} << 56,
    kWeightFlow = std::uint64_t{2} << 56,
    kMoveFlow = std::uint64_t{3} << 56
  };
  static constexpr std::uint64_t kFlowMask = std::uint64_t{0xff} << 56;
  void on_arrived(std::uint64_t tag) override;

  // fleet_tiers.cpp: KV below the devices
  void build_tiers(const Catalog& catalog);
  void on_recall(std::uint32_t unit, std::uint32_t request, bool again,
                 std::int64_t tokens) override;
  void on_recalled(std::uint32_t unit, std::uint32_t slot, std::uint32_t request,
                   Seconds took) override;

  // fleet_weights.cpp: weights on their way to the devices
  void build_weights(const Catalog& catalog);
  void plan_load(std::uint32_t unit);
  void load_weights(std::uint32_t unit, SimTime when);
  void start_load(std::uint32_t unit);
  void on_weights_arrived(std::uint32_t unit);
  void on_ready(std::uint32_t unit);
  void cancel_load(std::uint32_t unit);
  bool takes(std::uint32_t unit) const {
    const Unit& u = units_[unit];
    return u.up && !u.loading && !u.draining;
  }
  const std::vector<std::uint32_t>* open_of(const std::vector<std::uint32_t>& candidates);

  // fleet_migration.cpp: decoding requests that move
  void build_migration(const Catalog& catalog);
  void arm_migration();
  void look_for_migrations();
  void balance(std::uint16_t pool);
  void move_away(std::uint32_t unit);
  void drain(std::uint32_t unit);
  void note_drained(std::uint32_t unit);
  double kv_usage(std::uint32_t unit) const;
  bool moves_from(std::uint32_t unit) const;
  void begin_move(std::uint32_t from, std::uint32_t to, const Replica::Decoding& what);
  void send_move(MigrationState& m, std::int64_t upto, bool last);
  void on_move_arrived(std::uint64_t index);
  void next_of_move(MigrationState& m);
  void end_move(MigrationState& m);
  void cancel_move(MigrationState& m);
  void fail_moves(std::uint32_t unit, std::uint32_t failure);
  void count_move(const MigrationState& m, double sign);
  MigrationState* move_of(std::uint32_t request);
  void on_left(std::uint32_t request, std::uint32_t slot, std::int64_t stored,
               std::int32_t produced, SimTime now) override;

  /// What the instant's changes set in motion.
  void settle_transport() {
    if (tiers_) tiers_->flush();
    if (transport_) transport_->settle();
  }

  // ArrivalSource
  SimTime next_time() override;
  EventBody take() override;

  // ReplicaListener: `acting_` is the replica that speaks
  void on_scheduled(std::uint32_t request, SimTime now, std::int32_t cached_tokens) override;
  void on_first_token(std::uint32_t request, SimTime now) override;
  void on_finished(std::uint32_t request, SimTime now, double energy_j) override;
  void on_preempted(std::uint32_t request) override;
  void on_time(std::uint32_t request, const TimeShares& time) override {
    result_.requests[request].time.add(time);
  }
  void on_resumed(std::uint32_t request, SimTime now) override;

  // RouterView
  std::size_t replicas() const override { return units_.size(); }
  std::uint16_t pool_of(std::uint32_t r) const override { return units_[r].pool; }
  const PoolProfile& profile(std::uint16_t pool) const override {
    return result_.pools[pool].profile;
  }
  double outstanding_requests(std::uint32_t r) const override { return units_[r].requests; }
  double outstanding_tokens(std::uint32_t r) const override { return units_[r].tokens; }
  double outstanding_prompt_tokens(std::uint32_t r) const override {
    return units_[r].prompt_tokens;
  }
  bool has_room(std::uint32_t r, std::int64_t input_tokens) const override {
    return takes(r) && units_[r].replica->has_room(input_tokens);
  }
  Slo slo(std::uint16_t slo_class) const override;

  // result
  void finish_run();
  void settle_unfinished();
  void judge();

  const Scenario& scenario_;
  const Trace& trace_;
  SharedLoops loops_;
  RunHooks hooks_;
  Engine engine_;
  RunResult result_;
  std::vector<StepModel> models_;  ///< by pool
  std::vector<Unit> units_;
  std::vector<std::vector<std::uint32_t>> candidates_;  ///< by trace model
  std::vector<std::vector<std::uint16_t>> pools_of_model_;
  std::vector<std::uint32_t> first_unit_;  ///< by pool
  std::vector<std::uint32_t> filtered_;
  std::unique_ptr<Router> router_;
  std::unique_ptr<Transport> transport_;  ///< where something moves between replicas
  std::unique_ptr<StepPlayer> player_;    ///< where steps of some replicas are slowed down
  std::unique_ptr<KvTiers> tiers_;
  std::vector<WeightLoad> loads_;  ///< by unit; empty: nobody loads
  std::size_t closed_units_ = 0;   ///< units that load or drain
  std::vector<std::uint32_t> open_;
  std::vector<MigrationState> moves_;
  std::vector<std::vector<KvPath>> move_paths_;  ///< by pool
  std::vector<Replica::Decoding> decoding_;
  EventHandle look_;
  std::unique_ptr<Router> pairing_;
  std::vector<std::vector<std::uint32_t>> decode_candidates_;  ///< by trace model
  std::unique_ptr<FailureControl> failures_;                   ///< where something may fail
  bool retry_pairing_ = false;  ///< blocks came back at some decode replica
  std::vector<std::uint32_t> with_room_;
  std::vector<HandoffState> handoffs_;
  std::vector<std::uint32_t> spare_handoffs_;
  std::vector<std::uint32_t> handoff_of_request_;  ///< kNone: none open
  std::vector<std::deque<std::uint32_t>>
      unpaired_;                               ///< handoffs without a decode replica, by model
  std::vector<std::vector<KvPath>> kv_paths_;  ///< prefill pool * pools + decode pool
  Rng rng_;
  std::vector<std::deque<std::uint32_t>> central_;  ///< held requests, by model
  std::size_t held_ = 0;                            ///< requests in `central_`
  std::vector<Expectation> expected_;               ///< by class
  std::vector<float> expected_at_dispatch_;
  std::vector<std::uint32_t> marked_;
  EventHandle begin_;
  std::size_t cursor_ = 0;
  std::size_t open_requests_ = 0;
  std::uint32_t acting_ = 0;
  std::int64_t ended_ = 0;
  Seconds sample_every_;
  Placement placement_;
};

}  // namespace medley
