#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "hwmodels/catalog.h"
#include "hwmodels/topology/cluster.h"
#include "sim/core/error.h"
#include "sim/core/rng.h"
#include "tests/support/topologies.h"

using namespace medley;
using namespace medley::testing;

namespace {
/// Shapes of every kind, the odd ones too.
const std::vector<std::string>& shapes() {
  static const std::vector<std::string> all = {
      R"({"kind": "switch", "ports": 7, "link": "InfiniBand NDR"})",
      R"({"kind": "nvswitch", "ports": 8, "link": "NVLink4"})",
      R"({"kind": "mesh", "ports": 8, "link": "xGMI MI300X"})",
      R"({"kind": "ring", "ports": 6, "link": "NVLink3"})",
      R"({"kind": "ring", "ports": 2, "link": "NVLink3"})",
      R"({"kind": "ring", "ports": 5, "wrap": "no", "link": "NVLink3"})",
      R"({"kind": "torus", "dims": [4, 5], "link": "ICI v5e"})",
      R"({"kind": "torus", "dims": [4, 2, 3], "link": "ICI v4"})",
      R"({"kind": "torus", "dims": [3, 4, 2], "wrap": "no", "link": "ICI v4"})",
      R"({"kind": "torus", "dims": [4, 4, 4], "routing": "ecmp", "link": "ICI v4"})",
      R"({"kind": "leaf-spine", "hosts_per_leaf": 4, "leaves": 3, "link": "InfiniBand NDR"})",
      R"({"kind": "leaf-spine", "hosts_per_leaf": 6, "leaves": 4, "oversubscription": 3,
          "parallel": 2, "link": "RoCE 400G"})",
      R"({"kind": "leaf-spine", "hosts_per_leaf": 4, "leaves": 3, "routing": "d-mod-k",
          "link": "InfiniBand NDR"})",
      R"({"kind": "fat-tree", "radix": 4, "link": "InfiniBand HDR"})",
      R"({"kind": "fat-tree", "hosts_per_leaf": 4, "leaves_per_pod": 3, "pods": 3,
          "oversubscription": 2, "core_oversubscription": 1.5, "link": "InfiniBand HDR"})",
      R"({"kind": "rail-optimized", "nodes": 6, "rails": 4, "nodes_per_unit": 3,
          "link": "InfiniBand NDR"})",
      R"({"kind": "pcie-tree", "devices": 8, "sockets": 2, "devices_per_switch": 2,
          "link": "PCIe 5.0 x16", "socket_link": {"link": "xGMI CPU", "count": 3},
          "memory": {"bandwidth": "300 GB/s"}})",
      R"({"kind": "pcie-tree", "devices": 3, "link": "PCIe 4.0 x16"})",
      R"({"kind": "numa", "sockets": 4, "joined": "ring", "socket_link": "UPI 2.0",
          "memory": {"bandwidth": "200 GB/s", "latency": "0.1 us"}})",
      R"({"kind": "cxl-pool", "ports": 4, "modules": 3, "link": "CXL 2.0 x16"})",
      R"({"kind": "wan", "link": "RoCE 100G", "sites": {
            "a": {"nodes": 4},
            "b": {"nodes": 6, "fabric": {"kind": "leaf-spine", "hosts_per_leaf": 3,
                                         "leaves": 3, "link": "RoCE 100G"}},
            "c": {"nodes": 2}},
          "links": [{"from": "a", "to": "b", "bandwidth": "10 GB/s", "latency": "5 ms"},
                    {"from": "b", "to": "c", "bandwidth": "10 GB/s", "latency": "9 ms"}]})",
      R"({"nodes": {"gpu": {"kind": "device", "count": 4}, "left": {"kind": "switch"},
                    "right": {"kind": "switch"}, "top": {"kind": "switch", "count": 2}},
          "links": [{"from": "gpu0", "to": "left", "link": "PCIe 5.0 x16"},
                    {"from": "gpu1", "to": "left", "link": "PCIe 5.0 x16"},
                    {"from": "gpu2", "to": "right", "link": "PCIe 5.0 x16"},
                    {"from": "gpu3", "to": "right", "link": "PCIe 5.0 x16"},
                    {"from": "left", "to": "top*", "link": "PCIe 5.0 x16"},
                    {"from": "right", "to": "top*", "link": "PCIe 5.0 x16"}]})"};
  return all;
}
const char* const kDragonfly = R"({"kind": "dragonfly", "groups": 5, "routers_per_group": 4,
    "hosts_per_router": 2, "globals_per_router": 2, "link": "RoCE 200G"})";
