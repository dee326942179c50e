#include <doctest/doctest.h>

#include <cmath>

#include "hwmodels/catalog.h"
#include "sim/core/error.h"
#include "tests/support/scratch_directory.h"

using namespace medley;

namespace {
bool close(double a, double b, double rel = 1e-12) {
  return std::abs(a - b) <= rel * std::max(std::abs(a), std::abs(b));
}

/// A link of 10 GB/s, reached to .8, with 2 us; and one of unknown rate.
class Fixture {
 public:
  Fixture()
      : catalog_([this] {
          scratch_.write("links/wire.json", R"({"schema": "medley.link/1", "name": "wire",
            "kind": "device", "sources": {"s": "made up"},
            "bandwidth": {"value": "10 GB/s", "class": "datasheet", "source": "s"},
            "achieved": {"value": 0.8, "class": "measured", "source": "s"},
            "latency": {"value": "2 us", "class": "assumed", "source": "s"}})");
          scratch_.write("links/dark.json", R"({"schema": "medley.link/1", "name": "dark",
            "kind": "device"})");
          return std::vector<std::string>{scratch_.path()};
        }()) {}
  const Catalog& catalog() const { return catalog_; }
  static NodeSpec node(FabricKind kind, int devices, double total = 0.0) {
    NodeSpec n;
    n.name = "box";
    n.file = "box.json";
    n.devices = devices;
    n.fabric = kind;
    n.fabric_link = "wire";
    if (total > 0.0) {
      n.fabric_bandwidth.value = BytesPerSec(total);
      n.fabric_bandwidth.provenance = Provenance::kDatasheet;
    }
    return n;
  }

 private:
  ScratchDirectory scratch_;
  Catalog catalog_;
};
}  // namespace

TEST_CASE("ring all-reduce behind a switch, by hand") {
  const Fixture f;
  const NodeSpec node = Fixture::node(FabricKind::kSwitch, 4, 10e9);
  // n = 4, 80 MB, 8 GB/s achieved: 2(4-1) x 2 us = 12 us of latency;
  // 2(4-1)/4 x 80e6 / 8e9 = 1.5 x 10 ms = 15 ms.
  const CollectiveTime t = all_reduce_time(f.catalog(), node, 4, Bytes(80e6));
  CHECK(close(t.time.value(), 12e-6 + 15e-3));
  CHECK(t.provenance == Provenance::kAssumed);  // the latency is
  // n = 2: 2 x 2 us + 1 x 10 ms.
  CHECK(close(all_reduce_time(f.catalog(), node, 2, Bytes(80e6)).time.value(), 4e-6 + 10e-3));
  CHECK(all_reduce_time(f.catalog(), node, 1, Bytes(80e6)).time.value() == 0.0);
}

TEST_CASE("on a mesh a group has only the links inside it") {
  const Fixture f;
  const NodeSpec mesh = Fixture::node(FabricKind::kMesh, 8, 70e9);  // 7 links of 10 GB/s
  // n = 8: 14 x 2 us + 1.75 x 560e6 / (7 x 8e9) = 28 us + 17.5 ms.
  CHECK(close(all_reduce_time(f.catalog(), mesh, 8, Bytes(560e6)).time.value(), 28e-6 + 17.5e-3));
  // n = 2: one link: 2 x 2 us + 1 x 560e6 / 8e9 = 4 us + 70 ms, four times slower than all eight.
  CHECK(close(all_reduce_time(f.catalog(), mesh, 2, Bytes(560e6)).time.value(), 4e-6 + 70e-3));
  // A pair sends over one link whatever the mesh has.
  CHECK(close(send_time(f.catalog(), mesh, Bytes(8e6)).time.value(), 2e-6 + 1e-3));
  // Without a stated total a mesh of 8 has 7 links.
  const NodeSpec plain = Fixture::node(FabricKind::kMesh, 8);
  CHECK(close(all_reduce_time(f.catalog(), plain, 8, Bytes(560e6)).time.value(), 28e-6 + 17.5e-3));
}

TEST_CASE("all-to-all by hand") {
  const Fixture f;
  // Switch, n = 4, 32 MB per rank: 1 x 2 us + 3/4 x 32e6 / 8e9 = 2 us + 3 ms.
  const NodeSpec box = Fixture::node(FabricKind::kSwitch, 4, 10e9);
  CHECK(close(all_to_all_time(f.catalog(), box, 4, Bytes(32e6)).time.value(), 2e-6 + 3e-3));
  // Mesh, n = 4, three links: 3 x 2 us + 3/4 x 32e6 / 24e9 = 6 us + 1 ms.
  const NodeSpec mesh = Fixture::node(FabricKind::kMesh, 8, 70e9);
  CHECK(close(all_to_all_time(f.catalog(), mesh, 4, Bytes(32e6)).time.value(), 6e-6 + 1e-3));
  // Ring of 8, two links, a byte crosses 8/4 = 2 of them:
  // 7 x 2 us + 7/8 x 32e6 x 2 / 16e9 = 14 us + 3.5 ms.
  const NodeSpec ring = Fixture::node(FabricKind::kRing, 8, 20e9);
  CHECK(close(all_to_all_time(f.catalog(), ring, 8, Bytes(32e6)).time.value(), 14e-6 + 3.5e-3));
  CHECK(all_to_all_time(f.catalog(), box, 1, Bytes(1)).time.value() == 0.0);
}

