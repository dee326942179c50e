// Processor sharing: a shared resource with Poisson arrivals is M/G/1-PS, whatever the sizes.
//   E[T | x] = x / (1 - rho),   E[T] = E[x] / (1 - rho),   L = rho / (1 - rho).
// At rho = 0.8 and E[x] = 1: E[T] = 5, L = 4. The law of L is geometric for every law of sizes, but
// how fast the path forgets is not: for exponential sizes the time average of L over T has variance
// 2 rho (1 + rho) / ((1 - rho)^4 T) = 1800 / T, for the two-point law below about C^2 + 1 over 2
// times that (C^2 = 1.17) and less for equal sizes. Bands are 4 sd at a fixed seed.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "sim/core/rng.h"
#include "tests/support/fluid.h"

namespace medley {
namespace {

struct Sharing {
  double mean_response = 0.0;
  double mean_slowdown[2] = {0.0, 0.0};  // T / x of small and large
  double mean_number = 0.0;
  double utilisation = 0.0;
};

// `private_links`: each activity crosses a link of its own as well, never the narrower one.
Sharing simulate(double horizon_s, const std::function<double(Rng&)>& size, double speed,
                 bool private_links) {
  constexpr double kRate = 0.8;
  Rng arrivals(7, "test/ps-arrivals"), sizes(7, "test/ps-sizes");
  FluidSystem system;
  const std::uint32_t shared = system.add_resource(speed);
  std::vector<std::uint32_t> links;
  for (int i = 0; private_links && i < 64; ++i) links.push_back(system.add_resource(speed * 1.5));
  std::vector<double> begin, work;
  std::vector<FluidCompletion> done;
  double sum = 0.0, slow[2] = {0.0, 0.0}, counts[2] = {0.0, 0.0}, area = 0.0;
  FineTime next = FineTime().after(arrivals.exponential(1.0 / kRate));
  FineTime last;
  const auto go_to = [&](FineTime time) {
    area += static_cast<double>(system.active()) * (time - last);
    last = time;
    system.advance(time);
  };
  while (next.seconds() < horizon_s || system.active() > 0) {
    system.solve();
    const bool arrives = next.seconds() < horizon_s && next <= system.next_completion();
    go_to(arrives ? next : system.next_completion());
    if (arrives) {
      const double x = size(sizes) * speed;
      std::vector<FluidDemand> demands{{shared, x}};
      if (private_links) demands.push_back({links[begin.size() % links.size()], x});
      system.start({demands, 1.0, x, kNoBound, begin.size()});
      begin.push_back(system.now().seconds());
      work.push_back(x / speed);
      next = next.after(arrivals.exponential(1.0 / kRate));
    }
    done.clear();
    system.take_completions(done);
    for (const FluidCompletion& c : done) {
      const double response = c.time.seconds() - begin[c.tag];
      const int large = work[c.tag] > 1.0;
      sum += response;
      slow[large] += response / work[c.tag];
      counts[large] += 1.0;
    }
  }
  const double n = static_cast<double>(begin.size());
  const double end = system.now().seconds();
  // Exact on the path: integral of N = sum of responses; busy time x speed = work done.
  CHECK(area == doctest::Approx(sum).epsilon(1e-9));
  double total = 0.0;
  for (const double x : work) total += x;
  const FluidUse use = system.account(shared);
  CHECK(use.units == doctest::Approx(total * speed).epsilon(1e-9));
  CHECK(use.busy_s == doctest::Approx(total).epsilon(1e-9));
  CHECK(use.saturated_s == doctest::Approx(total).epsilon(1e-9));
  CHECK(system.counters().shared > begin.size());
  return {
      sum / n,
      {counts[0] > 0.0 ? slow[0] / counts[0] : 0.0, counts[1] > 0.0 ? slow[1] / counts[1] : 0.0},
      area / end,
      total / end};
}

TEST_CASE("fluid: M/G/1-PS on a shared resource") {
  constexpr double kHorizon = 2e5;
  const double band = 4.0 * std::sqrt(1800.0 / kHorizon);  // of L; T = L / 0.8
  SUBCASE("exponential sizes") {
    const Sharing s = simulate(
        kHorizon, [](Rng& r) { return r.exponential(1.0); }, 1.0, false);
    CHECK(std::abs(s.mean_number - 4.0) < band);
    CHECK(std::abs(s.mean_response - 5.0) < band / 0.8);
    CHECK(s.utilisation == doctest::Approx(0.8).epsilon(0.02));
  }
  SUBCASE("equal sizes") {
    const Sharing s = simulate(
        kHorizon, [](Rng&) { return 1.0; }, 1.25e9, false);
    CHECK(std::abs(s.mean_number - 4.0) < band);
    CHECK(std::abs(s.mean_response - 5.0) < band / 0.8);
  }
  SUBCASE("two sizes: the slowdown is that of all") {  // 0.4 with 0.8, 3.4 with 0.2: E = 1
    const auto size = [](Rng& r) { return r.uniform() < 0.8 ? 0.4 : 3.4; };
    const Sharing s = simulate(kHorizon, size, 1.0, true);
    const double wider = band * std::sqrt((2.44 - 1.0 + 1.0) / 2.0) * 1.25;  // E[x^2] = 2.44
    CHECK(std::abs(s.mean_number - 4.0) < wider);
    CHECK(std::abs(s.mean_response - 5.0) < wider / 0.8);
    CHECK(std::abs(s.mean_slowdown[0] - 5.0) < wider / 0.8);
    CHECK(std::abs(s.mean_slowdown[1] - 5.0) < wider / 0.8);
  }
}

}  // namespace
}  // namespace medley
