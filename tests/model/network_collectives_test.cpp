// Executed collectives on an idle, non-blocking switch take their closed form, which is derived
// here once more from the schedule where that is short.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "sim/network/choose.h"
#include "sim/network/closed_forms.h"
#include "sim/network/collective_runner.h"
#include "tests/support/network_topologies.h"

using namespace medley;

namespace {
constexpr double kRate = 371e9;  // NVLink 4
constexpr double kWait = 2.5e-6;

CollectiveCall call_of(CollectiveKind kind, const std::string& algorithm, std::uint32_t n,
                       double bytes, std::uint32_t chunks = 0) {
  CollectiveCall c;
  c.shape.kind = kind;
  c.shape.bytes = bytes;
  c.shape.chunks = chunks;
  c.algorithm = algorithm;
  for (std::uint32_t i = 0; i < n; ++i) c.members.push_back(i);
  return c;
}

void check_close(double executed, double expected) {
  CHECK(std::fabs(executed - expected) <= 1e-12 * expected + 1e-24);
}
}  // namespace

TEST_CASE("ring: 2(n-1)(a + S/(nB)) for all-reduce, half the steps for its halves") {
  for (const std::uint32_t n : {2U, 3U, 5U, 7U, 8U, 16U, 33U}) {
    for (const double bytes : {0.0, 4096.0, 1e6 + 3.0, 1073741824.0}) {
      const Topology t = test::star(n, kRate, kWait);
      const double step = kWait + bytes / (n * kRate);
      check_close(run_alone(t, call_of(CollectiveKind::kAllReduce, "ring", n, bytes)),
                  2.0 * (n - 1) * step);
      check_close(run_alone(t, call_of(CollectiveKind::kAllGather, "ring", n, bytes)),
                  (n - 1) * step);
      check_close(run_alone(t, call_of(CollectiveKind::kReduceScatter, "ring", n, bytes)),
                  (n - 1) * step);
    }
  }
}

TEST_CASE("steps shorter than a tick do not round: 4 KiB over 8 ranks at 371 GB/s") {
  // A step's bytes take 512 / 371e9 = 1.38 ns; with no latency 14 of them 19.32 ns. Rounded one by
  // one they would give 14.
  const Topology t = test::star(8, kRate, 0.0);
  const double time = run_alone(t, call_of(CollectiveKind::kAllReduce, "ring", 8, 4096.0));
  check_close(time, 14.0 * 512.0 / kRate);
  CHECK(time == doctest::Approx(19.32e-9).epsilon(1e-3));
}

TEST_CASE("pieces of a ring hide the latency when they are long enough") {
  // n = 4, S = 4 GB at 1 GB/s, a = 0.1 s: a step's bytes take 1 s. In 4 pieces of 0.25 s the next
  // piece is there (0.35 s) before the port is free (1 s): 5 steps of 1 s, the last of 1.1 s.
  const Topology slow = test::star(4, 1e9, 0.1);
  check_close(run_alone(slow, call_of(CollectiveKind::kAllReduce, "ring", 4, 4e9, 4)), 6.1);
  // With a = 2 s the port waits: a piece takes 2.25 s to come, 5 times, then 1 + 2.
  const Topology slower = test::star(4, 1e9, 2.0);
  check_close(run_alone(slower, call_of(CollectiveKind::kAllReduce, "ring", 4, 4e9, 4)),
              5.0 * 2.25 + 3.0);
}

TEST_CASE("every algorithm takes its closed form on an idle switch") {
  struct Case {
    CollectiveKind kind;
    const char* algorithm;
  };
  constexpr Case kCases[] = {
      {CollectiveKind::kAllReduce, "ring"},
      {CollectiveKind::kBroadcast, "ring"},
      {CollectiveKind::kAllReduce, "double_tree"},
      {CollectiveKind::kBroadcast, "double_tree"},
      {CollectiveKind::kAllReduce, "halving_doubling"},
      {CollectiveKind::kAllReduce, "one_shot"},
      {CollectiveKind::kAllReduce, "two_shot"},
      {CollectiveKind::kAllGather, "direct"},
      {CollectiveKind::kReduceScatter, "direct"},
      {CollectiveKind::kAllToAll, "direct"},
      {CollectiveKind::kBroadcast, "direct"},
      {CollectiveKind::kAllReduce, "in_switch"},
      {CollectiveKind::kAllReduce, "nvls"},
      {CollectiveKind::kBroadcast, "in_switch"},
  };
  for (const Case& c : kCases) {
    for (const std::uint32_t n : {2U, 3U, 4U, 5U, 6U, 7U, 8U, 13U, 16U, 24U}) {
      const Topology t = test::star(n, kRate, kWait);
      for (const double bytes : {4096.0, 1e6 + 3.0, 268435456.0}) {
        for (const std::uint32_t chunks : {0U, 1U, 3U}) {
          CollectiveCall call = call_of(c.kind, c.algorithm, n, bytes, chunks);
          call.shape.window = 5;
          const Network idle(t);
          const CollectivePlan plan = plan_collective(idle, call);
          // The model found from the routes is the switch's.
          CHECK(plan.model.bandwidth == doctest::Approx(kRate).epsilon(1e-12));
          CHECK(plan.model.latency == doctest::Approx(kWait).epsilon(1e-12));
          INFO(c.algorithm << " " << to_string(c.kind) << " n " << n << " S " << bytes << " k "
                           << chunks);
          check_close(run_alone(t, call), plan.estimate_s);
        }
      }
    }
  }
}

