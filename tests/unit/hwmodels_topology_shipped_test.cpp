#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "hwmodels/catalog.h"
#include "hwmodels/topology/cluster.h"
#include "hwmodels/topology/describe.h"
#include "sim/core/text_file.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/topologies.h"

using namespace medley;
using namespace medley::testing;

namespace {
TopologySummary summary_of(const Catalog& catalog, const std::string& name) {
  return summarize(build_topology(catalog, catalog.topology(name)));
}
const std::string kBegin =
    "<!-- kinds: begin (written by the hwmodels tests with MEDLEY_UPDATE=1) -->\n";
const std::string kEnd = "<!-- kinds: end -->";
}  // namespace

TEST_CASE("every shipped topology builds, is sourced, and all of it can talk") {
  const Catalog catalog({});
  std::size_t kinds = 0;
  for (const FabricKindInfo& kind : fabric_kinds()) {
    bool shown = false;
    for (const FabricSpec* f : catalog.topologies()) shown = shown || f->kind == kind.name;
    CAPTURE(kind.name);
    CHECK(shown);
    ++kinds;
  }
  CHECK(kinds == 14);
  for (const FabricSpec* f : catalog.topologies()) {
    CAPTURE(f->name);
    CHECK_FALSE(f->source.empty());
    const Topology t = build_topology(catalog, *f);
    TopologyRoute r;
    for (const std::uint32_t e : t.endpoints) t.route(t.endpoints.front(), e, 1, r);
    for (const TopologyWire& w : t.wires) CHECK(w.bandwidth.value() > 1e6);
  }
}

// Cuts by hand: a ring of 2 x 25 GB/s x .8 is cut twice; a 4x4x4 torus has 2 x 16 cables of
// 50 x .8 through its middle; a mesh of 8 has 4 x 4 cables of 64 x .698 between halves; a
// leaf-spine of 2:1 half of what its ports can send.
TEST_CASE("bisection, diameter and oversubscription are those of the textbook") {
  const Catalog catalog({});
  const TopologySummary ring = summary_of(catalog, "V100-ring");
  CHECK(ring.bisection.value() == doctest::Approx(2 * 2 * 25e9 * 0.8));
  CHECK(ring.diameter == 4);
  const TopologySummary torus = summary_of(catalog, "TPU-v4-cube");
  CHECK(torus.bisection.value() == doctest::Approx(32 * 50e9 * 0.8));
  CHECK(torus.diameter == 6);
  const TopologySummary mesh = summary_of(catalog, "MI300X-mesh");
  CHECK(mesh.bisection.value() == doctest::Approx(16 * 64e9 * 0.698));
  CHECK(mesh.diameter == 1);
  CHECK(mesh.cables[0].count == 28);
  const TopologySummary spine = summary_of(catalog, "RoCE-leaf-spine-2to1");
  CHECK(spine.oversubscription == doctest::Approx(2.0));
  CHECK(spine.diameter == 4);
  CHECK(summary_of(catalog, "Fat-tree-HDR-1024").oversubscription == doctest::Approx(1.0));
  CHECK(summary_of(catalog, "DGX-H100-SuperPOD").oversubscription == doctest::Approx(1.0));
  // Servers: their devices' own fabric, 4 x 450 x .836 between halves of eight H100.
  const TopologySummary server =
      summarize(build_node(catalog, catalog.node("8xH100-SXM")).topology);
  CHECK(server.bisection.value() == doctest::Approx(4 * 450e9 * 0.836));
  CHECK(server.oversubscription == doctest::Approx(1.0));
  // One root port of 31.5 x .81 GB/s for the four devices of a socket.
  CHECK(summary_of(catalog, "PCIe-8xL40S").bisection.value() == doctest::Approx(31.5e9 * 0.81));
  // The longest dimension is cut also where it is not the last one.
  const TopologySummary slab = summarize(topology_of(
      catalog, R"({"kind": "torus", "dims": [8, 2], "link": {"bandwidth": "1 GB/s"}})"));
  CHECK(slab.bisection.value() == doctest::Approx(4e9));
}

TEST_CASE("drawings name every part once") {
  const Catalog catalog({});
  const Topology t = build_topology(catalog, catalog.topology("PCIe-8xL40S"));
  const std::string text = draw_text(t);
  CHECK(text.find("pcie0 (switch)\n  -- socket0") != std::string::npos);
  CHECK(text.find("device0, device1, device2, device3  [PCIe 4.0 x16") != std::string::npos);
  const std::string dot = draw_dot(t, "a \"box\"");
  CHECK(dot.starts_with("graph \"a \\\"box\\\"\" {\n"));
  std::size_t edges = 0;
  for (std::size_t at = 0; (at = dot.find(" -- ", at)) != std::string::npos; ++at) ++edges;
  CHECK(edges == t.links.size() / 2);
}

TEST_CASE("Graphviz reads every drawing") {
  if (std::system("dot -V >/dev/null 2>&1") != 0) {  // NOLINT: our own command
    MESSAGE("skipped: Graphviz is not installed");
    return;
  }
  const Catalog catalog({});
  const ScratchDirectory scratch;
  for (const FabricSpec* f : catalog.topologies()) {
    const std::string path = scratch.write("t.dot", draw_dot(build_topology(catalog, *f), f->name));
    CAPTURE(f->name);
    const std::string command = "dot -Tcanon '" + path + "' >/dev/null 2>&1";
    CHECK(std::system(command.c_str()) == 0);  // NOLINT
  }
}

TEST_CASE("a topology of one's own is found by name, and its numbers need sources") {
  const ScratchDirectory scratch;
  const std::string good = R"({"schema": "medley.topology/1", "name": "My net",
      "sources": {"plan": "our cabling plan"}, "class": "datasheet", "source": "plan",
      "kind": "leaf-spine", "hosts_per_leaf": 4, "leaves": 2,
      "link": {"bandwidth": "9 GB/s", "latency": "2 us", "class": "measured", "source": "plan"}})";
  std::filesystem::create_directories(scratch.path() + "/topologies");
  scratch.write("topologies/my-net.json", good);
  const Catalog catalog({scratch.path()});
  const Topology t = build_topology(catalog, catalog.topology("my NET"));
  CHECK(t.endpoints.size() == 8);
  CHECK(t.wires[0].provenance == Provenance::kMeasured);
  std::string bad = good;
  bad.replace(bad.find(R"(, "class": "measured", "source": "plan")"), 39, "");
  scratch.write("topologies/my-net.json", bad);
  CHECK_THROWS(Catalog({scratch.path()}).topology("my net"));
}

TEST_CASE("hwmodels/README.md holds the kinds as they are") {
  const std::string path = std::string(MEDLEY_SOURCE_DIR) + "/hwmodels/README.md";
  const std::string text = read_file(path);
  const std::size_t begin = text.find(kBegin), end = text.find(kEnd);
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  const std::size_t from = begin + kBegin.size();
  if (std::getenv("MEDLEY_UPDATE") != nullptr) {
    write_file(path, text.substr(0, from) + fabric_kinds_markdown() + text.substr(end));
    MESSAGE("hwmodels/README.md rewritten");
    return;
  }
  INFO("run the tests once with MEDLEY_UPDATE=1 to rewrite it");
  CHECK(text.substr(from, end - from) == fabric_kinds_markdown());
}
