#pragma once

#include <limits>
#include <vector>

#include "sim/engine/fluid.h"
#include "sim/engine/fluid_timers.h"
#include "sim/engine/fluid_wide.h"

namespace medley {

/// The state behind FluidSystem. With k_ir = a_ir / level_i and the level l_i = x_i level_i, the
/// rates are the plain max-min fair l_i of sum_i k_ir l_i <= C_r.
///
/// An activity is in one of two states.
///   - On its own clock: work left at `since`, rate since then, one timer of its own.
///   - Under a hub: a resource that every activity of its component uses and that is the only one
///     to limit them. All then have the level L = C_h / K_h, K_h = sum of their k. With the virtual
///     time V(t) = integral of L dt, i ends when V has grown by work_i * level_i since it started:
///     a constant. So a hub keeps its activities in a heap by that end and one timer; a start or an
///     end costs O(log n) and touches none of the others. The component may hold any other
///     resources r as long as L < C_r / K_r (the "ceiling") and L <= every activity's bound.
///     A start that would connect it with others, or a level at the ceiling, dissolves the hub: its
///     activities go on their own clocks, and a general solve sees whether a new one can be made.
///
/// A general solve fills progressively, upwards from the waterline, and only what changes. The
/// state before the solve is the assumption: an activity keeps its level unless shown otherwise. A
/// resource is looked at when an activity came to it or left it, its capacity changed, or one of
/// its activities takes another level than assumed. Events, in order of level:
///   - a looked-at resource r fills up: what it holds is frozen, and what was to rise above it
///     comes down to it. The level is found from below: (C_r - sum of k l over levels passed) /
///     (sum of the other k) is a lower bound that only rises; where it has been reached, it is
///     exact.
///   - the old level of the activities that r held is reached and r is not yet full: they open,
///     i.e. may rise, and all their resources are looked at.
///   - a bound is reached.
/// By induction everything below the current level is final: a resource that was not looked at
/// has the same users at the same levels as before, hence fills up where it did. So a change costs
/// what it really moves: those whose level changes, times their resources, times the users of
/// those. Levels equal to 1e-14 count as unchanged (this does not accumulate: every level that is
/// set comes from sums over what is there).
///
/// The waterline is a level below which nothing can have changed, so where to start: the least of
/// the level of each activity that left or whose bound changed; min over its resources of C_r / K_r
/// and of its bound for each that came; the highest level on a resource whose capacity rose, and
/// the new C_r / K_r where it fell. (Applied one by one, none of these moves a level below its own
/// value: no resource of such an activity fills up below it, before or after.)
///
/// Rounding: the capacity left is always C minus the sum of what is frozen, never a running
/// difference; K_r is kept as a WideSum and summed anew whenever a resource has lost half its
/// users. Completion sets the work left to 0 by construction; times are compared exactly.
class FluidCore {
 public:
  static constexpr std::uint32_t kNone = 0xffffffffU;
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  explicit FluidCore(FineTime start);

  std::uint32_t add_resource(double capacity);
  void set_capacity(std::uint32_t r, double capacity);
  FluidHandle start(const FluidActivity& activity);
  bool running(FluidHandle h) const {
    return h.slot < activities_.size() && activities_[h.slot].generation == h.generation &&
           activities_[h.slot].live;
  }
  double cancel(FluidHandle h);
  void set_bound(FluidHandle h, double bound);
  double remaining(FluidHandle h) const;
  double rate(FluidHandle h) const;
  void solve();
  void advance(FineTime time);
  void take_completions(std::vector<FluidCompletion>& out);
  double use(std::uint32_t r) const;
  FluidUse account(std::uint32_t r) const;
  void stalled(std::vector<std::uint64_t>& tags) const;
  std::string certificate(double tolerance) const;

