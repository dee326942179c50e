// Rates and end times derived by hand. x_i are rates, L the common level.
#include <doctest/doctest.h>

#include "tests/support/fluid.h"

namespace medley {
namespace {

doctest::Approx about(double x) {
  return doctest::Approx(x).epsilon(1e-12);
}

// Rates of flows of 1 byte, hence bytes/s; the n-th list of links is the n-th flow's.
std::vector<double> flow_rates(const std::vector<double>& capacities,
                               const std::vector<std::vector<std::uint32_t>>& routes) {
  FluidRun run;
  for (const double c : capacities) run.link(c);
  for (const auto& route : routes) run.start(flow(0.0, 1.0, route));
  std::vector<double> rates;
  for (std::uint64_t i = 0; i < routes.size(); ++i) rates.push_back(run.rate(i));
  CHECK(run.system.certificate() == "");
  return rates;
}

TEST_CASE("fluid: equal flows on a link") {
  const auto rates = flow_rates({12.0}, {{0}, {0}, {0}, {0}});
  for (const double x : rates) CHECK(x == about(3.0));
}

// n sizes s_1 <= ... <= s_n from t = 0 on C: until the k-th ends, each of the n - k + 1 longest has
// had s_k: T_k = (sum_{i<k} s_i + (n - k + 1) s_k) / C.
TEST_CASE("fluid: flows of several sizes end one by one") {
  const std::vector<double> sizes{3.0, 5.0, 5.0, 8.0, 13.0};
  FluidRun run;
  const std::uint32_t link = run.link(2.0);
  for (const double s : sizes) run.start(flow(0.0, s, {link}));
  run.run();
  double before = 0.0;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    const double t = (before + static_cast<double>(sizes.size() - k) * sizes[k]) / 2.0;
    CHECK(run.end_s.at(k) == about(t));
    before += sizes[k];
  }
}

// 150 and 300 bytes on 100 B/s: 50 B/s each, not equal progress. The first ends at 150/50 = 3; the
// second then has 150 left and the link alone: 4.5.
TEST_CASE("fluid: transfers share by bytes/s") {
  FluidRun run;
  const std::uint32_t link = run.link(100.0);
  run.start(flow(0.0, 150.0, {link}));
  run.start(flow(0.0, 300.0, {link}));
  CHECK(run.rate(0) * 150.0 == about(50.0));
  CHECK(run.rate(1) * 300.0 == about(50.0));
  run.run();
  CHECK(run.end_s.at(0) == about(3.0));
  CHECK(run.end_s.at(1) == about(4.5));
  const FluidUse use = run.system.account(link);
  CHECK(use.units == about(450.0));
  CHECK(use.busy_s == about(4.5));
  CHECK(use.saturated_s == about(4.5));
}

// 200 at t = 0 and 200 at t = 1 on 100 B/s: 100 left at 1, 50 B/s each, 3; then 100 alone, 4.
TEST_CASE("fluid: a flow that comes later") {
  FluidRun run;
  const std::uint32_t link = run.link(100.0);
  run.play({flow(0.0, 200.0, {link}), flow(1.0, 200.0, {link})});
  CHECK(run.end_s.at(0) == about(3.0));
  CHECK(run.end_s.at(1) == about(4.0));
}

TEST_CASE("fluid: weights") {  // C w_i / W
  FluidRun run;
  const std::uint32_t link = run.link(12.0);
  for (const double w : {1.0, 2.0, 3.0}) run.start(flow(0.0, 1.0, {link}, w));
  CHECK(run.rate(0) == about(2.0));
  CHECK(run.rate(1) == about(4.0));
  CHECK(run.rate(2) == about(6.0));
}

TEST_CASE("fluid: bounds") {
  const auto rates = [](const std::vector<double>& bounds) {
    FluidRun run;
    const std::uint32_t link = run.link(10.0);
    for (const double b : bounds) run.start({0.0, {{link, 1.0}}, 1.0, 1.0, b});
    std::vector<double> x;
    for (std::uint64_t i = 0; i < bounds.size(); ++i) x.push_back(run.rate(i));
    return x;
  };
  const auto a = rates({1.0, 4.0, kNoBound});  // shares 10/3, then (10 - 1)/2 = 4.5 > 4, then 5
  CHECK(a[0] == 1.0);
  CHECK(a[1] == 4.0);
  CHECK(a[2] == about(5.0));
  const auto b = rates({1.0, kNoBound, kNoBound});
  CHECK(b[0] == 1.0);
  CHECK(b[1] == about(4.5));
  CHECK(b[2] == about(4.5));
}

// A long flow over K links and a short one on each. Proportional fairness would give C/(K + 1).
TEST_CASE("fluid: parking lot") {
  for (std::uint32_t k = 1; k <= 6; ++k) {
    std::vector<std::vector<std::uint32_t>> routes(1);
    for (std::uint32_t i = 0; i < k; ++i) {
      routes[0].push_back(i);
      routes.push_back({i});
    }
    for (const double x : flow_rates(std::vector<double>(k, 10.0), routes)) CHECK(x == about(5.0));
  }
  const auto rates = flow_rates({1.0, 2.0, 3.0}, {{0, 1, 2}, {0}, {1}, {2}});
  CHECK(rates[0] == about(0.5));
  CHECK(rates[1] == about(0.5));
  CHECK(rates[2] == about(1.5));
  CHECK(rates[3] == about(2.5));
}

TEST_CASE("fluid: two links and three flows") {  // b = c = 4/2, a takes the 10 - 2 left
  const auto rates = flow_rates({10.0, 4.0}, {{0}, {0, 1}, {1}});
  CHECK(rates[0] == about(8.0));
  CHECK(rates[1] == about(2.0));
  CHECK(rates[2] == about(2.0));
}

TEST_CASE("fluid: triangle") {
  for (const double x : flow_rates({1.0, 1.0, 1.0}, {{0, 1}, {1, 2}, {2, 0}})) {
    CHECK(x == about(0.5));
  }
}

// Levels x p with penalties p = 1, 2 on C = 3: L + L/2 = 3, L = 2.
// Amounts 1, 2 and penalties 1, 2 on C = 20: L + 2 L/2 = 20, L = 10: 10 and 5. With a second
// resource of 60 of which the first needs 2 and a third activity 1: 60 - 2 x 10 = 40.
TEST_CASE("fluid: penalties and amounts") {
  FluidRun a;
  const std::uint32_t r = a.link(3.0);
  a.start({0.0, {{r, 1.0}}, 1.0, 1.0});
  a.start({0.0, {{r, 1.0}}, 1.0, 2.0});
  CHECK(a.rate(0) == about(2.0));
  CHECK(a.rate(1) == about(1.0));

  FluidRun b;
  const std::uint32_t first = b.link(20.0), second = b.link(60.0);
  b.start({0.0, {{first, 1.0}, {second, 2.0}}, 1.0, 1.0});
  b.start({0.0, {{first, 2.0}}, 1.0, 2.0});
  b.start({0.0, {{second, 1.0}}, 1.0, 1.0});
  CHECK(b.rate(0) == about(10.0));
  CHECK(b.rate(1) == about(5.0));
  CHECK(b.rate(2) == about(40.0));
}

// Two flows one way and one back, each with e of its rate in acknowledgements the other way:
// (1 + 1 + e) L = 1 on the first link; the third uses that too and freezes with them.
TEST_CASE("fluid: cross-traffic") {
  const double e = 0.05;
  FluidRun run;
  const std::uint32_t there = run.link(1.0), back = run.link(1.0);
  run.start({0.0, {{there, 1.0}, {back, e}}});
  run.start({0.0, {{there, 1.0}, {back, e}}});
  run.start({0.0, {{there, e}, {back, 1.0}}});
  for (std::uint64_t i = 0; i < 3; ++i) CHECK(run.rate(i) == about(1.0 / (2.0 + e)));
}

TEST_CASE("fluid: incast and a permutation") {
  std::vector<std::vector<std::uint32_t>> incast;  // own up-link each, one down-link
  for (std::uint32_t i = 1; i <= 8; ++i) incast.push_back({i, 0});
  for (const double x : flow_rates(std::vector<double>(9, 10.0), incast)) CHECK(x == about(1.25));
  // Two leaves of two hosts, two spines, up-port by destination, i -> i + 2 mod 4: no two share.
  // Links: host up 0-3, host down 4-7, leaf l to spine s 8 + 2 l + s, back 12 + 2 l + s.
  std::vector<std::vector<std::uint32_t>> permutation;
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint32_t to = (i + 2) % 4, spine = to % 2;
    permutation.push_back({i, 8 + 2 * (i / 2) + spine, 12 + 2 * (to / 2) + spine, 4 + to});
  }
  for (const double x : flow_rates(std::vector<double>(16, 7.0), permutation)) CHECK(x == 7.0);
}

