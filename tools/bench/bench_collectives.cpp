// Collectives over many devices: wall time, memory and simulated time. Prints a table; gates
// nothing.
//
//   ring            1 GiB all-reduce around n devices on a ring of 50 GB/s links of 500 ns
//   ring, 4 pieces  the same in 4 pieces, pipelined: 4 times the messages
//   others          on a switch of the same links, and on a 3-level fat tree of 1,024 hosts, where
//                   flows of equal routes collide (the formula knows loads of one step only)
// Peak memory is the process's so far.

#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <ctime>
#include <string>

#include "hwmodels/catalog.h"
#include "hwmodels/topology/fabric.h"
#include "sim/network/choose.h"
#include "sim/network/collective_runner.h"

namespace {

using namespace medley;

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

void add_device(Topology& t, VertexKind kind) {
  TopologyVertex v;
  v.name = fmt::format("v{}", t.vertices.size());
  v.kind = kind;
  v.forwards = true;
  t.vertices.push_back(v);
}

void add_link(Topology& t, std::uint32_t a, std::uint32_t b, double latency) {
  for (const bool back : {false, true}) {
    const auto wire = static_cast<std::uint32_t>(t.wires.size());
    TopologyWire w;
    w.bandwidth = BytesPerSec(50e9);
    t.wires.push_back(w);
    t.links.push_back({back ? b : a, back ? a : b, wire, Seconds(latency), LinkPlane::kFabric});
  }
}

Topology ring_of(std::uint32_t n) {
  Topology t;
  for (std::uint32_t i = 0; i < n; ++i) add_device(t, VertexKind::kDevice);
  for (std::uint32_t i = 0; i < n; ++i) add_link(t, i, (i + 1) % n, 500e-9);
  t.finish();
  return t;
}

Topology star_of(std::uint32_t n) {
  Topology t;
  for (std::uint32_t i = 0; i < n; ++i) add_device(t, VertexKind::kDevice);
  add_device(t, VertexKind::kSwitch);
  for (std::uint32_t i = 0; i < n; ++i) add_link(t, i, n, 250e-9);
  t.finish();
  return t;
}

void measure(const char* what, const Topology& topology, std::uint32_t n, CollectiveKind kind,
             const std::string& algorithm, std::uint32_t chunks) {
  CollectiveCall call;
  call.shape.kind = kind;
  call.shape.bytes = 1073741824.0;
  call.shape.chunks = chunks;
  call.shape.window = 16;
  call.algorithm = algorithm;
  for (std::uint32_t i = 0; i < n; ++i) {
    call.members.push_back(topology.endpoints.empty() ? i : topology.endpoints[i]);
  }
  const Network idle(topology);
  const CollectivePlan plan = plan_collective(idle, call);
  const auto program = plan.algorithm->make(plan.shape);
  double messages = 0.0;
  for (std::uint32_t l = 0; l < program->lanes(); ++l) messages += program->lane(l).messages;
  const double begin = cpu_seconds();
  const double time = run_alone(topology, call);
  const double took = cpu_seconds() - begin;
  fmt::print("{:<28} {:>6} {:>10.0f} {:>9.3f} {:>9.0f} {:>8.1f} {:>14.9f} {:>12.1e}\n", what, n,
             messages, took, 1e9 * took / messages, peak_megabytes(), time,
             time / plan.estimate_s - 1.0);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"collectives over many devices"};
  std::uint32_t devices = 1024;
  app.add_option("--devices", devices, "of the largest ring")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  fmt::print("{:<28} {:>6} {:>10} {:>9} {:>9} {:>8} {:>14} {:>12}\n", "collective, 1 GiB", "n",
             "messages", "cpu s", "ns/msg", "MB", "simulated s", "vs formula");
  const Topology ring = ring_of(devices);
  measure("all_reduce ring", ring, devices, CollectiveKind::kAllReduce, "ring", 1);
  measure("all_reduce ring, 4 pieces", ring, devices, CollectiveKind::kAllReduce, "ring", 4);
  const Topology star = star_of(devices);
  measure("all_reduce double_tree", star, devices, CollectiveKind::kAllReduce, "double_tree", 64);
  measure("all_reduce halving_doubling", star, devices, CollectiveKind::kAllReduce,
          "halving_doubling", 1);
  const Topology small = star_of(256);
  measure("all_to_all direct", small, 256, CollectiveKind::kAllToAll, "direct", 1);
  measure("all_reduce two_shot", small, 256, CollectiveKind::kAllReduce, "two_shot", 1);
  const Catalog catalog({});
  const Topology tree = build_topology(catalog, catalog.topology("fat-tree-hdr-1024"));
  measure("ring on a fat tree", tree, 1024, CollectiveKind::kAllReduce, "ring", 1);
  measure("halving on a fat tree", tree, 1024, CollectiveKind::kAllReduce, "halving_doubling", 1);
  return 0;
}
