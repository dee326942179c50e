#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include "sim/engine/fluid.h"

namespace medley {

inline constexpr double kNoBound = std::numeric_limits<double>::infinity();

/// Something to be started later; its place in the list is its tag.
struct FluidStart {
  double at_s = 0.0;
  std::vector<FluidDemand> demands;
  double work = 1.0;
  double level = 1.0;
  double bound = kNoBound;
};

/// `bytes` over `links`: flows share by bytes/s, `weight` times as much each.
inline FluidStart flow(double at_s, double bytes, const std::vector<std::uint32_t>& links,
                       double weight = 1.0) {
  FluidStart start;
  start.at_s = at_s;
  for (const std::uint32_t link : links) start.demands.push_back({link, bytes});
  start.level = bytes / weight;
  return start;
}

/// A solver, its activities by tag and when they ended.
struct FluidRun {
  FluidSystem system;
  std::vector<FluidHandle> handles;  // by tag
  std::map<std::uint64_t, double> end_s;
  std::vector<std::uint64_t> order;

  std::uint32_t link(double capacity) { return system.add_resource(capacity); }
  std::uint64_t start(const FluidStart& s) {
    const std::uint64_t tag = handles.size();
    handles.push_back(system.start({s.demands, s.work, s.level, s.bound, tag}));
    return tag;
  }
  double rate(std::uint64_t tag) {
    if (system.needs_solve()) system.solve();
    return system.rate(handles[tag]);
  }
  void take() {
    std::vector<FluidCompletion> done;
    system.take_completions(done);
    for (const FluidCompletion& c : done) {
      CHECK(end_s.emplace(c.tag, c.time.seconds()).second);
      order.push_back(c.tag);
    }
  }
  /// To the next completion; false when there is none.
  bool step() {
    system.solve();
    CHECK(system.certificate() == "");
    if (system.next_completion() == FineTime::max()) return false;
    system.advance(system.next_completion());
    take();
    return true;
  }
  void run() {
    while (step()) continue;
  }
  void run_until(FineTime time) {
    system.solve();
    while (system.next_completion() <= time) {
      step();
      system.solve();
    }
    system.advance(time);
  }
  /// `starts` in order of time; then to the end.
  void play(const std::vector<FluidStart>& starts) {
    for (const FluidStart& s : starts) {
      const FineTime at = FineTime().after(s.at_s);
      if (at > system.now()) run_until(at);
      start(s);
    }
    run();
  }
};

}  // namespace medley
