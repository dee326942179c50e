#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "hwmodels/catalog.h"
#include "hwmodels/topology/cluster.h"
#include "sim/core/error.h"
#include "tests/support/topologies.h"

using namespace medley;
using namespace medley::testing;

namespace {
ClusterTopology cluster_of(const Catalog& catalog, const std::string& type, int count,
                           const std::string& fabric = "null") {
  return build_cluster(catalog, {{"g", &catalog.node(type), count, nullptr, nullptr}},
                       cluster_fabric_of(catalog, fabric));
}

std::string path_text(const Topology& t, const TopologyRoute& r) {
  std::string text;
  for (const std::uint32_t l : r.links) {
    if (text.empty()) text = t.vertices[t.links[l].from].name;
    text += " > " + t.vertices[t.links[l].to].name;
  }
  return text;
}
std::string path_between(const ClusterTopology& c, std::uint32_t a, std::uint32_t b,
                         std::uint64_t flow = 1) {
  TopologyRoute r;
  c.topology.route(a, b, flow, r);
  return path_text(c.topology, r);
}
double rate(const ClusterTopology& c, std::uint32_t a, std::uint32_t b) {
  TopologyRoute r;
  c.topology.route(a, b, 1, r);
  return c.topology.bottleneck(r).value();
}

void check_problem(const std::string& type, int count, const std::string& fabric,
                   const std::string& pointer, const std::string& message) {
  const Catalog catalog({});
  CAPTURE(fabric);
  try {
    cluster_of(catalog, type, count, fabric);
    FAIL_CHECK("accepted");
  } catch (const InputError& error) {
    const Problem& p = error.problems().front();
    CHECK(p.pointer == pointer);
    CHECK((p.message + " (" + p.hint + ")").find(message) != std::string::npos);
  }
}
}  // namespace

TEST_CASE("H100 servers: NVSwitch inside, own NICs over the switch, PCIe to the host") {
  const Catalog catalog({});
  const ClusterTopology c = cluster_of(catalog, "8xH100-SXM", 2);
  CHECK(path_between(c, c.device(0, 0, 0), c.device(0, 0, 5)) ==
        "g/0/device0 > g/0/nvswitch > g/0/device5");
  CHECK(path_between(c, c.device(0, 0, 3), c.device(0, 1, 3)) ==
        "g/0/device3 > g/0/pcie3 > g/0/nic3 > net/switch > g/1/nic3 > g/1/pcie3 > g/1/device3");
  CHECK(path_between(c, c.memory(0, 0, 1), c.device(0, 0, 0)) ==
        "g/0/dram1 > g/0/socket1 > g/0/socket0 > g/0/pcie0 > g/0/device0");
  CHECK(path_between(c, c.storage(0, 0), c.device(0, 0, 0)) ==
        "g/0/nvme0 > g/0/socket0 > g/0/pcie0 > g/0/device0");
  CHECK(c.host(0, 0, c.socket_of(0, 7)) == c.host(0, 0, 1));
  // NVLink4 450 GB/s x .836; 400 GB/s over 8 NICs x .9; PCIe 5.0 63 GB/s x .875.
  CHECK(rate(c, c.device(0, 0, 0), c.device(0, 0, 5)) == doctest::Approx(376.2e9));
  CHECK(rate(c, c.device(0, 0, 0), c.device(0, 1, 0)) == doctest::Approx(45e9));
  CHECK(rate(c, c.host(0, 0), c.device(0, 0, 0)) == doctest::Approx(55.125e9));
  // The link's latency holds end to end: half at each device.
  TopologyRoute r;
  c.topology.route(c.device(0, 0, 0), c.device(0, 0, 5), 1, r);
  CHECK(r.latency.value() == doctest::Approx(2.5e-6));
  CHECK(c.topology.endpoints.size() == 16);
  CHECK(c.topology.notes.empty());
}

TEST_CASE("devices without a fabric of their own talk over root ports and sockets") {
  const Catalog catalog({});
  const ClusterTopology c = cluster_of(catalog, "8xL40S", 1);
  CHECK(path_between(c, c.device(0, 0, 0), c.device(0, 0, 1)) ==
        "g/0/device0 > g/0/socket0 > g/0/device1");
  CHECK(path_between(c, c.device(0, 0, 0), c.device(0, 0, 7)) ==
        "g/0/device0 > g/0/socket0 > g/0/socket1 > g/0/device7");
}

TEST_CASE("a mesh gives a pair one link; a torus forwards") {
  const Catalog catalog({});
  const ClusterTopology mesh = cluster_of(catalog, "8xMI300X", 1);
  CHECK(path_between(mesh, mesh.device(0, 0, 1), mesh.device(0, 0, 6)) ==
        "g/0/device1 > g/0/device6");
  CHECK(rate(mesh, mesh.device(0, 0, 1), mesh.device(0, 0, 6)) == doctest::Approx(64e9 * 0.698));
  const ClusterTopology torus = cluster_of(catalog, "TPU-v5e-8", 1);  // 4 x 2
  CHECK(path_between(torus, torus.device(0, 0, 0), torus.device(0, 0, 7)) ==
        "g/0/device0 > g/0/device3 > g/0/device7");
}

