// The fluid solver against dense progressive filling on random systems, and against itself from
// scratch after random sequences of changes.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "sim/core/rng.h"
#include "sim/engine/fluid.h"
#include "tests/oracle/dense_max_min.h"

namespace medley {
namespace {

struct FluidScript {
  struct Live {
    FluidHandle handle;
    std::vector<FluidDemand> demands;
    double level, bound, work;
    std::uint64_t tag;
  };
  std::uint64_t seed;
  Rng rng;
  FluidSystem system;
  std::vector<double> capacities;
  std::vector<Live> live;
  std::uint64_t next_tag = 0;
  bool plain, lone;

  explicit FluidScript(std::uint64_t s) : seed(s), rng(s, "test/fluid") {
    plain = rng.below(3) == 0;  // equal capacities and weights: ties everywhere
    lone = rng.below(3) == 0;   // most activities use resource 0
    const std::uint64_t n = 1 + rng.below(rng.below(4) == 0 ? 40 : 8);
    for (std::uint64_t r = 0; r < n; ++r) {
      capacities.push_back(draw_capacity());
      if (lone && r > 0) capacities[r] *= 8.0;
      system.add_resource(capacities[r]);
    }
  }
  double draw_capacity() {
    if (rng.below(20) == 0) return 0.0;
    return plain ? 10.0 : rng.lognormal(2.0, 1.5);
  }
  double draw_bound() {
    return rng.below(3) == 0 ? rng.lognormal(0.0, 2.0) : std::numeric_limits<double>::infinity();
  }
  void start() {
    Live a;
    const std::uint64_t paths = rng.below(10) == 0 ? 0 : 1 + rng.below(5);
    a.level = plain ? 1.0 : rng.lognormal(0.0, 2.0);
    for (std::uint64_t i = 0; i < paths; ++i) {
      const bool hub = lone && i == 0 && rng.below(20) != 0;
      const auto r = static_cast<std::uint32_t>(hub ? 0 : rng.below(capacities.size()));
      const double weight = plain ? 1.0 : rng.below(8) == 0 ? 0.0 : rng.lognormal(0.0, 1.0);
      a.demands.push_back({r, weight * a.level});
    }
    a.bound = paths == 0 ? 1.0 : draw_bound();
    a.work = rng.below(30) == 0 ? 0.0 : plain ? 5.0 : rng.lognormal(2.0, 1.0);
    a.tag = next_tag++;
    a.handle = system.start({a.demands, a.work, a.level, a.bound, a.tag});
    live.push_back(a);
  }
  std::size_t any() { return rng.below(live.size()); }
  void change() {
    const std::uint64_t what = rng.below(10);
    if (what < 5 || live.empty()) {
      if (live.size() < 60) start();
    } else if (what < 7) {
      const std::size_t i = any();
      system.cancel(live[i].handle);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(i));
    } else if (what < 9) {
      const auto r = static_cast<std::uint32_t>(rng.below(capacities.size()));
      capacities[r] = draw_capacity() * (lone && r > 0 ? 8.0 : 1.0);
      system.set_capacity(r, capacities[r]);
    } else {
      Live& a = live[any()];
      if (at_once(a)) return;
      a.bound = draw_bound();
      system.set_bound(a.handle, a.bound);
    }
  }
  void complete() {
    if (system.next_completion() == FineTime::max()) return;
    system.advance(system.next_completion());
    std::vector<FluidCompletion> done;
    system.take_completions(done);
    REQUIRE(!done.empty());
    for (std::size_t i = 0; i < done.size(); ++i) {
      const auto found = std::find_if(live.begin(), live.end(),
                                      [&](const Live& a) { return a.tag == done[i].tag; });
      REQUIRE(found != live.end());
      live.erase(found);
      CHECK((i == 0 || done[i - 1].tag < done[i].tag));
      CHECK(done[i].time == system.now());
    }
  }
  static bool at_once(const Live& a) {
    if (a.work == 0.0) return true;
    const bool free = std::all_of(a.demands.begin(), a.demands.end(),
                                  [](const FluidDemand& d) { return d.amount == 0.0; });
    return free && a.bound == std::numeric_limits<double>::infinity();
  }
  void compare_with_oracle() {
    const auto n = static_cast<Eigen::Index>(live.size());
    const auto m = static_cast<Eigen::Index>(capacities.size());
    Eigen::MatrixXd weight = Eigen::MatrixXd::Zero(m, n);
    Eigen::VectorXd capacity(m), cap(n);
    for (Eigen::Index r = 0; r < m; ++r) capacity(r) = capacities[static_cast<std::size_t>(r)];
    for (Eigen::Index i = 0; i < n; ++i) {
      const Live& a = live[static_cast<std::size_t>(i)];
      for (const FluidDemand& d : a.demands) weight(d.resource, i) += d.amount / a.level;
      cap(i) = a.bound * a.level;
    }
    for (Eigen::Index i = 0; i < n; ++i) {
      if (at_once(live[static_cast<std::size_t>(i)])) {
        weight.col(i).setZero();
        cap(i) = 0.0;
      }
    }
    const Eigen::VectorXd level = oracle::dense_max_min(weight, capacity, cap);
    for (Eigen::Index i = 0; i < n; ++i) {
      const Live& a = live[static_cast<std::size_t>(i)];
      if (at_once(a)) continue;
      const double rate = system.rate(a.handle) * a.level;
      if (rate != doctest::Approx(level(i)).epsilon(1e-9)) {
        FAIL("seed " << seed << ": activity " << i << " of " << n << ": level " << rate
                     << ", oracle " << level(i));
      }
    }
    const std::string wrong = system.certificate();
    if (!wrong.empty()) FAIL("seed " << seed << ": " << wrong);
  }
};

TEST_CASE("fluid: random systems and sequences of changes equal the dense oracle") {
  std::uint64_t hubs = 0, alone = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    FluidScript script(seed);
    for (int step = 0; step < 25; ++step) {
      const std::uint64_t changes = 1 + script.rng.below(step == 0 ? 12 : 3);
      for (std::uint64_t i = 0; i < changes; ++i) script.change();
      script.system.solve();
      script.compare_with_oracle();
      if (script.rng.below(2) == 0) script.complete();
    }
    hubs += script.system.counters().shared;
    alone += script.system.counters().alone;
  }
  CHECK(hubs > 1000);  // the special cases were met
  CHECK(alone > 1000);
}

}  // namespace
}  // namespace medley