TEST_CASE("a measured table: between, beyond, below, and for other group sizes") {
  const Fixture f;
  NodeSpec node = Fixture::node(FabricKind::kSwitch, 8, 10e9);
  AllReduceTable table;
  table.ranks = 8;
  table.source = "bench";
  table.points = {{Bytes(1e6), Seconds(400e-6)}, {Bytes(3e6), Seconds(800e-6)}};
  node.all_reduce = {table};
  const auto time = [&](int ranks, double bytes) {
    return all_reduce_time(f.catalog(), node, ranks, Bytes(bytes));
  };
  CHECK(close(time(8, 1e6).time.value(), 400e-6));
  CHECK(close(time(8, 3e6).time.value(), 800e-6));
  CHECK(close(time(8, 2e6).time.value(), 600e-6));   // halfway
  CHECK(close(time(8, 6e6).time.value(), 1600e-6));  // at the last point's rate
  CHECK(time(8, 2e6).provenance == Provenance::kMeasured);
  CHECK(time(8, 6e6).provenance == Provenance::kDerived);
  // Below: the ring's bandwidth term, 1.75 / 8e9 s/B, leaves with the payload:
  // 400 us - 0.5e6 x 1.75 / 8e9 = 290.625 us; at 0 B 400 - 218.75 = 181.25 us, above 14 x 2 us.
  CHECK(close(time(8, 0.5e6).time.value(), 290.625e-6));
  CHECK(close(time(8, 0).time.value(), 181.25e-6));
  // Four of eight: latency part 181.25 us x log2(4)/log2(8) = 120.8333 us; the rest of the 800 us,
  // 618.75 us, x 1.5/1.75 = 530.357 us.
  CHECK(close(time(4, 3e6).time.value(), 181.25e-6 * 2 / 3 + 618.75e-6 * 1.5 / 1.75));
  CHECK(time(4, 3e6).provenance == Provenance::kDerived);
  // A lower latency floor binds when the point is faster than the ring could be.
  node.all_reduce[0].points = {{Bytes(1e6), Seconds(100e-6)}};
  CHECK(close(time(8, 0).time.value(), 28e-6));
}

TEST_CASE("the table of the exact group size wins") {
  const Fixture f;
  NodeSpec node = Fixture::node(FabricKind::kSwitch, 8, 10e9);
  for (const int ranks : {8, 2, 4}) {
    AllReduceTable t;
    t.ranks = ranks;
    t.points = {{Bytes(1e6), Seconds(ranks * 100e-6)}};
    node.all_reduce.push_back(t);
  }
  for (const int ranks : {2, 4, 8}) {
    CHECK(
        close(all_reduce_time(f.catalog(), node, ranks, Bytes(1e6)).time.value(), ranks * 100e-6));
  }
  // Three ranks use the next larger table, that of four.
  CHECK(all_reduce_time(f.catalog(), node, 3, Bytes(1e6)).source.find("from 4 to 3") !=
        std::string::npos);
}

TEST_CASE("tables of the wanted launch mode go first") {
  const Fixture f;
  NodeSpec node = Fixture::node(FabricKind::kSwitch, 8, 10e9);
  AllReduceTable captured;
  captured.ranks = 8;
  captured.in_graph = true;
  captured.points = {{Bytes(1e6), Seconds(300e-6)}};
  AllReduceTable launched = captured;
  launched.in_graph = false;
  launched.points = {{Bytes(1e6), Seconds(340e-6)}};
  node.all_reduce = {launched, captured};
  const auto time = [&](bool in_graph) {
    return all_reduce_time(f.catalog(), node, 8, Bytes(1e6), in_graph).time.value();
  };
  CHECK(close(time(true), 300e-6));
  CHECK(close(time(false), 340e-6));
  node.all_reduce = {launched};
  CHECK(close(time(true), 340e-6));  // better than the formula
}

TEST_CASE("what cannot be computed says what is missing") {
  const Fixture f;
  NodeSpec node = Fixture::node(FabricKind::kNone, 2);
  CHECK_THROWS_WITH_AS((void)all_reduce_time(f.catalog(), node, 2, Bytes(1)),
                       doctest::Contains("have no fabric between them"), InputError);
  node = Fixture::node(FabricKind::kSwitch, 2);
  node.fabric_link = "dark";
  CHECK_THROWS_WITH_AS((void)send_time(f.catalog(), node, Bytes(1)),
                       doctest::Contains("the bandwidth of link \"dark\" is unknown"), InputError);
  node.fabric_link = "wier";
  CHECK_THROWS_WITH_AS((void)send_time(f.catalog(), node, Bytes(1)),
                       doctest::Contains("did you mean \"wire\"?"), InputError);
}

TEST_CASE("shipped nodes reproduce the published all-reduce figures") {
  const Catalog catalog({});
  const auto busbw = [&](const char* node, int ranks, double bytes) {
    const double t =
        all_reduce_time(catalog, catalog.node(node), ranks, Bytes(bytes), false).time.value();
    return 2.0 * (ranks - 1) / ranks * bytes / t;
  };
  // stas00/ml-engineering:network/README.md@744d01e, GB/s of bus bandwidth.
  CHECK(busbw("8xA100-SXM-80GB", 8, 0x1p34) == doctest::Approx(234.89e9).epsilon(0.001));
  CHECK(busbw("8xH200-SXM", 8, 0x1p34) == doctest::Approx(482.26e9).epsilon(0.001));
  CHECK(busbw("8xB200-SXM", 8, 0x1p34) == doctest::Approx(845.67e9).epsilon(0.001));
  CHECK(busbw("8xMI300X", 8, 0x1p32) == doctest::Approx(312.9e9).epsilon(0.001));
  CHECK(busbw("8xMI300X", 2, 0x1p32) == doctest::Approx(47.67e9).epsilon(0.001));
  // 4 of 8 on a mesh: three links instead of seven, so about 3/7 of 312.9.
  CHECK(busbw("8xMI300X", 4, 0x1p32) == doctest::Approx(312.9e9 * 3 / 7).epsilon(0.01));
}
