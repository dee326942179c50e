// Once its arrays have grown, the solver allocates nothing. Counts through the operator new of
// engine_allocation_test.cpp.
#include <doctest/doctest.h>

#include <vector>

#include "sim/core/rng.h"
#include "sim/engine/fluid.h"

namespace medley {

std::size_t counted_allocations();

namespace {

// Alone, shared and general activities that come, end, are cancelled and have their capacity
// changed, all at once.
struct FluidChurn {
  static constexpr std::uint32_t kLinks = 16, kFlows = 40, kShared = 30, kAlone = 30;
  FluidSystem system;
  Rng rng{3, "test/fluid-churn"};
  std::vector<FluidCompletion> done;
  std::vector<FluidHandle> handles;
  std::uint64_t completions = 0;

  FluidChurn() {
    for (std::uint32_t i = 0; i < kLinks + 1 + kShared + kAlone; ++i) system.add_resource(10.0);
    for (std::uint32_t r = 0; r < kLinks; ++r) crowd(r);
    for (std::uint32_t i = 0; i < kFlows + kShared + kAlone; ++i) handles.push_back(begin(i));
  }
  // All that can ever be on one link at a time.
  void crowd(std::uint32_t link) {
    std::vector<FluidHandle> all;
    const FluidDemand demand{link, 1.0};
    for (std::uint32_t i = 0; i < kFlows; ++i) all.push_back(system.start({{&demand, 1}}));
    system.solve();
    for (const FluidHandle h : all) system.cancel(h);
    system.solve();
  }
  FluidHandle begin(std::uint32_t i) {
    FluidDemand demands[3];
    const double bytes = rng.uniform(1.0, 5.0);
    std::size_t n = 0;
    if (i < kFlows) {
      n = 1 + rng.below(3);
      for (std::size_t k = 0; k < n; ++k) {
        demands[k] = {static_cast<std::uint32_t>(rng.below(kLinks)), bytes};
      }
    } else if (i < kFlows + kShared) {
      demands[n++] = {kLinks, bytes};
      demands[n++] = {kLinks + 1 + i - kFlows, bytes};
    } else {
      demands[n++] = {kLinks + 1 + i - kFlows, bytes};
    }
    return system.start({{demands, n}, 1.0, bytes, rng.uniform(2.0, 9.0), i});
  }
  void step() {
    system.solve();
    system.advance(system.next_completion());
    done.clear();
    system.take_completions(done);
    completions += done.size();
    for (const FluidCompletion& c : done) {
      handles[c.tag] = begin(static_cast<std::uint32_t>(c.tag));
    }
    const auto other = static_cast<std::uint32_t>(rng.below(handles.size()));
    if (rng.below(4) == 0) {
      system.cancel(handles[other]);
      handles[other] = begin(other);
    }
    if (rng.below(4) == 0) {
      system.set_capacity(static_cast<std::uint32_t>(rng.below(kLinks)), rng.uniform(5.0, 20.0));
    }
  }
};

TEST_CASE("fluid: no allocation in a steady state") {
  FluidChurn churn;
  for (int i = 0; i < 100'000; ++i) churn.step();
  const FluidCounters counters = churn.system.counters();
  CHECK(counters.shared > 1000);
  CHECK(counters.alone > 1000);
  CHECK(counters.components > 1000);
  const std::size_t before = counted_allocations();
  for (int i = 0; i < 20'000; ++i) churn.step();
  CHECK(counted_allocations() == before);
  CHECK(churn.completions > 100'000);
  churn.done.reserve(churn.done.capacity() + 1);  // the counter does count
  CHECK(counted_allocations() > before);
}

}  // namespace
}  // namespace medley