const char* const kFullDragonfly = R"({"kind": "dragonfly", "groups": 9, "routers_per_group": 4,
    "hosts_per_router": 2, "link": "RoCE 200G"})";

void check_path(const Topology& t, const TopologyRoute& r, std::uint32_t from, std::uint32_t to) {
  std::uint32_t at = from;
  double latency = 0.0;
  std::set<std::uint32_t> seen = {from};
  for (const std::uint32_t l : r.links) {
    REQUIRE(l < t.links.size());
    REQUIRE(t.links[l].from == at);
    at = t.links[l].to;
    latency += t.links[l].latency.value();
    REQUIRE(seen.insert(at).second);  // never the same place twice
    if (at != to) REQUIRE(t.vertices[at].forwards);
  }
  REQUIRE(at == to);
  REQUIRE(r.latency.value() == doctest::Approx(latency));
}

/// Connected, right ends, minimal, as long back as there; the same twice.
void check_routes(const Topology& t, const std::vector<std::uint32_t>& ends, bool minimal) {
  TopologyRoute r, back, again;
  std::vector<std::uint32_t> best;
  for (const std::uint32_t a : ends) {
    for (const std::uint32_t b : ends) {
      t.route(a, b, 7, r);
      check_path(t, r, a, b);
      t.route(a, b, 7, again);
      REQUIRE(r.links == again.links);
      t.route(b, a, 99, back);
      REQUIRE(back.links.size() == r.links.size());
      REQUIRE(back.latency.value() == doctest::Approx(r.latency.value()));
      best.clear();
      REQUIRE(search_route(t, a, b, 1, nullptr, best));
      if (minimal) REQUIRE(r.links.size() == best.size());
      double shortest = 0.0;
      for (const std::uint32_t l : best) shortest += t.links[l].latency.value();
      if (minimal) REQUIRE(r.latency.value() == doctest::Approx(shortest));
    }
  }
}

/// Distinct shortest paths between two vertices, counted link by link (parallel cables count).
double count_paths(const Topology& t, std::uint32_t from, std::uint32_t to) {
  std::vector<std::uint32_t> hops(t.vertices.size(), 1000000);
  std::vector<double> paths(t.vertices.size(), 0.0);
  std::vector<std::uint32_t> queue = {to};
  hops[to] = 0;
  paths[to] = 1.0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const std::uint32_t v = queue[i];
    if (v != to && !t.vertices[v].forwards) continue;
    for (const std::uint32_t l : t.out_links(v)) {
      const std::uint32_t u = t.links[l].to;
      if (hops[u] == 1000000) hops[u] = hops[v] + 1, queue.push_back(u);
      if (hops[u] == hops[v] + 1) paths[u] += paths[v];
    }
  }
  return paths[from];
}

std::size_t distinct_routes(const Topology& t, std::uint32_t a, std::uint32_t b, int flows) {
  std::set<std::vector<std::uint32_t>> seen;
  TopologyRoute r;
  for (int f = 0; f < flows; ++f) {
    t.route(a, b, static_cast<std::uint64_t>(f), r);
    seen.insert(r.links);
  }
  return seen.size();
}
}  // namespace

TEST_CASE("routes are connected, minimal, repeatable and as long back as there") {
  const Catalog catalog({});
  for (const std::string& text : shapes()) {
    CAPTURE(text);
    const Topology t = topology_of(catalog, text);
    check_routes(t, t.endpoints, true);
  }
}

