#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/core/rng.h"
#include "sim/network/choose.h"
#include "sim/network/collective_runner.h"
#include "tests/support/network_topologies.h"

using namespace medley;

namespace {

struct Played {
  std::vector<double> seconds;  // by call
  double bytes = 0.0;           // on all wires
  double waited = 0.0;          // on all wires
};

/// All calls from time 0 on one network.
Played play_all(const Topology& t, const std::vector<CollectiveCall>& calls) {
  Network network(t);
  CollectiveRunner runner(network, 5);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    CollectiveCall c = calls[i];
    c.tag = i;
    runner.start(c);
  }
  Played out;
  out.seconds.assign(calls.size(), 0.0);
  std::vector<NetworkCompletion> batch;
  std::vector<CollectiveDone> done;
  while (network.step(batch)) {
    for (const NetworkCompletion& c : batch) CHECK(runner.handle(c, done));
    batch.clear();
  }
  CHECK(done.size() == calls.size());
  CHECK(runner.active() == 0);
  CHECK(network.active() == 0);
  for (const CollectiveDone& d : done) out.seconds[d.tag] = d.time - FineTime();
  for (std::uint32_t w = 0; w < network.wires(); ++w) {
    out.bytes += network.account(w).bytes;
    out.waited += network.account(w).waited_s;
  }
  return out;
}

CollectiveCall among(const std::vector<std::uint32_t>& members, CollectiveKind kind,
                     const std::string& algorithm, double bytes) {
  CollectiveCall c;
  c.members = members;
  c.shape.kind = kind;
  c.shape.bytes = bytes;
  c.algorithm = algorithm;
  return c;
}

std::vector<std::uint32_t> first_ranks(std::uint32_t n) {
  std::vector<std::uint32_t> all(n);
  for (std::uint32_t i = 0; i < n; ++i) all[i] = i;
  return all;
}

/// Bytes that some port must carry at least, over its bandwidth.
double bandwidth_bound(CollectiveKind kind, std::uint32_t n, double bytes, bool in_switch) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return in_switch ? bytes : 2.0 * (n - 1) / n * bytes;
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kSendRecv:
      return bytes;
    default:
      return (n - 1.0) / n * bytes;
  }
}

}  // namespace

TEST_CASE("every algorithm: traffic is conserved and the bandwidth bound holds") {
  for (const CollectiveAlgorithm& a : collective_algorithms()) {
    for (int kind_index = 0; kind_index < kCollectiveKinds; ++kind_index) {
      const auto kind = static_cast<CollectiveKind>(kind_index);
      for (std::uint32_t n = 2; n <= 19; ++n) {
        const Topology t = a.name == "hierarchical" && n % 2 == 0
                               ? test::rails(n / 2, 2, 4e9, 1e-6, 1e9, 3e-6)
                               : test::star(n, 1e9, 1e-6);
        CollectiveShape shape;
        shape.kind = kind;
        shape.ranks = n;
        shape.bytes = 1e6;
        shape.group = 2;
        if (!a.supports(shape)) continue;
        if (a.name == "hierarchical" && n < 4) continue;
        const CollectiveCall call = among(first_ranks(n), kind, a.name, 1e6);
        const Played played = play_all(t, {call});
        const double hops = a.needs_switch ? 1.0 : 2.0;
        double expected = a.make(shape)->traffic() * hops;
        if (a.needs_switch) {
          // Up what the ranks send, down the same (broadcast: to all others).
          expected = a.make(shape)->traffic() *
                     (kind == CollectiveKind::kBroadcast ? static_cast<double>(n) : 2.0);
        }
        INFO(a.name << " " << to_string(kind) << " n " << n);
        CHECK(played.bytes == doctest::Approx(expected).epsilon(1e-9));
        const double rate = a.name == "hierarchical" ? 4e9 : 1e9;
        CHECK(played.seconds[0] >= bandwidth_bound(kind, n, 1e6, a.needs_switch) / rate);
      }
    }
  }
}

TEST_CASE("contention never speeds up, and total traffic stays") {
  Rng rng(20260801, "test/network_contention");
  for (int round = 0; round < 60; ++round) {
    const auto n = static_cast<std::uint32_t>(3 + rng.below(10));
    const Topology t = test::star(n, 1e9, 1e-6);
    std::vector<CollectiveCall> calls;
    for (int i = 0; i < 3; ++i) {
      std::vector<std::uint32_t> members = first_ranks(n);
      for (std::uint32_t j = n; j > 1; --j) {
        std::swap(members[j - 1], members[static_cast<std::size_t>(rng.below(j))]);
      }
      members.resize(static_cast<std::size_t>(2 + rng.below(n - 1)));
      constexpr const char* kNames[] = {"ring", "double_tree", "halving_doubling", "two_shot"};
      calls.push_back(among(members, CollectiveKind::kAllReduce, kNames[rng.below(4)],
                            1e5 * static_cast<double>(1 + rng.below(90))));
    }
    const Played together = play_all(t, calls);
    double bytes = 0.0;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const Played alone = play_all(t, {calls[i]});
      bytes += alone.bytes;
      CHECK(together.seconds[i] >= alone.seconds[0] * (1.0 - 1e-9));
    }
    CHECK(together.bytes == doctest::Approx(bytes).epsilon(1e-9));
  }
}

