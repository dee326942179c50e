// What has a defined answer although it looks odd; handles, clock and order.
#include <doctest/doctest.h>

#include "sim/core/error.h"
#include "tests/support/fluid.h"

namespace medley {
namespace {

TEST_CASE("fluid: no work, no demands, no amounts") {
  FluidRun run;
  const std::uint32_t closed = run.link(0.0);
  run.start({0.0, {{closed, 1.0}}, 0.0});            // no work, though nothing is to be had
  run.start({0.0, {}, 5.0});                         // nothing needed, no bound
  run.start({0.0, {}, 5.0, 1.0, 2.0});               // nothing needed: at its bound
  run.start({0.0, {{closed, 0.0}}, 5.0, 1.0, 4.0});  // an amount of 0 is not a demand
  run.start({0.0, {}, 5.0, 1.0, 0.0});               // a bound of 0
  CHECK(run.system.next_completion() == FineTime());
  run.run();
  CHECK(run.order == std::vector<std::uint64_t>{0, 1, 3, 2});
  CHECK(run.end_s.at(0) == 0.0);
  CHECK(run.end_s.at(1) == 0.0);
  CHECK(run.end_s.at(2) == 2.5);
  CHECK(run.end_s.at(3) == 1.25);
  std::vector<std::uint64_t> tags;
  run.system.stalled(tags);
  CHECK(tags == std::vector<std::uint64_t>{4});
  run.system.set_bound(run.handles[4], 5.0);
  run.run();
  CHECK(run.end_s.at(4) == 3.5);
  CHECK(run.system.active() == 0);
}

TEST_CASE("fluid: zero capacity stalls until it changes") {
  FluidRun run;
  const std::uint32_t link = run.link(10.0), other = run.link(10.0);
  run.start(flow(0.0, 100.0, {link}));
  run.start(flow(0.0, 100.0, {link, other}));
  run.start(flow(0.0, 100.0, {other}));
  run.run_until(FineTime().after(4.0));  // 20 bytes each on the link; the third 20 as well
  run.system.set_capacity(link, 0.0);
  CHECK(run.rate(0) == 0.0);
  CHECK(run.rate(1) == 0.0);
  CHECK(run.rate(2) * 100.0 == doctest::Approx(10.0));
  std::vector<std::uint64_t> tags;
  run.system.stalled(tags);
  CHECK(tags == std::vector<std::uint64_t>{0, 1});
  run.run();  // the third has 80 left: 12
  CHECK(run.end_s.at(2) == doctest::Approx(12.0).epsilon(1e-12));
  CHECK(run.system.next_completion() == FineTime::max());
  CHECK(run.system.account(link).units == doctest::Approx(40.0).epsilon(1e-12));
  CHECK(run.system.account(link).busy_s == doctest::Approx(4.0).epsilon(1e-12));
  CHECK(run.system.account(link).saturated_s == doctest::Approx(4.0).epsilon(1e-12));
  run.system.solve();
  run.system.advance(FineTime().after(20.0));
  run.system.set_capacity(link, 16.0);  // 80 left each at 8/s
  run.run();
  CHECK(run.end_s.at(0) == doctest::Approx(30.0).epsilon(1e-12));
  CHECK(run.end_s.at(1) == doctest::Approx(30.0).epsilon(1e-12));
}

TEST_CASE("fluid: a resource named twice counts twice") {
  FluidRun run;
  const std::uint32_t link = run.link(12.0);
  run.start({0.0, {{link, 1.0}, {link, 2.0}}});
  CHECK(run.rate(0) == 4.0);
}

TEST_CASE("fluid: what ends together comes together, in order of start") {
  for (const bool shared : {false, true}) {
    FluidRun run;
    const std::uint32_t link = run.link(8.0);
    for (std::uint32_t i = 0; i < 8; ++i) {
      run.start(flow(0.0, 3.0, {shared ? link : run.link(1.0)}));
    }
    const std::uint64_t before = run.system.counters().solves;
    CHECK(run.step());
    CHECK(run.order == std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6, 7});
    for (std::uint64_t i = 0; i < 8; ++i) CHECK(run.end_s.at(i) == 3.0);
    CHECK(!run.step());
    CHECK(run.system.counters().solves == before + 2);  // one for the start, one for the end
    CHECK(run.system.use(link) == 0.0);
  }
}

TEST_CASE("fluid: handles go stale") {
  FluidRun run;
  const std::uint32_t link = run.link(10.0);
  run.start(flow(0.0, 100.0, {link}));
  run.start(flow(0.0, 100.0, {link}));
  const FluidHandle first = run.handles[0];
  CHECK(run.system.rate(first) == 0.0);  // no solve yet
  run.run_until(FineTime().after(2.0));
  CHECK(run.system.remaining(first) == doctest::Approx(0.9));
  CHECK(run.system.cancel(first) == doctest::Approx(0.9));
  CHECK(!run.system.running(first));
  CHECK_THROWS_AS(run.system.cancel(first), InternalError);
  run.start(flow(0.0, 50.0, {link}));
  CHECK(run.handles[2].slot == first.slot);  // the place is used again
  CHECK(!run.system.running(first));
  CHECK(run.system.active() == 2);
  run.run();  // at 2: 90 and 50 left at 5/s each: 12; then 40 at 10/s: 16
  CHECK(run.end_s.at(2) == doctest::Approx(12.0).epsilon(1e-12));
  CHECK(run.end_s.at(1) == doctest::Approx(16.0).epsilon(1e-12));
  CHECK(!run.system.running(run.handles[1]));
}

TEST_CASE("fluid: calls out of turn are refused") {
  FluidRun run;
  const std::uint32_t link = run.link(10.0);
  run.start(flow(0.0, 100.0, {link}));
  CHECK(run.system.needs_solve());
  CHECK_THROWS_AS(run.system.advance(FineTime().after(1.0)), InternalError);  // solve() first
  run.system.solve();
  CHECK(!run.system.needs_solve());
  CHECK_THROWS_AS(run.system.advance(FineTime().after(11.0)), InternalError);  // past the end
  run.system.advance(FineTime().after(1.0));
  CHECK_THROWS_AS(run.system.advance(FineTime()), InternalError);  // back
  CHECK_THROWS_AS(run.system.start({{}, -1.0}), InternalError);
  const FluidDemand nowhere{7, 1.0};
  CHECK_THROWS_AS(run.system.start({{&nowhere, 1}}), InternalError);
  CHECK_THROWS_AS(run.system.add_resource(-1.0), InternalError);
}

TEST_CASE("fluid: a change and its opposite at one instant leave no trace") {
  FluidRun run;
  const std::uint32_t link = run.link(10.0);
  run.start(flow(0.0, 100.0, {link}));
  run.start(flow(0.0, 200.0, {link}));
  run.run_until(FineTime().after(1.0));
  run.system.set_capacity(link, 3.0);
  const FluidHandle extra = run.system.start({{}, 1.0});
  run.system.cancel(extra);
  run.system.set_capacity(link, 10.0);
  run.run();
  CHECK(run.end_s.at(0) == doctest::Approx(20.0).epsilon(1e-14));
  CHECK(run.end_s.at(1) == doctest::Approx(30.0).epsilon(1e-14));
}

// Work of a millionth beside work that has run for long: its duration keeps all its digits.
TEST_CASE("fluid: small work late on a shared resource is exact") {
  FluidRun run;
  const std::uint32_t link = run.link(1.0);
  run.start(flow(0.0, 1e9, {link}));
  run.start(flow(0.0, 1e9, {link}));
  const FineTime late = FineTime().after(1e6 + 1.0 / 3.0);
  run.run_until(late);
  run.start(flow(0.0, 1e-6, {link}));  // at a third of the link: 3 us
  run.step();
  CHECK(run.order == std::vector<std::uint64_t>{2});
  CHECK(run.system.now() - late == doctest::Approx(3e-6).epsilon(1e-13));
  CHECK(run.system.counters().shared > 0);
}

TEST_CASE("fluid: the certificate sees a wrong answer") {
  FluidRun run;
  const std::uint32_t link = run.link(10.0);
  run.start(flow(0.0, 100.0, {link}));
  CHECK(run.system.certificate() != "");  // rate 0 before the solve: nothing holds it
  run.system.solve();
  CHECK(run.system.certificate() == "");
  run.system.set_capacity(link, 5.0);
  CHECK(run.system.certificate().find("above its capacity") != std::string::npos);
}

}  // namespace
}  // namespace medley