TEST_CASE("a dragonfly's routes cross at most one global cable and are else minimal") {
  const Catalog catalog({});
  for (const std::string text : {kDragonfly, kFullDragonfly}) {
    const Topology t = topology_of(catalog, text);
    check_routes(t, t.endpoints, false);
    TopologyRoute r;
    for (const std::uint32_t a : t.endpoints) {
      for (const std::uint32_t b : t.endpoints) {
        t.route(a, b, 3, r);
        int global = 0;
        for (const std::uint32_t l : r.links) {
          const auto group = [&](std::uint32_t v) {
            const std::string& name = t.vertices[v].name;
            return name.substr(0, name.find('.'));
          };
          const bool between = t.vertices[t.links[l].from].kind == VertexKind::kSwitch &&
                               t.vertices[t.links[l].to].kind == VertexKind::kSwitch;
          global += between && group(t.links[l].from) != group(t.links[l].to) ? 1 : 0;
        }
        CHECK(global <= 1);
        CHECK(r.links.size() <= 5);  // port, local, global, local, port
      }
    }
  }
}

TEST_CASE("between parts of any kind of a server or pool routes hold too") {
  const Catalog catalog({});
  for (const std::size_t i : {16U, 18U, 19U, 21U}) {
    const Topology t = topology_of(catalog, shapes()[i]);
    std::vector<std::uint32_t> all;
    for (std::uint32_t v = 0; v < t.vertices.size(); ++v) all.push_back(v);
    CAPTURE(shapes()[i]);
    check_routes(t, all, true);
  }
}

// A leaf-spine of s spines with c parallel cables has s c^2 ways between leaves; a fat tree with a
// aggregation switches and k cores each a k; the middle of an even ring 2.
TEST_CASE("many flows use every way of equal cost") {
  const Catalog catalog({});
  for (const std::size_t i : {3U, 10U, 11U, 13U, 14U, 15U, 21U}) {
    const Topology t = topology_of(catalog, shapes()[i]);
    CAPTURE(shapes()[i]);
    const std::uint32_t a = t.endpoints.front();
    for (const std::uint32_t b : {t.endpoints[t.endpoints.size() / 2], t.endpoints.back()}) {
      const double paths = count_paths(t, a, b);
      CHECK(static_cast<double>(distinct_routes(t, a, b, 4000)) == paths);
    }
  }
}

// d-mod-k on a non-blocking tree: a shift by any constant uses no wire twice, so that every flow
// has a port's full rate.
TEST_CASE("shifts share no wire on a non-blocking fat tree routed by destination") {
  const Catalog catalog({});
  for (const std::string text :
       {R"({"kind": "leaf-spine", "hosts_per_leaf": 6, "leaves": 5, "routing": "d-mod-k",
            "link": "InfiniBand NDR"})",
        R"({"kind": "leaf-spine", "hosts_per_leaf": 8, "leaves": 3, "parallel": 4,
            "routing": "d-mod-k", "link": "InfiniBand NDR"})",
        R"({"kind": "fat-tree", "radix": 8, "routing": "d-mod-k", "link": "InfiniBand NDR"})"}) {
    const Topology t = topology_of(catalog, text);
    CAPTURE(text);
    const std::size_t n = t.endpoints.size();
    TopologyRoute r;
    for (std::size_t shift = 1; shift < n; ++shift) {
      std::vector<int> flows(t.wires.size(), 0);
      int most = 0;
      for (std::size_t i = 0; i < n; ++i) {
        t.route(t.endpoints[i], t.endpoints[(i + shift) % n], i, r);
        for (const std::uint32_t l : r.links) most = std::max(most, ++flows[t.links[l].wire]);
      }
      CHECK(most == 1);
    }
  }
}