  // What the solver works on.
  struct Element {  // one demand of an activity
    double weight;  // k
    std::uint32_t resource;
    std::uint32_t place;  // in the resource's users
  };
  struct User {  // one activity on a resource
    double weight;
    std::uint32_t activity;
    std::uint32_t element;
  };
  struct Activity {
    double left = 0.0;  // at `since`, on its own clock
    double rate = 0.0;
    FineTime since;
    WideSum end;  // virtual, under a hub
    double level = 1.0;
    double bound = 0.0;
    std::uint64_t tag = 0;
    std::uint64_t sequence = 0;
    std::uint32_t generation = 0;
    std::uint32_t hub = kNone;
    std::uint32_t place = 0;  // in the hub's heap
    std::uint8_t size_class = 0;
    bool live = false;
  };
  struct Path {               // of an activity: what a solve needs of it
    double cap = 0.0;         // bound * level
    std::uint32_t first = 0;  // element; of a free activity, the next free one
    std::uint32_t count = 0;
  };
  enum class Phase : std::uint8_t { kAssumed, kOpen, kFinal };
  struct Level {
    double value = kInfinity;       // infinite until its first solve
    std::uint32_t holder = kNone;   // the resource that stops it, if it is not its bound
    Phase phase = Phase::kAssumed;  // final or open only within a solve
  };
  struct alignas(64) Resource {
    double capacity = 0.0;
    WideSum weight;  // sum of its users' k
    std::vector<User> users;
    std::uint32_t hub = kNone;
    std::uint32_t most_users = 0;  // since its weight was summed anew
    std::uint32_t stamp = 0;
    bool touched = false;
  };
  struct alignas(64) Account {  // of a resource, up to `since`
    double use = 0.0;
    double units = 0.0, busy_s = 0.0, saturated_s = 0.0;
    FineTime since;
    WideSum mark;  // virtual time of `since`, under a hub
  };
  struct Hub {
    std::vector<std::pair<WideSum, std::uint32_t>> heap;  // virtual end, activity
    WideSum virtual_time;
    FineTime since;
    double level = 0.0;
    double cap = kInfinity;      // at most the least bound of its activities
    double ceiling = kInfinity;  // at most the least C_r / K_r of its other resources
    bool loose = false;          // those two may be too low
    bool touched = false;
  };

  FineTime now_;
  std::size_t active_ = 0;
  FluidTimers timers_;
  FluidCounters counters_;
  std::vector<Activity> activities_;
  std::vector<Path> paths_;    // of activities
  std::vector<Level> levels_;  // of activities
  std::vector<Resource> resources_;
  std::vector<Account> accounts_;  // of resources
  std::vector<Hub> hubs_;          // by resource
  bool needs_solve() const {
    return !touched_.empty() || !touched_hubs_.empty() || !fresh_.empty();
  }

 private:
  // fluid_core.cpp
  std::uint32_t take_slot();
  void place_demands(std::uint32_t a, std::span<const FluidDemand> demands);
  std::uint32_t take_elements(std::uint8_t size_class);
  void attach(std::uint32_t a);
  void add_users(std::uint32_t a);
  void remove_user(const Element& e);
  void remove(std::uint32_t a);
  void touch(std::uint32_t r);
  void lower_waterline(double level) { waterline_ = level < waterline_ ? level : waterline_; }
  double saturation_level(std::uint32_t r) const;
  double left_now(const Activity& a) const;

  // fluid_account.cpp
  void flush(std::uint32_t r);
  void set_use(std::uint32_t r, double use, bool saturated);
  double share(const Resource& r) const {
    return r.weight.value() > 0.0 ? r.capacity / r.weight.value() : kInfinity;
  }
  std::span<const Element> path(std::uint32_t a) const {
    const Path& p = paths_[a];
    return {elements_.data() + (p.count > 0 ? p.first : 0), p.count};
  }

