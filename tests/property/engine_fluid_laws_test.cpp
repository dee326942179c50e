// Laws of the fluid solver on random systems: scale, order, splitting, incremental = from scratch,
// work = integral of the rate, accounts = what the activities used.
#include <doctest/doctest.h>

#include <cmath>

#include "sim/core/rng.h"
#include "tests/support/fluid.h"

namespace medley {
namespace {

struct RandomFluid {
  std::vector<double> capacities;
  std::vector<FluidStart> starts;
};

RandomFluid random_fluid(std::uint64_t seed, double horizon_s = 0.0) {
  Rng rng(seed, "test/fluid-laws");
  RandomFluid f;
  const bool lone = rng.below(3) == 0;
  const std::uint64_t resources = 2 + rng.below(10), activities = 2 + rng.below(30);
  for (std::uint64_t r = 0; r < resources; ++r) {
    f.capacities.push_back(rng.lognormal(2.0, 1.0) * (lone && r > 0 ? 50.0 : 1.0));
  }
  for (std::uint64_t i = 0; i < activities; ++i) {
    FluidStart s;
    s.at_s = rng.uniform(0.0, horizon_s);
    s.level = rng.lognormal(0.0, 2.0);
    s.work = rng.lognormal(1.0, 1.0);
    if (rng.below(4) == 0) s.bound = rng.lognormal(1.0, 2.0) / s.level;
    const std::uint64_t n = 1 + rng.below(4);
    for (std::uint64_t k = 0; k < n; ++k) {
      const bool hub = lone && k == 0;
      s.demands.push_back({static_cast<std::uint32_t>(hub ? 0 : rng.below(resources)),
                           s.level * rng.lognormal(0.0, 0.7)});
    }
    f.starts.push_back(s);
  }
  std::sort(f.starts.begin(), f.starts.end(),
            [](const FluidStart& a, const FluidStart& b) { return a.at_s < b.at_s; });
  return f;
}

std::vector<double> rates_of(const RandomFluid& f) {
  FluidRun run;
  for (const double c : f.capacities) run.link(c);
  for (const FluidStart& s : f.starts) run.start(s);
  std::vector<double> rates;
  for (std::uint64_t i = 0; i < f.starts.size(); ++i) rates.push_back(run.rate(i));
  return rates;
}

#define CHECK_NEAR(a, b, tolerance)                                                              \
  CHECK_MESSAGE((a) == doctest::Approx(b).epsilon(tolerance), "seed ", seed, ": ", (a), " and ", \
                (b))

TEST_CASE("fluid: k times the capacities and bounds, k times the rates") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    RandomFluid f = random_fluid(seed);
    const auto rates = rates_of(f);
    for (const double k : {4.0, 3.7}) {
      RandomFluid scaled = f;
      for (double& c : scaled.capacities) c *= k;
      for (FluidStart& s : scaled.starts) s.bound *= k;
      const auto more = rates_of(scaled);
      for (std::size_t i = 0; i < rates.size(); ++i) CHECK_NEAR(more[i], k * rates[i], 1e-12);
    }
  }
}

TEST_CASE("fluid: names and order of resources and activities do not matter") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const RandomFluid f = random_fluid(seed);
    const auto rates = rates_of(f);
    RandomFluid g = f;
    std::reverse(g.capacities.begin(), g.capacities.end());
    std::reverse(g.starts.begin(), g.starts.end());
    const auto last = static_cast<std::uint32_t>(f.capacities.size() - 1);
    for (FluidStart& s : g.starts) {
      for (FluidDemand& d : s.demands) d.resource = last - d.resource;
    }
    const auto renamed = rates_of(g);
    const std::size_t n = rates.size();
    for (std::size_t i = 0; i < n; ++i) CHECK_NEAR(renamed[n - 1 - i], rates[i], 1e-12);
  }
}

TEST_CASE("fluid: the same calls give the same bits") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const RandomFluid f = random_fluid(seed, 5.0);
    std::vector<std::map<std::uint64_t, double>> ends;
    for (int i = 0; i < 2; ++i) {
      FluidRun run;
      for (const double c : f.capacities) run.link(c);
      run.play(f.starts);
      ends.push_back(run.end_s);
    }
    CHECK(ends[0] == ends[1]);
  }
}

// An activity of weight 1/level and two of half that weight on the same demands.
TEST_CASE("fluid: two halves get what the whole got") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    RandomFluid f = random_fluid(seed);
    f.starts[0].bound = kNoBound;
    const auto rates = rates_of(f);
    RandomFluid halves = f;
    halves.starts[0].level *= 2.0;
    halves.starts.push_back(halves.starts[0]);
    const auto split = rates_of(halves);
    CHECK_NEAR(split[0] + split.back(), rates[0], 1e-12);
    for (std::size_t i = 1; i < rates.size(); ++i) CHECK_NEAR(split[i], rates[i], 1e-12);
  }
}

// Played to some instant with starts, ends and capacity changes; then a new system with what is
// left has the same rates.
TEST_CASE("fluid: incremental equals from scratch") {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    RandomFluid f = random_fluid(seed, 3.0);
    Rng rng(seed, "test/fluid-scratch");
    FluidRun run;
    for (const double c : f.capacities) run.link(c);
    for (const FluidStart& s : f.starts) {
      run.run_until(FineTime().after(s.at_s));
      run.start(s);
      if (rng.below(2) == 0) {
        const auto r = static_cast<std::uint32_t>(rng.below(f.capacities.size()));
        f.capacities[r] *= rng.uniform(0.3, 3.0);
        run.system.set_capacity(r, f.capacities[r]);
      }
    }
    RandomFluid left{f.capacities, {}};
    std::vector<double> rates;
    for (std::uint64_t i = 0; i < f.starts.size(); ++i) {
      if (!run.system.running(run.handles[i])) continue;
      left.starts.push_back(f.starts[i]);
      rates.push_back(run.rate(i));
    }
    const auto fresh = rates_of(left);
    for (std::size_t i = 0; i < rates.size(); ++i) CHECK_NEAR(rates[i], fresh[i], 1e-9);
  }
}