TEST_CASE("routes go around what is down, by the next best way, or say that there is none") {
  const Catalog catalog({});
  int around = 0, cut = 0;
  Rng rng(11, "failures");
  for (const std::string& text : shapes()) {
    CAPTURE(text);
    const Topology t = topology_of(catalog, text);
    for (int round = 0; round < 60; ++round) {
      const std::uint32_t a = t.endpoints[rng.below(t.endpoints.size())];
      const std::uint32_t b = t.endpoints[rng.below(t.endpoints.size())];
      LinkFailures failures(t);
      for (std::uint64_t k = rng.below(4); k-- > 0;) {
        failures.set_cable(static_cast<std::uint32_t>(rng.below(t.links.size())), true);
      }
      TopologyRoute r;
      std::vector<std::uint32_t> best;
      const bool any = search_route(t, a, b, 0, &failures, best);
      if (!any) {
        ++cut;
        CHECK_THROWS_AS(t.route(a, b, 5, failures, r), InputError);
        continue;
      }
      t.route(a, b, 5, failures, r);
      ++around;
      check_path(t, r, a, b);
      for (const std::uint32_t l : r.links) REQUIRE_FALSE(failures.down(l));
      REQUIRE(r.links.size() == best.size());
    }
  }
  CHECK(around > 500);
  CHECK(cut > 20);
}

// In clusters a search has the same order of planes: device fabric, inside of the server, network.
TEST_CASE("routes of clusters are those of a search, between parts of any kind") {
  const Catalog catalog({});
  struct Case {
    std::vector<std::pair<std::string, int>> groups;
    std::string fabric;
  };
  const std::vector<Case> cases = {
      {{{"8xH100-SXM", 3}, {"4xL40S", 2}}, "null"},
      {{{"8xMI300X", 2}, {"GB200-NVL72-tray", 3}, {"2xEPYC-9654", 1}},
       R"({"kind": "leaf-spine", "link": "InfiniBand NDR", "hosts_per_leaf": 8})"},
      {{{"8xH100-SXM", 5}}, R"({"kind": "rail-optimized", "link": "RoCE 400G",
                                "nodes_per_unit": 2, "oversubscription": 2})"},
      {{{"8xH100-SXM", 2}}, R"({"kind": "rail-optimized", "link": "RoCE 400G", "spine": "no"})"},
      {{{"TPU-v5p-4", 4}}, R"({"devices": {"kind": "torus", "dims": [4, 4], "link": "ICI v5p"},
                              "network": {"kind": "fat-tree", "radix": 4, "link": "RoCE 200G"}})"},
      {{{"8xL4", 2}, {"1xRTX-4090", 2}},
       R"({"pool": {"kind": "cxl-pool", "modules": 3, "link": "CXL 2.0 x16"},
           "host": {"kind": "pcie-tree", "devices_per_switch": 4, "link": "PCIe 4.0 x16"}})"},
      {{{"4xL40S", 6}}, R"({"kind": "wan", "link": "RoCE 100G",
          "sites": {"x": {"nodes": 2}, "y": {"nodes": 4}},
          "links": [{"from": "x", "to": "y", "bandwidth": "3 GB/s", "latency": "4 ms"}]})"}};
  Rng rng(5, "pairs");
  for (const Case& k : cases) {
    CAPTURE(k.fabric);
    std::vector<ClusterGroup> groups;
    for (const auto& [type, count] : k.groups) {
      groups.push_back({type, &catalog.node(type), count, nullptr, nullptr});
    }
    const ClusterTopology c = build_cluster(catalog, groups, cluster_fabric_of(catalog, k.fabric));
    const Topology& t = c.topology;
    TopologyRoute r, back;
    std::vector<std::uint32_t> best;
    for (int i = 0; i < 1500; ++i) {
      const auto a = static_cast<std::uint32_t>(rng.below(t.vertices.size()));
      const auto b = static_cast<std::uint32_t>(rng.below(t.vertices.size()));
      CAPTURE(t.vertices[a].name);
      CAPTURE(t.vertices[b].name);
      // Nothing but its devices reaches a device fabric's switch.
      if (t.vertices[a].kind == VertexKind::kSwitch || t.vertices[b].kind == VertexKind::kSwitch) {
        continue;
      }
      t.route(a, b, 3, r);
      t.route(b, a, 4, back);
      check_path(t, r, a, b);
      best.clear();
      REQUIRE(search_route(t, a, b, 1, nullptr, best));
      REQUIRE(r.links.size() == best.size());
      REQUIRE(back.links.size() == r.links.size());
      double shortest = 0.0;
      for (const std::uint32_t l : best) shortest += t.links[l].latency.value();
      REQUIRE(r.latency.value() == doctest::Approx(shortest));
    }
  }
}