  // fluid_hub.cpp
  std::uint32_t hub_to_join(std::uint32_t a) const;
  void join_hub(std::uint32_t a, std::uint32_t h);
  void leave_hub(std::uint32_t a);
  void touch_hub(std::uint32_t h);
  WideSum virtual_now(const Hub& hub) const;
  bool update_hub(std::uint32_t h);
  void tighten(std::uint32_t h);
  void bring_under_hub(std::uint32_t r, std::uint32_t h);
  void make_hub(std::uint32_t h);
  void dissolve_hub(std::uint32_t h);
  void end_under_hub(std::uint32_t h);
  bool under_hub(const Resource& r) const { return r.hub != kNone; }
  void hub_up(Hub& hub, std::size_t p, std::pair<WideSum, std::uint32_t> e);
  void hub_down(Hub& hub, std::size_t p, std::pair<WideSum, std::uint32_t> e);
  void hub_place(Hub& hub, std::size_t p, const std::pair<WideSum, std::uint32_t>& e) {
    hub.heap[p] = e;
    activities_[e.second].place = static_cast<std::uint32_t>(p);
  }

  // fluid_solve.cpp
  void prepare();
  bool solve_alone(std::uint32_t r);
  void apply();
  void settle(Activity& a) const;
  void rerate(std::uint32_t a, double level, bool ordered);

  // fluid_fill.cpp: one general solve.
  struct Look {                 // at a resource
    std::uint64_t visit = 0;    // the solve it belongs to
    std::uint64_t checked = 0;  // the last lone_bottleneck() that saw it
    double event = 0.0;         // level of its next event, or less
    std::uint32_t open = 0;     // open activities on it
    bool queued = false;
    bool assumed = false;  // the event rests on nothing of it being open
    bool full = false;
    bool saturated = false;  // at the end of the last solve that changed it
  };
  struct Sums {
    double used = 0.0;    // by levels passed
    double weight = 0.0;  // of the others
    double rest = 0.0;    // their use at the levels assumed
    double held = -1.0;   // the level of those that it held so far
    double fills = 0.0;   // lower bound of where it fills up
  };
  struct Change {
    std::uint32_t activity;
    double before;
  };
  struct Event {
    double level;
    std::uint32_t id;  // a resource, or an activity with kBound set
    bool operator>(const Event& o) const {
      return level > o.level || (level == o.level && id > o.id);
    }
  };
  static constexpr std::uint32_t kBound = 0x80000000U;
  void fill();
  void start_filling();
  bool may_rise(std::uint32_t a) const;
  bool looked_at(std::uint32_t r) const { return looks_[r].visit == visit_; }
  void look(std::uint32_t r);
  void open(std::uint32_t a);
  void queue(std::uint32_t r);
  Sums sum(std::uint32_t r) const;
  double next_event(std::uint32_t r, Sums& sums);
  void push(double level, std::uint32_t id);
  void raise_to(double level);
  void step(std::uint32_t r);
  void open_held(std::uint32_t r);
  void saturate(std::uint32_t r, double level, double held);
  void freeze(std::uint32_t a, double level, std::uint32_t holder);
  bool lone_bottleneck(std::uint32_t r);

  std::vector<Element> elements_;
  std::vector<std::uint32_t> free_elements_;  // by size class, linked through Element::place
  std::uint32_t free_slot_ = kNone;           // linked through Path::first
  std::uint64_t sequence_ = 0;
  std::uint64_t solved_sequence_ = 0;  // activities from here on are new
  std::vector<std::uint32_t> touched_, touched_hubs_;
  std::vector<std::uint32_t> fresh_;  // activities that may rise: new, or with another bound
  double waterline_ = kInfinity;
  std::uint64_t visit_ = 0;
  std::uint64_t lone_check_ = 0;

  std::vector<Look> looks_;  // by resource
  std::vector<Event> events_;
  std::vector<Change> changes_;
  std::vector<std::uint32_t> looked_, general_, lone_;
  double filled_ = 0.0;  // the level so far
  double passed_ = 0.0;  // just below: what is lower is final
  std::size_t open_activities_ = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> done_;  // sequence, tag
  mutable std::vector<double> check_used_, check_highest_, check_level_;
};

}  // namespace medley