// A on both links, B on the first, C on the second, all of capacity 1: 1/2 each. With D on the
// first: A = B = D = 1/3 and C rises to 2/3. Max-min is not monotone.
TEST_CASE("fluid: one more flow may speed another up") {
  FluidRun run;
  const std::uint32_t first = run.link(1.0), second = run.link(1.0);
  run.start(flow(0.0, 1.0, {first, second}));
  run.start(flow(0.0, 1.0, {first}));
  run.start(flow(0.0, 1.0, {second}));
  for (std::uint64_t i = 0; i < 3; ++i) CHECK(run.rate(i) == about(0.5));
  run.start(flow(0.0, 1.0, {first}));
  for (const std::uint64_t i : {0U, 1U, 3U}) CHECK(run.rate(i) == about(1.0 / 3.0));
  CHECK(run.rate(2) == about(2.0 / 3.0));
}

// Kernels share a device by time. Levels are BW max(a) = BW for all here; the memory is full when
// (0.1 + 1) x = 1, the compute units are not.
TEST_CASE("fluid: kernels of one device") {
  constexpr double kBw = 3.35e12;
  FluidRun run;
  const std::uint32_t compute = run.link(1.0), memory = run.link(1.0);
  run.start({0.0, {{compute, 1.0}, {memory, 0.1}}, 1.0, kBw});
  run.start({0.0, {{memory, 1.0}}, 1.0, kBw});
  CHECK(run.rate(0) == about(1.0 / 1.1));
  CHECK(run.rate(1) == about(1.0 / 1.1));
  CHECK(run.system.use(memory) == about(1.0));
  CHECK(run.system.use(compute) == about(1.0 / 1.1));

  // One that hardly uses the memory is still held by it: x (0.01 + 10) = 1 for all eleven.
  FluidRun crowd;
  const std::uint32_t c = crowd.link(1.0), m = crowd.link(1.0);
  crowd.start({0.0, {{c, 1.0}, {m, 0.01}}, 1.0, kBw});
  for (int i = 0; i < 10; ++i) crowd.start({0.0, {{m, 1.0}}, 1.0, kBw});
  for (std::uint64_t i = 0; i < 11; ++i) CHECK(crowd.rate(i) == about(1.0 / 10.01));
}

// A memory-bound kernel of 1 ms on 3.35 TB/s, and a DMA of 1 GB over 64 GB/s that passes through
// the same memory. Levels are bytes/s: the DMA's link stops it at 64e9, the kernel takes the rest
// of the memory, 1 - 64/3350 of its time.
TEST_CASE("fluid: a kernel and a DMA") {
  constexpr double kBw = 3.35e12, kBytes = 1e9;
  FluidRun run;
  const std::uint32_t memory = run.link(1.0), pcie = run.link(64e9);
  run.start({0.0, {{memory, 1e-3}}, 1.0, kBw * 1e-3});
  run.start({0.0, {{memory, kBytes / kBw}, {pcie, kBytes}}, 1.0, kBytes});
  CHECK(run.rate(1) * kBytes == about(64e9));
  CHECK(run.rate(0) * 1e-3 == about(1.0 - 64e9 / kBw));
  CHECK(run.rate(0) * 1e-3 == doctest::Approx(0.981).epsilon(1e-3));
  run.run();
  CHECK(run.end_s.at(0) == about(1e-3 / (1.0 - 64e9 / kBw)));
  CHECK(run.end_s.at(1) == about(kBytes / 64e9));
}

}  // namespace
}  // namespace medley