TEST_CASE("two rings on the same wires take twice as long each, less the latency they share") {
  // Both step together: S/(n B) becomes 2 S/(n B).
  const Topology t = test::star(8, 1e9, 1e-6);
  const CollectiveCall ring = among(first_ranks(8), CollectiveKind::kAllReduce, "ring", 8e6);
  const Played two = play_all(t, {ring, ring});
  const double expected = 14.0 * (1e-6 + 2e-3);
  CHECK(two.seconds[0] == doctest::Approx(expected).epsilon(1e-12));
  CHECK(two.seconds[1] == doctest::Approx(expected).epsilon(1e-12));
  // Every message waits 1 ms: 2 x 8 x 14 of them.
  CHECK(two.waited == doctest::Approx(224.0 * 1e-3).epsilon(1e-9));
}

TEST_CASE("rings on wires of their own do not notice each other") {
  const Topology t = test::star(8, 1e9, 1e-6);
  const CollectiveCall a = among({0, 1, 2, 3}, CollectiveKind::kAllReduce, "ring", 8e6);
  const CollectiveCall b = among({4, 5, 6, 7}, CollectiveKind::kAllReduce, "double_tree", 8e6);
  const Played both = play_all(t, {a, b});
  CHECK(both.seconds[0] == play_all(t, {a}).seconds[0]);
  CHECK(both.seconds[1] == play_all(t, {b}).seconds[0]);
  CHECK(both.waited == 0.0);
}

TEST_CASE("a straggler delays all by its own delay") {
  const Topology t = test::star(4, 1e9, 1e-6);
  Network network(t);
  CollectiveRunner runner(network, 5);
  CollectiveCall call = among(first_ranks(4), CollectiveKind::kAllReduce, "ring", 4e6);
  call.joined = false;
  const std::uint32_t id = runner.start(call);
  for (std::uint32_t r = 0; r < 3; ++r) runner.join(id, r);
  std::vector<NetworkCompletion> batch;
  std::vector<CollectiveDone> done;
  while (network.next_time() <= FineTime(SimTime::from_ns(7'000'000))) {
    batch.clear();
    network.step(batch);
    for (const NetworkCompletion& c : batch) runner.handle(c, done);
  }
  CHECK(done.empty());
  network.advance_to(FineTime(SimTime::from_ns(7'000'000)));
  runner.join(id, 3);
  while (done.empty()) {
    batch.clear();
    REQUIRE(network.step(batch));
    for (const NetworkCompletion& c : batch) runner.handle(c, done);
  }
  // Rank 3's messages are what the last rank needs: 6 steps from its arrival.
  CHECK(done[0].time - FineTime() == doctest::Approx(7e-3 + 6.0 * (1e-6 + 1e-3)).epsilon(1e-12));
}

TEST_CASE("a ring uses the memories at both ends and slows with them") {
  // Every rank reads and writes as much as it sends and receives: 6 MB each way in 6 steps. At
  // 1 GB/s of wire a memory of 1.5 GB/s holds each flow to .75 GB/s.
  const Topology t = test::star(4, 1e9, 0.0);
  for (const double memory : {2e9, 1.5e9}) {
    Network network(t);
    CollectiveRunner runner(network, 5);
    CollectiveCall call = among(first_ranks(4), CollectiveKind::kAllReduce, "ring", 4e6);
    for (int r = 0; r < 4; ++r) call.memory.push_back(network.add_resource(memory));
    runner.start(call);
    std::vector<NetworkCompletion> batch;
    std::vector<CollectiveDone> done;
    while (network.step(batch)) {
      for (const NetworkCompletion& c : batch) runner.handle(c, done);
      batch.clear();
    }
    REQUIRE(done.size() == 1);
    CHECK(done[0].time - FineTime() == doctest::Approx(memory < 2e9 ? 8e-3 : 6e-3).epsilon(1e-12));
    CHECK(network.fluid().account(call.memory[2]).units == doctest::Approx(12e6));
  }
}

TEST_CASE("an algorithm that does not exist or does not fit is refused") {
  const Topology t = test::star(6, 1e9, 1e-6);
  const Network network(t);
  CHECK_THROWS_AS(
      plan_collective(network, among(first_ranks(6), CollectiveKind::kAllReduce, "rnig", 1.0)),
      InputError);
  CHECK_THROWS_AS(
      plan_collective(network, among(first_ranks(6), CollectiveKind::kAllToAll, "ring", 1.0)),
      InputError);
  CHECK_THROWS_AS(plan_collective(network, among(first_ranks(6), CollectiveKind::kAllReduce,
                                                 "hierarchical", 1.0)),
                  InputError);
}

TEST_CASE("auto is never slower than any algorithm it may choose from, by its own estimate") {
  for (const std::uint32_t n : {2U, 3U, 8U, 12U, 16U}) {
    const Topology t = test::star(n, 371e9, 2.5e-6);
    const Network network(t);
    for (double bytes = 1024.0; bytes < 1e10; bytes *= 8.0) {
      const double chosen =
          plan_collective(network, among(first_ranks(n), CollectiveKind::kAllReduce, "auto", bytes))
              .estimate_s;
      for (const char* name : {"ring", "double_tree", "halving_doubling", "one_shot", "two_shot"}) {
        CHECK(chosen <= plan_collective(
                            network, among(first_ranks(n), CollectiveKind::kAllReduce, name, bytes))
                            .estimate_s);
      }
    }
  }
}
