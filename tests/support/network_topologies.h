#pragma once

#include <cstdint>
#include <string>

#include "hwmodels/topology/topology.h"

namespace medley::test {

inline std::uint32_t add_vertex(Topology& t, const std::string& name, VertexKind kind,
                                std::uint32_t node = TopologyVertex::kNone) {
  TopologyVertex v;
  v.name = name;
  v.kind = kind;
  v.node = node;
  v.forwards = kind == VertexKind::kSwitch;
  t.vertices.push_back(v);
  return static_cast<std::uint32_t>(t.vertices.size() - 1);
}

/// Full duplex; returns the first wire (a -> b), the next is b -> a.
inline std::uint32_t add_cable(Topology& t, std::uint32_t a, std::uint32_t b, double bandwidth,
                               double latency, LinkPlane plane = LinkPlane::kFabric) {
  const auto wire = static_cast<std::uint32_t>(t.wires.size());
  for (const bool back : {false, true}) {
    TopologyWire w;
    w.name = t.vertices[back ? b : a].name + " > " + t.vertices[back ? a : b].name;
    w.bandwidth = BytesPerSec(bandwidth);
    t.wires.push_back(w);
    t.links.push_back(
        {back ? b : a, back ? a : b, back ? wire + 1 : wire, Seconds(latency), plane});
  }
  return wire;
}

/// n devices 0..n-1 on one switch (vertex n): a message crosses two wires of `bandwidth`, with
/// `latency` in all. Wires 2 i (up) and 2 i + 1 (down) are device i's.
inline Topology star(std::uint32_t n, double bandwidth, double latency) {
  Topology t;
  for (std::uint32_t i = 0; i < n; ++i) {
    add_vertex(t, "d" + std::to_string(i), VertexKind::kDevice);
    t.endpoints.push_back(i);
  }
  const std::uint32_t hub = add_vertex(t, "switch", VertexKind::kSwitch);
  for (std::uint32_t i = 0; i < n; ++i) add_cable(t, i, hub, bandwidth, latency / 2.0);
  t.finish();
  return t;
}

/// `servers` of `group` devices: a switch inside each, and one switch that all devices hang on by
/// a port of their own. Devices come first, server by server.
inline Topology rails(std::uint32_t servers, std::uint32_t group, double inner_bandwidth,
                      double inner_latency, double bandwidth, double latency) {
  Topology t;
  for (std::uint32_t i = 0; i < servers * group; ++i) {
    add_vertex(t, "d" + std::to_string(i), VertexKind::kDevice, i / group);
    t.endpoints.push_back(i);
  }
  for (std::uint32_t s = 0; s < servers; ++s) {
    const std::uint32_t hub = add_vertex(t, "inner" + std::to_string(s), VertexKind::kSwitch, s);
    for (std::uint32_t i = 0; i < group; ++i) {
      add_cable(t, s * group + i, hub, inner_bandwidth, inner_latency / 2.0);
    }
  }
  const std::uint32_t net = add_vertex(t, "net", VertexKind::kSwitch);
  for (std::uint32_t i = 0; i < servers * group; ++i) {
    add_cable(t, i, net, bandwidth, latency / 2.0, LinkPlane::kNetwork);
  }
  t.finish();
  return t;
}

}  // namespace medley::test
