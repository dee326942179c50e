// Collectives over the shipped structures and clusters, where routes are the structures' own.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "hwmodels/catalog.h"
#include "hwmodels/topology/fabric.h"
#include "sim/core/rng.h"
#include "sim/network/choose.h"
#include "sim/network/collective_runner.h"
#include "tests/support/network_topologies.h"

using namespace medley;

namespace {

CollectiveCall over(const Topology& t, CollectiveKind kind, const std::string& algorithm,
                    double bytes, std::size_t most) {
  CollectiveCall c;
  c.shape.kind = kind;
  c.shape.bytes = bytes;
  c.algorithm = algorithm;
  for (std::size_t i = 0; i < std::min(most, t.endpoints.size()); ++i) {
    c.members.push_back(t.endpoints[i]);
  }
  return c;
}

FabricSpec leaf_spine(double ports, double hosts_per_leaf) {
  FabricSpec spec;
  spec.kind = "leaf-spine";
  spec.numbers["ports"] = ports;
  spec.numbers["hosts_per_leaf"] = hosts_per_leaf;
  spec.links["link"].link = "InfiniBand NDR";
  return spec;
}

}  // namespace

TEST_CASE("every shipped topology carries every collective") {
  const Catalog catalog({});
  int played = 0;
  for (const FabricSpec* spec : catalog.topologies()) {
    Topology t;
    try {
      t = build_topology(catalog, *spec);
    } catch (const std::exception&) {
      continue;  // one that needs a cluster around it
    }
    if (t.endpoints.size() < 2) continue;
    ++played;
    for (int k = 0; k < kCollectiveKinds; ++k) {
      const auto kind = static_cast<CollectiveKind>(k);
      const std::size_t most = kind == CollectiveKind::kSendRecv ? 2 : 24;
      const CollectiveCall call = over(t, kind, "auto", 8e6, most);
      const Network idle(t);
      const CollectivePlan plan = plan_collective(idle, call);
      INFO(spec->name << " " << to_string(kind) << " " << plan.algorithm->name);
      const double seconds = run_alone(t, call);
      CHECK(std::isfinite(seconds));
      CHECK(seconds > 0.0);
      // No message is faster than the best wire.
      double best = 0.0;
      for (const TopologyWire& w : t.wires) best = std::max(best, w.bandwidth.value());
      const double n = static_cast<double>(call.members.size());
      CHECK(seconds >= 8e6 * (n - 1.0) / n / (best * 64.0));
    }
  }
  CHECK(played > 0);
}

TEST_CASE("M/G/1-PS on a shared link: E[T | x] = x / (1 - rho), whatever the sizes") {
  // Poisson flows onto one wire of 1 B/s at load 0.6, half of size 0.5 and half of 1.5 (mean 1).
  // Law: E[T | x] = 2.5 x for both. 40,000 flows; 4 % is beyond four standard errors.
  const Topology t = test::star(2, 1.0, 0.0);
  NetworkOptions options;
  options.track_waits = false;
  Network network(t, options);
  Rng rng(7, "test/network_ps");
  std::vector<NetworkCompletion> out;
  std::vector<double> begun;
  double clock = 0.0;
  double sum[2] = {0.0, 0.0};
  int count[2] = {0, 0};
  const auto drain = [&] {
    for (const NetworkCompletion& c : out) {
      const std::size_t big = c.tag & 1U;
      sum[big] += (c.time - FineTime()) - begun[c.tag >> 1];
      ++count[big];
    }
    out.clear();
  };
  for (int i = 0; i < 40000; ++i) {
    clock += -std::log1p(-rng.uniform()) / 0.6;
    const FineTime arrival = FineTime().after(clock);
    while (network.next_time() <= arrival) network.step(out);
    drain();
    network.advance_to(arrival);
    const bool big = rng.below(2) == 1;
    TransferSpec spec;
    spec.bytes = big ? 1.5 : 0.5;
    spec.tag = (begun.size() << 1) | (big ? 1U : 0U);
    begun.push_back(clock);
    network.start(0, 1, 0, spec);
  }
  while (network.step(out)) {
  }
  drain();
  CHECK(count[0] + count[1] == 40000);
  CHECK(sum[0] / count[0] == doctest::Approx(0.5 * 2.5).epsilon(0.04));
  CHECK(sum[1] / count[1] == doctest::Approx(1.5 * 2.5).epsilon(0.04));
}

TEST_CASE("a link fails under a ring: it stalls, goes on around it, and loses nothing") {
  const Catalog catalog({});
  const FabricSpec spec = leaf_spine(16, 4);
  const Topology t = build_topology(catalog, spec);
  const CollectiveCall call = over(t, CollectiveKind::kAllReduce, "ring", 64e6, 16);
  const double whole = run_alone(t, call);
  Network network(t);
  CollectiveRunner runner(network, 1);
  runner.start(call);
  std::vector<NetworkCompletion> batch;
  std::vector<CollectiveDone> done;
  const auto play_until = [&](double time) {
    while (done.empty() && network.next_time() <= FineTime().after(time)) {
      batch.clear();
      if (!network.step(batch)) return;
      for (const NetworkCompletion& c : batch) runner.handle(c, done);
    }
  };
  play_until(0.4 * whole);
  // A cable between switches that is in use.
  std::uint32_t broken = TopologyVertex::kNone;
  for (std::uint32_t l = 0; l < t.links.size() && broken == TopologyVertex::kNone; ++l) {
    const bool inner = t.vertices[t.links[l].from].kind == VertexKind::kSwitch &&
                       t.vertices[t.links[l].to].kind == VertexKind::kSwitch;
    if (inner && network.fluid().use(t.links[l].wire) > 0.0) broken = l;
  }
  REQUIRE(broken != TopologyVertex::kNone);
  network.fail_link(broken, true);
  play_until(10.0 * whole);
  CHECK(done.empty());
  std::vector<TransferHandle> stuck;
  network.stalled(stuck);
  REQUIRE(!stuck.empty());
  for (const TransferHandle h : stuck) network.reroute(h);
  play_until(100.0 * whole);
  REQUIRE(done.size() == 1);
  CHECK(done[0].time - FineTime() >= whole);
}