// Stepwise sums of rate x time between the instants at which anything changes.
TEST_CASE("fluid: integrals") {
  std::uint64_t hubs = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const RandomFluid f = random_fluid(seed, 3.0);
    FluidRun run;
    for (const double c : f.capacities) run.link(c);
    const std::size_t resources = f.capacities.size();
    std::vector<double> done(f.starts.size()), units(resources), busy(resources), full(resources);
    double in_system = 0.0;
    const auto go_to = [&](FineTime time) {
      const double dt = time - run.system.now();
      for (std::uint64_t i = 0; i < run.handles.size(); ++i) {
        if (!run.system.running(run.handles[i])) continue;
        done[i] += run.system.rate(run.handles[i]) * dt;
        in_system += dt;
      }
      for (std::uint32_t r = 0; r < resources; ++r) {
        const double use = run.system.use(r);
        units[r] += use * dt;
        if (use > 0.0) busy[r] += dt;
        if (use >= f.capacities[r] * (1.0 - 1e-12)) full[r] += dt;
      }
      run.system.advance(time);
      run.take();
    };
    std::size_t next = 0;
    double responses = 0.0;
    while (next < f.starts.size() || run.system.active() > 0) {
      const FineTime arrival =
          next < f.starts.size() ? FineTime().after(f.starts[next].at_s) : FineTime::max();
      run.system.solve();
      go_to(std::min(arrival, run.system.next_completion()));
      if (run.system.now() == arrival) run.start(f.starts[next++]);
    }
    for (std::uint64_t i = 0; i < f.starts.size(); ++i) {
      CHECK_NEAR(done[i], f.starts[i].work, 1e-9);
      responses += run.end_s.at(i) - f.starts[i].at_s;
    }
    CHECK_NEAR(in_system, responses, 1e-9);  // Little's law on the path
    run.system.solve();
    for (std::uint32_t r = 0; r < resources; ++r) {
      const FluidUse use = run.system.account(r);
      double needed = 0.0;
      for (const FluidStart& s : f.starts) {
        for (const FluidDemand& d : s.demands) needed += d.resource == r ? d.amount * s.work : 0.0;
      }
      CHECK_NEAR(use.units, needed, 1e-9);
      CHECK_NEAR(use.units, units[r], 1e-9);
      CHECK_NEAR(use.busy_s, busy[r], 1e-9);
      CHECK_NEAR(use.saturated_s, full[r], 1e-9);
      CHECK(run.system.use(r) == 0.0);
    }
    hubs += run.system.counters().shared;
  }
  CHECK(hubs > 300);
}

// Leaves and spines of equal links with a few sizes of flow: most levels tie with others.
// FluidRun looks at the certificate after every solve.
TEST_CASE("fluid: equal links and few sizes") {
  constexpr std::uint32_t kLeaves = 6, kHosts = 6, kSpines = 3, kAll = kLeaves * kHosts;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed, "test/fluid-ties");
    FluidRun run;
    for (std::uint32_t i = 0; i < 2 * (kAll + kLeaves * kSpines); ++i) run.link(1.0);
    const std::uint64_t sizes = 1 + rng.below(3), flows = 40 + rng.below(160);
    std::vector<FluidStart> starts;
    double at = 0.0, bytes = 0.0;
    for (std::uint64_t i = 0; i < flows; ++i) {
      const auto from = static_cast<std::uint32_t>(rng.below(kAll));
      const auto to = static_cast<std::uint32_t>(rng.below(kAll));
      const std::uint32_t spine = to % kSpines;
      std::vector<std::uint32_t> route{2 * from, 2 * to + 1};
      if (from / kHosts != to / kHosts) {
        route.push_back(2 * (kAll + from / kHosts * kSpines + spine));
        route.push_back(2 * (kAll + to / kHosts * kSpines + spine) + 1);
      }
      if (rng.below(4) == 0) at += static_cast<double>(rng.below(3));
      starts.push_back(flow(at, 1.0 + static_cast<double>(rng.below(sizes)), route));
      bytes += starts.back().level;
    }
    run.play(starts);
    CHECK(run.end_s.size() == flows);
    double up = 0.0;
    for (std::uint32_t h = 0; h < kAll; ++h) up += run.system.account(2 * h).units;
    CHECK_NEAR(up, bytes, 1e-12);
  }
}

// Amounts over sixteen powers of ten: what is left of a resource may be much smaller than it.
TEST_CASE("fluid: very unequal amounts") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed, "test/fluid-extremes");
    RandomFluid f = random_fluid(seed, 3.0);
    for (FluidStart& s : f.starts) {
      for (FluidDemand& d : s.demands) d.amount *= std::pow(10.0, rng.uniform(-12.0, 4.0));
    }
    FluidRun run;
    for (const double c : f.capacities) run.link(c);
    run.play(f.starts);
    CHECK(run.end_s.size() == f.starts.size());
  }
}

TEST_CASE("fluid: a faster resource never slows a single activity") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    RandomFluid f = random_fluid(seed);
    f.starts.resize(1);
    const double before = rates_of(f)[0];
    for (double& c : f.capacities) {
      c *= 1.5;
      CHECK(rates_of(f)[0] >= before);
    }
  }
}

}  // namespace
}  // namespace medley