TEST_CASE("trays share one NVLink domain of 72, the next rack has its own") {
  const Catalog catalog({});
  const ClusterTopology c = cluster_of(catalog, "GB200-NVL72-tray", 20);
  CHECK(path_between(c, c.device(0, 0, 0), c.device(0, 17, 3)) ==
        "g/0/device0 > g/domain0/nvswitch > g/17/device3");
  CHECK(path_between(c, c.device(0, 18, 0), c.device(0, 19, 1)) ==
        "g/18/device0 > g/domain1/nvswitch > g/19/device1");
  CHECK(path_between(c, c.device(0, 17, 0), c.device(0, 18, 0)).find("net/switch") !=
        std::string::npos);
  CHECK(c.groups[0].domain == 72);
}

TEST_CASE("a TPU slice is one torus over its hosts") {
  const Catalog catalog({});
  const ClusterTopology c = cluster_of(
      catalog, "TPU-v5p-4", 16, R"({"kind": "torus", "dims": [4, 4, 4], "link": "ICI v5p"})");
  // Chip 0 to chip 2 (same row, half way round): two hops either way, over another host never.
  TopologyRoute r;
  c.topology.route(c.device(0, 0, 0), c.device(0, 0, 2), 1, r);
  CHECK(r.links.size() == 2);
  c.topology.route(c.device(0, 0, 0), c.device(0, 15, 3), 1, r);  // (3,3,3): one hop each
  CHECK(r.links.size() == 3);
  for (const std::uint32_t l : r.links) CHECK(c.topology.links[l].plane == LinkPlane::kFabric);
}

TEST_CASE("rails keep NIC i to leaf i; other rails over the spine or the receiver's inside") {
  const Catalog catalog({});
  const std::string fabric = R"({"kind": "rail-optimized", "link": "InfiniBand NDR",
                                 "nodes_per_unit": 2})";
  const ClusterTopology c = cluster_of(catalog, "8xH100-SXM", 4, fabric);
  CHECK(path_between(c, c.device(0, 0, 2), c.device(0, 1, 2)).find("net/leaf0.rail2 > g/1/nic2") !=
        std::string::npos);
  CHECK(path_between(c, c.device(0, 0, 2), c.device(0, 2, 2)).find("net/spine") !=
        std::string::npos);
  // Without spines the way to another rail crosses the inside of a server.
  const ClusterTopology only =
      cluster_of(catalog, "8xH100-SXM", 2,
                 R"({"kind": "rail-optimized", "link": "InfiniBand NDR", "spine": "no"})");
  const std::string path = path_between(only, only.device(0, 0, 0), only.device(0, 1, 7));
  CHECK(path.find("socket") != std::string::npos);
}

TEST_CASE("a CXL pool hangs on the sockets") {
  const Catalog catalog({});
  const ClusterTopology c = cluster_of(
      catalog, "4xL40S", 2, R"({"kind": "cxl-pool", "modules": 4, "link": "CXL 2.0 x16"})");
  REQUIRE(c.pool.size() == 4);
  CHECK(path_between(c, c.device(0, 1, 3), c.pool[2]) ==
        "g/1/device3 > g/1/socket1 > pool/cxl-switch > pool/pool2");
  CHECK(path_between(c, c.pool[2], c.device(0, 1, 3)) ==
        "pool/pool2 > pool/cxl-switch > g/1/socket1 > g/1/device3");
  // Servers do not talk through the pool.
  CHECK(path_between(c, c.device(0, 0, 0), c.device(0, 1, 0)).find("net/") != std::string::npos);
  const ClusterTopology direct =
      cluster_of(catalog, "1xL4", 2,
                 R"({"kind": "cxl-pool", "modules": 2, "switch": "no", "link": "CXL 2.0 x16"})");
  CHECK(path_between(direct, direct.device(0, 1, 0), direct.pool[1]) ==
        "g/1/device0 > g/1/socket0 > pool/pool1");
}

TEST_CASE("an explicit list joins named servers") {
  const Catalog catalog({});
  const ClusterTopology c = cluster_of(catalog, "4xL40S", 3, R"({
    "nodes": {"a": {"kind": "switch"}, "b": {"kind": "switch"}},
    "links": [{"from": "g/0", "to": "a", "link": "RoCE 100G"},
              {"from": "g/1/nic0", "to": "a", "link": "RoCE 100G"},
              {"from": "g/2", "to": "b", "link": "RoCE 100G"},
              {"from": "a", "to": "b", "bandwidth": "5 GB/s", "latency": "3 us"}]})");
  CHECK(path_between(c, c.nic(0, 0), c.nic(0, 2)) == "g/0/nic0 > net/a > net/b > g/2/nic0");
  CHECK(rate(c, c.nic(0, 0), c.nic(0, 2)) == doctest::Approx(5e9));
  CHECK(rate(c, c.nic(0, 0), c.nic(0, 1)) == doctest::Approx(12.5e9 * 0.92));
}

