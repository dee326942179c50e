#include <doctest/doctest.h>

#include <cmath>

#include "hwmodels/catalog.h"
#include "sim/network/choose.h"
#include "sim/network/collective_runner.h"
#include "sim/network/nccl_model.h"
#include "tests/support/network_topologies.h"

using namespace medley;

namespace {
NcclPlace hopper_place() {
  const Catalog catalog({});
  const auto place = nccl_place(catalog, catalog.node("8xH100-SXM"), 8);
  REQUIRE(place.has_value());
  return *place;
}
}  // namespace

TEST_CASE("NCCL on eight H100: tables by hand") {
  const NcclPlace place = hopper_place();
  CHECK(place.bus_bandwidth == doctest::Approx(370.8e9));  // 18 links of 20.6
  CHECK(place.nvls);
  const NcclCalibration none{0.0, 0.0};
  // 32 KiB: LL ring, 6.6 + 14 x .6 = 15 us and 32768 B at min(370.8/2, 141) x 8/14 = 80.57 GB/s.
  const auto small = nccl_choose(place, CollectiveKind::kAllReduce, 8, 1, 32768.0, none);
  REQUIRE(small.has_value());
  CHECK(small->protocol == NcclProtocol::kLl);
  CHECK(small->time_s == doctest::Approx(15e-6 + 32768.0 / (141e9 * 8.0 / 14.0)));
  // 1 GiB: NVLS, 25 us and .85 x 5/6 of 370.8 GB/s.
  const auto large = nccl_choose(place, CollectiveKind::kAllReduce, 8, 1, 1073741824.0, none);
  CHECK(large->algorithm == NcclAlgorithm::kNvls);
  CHECK(large->time_s == doctest::Approx(25e-6 + 1073741824.0 / (370.8e9 * 0.85 * 5.0 / 6.0)));
  // Among four there is no NVLS: a ring, 6 steps, bandwidth 4/6 of the bus.
  const auto four = nccl_choose(place, CollectiveKind::kAllReduce, 4, 1, 1073741824.0, none);
  CHECK(four->algorithm == NcclAlgorithm::kRing);
  CHECK(four->protocol == NcclProtocol::kSimple);
  CHECK(four->time_s ==
        doctest::Approx((8.4 + 6.0 * 3.4) * 1e-6 + 1073741824.0 / (370.8e9 * 4.0 / 6.0)));
  // What was fitted comes on top: the call and c sqrt(bytes / bandwidth).
  const auto full =
      nccl_choose(place, CollectiveKind::kAllReduce, 4, 1, 1073741824.0, {10e-6, 2e-3});
  CHECK(full->time_s ==
        doctest::Approx(four->time_s + 10e-6 + 2e-3 * std::sqrt(1073741824.0 / four->bandwidth)));
}

TEST_CASE("NCCL's time grows with the payload, up to the steps from protocol to protocol") {
  const NcclPlace place = hopper_place();
  for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                    CollectiveKind::kReduceScatter, CollectiveKind::kBroadcast}) {
    for (const int ranks : {2, 4, 8}) {
      double estimate = 0.0;
      for (double bytes = 256.0; bytes < 1e11; bytes *= 1.5) {
        const auto c = nccl_choose(place, kind, ranks, 1, bytes);
        REQUIRE(c.has_value());
        CHECK(c->estimate_s >= estimate);  // a minimum of rising lines
        CHECK(c->time_s >= c->estimate_s);
        estimate = c->estimate_s;
      }
    }
  }
}

TEST_CASE("several nodes: the network bounds the bus, each hop adds its latency") {
  NcclPlace place = hopper_place();
  place.node_network = 50e9;
  const NcclCalibration none{0.0, 0.0};
  const auto ring = nccl_choose(place, CollectiveKind::kAllReduce, 16, 2, 1e10, none,
                                NcclAlgorithm::kRing, NcclProtocol::kSimple);
  // 30 steps, 2 between nodes; the plateau's 1.4 on all latency.
  CHECK(ring->time_s ==
        doctest::Approx(1.4 * (8.4 + 28 * 3.4 + 2 * 14.0) * 1e-6 + 1e10 / (50e9 * 16.0 / 30.0)));
  place.network_latency_s = 50e-6;
  const auto far = nccl_choose(place, CollectiveKind::kAllReduce, 16, 2, 1e10, none,
                               NcclAlgorithm::kRing, NcclProtocol::kSimple);
  CHECK(far->time_s == doctest::Approx(ring->time_s + 1.4 * 2 * 50e-6));
  CHECK(!nccl_choose(place, CollectiveKind::kAllReduce, 16, 2, 1e10, none, NcclAlgorithm::kNvls)
             .has_value());
}

TEST_CASE("an estimate says where it comes from") {
  const Catalog catalog({});
  const Bytes payload(64e6);
  const auto estimate = [&](const char* node, CollectiveKind kind, int ranks, bool tables) {
    EstimateOptions options;
    options.use_tables = tables;
    return estimate_collective(catalog, catalog.node(node), kind, ranks, 1, payload, options);
  };
  const auto table = estimate("8xH100-SXM", CollectiveKind::kAllReduce, 8, true);
  CHECK(table.algorithm == "measured table");
  CHECK(table.time.source.find("measured table") == 0);
  CHECK(table.time.time == all_reduce_time(catalog, catalog.node("8xH100-SXM"), 8, payload).time);
  const auto model = estimate("8xH100-SXM", CollectiveKind::kAllReduce, 8, false);
  CHECK(model.algorithm.find("nccl ") == 0);
  CHECK(model.time.provenance == Provenance::kDerived);
  CHECK(estimate("8xH100-SXM", CollectiveKind::kAllGather, 8, true).algorithm.find("nccl ring") ==
        0);
  CHECK(estimate("8xH100-SXM", CollectiveKind::kAllToAll, 8, true).algorithm == "direct");
  CHECK(estimate("8xGaudi3", CollectiveKind::kAllGather, 8, true).algorithm == "ring");
  CHECK(estimate("8xH100-SXM", CollectiveKind::kAllReduce, 1, true).time.time == Seconds(0.0));
}

TEST_CASE("played over wires, an estimate takes its time alone and shares when it is not") {
  const Catalog catalog({});
  const Topology t = test::star(8, 376e9, 1e-7);
  for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                    CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll}) {
    for (const bool tables : {true, false}) {
      for (const double bytes : {16384.0, 1e6, 64e6, 4e9}) {
        EstimateOptions options;
        options.use_tables = tables;
        options.in_graph = false;
        const CollectiveEstimate e = estimate_collective(catalog, catalog.node("8xA100-SXM-80GB"),
                                                         kind, 8, 1, Bytes(bytes), options);
        CollectiveCall call;
        call.shape.kind = kind;
        call.shape.bytes = bytes;
        for (std::uint32_t i = 0; i < 8; ++i) call.members.push_back(i);
        const Network idle(t);
        apply_estimate(idle, e, call);
        INFO(to_string(kind) << " " << bytes << " " << e.algorithm << " as " << call.algorithm);
        CHECK(run_alone(t, call) == doctest::Approx(e.time.time.value()).epsilon(1e-9));
      }
    }
  }
}
