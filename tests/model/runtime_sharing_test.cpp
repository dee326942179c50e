// Replicas that share devices and links: times derived by hand, and that nothing changes where
// nobody contends.
#include <doctest/doctest.h>

#include "tests/support/split_fleet.h"

using namespace medley;
using namespace medley::testing;

namespace {
/// Two textbook servers (10 ms per token) on one device.
Scenario together(SharingSpec::Mode mode) {
  Scenario s = one_pool(1);
  s.nodes[0].type.host_link = "PCIe 5.0 x16";
  PoolSpec& pool = s.pools[0];
  textbook_server(pool, 10e-3);
  pool.num_blocks_override = 1 << 10;
  pool.replicas = 2;
  pool.sharing = {mode, 0.5};
  s.report.interval = Seconds(0.05);
  return s;
}
double latency_of(const RunResult& r, std::size_t i) {
  return (r.requests[i].last_token - r.requests[i].arrival).value();
}
}  // namespace

TEST_CASE("two replicas on one device take turns, alone each has all of it") {
  for (const auto mode : {SharingSpec::Mode::kTimeSlice, SharingSpec::Mode::kMps}) {
    Scenario s = together(mode);
    // Both need the whole device: 10 tokens at 20 ms each. Then one alone, 10 ms per token: 10
    // more.
    s.trace.requests = {request_at(0.0, 1, 10), request_at(0.0, 1, 20)};
    const RunResult r = run(test_catalog(), s);
    CHECK(close(latency_of(r, 0), 0.2, 1e-6));
    CHECK(close(latency_of(r, 1), 0.3, 1e-6));
  }
}

TEST_CASE("fixed slices do not feel each other") {
  Scenario s = together(SharingSpec::Mode::kMig);
  s.trace.requests = {request_at(0.0, 1, 10), request_at(0.0, 1, 20)};
  const RunResult r = run(test_catalog(), s);
  CHECK(close(latency_of(r, 0), 0.1));
  CHECK(close(latency_of(r, 1), 0.2));
}

TEST_CASE("a MIG slice of a memory-bound decode is slower by its fraction") {
  // Roofline, weights dominate: half the bandwidth doubles the step.
  Scenario s = together(SharingSpec::Mode::kMig);
  s.pools[0].step_model = {};
  s.pools[0].replicas = 1;
  s.pools[0].sharing.fraction = 0.25;
  s.trace.requests = {request_at(0.0, 1, 10)};
  const double slice = latency_of(run(test_catalog(), s), 0);
  s.pools[0].sharing = {};
  const double whole = latency_of(run(test_catalog(), s), 0);
  CHECK(slice > 3.9 * whole);
  CHECK(slice < 4.1 * whole);
}

TEST_CASE("steps of shared replicas take what they take alone while nobody else is there") {
  // Prefill and decode of 2 devices each behind one switch: KV crosses the ports that all-reduces
  // use, but here never during a step. Alone, folded and layered agree.
  Scenario s = split_fleet(1e11);
  s.nodes[0].type.devices = 4;
  s.kv_transfer.overlap = KvTransferSpec::Overlap::kNone;
  for (PoolSpec& pool : s.pools) {
    pool.step_model = {};
    pool.tensor_parallel = 2;
    pool.batching.max_num_batched_tokens = 4096;
  }
  for (int i = 0; i < 5; ++i) s.trace.requests.push_back(request_at(i, 100 + 300 * i, 10 + 7 * i));
  s.contention.steps = false;
  const RunResult alone = run(test_catalog(), s);
  s.contention.steps = true;
  const RunResult folded = run(test_catalog(), s);
  s.contention.layered = true;
  const RunResult layered = run(test_catalog(), s);
  for (std::size_t i = 0; i < s.trace.requests.size(); ++i) {
    // Ends of steps are rounded to ticks one by one: 1 ns per step.
    const double slack = 1e-9 * (s.trace.requests[i].output_tokens + 2.0);
    CHECK(std::abs(latency_of(folded, i) - latency_of(alone, i)) <= slack);
    CHECK(std::abs(latency_of(layered, i) - latency_of(alone, i)) <= slack);
  }
}

TEST_CASE("KV on its way slows all-reduces on the same ports, and never speeds them up") {
  // A second prompt's KV (25.6 MB over 10 GB/s ports) crosses while the first request decodes.
  Scenario s = split_fleet(1e10);
  s.nodes[0].type.devices = 4;
  s.kv_transfer.overlap = KvTransferSpec::Overlap::kNone;
  for (PoolSpec& pool : s.pools) {
    pool.step_model = {};
    pool.tensor_parallel = 2;
    pool.batching.max_num_batched_tokens = 1 << 20;
    pool.model.layers[0].ffn_hidden = 4096;
  }
  s.trace.requests = {request_at(0.0, 64, 2000), request_at(0.001, 100000, 3)};
  s.contention.steps = false;
  const RunResult alone = run(test_catalog(), s);
  for (const bool layered : {false, true}) {
    s.contention = {true, layered};
    const RunResult shared = run(test_catalog(), s);
    CHECK(latency_of(shared, 0) > latency_of(alone, 0));
    CHECK(latency_of(shared, 1) >= latency_of(alone, 1) - 1e-9);
    CHECK(shared.finished == 2);
  }
}

TEST_CASE("host work takes turns with a CPU replica's threads, one core among them") {
  // A socket of 4 cores computes 1 s steps with 4 threads. A GPU replica beside it works 100 ms of
  // every step on the host, one thread: 5 threads on 4 cores, each 4/5 of a core. Its host part
  // takes 125 ms, the CPU's step 1/4 longer while the host thread runs.
  Scenario s = one_pool(1);
  NodeSpec& node = s.nodes[0].type;
  node.host_link = "PCIe 5.0 x16";
  node.cpus = 1;
  DeviceSpec cpu = round_device();
  cpu.kind = "cpu";
  cpu.cores = 4;
  s.nodes[0].cpu = cpu;
  NodeGroup host = s.nodes[0];
  host.name = "n.host";
  host.host_of = 0;
  host.device = cpu;
  host.type.devices = 1;
  s.nodes.push_back(host);
  textbook_server(s.pools[0], 0.1);
  s.pools[0].num_blocks_override = 64;
  s.pools.push_back(s.pools[0]);
  s.pools[1].name = "cpu";
  s.pools[1].node_group = 1;
  s.pools[1].model_name = "other";
  s.pools[1].step_model.per_step = Seconds(1.0);
  s.trace.models = {"small", "other"};
  // The GPU replica: no device time to speak of, 100 ms of host work after it.
  s.pools[0].step_model.per_step = Seconds(1e-9);
  BackendSpec& backend = s.pools[0].backend;
  backend.name = "test";
  backend.host_mode = HostMode::kSerial;
  backend.host_per_step = known(Seconds(0.1));
  backend.host_per_sequence = known(Seconds(0));
  s.trace.requests = {request_at(0.0, 1, 4), request_at(0.0, 1, 1)};
  s.trace.requests[1].model = 1;
  const RunResult r = run(test_catalog(), s);
  // Four host parts of 125 ms; the CPU does .8 x 0.5 s meanwhile and the rest alone.
  CHECK(close(latency_of(r, 0), 0.5, 1e-6));
  CHECK(close(latency_of(r, 1), 0.5 + 0.6, 1e-6));
}
