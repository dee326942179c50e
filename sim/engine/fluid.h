#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/core/fine_time.h"

namespace medley {

/// Units of `resource` that an activity needs per unit of its work.
struct FluidDemand {
  std::uint32_t resource = 0;
  double amount = 0.0;
};

/// What starts: `work` >= 0 units at a rate x <= `bound`, each unit needing `demands` (a resource
/// named twice counts twice; none: the rate is the bound, or the work takes no time).
/// `level` > 0 says what is fair: max-min equalises x * level between activities.
///   - A transfer: work 1, amounts and level its bytes: flows share a link by bytes/s.
///   - A kernel or host task with amounts a_r (device-seconds of resources of capacity C_r):
///     level = BW_dev * max_r(a_r / C_r), its largest demand in units of the memory bandwidth of
///     its device, so that kernels share a device by time and meet a DMA in bytes/s.
/// `tag` comes back with the completion.
struct FluidActivity {
  std::span<const FluidDemand> demands;
  double work = 1.0;
  double level = 1.0;
  double bound = std::numeric_limits<double>::infinity();
  std::uint64_t tag = 0;
};

/// Names one running activity; stale after its completion or cancellation.
struct FluidHandle {
  std::uint32_t slot = 0xffffffffU;
  std::uint32_t generation = 0;
  bool operator==(const FluidHandle&) const = default;
};

struct FluidCompletion {
  std::uint64_t tag = 0;
  FineTime time;
};

/// What a resource has done so far.
struct FluidUse {
  double units = 0.0;        ///< integral of its use: bytes, device-seconds
  double busy_s = 0.0;       ///< time with any use
  double saturated_s = 0.0;  ///< time with use = capacity > 0 (to 1e-12 of it)
};

/// How solves were done: what tests and benchmarks look at, never results.
struct FluidCounters {
  std::uint64_t solves = 0;      ///< calls of solve() that found something to do
  std::uint64_t alone = 0;       ///< activities that share nothing, rated directly
  std::uint64_t shared = 0;      ///< updates of a lone bottleneck, in constant time
  std::uint64_t components = 0;  ///< general solves
  std::uint64_t visited = 0;     ///< activities on the resources that general solves looked at
  std::uint64_t rerated = 0;     ///< activities whose rate they changed
};

class FluidCore;

/// Activities on shared resources: everything that shares a wire, a memory or a core.
///
///   sum_i a_ir x_i <= C_r for every resource r,   0 <= x_i <= bound_i,
///
/// with the weighted max-min fair rates: x_i * level_i is raised alike for all until a resource is
/// used up or a bound is reached. An activity freezes at the first saturated resource it uses,
/// however little of it.
///
/// Usage: start, cancel and changes take effect at now(); solve() once after the changes of an
/// instant; then next_completion() says when to advance() to. take_completions() yields what ends
/// at now(), in order of start.
///
/// Corner cases: capacity 0 gives rate 0 (no completion until it changes; stalled() lists them);
/// work 0 completes at now(); infinite bounds and no demands: completes at now(). Amounts of 0 are
/// as if not named. Capacities are finite.
///
/// Laws: feasible; max-min certificate (every activity is at its bound or uses a saturated resource
/// on which no activity has a higher level); rates do not depend on the order of starts beyond
/// rounding; integral of x_i = work_i. Deterministic. No allocation once capacities are reached.
///
/// Cost: an activity that shares nothing, and any change where one resource is the only bottleneck
/// of all that is connected with it, O(log n); otherwise the activities whose rate really changes,
/// times their demands, times the users of those resources. How: fluid_core.h. Figures:
/// tools/bench/README.md.
/// Source: progressive filling as in Bertsekas and Gallager, Data Networks, section 6.5.2.
class FluidSystem {
 public:
  explicit FluidSystem(FineTime start = {});
  ~FluidSystem();
  FluidSystem(const FluidSystem&) = delete;
  FluidSystem& operator=(const FluidSystem&) = delete;

  std::uint32_t add_resource(double capacity);
  void set_capacity(std::uint32_t resource, double capacity);
  double capacity(std::uint32_t resource) const;
  std::size_t resources() const;

  FluidHandle start(const FluidActivity& activity);
  bool running(FluidHandle handle) const;
  /// Takes it out; returns the work left. `handle` must be running.
  double cancel(FluidHandle handle);
  void set_bound(FluidHandle handle, double bound);
  /// Work left at now().
  double remaining(FluidHandle handle) const;
  /// Rate since the last solve(); 0 for what started after it.
  double rate(FluidHandle handle) const;
  std::size_t active() const;

  void solve();
  bool needs_solve() const;
  FineTime now() const;
  /// FineTime::max() when nothing will complete. Call solve() first.
  FineTime next_completion() const;
  /// Moves the clock; `time` >= now() and <= next_completion().
  void advance(FineTime time);
  /// Appends what completes at now() and takes it out (its resources are free for the next solve).
  void take_completions(std::vector<FluidCompletion>& out);

  /// Use of a resource right now, in its units per second, since the last solve().
  double use(std::uint32_t resource) const;
  /// Up to now().
  FluidUse account(std::uint32_t resource) const;
  /// Tags of activities that have work left and rate 0, in order of start.
  void stalled(std::vector<std::uint64_t>& tags) const;

  /// The max-min certificate after a solve(), in O(demands): empty when the rates are feasible and
  /// every activity is at its bound or at the highest level of a saturated resource, all to
  /// `tolerance` relative; otherwise what is wrong. Checked after every solve() in debug builds.
  std::string certificate(double tolerance = 1e-9) const;
  const FluidCounters& counters() const;

 private:
  std::unique_ptr<FluidCore> core_;
};

}  // namespace medley
