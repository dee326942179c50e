// What limits a fleet: scenarios in which one resource does, with gains known beforehand.
#include <doctest/doctest.h>

#include "sim/report/bottlenecks.h"
#include "tests/support/split_fleet.h"

using namespace medley;
using namespace medley::testing;

namespace {
/// One server, a backlog from the first second on: throughput is capacity.
Scenario backlog(int input, int output) {
  Scenario s = one_pool(1);
  s.nodes[0].device.memory_bandwidth = known(BytesPerSec(1e9));
  s.nodes[0].device.power = {};
  s.pools[0].num_blocks_override = 1 << 16;
  s.pools[0].batching.max_num_seqs = 8;
  s.report.interval = Seconds(0);
  for (int i = 0; i < 40; ++i) s.trace.requests.push_back(request_at(0.0, input, output));
  return s;
}
Bottlenecks limits_of(const Scenario& s, int threads = 1) {
  const RunResult r = run(test_catalog(), s);
  BottleneckOptions options;
  options.threads = threads;
  return find_bottlenecks(test_catalog(), Analysis(s, r), options);
}
const Bottleneck& row_of_resource(const Bottlenecks& b, FleetResource resource) {
  for (const Bottleneck& row : b.rows) {
    if (row.resource == resource) return row;
  }
  throw std::runtime_error("no such row");
}
}  // namespace

TEST_CASE("decoding bound by memory: 10 % more bandwidth is 10 % more tokens") {
  // Arithmetic of 100 TFLOP/s beside 1 GB/s: every kernel waits for memory.
  const Bottlenecks b = limits_of(backlog(16, 400));
  REQUIRE(b.rows.front().resource == FleetResource::kMemoryBandwidth);
  CHECK(close(b.rows.front().rate_gain, 0.1, 1e-4));
  CHECK(close(b.rows.front().tpot_p50_gain, 0.1, 1e-4));
  CHECK(std::abs(row_of_resource(b, FleetResource::kArithmetic).rate_gain) < 1e-9);
  CHECK(bottleneck_verdict(b).starts_with("limited by memory bandwidth (+10.0 %"));
}

TEST_CASE("prompts bound by arithmetic: 10 % more of it is 10 % more") {
  // 1 GFLOP/s beside 1 TB/s: matrix work and attention wait for arithmetic, the rest is nothing.
  Scenario s = backlog(800, 1);
  s.nodes[0].device.memory_bandwidth = known(BytesPerSec(1e12));
  for (auto& p : s.nodes[0].device.peak) {
    if (p.known()) p = known(FlopsPerSec(1e9));
  }
  const Bottlenecks b = limits_of(s);
  REQUIRE(b.rows.front().resource == FleetResource::kArithmetic);
  CHECK(close(b.rows.front().rate_gain, 0.1, 1e-3));
  CHECK(std::abs(row_of_resource(b, FleetResource::kMemoryBandwidth).rate_gain) < 1e-3);
}

TEST_CASE("host work that nothing hides: 10 % faster is 10 % more tokens") {
  // 100 ms of host per step beside microseconds of device.
  Scenario s = backlog(16, 50);
  s.nodes[0].device.memory_bandwidth = known(BytesPerSec(1e12));
  BackendSpec& backend = s.pools[0].backend;
  backend.name = "test";
  backend.host_mode = HostMode::kSerial;
  backend.host_per_step = known(Seconds(0.1));
  backend.host_per_sequence = known(Seconds(0));
  const Bottlenecks b = limits_of(s);
  REQUIRE(b.rows.front().resource == FleetResource::kHostSpeed);
  CHECK(close(b.rows.front().rate_gain, 0.1, 1e-3));
}

TEST_CASE("too few KV blocks: more memory admits more sequences at once") {
  // Steps of 10 ms whatever the batch. A request needs 20 blocks (312 tokens, 319 in the end) for 8
  // steps: 5 at a time in 109 blocks, 40 in 8 rounds; 6 in 120 blocks, 40 in 7 rounds.
  Scenario s = backlog(312, 8);
  s.pools[0].step_model.kind = StepModelKind::kConstant;
  s.pools[0].step_model.per_step = Seconds(10e-3);
  s.pools[0].batching.max_num_seqs = 64;
  s.pools[0].num_blocks_override = 109;
  const Bottlenecks b = limits_of(s);
  REQUIRE(b.rows.front().resource == FleetResource::kMemoryCapacity);
  CHECK(close(b.rows.front().rate_gain, 8.0 / 7.0 - 1.0, 1e-6));
  CHECK(row_of_resource(b, FleetResource::kArithmetic).rate_gain == 0.0);
}

TEST_CASE("light load: nothing gains any rate, and the verdict says so") {
  Scenario s = backlog(16, 100);
  for (std::size_t i = 0; i < s.trace.requests.size(); ++i) {
    s.trace.requests[i].arrival = SimTime::from_seconds(Seconds(100.0 * static_cast<double>(i)));
  }
  const Bottlenecks b = limits_of(s);
  CHECK(bottleneck_verdict(b).starts_with("nothing gains more than 1 %"));
  CHECK(bottleneck_verdict(b).find("latencies gain most from memory bandwidth") !=
        std::string::npos);
  CHECK(close(row_of_resource(b, FleetResource::kMemoryBandwidth).tpot_p50_gain, 0.1, 1e-4));
}

TEST_CASE("more replicas bring their nodes, and threads change nothing") {
  const Scenario s = backlog(16, 400);
  const Bottlenecks one = limits_of(s, 1), three = limits_of(s, 3);
  const Bottleneck& more = row_of_resource(one, FleetResource::kReplicas);
  CHECK(more.change == 1.0);    // one more beside one
  CHECK(more.rate_gain > 0.5);  // 40 requests in batches of 8: not all of 100 %
  REQUIRE(one.rows.size() == three.rows.size());
  for (std::size_t i = 0; i < one.rows.size(); ++i) {
    CHECK(one.rows[i].resource == three.rows[i].resource);
    CHECK(one.rows[i].speed.output_throughput == three.rows[i].speed.output_throughput);
  }
}

TEST_CASE("a slow wire between prefill and decode: the network row is absent, links speed TTFT") {
  // One server: no network between servers. 256 kB of KV at 100 kB/s: 2.56 of 3.58 s of TTFT.
  Scenario s = split_fleet(1e5);
  s.kv_transfer.overlap = KvTransferSpec::Overlap::kNone;
  s.trace.requests = {request_at(0.0, 1000, 5)};
  const Bottlenecks b = limits_of(s);
  for (const Bottleneck& row : b.rows) CHECK(row.resource != FleetResource::kNetwork);
  const double before = 1.01 + 2.56 + 0.01, after = 1.01 + 2.56 / 1.1 + 0.01;
  CHECK(close(row_of_resource(b, FleetResource::kDeviceLinks).ttft_p50_gain, before / after - 1.0,
              1e-4));
}