TEST_CASE("a half-duplex cable is one wire for both directions") {
  const Catalog catalog({});
  for (const bool half : {false, true}) {
    const Topology t = topology_of(
        catalog, std::string(R"({"kind": "switch", "ports": 3, "link": {"bandwidth": "1 GB/s",
                 "duplex": ")") +
                     (half ? "half" : "full") + "\"}}");
    CHECK(t.wires.size() == (half ? 3U : 6U));
    TopologyRoute there, back;
    t.route(t.endpoints[0], t.endpoints[1], 1, there);
    t.route(t.endpoints[1], t.endpoints[0], 1, back);
    CHECK((t.links[there.links[0]].wire == t.links[back.links[1]].wire) == half);
  }
}

TEST_CASE("CPU servers talk over their sockets and reach DRAM") {
  const Catalog catalog({});
  const ClusterTopology c = cluster_of(catalog, "2xEPYC-9654", 1);
  CHECK(path_between(c, c.device(0, 0, 0), c.device(0, 0, 1)) ==
        "g/0/device0 > g/0/socket0 > g/0/socket1 > g/0/device1");
  CHECK(path_between(c, c.device(0, 0, 0), c.memory(0, 0, 0)) ==
        "g/0/device0 > g/0/socket0 > g/0/dram0");
}

TEST_CASE("every shipped node type builds, alone and in a cluster, and all its devices meet") {
  const Catalog catalog({});
  for (const NodeSpec* node : catalog.nodes()) {
    CAPTURE(node->name);
    const ClusterTopology c =
        build_cluster(catalog, {{"g", node, 2, nullptr, nullptr}}, ClusterFabricSpec());
    TopologyRoute r;
    const auto& ends = c.topology.endpoints;
    for (const std::uint32_t b : ends) {
      c.topology.route(ends.front(), b, 1, r);
      if (b != ends.front()) CHECK(c.topology.bottleneck(r).value() > 1e6);
      c.topology.route(b, c.memory(0, 1), 1, r);
      c.topology.route(c.storage(0, 0), b, 1, r);
    }
  }
}

TEST_CASE("what does not fit the cluster is said with its pointer") {
  check_problem("8xH100-SXM", 4, R"("superpod")", "/cluster/fabric", "unknown topology");
  check_problem("8xH100-SXM", 4, R"({"kind": "leaf-spin", "link": "InfiniBand NDR"})",
                "/cluster/fabric/kind", "leaf-spine");
  check_problem("8xH100-SXM", 4, R"({"kind": "leaf-spine", "lnk": "InfiniBand NDR"})",
                "/cluster/fabric/lnk", "did you mean \"link\"");
  check_problem("8xH100-SXM", 4, R"({"kind": "leaf-spine", "link": "Infiniband NRD"})",
                "/cluster/fabric/link", "InfiniBand NDR");
  check_problem("TPU-v5p-4", 4, R"({"kind": "torus", "dims": [4, 4, 4], "link": "ICI v5p"})",
                "/cluster/fabric", "does not fit");
  check_problem("8xH100-SXM", 4,
                R"({"kind": "leaf-spine", "leaves": 1, "hosts_per_leaf": 8, "link": "RoCE 400G"})",
                "/cluster/fabric/hosts_per_leaf", "32 ports");
  check_problem("8xH100-SXM", 3, R"({"network": {"kind": "mesh", "link": "NVLink4"}})",
                "/cluster/fabric/network", "has no place here");
  check_problem(
      "8xH100-SXM", 3,
      R"({"nodes": {"a": {}}, "links": [{"from": "h/0", "to": "a", "link": "RoCE 100G"}]})",
      "/cluster/fabric/links/0/from", "there is no \"h/0\"");
  check_problem("8xH100-SXM", 3,
                R"({"kind": "wan", "link": "RoCE 100G", "sites": {"a": {"nodes": 2},
                "b": {"nodes": 2}}, "links": [{"from": "a", "to": "b", "bandwidth": "1 GB/s"}]})",
                "/cluster/fabric/sites", "4 servers, the cluster 3");
  check_problem("8xH100-SXM", 3, "7", "/cluster/fabric", "expected the name of a topology");
}

TEST_CASE("all problems of a structure are told at once") {
  const Catalog catalog({});
  try {
    fabric_of(R"({"kind": "dragonfly", "groups": 0, "links": 3, "link": 7,
                  "local_latency": "1 GB"})");
    FAIL("accepted");
  } catch (const InputError& error) {
    CHECK(error.problems().size() == 4);
  }
}