TEST_CASE("closed forms, by hand") {
  const LinkModel m{1.0, 10.0, 0.5, 100.0};
  // Halving-doubling of 80 B among 4: 40/10 + 20/10 and back, 4 latencies.
  CHECK(halving_time(4, true, 80.0, m) == doctest::Approx(2.0 * (4.0 + 2.0) + 4.0));
  // Among 5: one folds its 80 B in and gets 80 B back: 2 (1 + 8) more.
  CHECK(halving_time(5, true, 80.0, m) == doctest::Approx(16.0 + 18.0));
  // Double tree among 8, one chunk of 40 B per tree, 4 streams a port: 3 levels up, 3 down, each
  // 40/2.5 + 1.
  CHECK(tree_time(6, 4, 1, 80.0, m) == doctest::Approx(6.0 * 17.0));
  // Hierarchical, 2 servers of 4, 80 B: 3 steps of 20/100 + .5 inside, 1 of 10/10 + 1 across, both
  // twice.
  CHECK(hierarchical_time(8, 4, true, 80.0, m) == doctest::Approx(2.0 * (3.0 * 0.7 + 2.0)));
  // All-to-all of 80 B among 8: 7 messages of 10 B.
  CHECK(direct_time(7, 10.0, m) == doctest::Approx(8.0));
  // In the switch, 2 chunks of 40 B: up 4, up and down 4, down 4.
  CHECK(in_switch_time(1.0, 2, 80.0, m) == doctest::Approx(13.0));
}

TEST_CASE("hierarchical over rails") {
  for (const std::uint32_t servers : {2U, 3U, 4U}) {
    for (const CollectiveKind kind :
         {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
      const Topology t = test::rails(servers, 4, 371e9, 2.5e-6, 46e9, 8e-6);
      const CollectiveCall call = call_of(kind, "hierarchical", servers * 4, 64e6);
      const LinkModel m{8e-6, 46e9, 2.5e-6, 371e9};
      check_close(run_alone(t, call),
                  hierarchical_time(servers * 4, 4, kind == CollectiveKind::kAllReduce, 64e6, m));
      // 8 steps of the ring would cross servers at every step's end: auto finds the better one.
      CollectiveCall automatic = call;
      automatic.algorithm = "auto";
      CHECK(run_alone(t, automatic) <= run_alone(t, call) * (1.0 + 1e-12));
    }
  }
}

TEST_CASE("all-to-all-v: the fullest port decides") {
  // Rank 0 sends 100 B to 1 and 300 B to 2, 1 sends 200 B to 2: port 2 receives 500 B at 10 B/s.
  // Max-min: both into 2 get 5 B/s, 0 -> 1 gets 5 B/s. At 20 s 0 -> 1 ends (100 B), both others
  // have moved 100 B; at 40 s 1 -> 2 ends; the last 100 B of 0 -> 2 take 10 s.
  const Topology t = test::star(3, 10.0, 0.0);
  const std::vector<double> matrix = {0, 100, 300, 0, 0, 200, 0, 0, 0};
  CollectiveCall call = call_of(CollectiveKind::kAllToAll, "direct", 3, 0.0);
  call.shape.matrix = &matrix;
  check_close(run_alone(t, call), 50.0);
}

TEST_CASE("send and receive; one rank; nothing to send") {
  const Topology t = test::star(4, 1e9, 1e-6);
  check_close(run_alone(t, call_of(CollectiveKind::kSendRecv, "auto", 2, 5e6)), 1e-6 + 5e-3);
  CHECK(run_alone(t, call_of(CollectiveKind::kAllReduce, "auto", 1, 5e6)) == 0.0);
  check_close(run_alone(t, call_of(CollectiveKind::kAllToAll, "direct", 4, 0.0)), 1e-6);
}

TEST_CASE("what a library adds: a start, time per message, a share of the rate") {
  const Topology t = test::star(4, 1e9, 1e-6);
  CollectiveCall call = call_of(CollectiveKind::kAllReduce, "ring", 4, 4e6);
  call.start_s = 10e-6;
  call.step_s = 3e-6;
  call.efficiency = 0.5;
  // 10 us + 6 (4 us + 1 MB / 0.5 GB/s)
  check_close(run_alone(t, call), 10e-6 + 6.0 * (4e-6 + 2e-3));
}
