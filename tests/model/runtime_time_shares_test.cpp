// Where the time of a request went: shares derived by hand, and that they add up to its latency.
#include <doctest/doctest.h>

#include "sim/scenario/validate.h"
#include "tests/support/split_fleet.h"

using namespace medley;
using namespace medley::testing;

namespace {
double e2e_of(const RunResult& r, std::size_t i) {
  return (r.requests[i].last_token - r.requests[i].arrival).value();
}
double sum_of(const RunResult& r, std::size_t i) {
  double sum = (r.requests[i].scheduled - r.requests[i].arrival).value();
  for (const double part : r.requests[i].time.seconds) sum += part;
  return sum;
}
/// One server with arithmetic of 10 flops per byte of bandwidth.
Scenario ridge_of_ten() {
  Scenario s = one_pool(1);
  for (auto& p : s.nodes[0].device.peak) {
    if (p.known()) p = known(FlopsPerSec(1e13));
  }
  s.nodes[0].device.power = {};
  s.pools[0].num_blocks_override = 1 << 12;
  s.pools[0].batching.max_num_batched_tokens = 1 << 14;
  s.report.interval = Seconds(0);
  return s;
}
}  // namespace

TEST_CASE("a prompt's time is split by what bounds its kernels, as explain has them") {
  Scenario s = ridge_of_ten();
  s.trace.requests = {request_at(0.0, 4000, 1)};
  const RunResult r = run(test_catalog(), s);
  const StepModel model(test_catalog(), step_model_input(s, s.pools[0]));
  FeatureBuilder batch(model.context());
  batch.add_chunk({4000, 0, true});
  double compute = 0.0, memory = 0.0;
  for (const OpCost& op : model.explain(batch.features(), 0.0)) {
    (op.bound == "compute" ? compute : memory) += op.time_s;
  }
  CHECK(compute > memory);
  CHECK(memory > 0.0);
  CHECK(close(r.requests[0].time[TimeShares::kCompute], compute));
  CHECK(close(r.requests[0].time[TimeShares::kMemory], memory));
}

TEST_CASE("decode steps of one sequence are bound by memory: their time is all there") {
  // A token has less than 10 flops per byte in every kernel (weights 1, attention 2).
  Scenario s = ridge_of_ten();
  s.trace.requests = {request_at(0.0, 4000, 1)};
  const RunResult one = run(test_catalog(), s);
  s.trace.requests[0].output_tokens = 201;
  const RunResult many = run(test_catalog(), s);
  const double decode_s = e2e_of(many, 0) - e2e_of(one, 0);
  CHECK(std::abs(many.requests[0].time[TimeShares::kMemory] -
                 one.requests[0].time[TimeShares::kMemory] - decode_s) < 2e-9);
  CHECK(close(many.requests[0].time[TimeShares::kCompute],
              one.requests[0].time[TimeShares::kCompute]));
}

TEST_CASE("host work that nothing hides, and the front end, are host time") {
  // 3 ms after each of 10 steps, 20 ms once.
  Scenario s = ridge_of_ten();
  BackendSpec& b = s.pools[0].backend;
  b.name = "test";
  b.host_mode = HostMode::kSerial;
  b.host_per_step = known(Seconds(3e-3));
  b.host_per_sequence = known(Seconds(0));
  b.request_overhead = known(Seconds(20e-3));
  s.trace.requests = {request_at(0.0, 100, 10)};
  const RunResult r = run(test_catalog(), s);
  CHECK(close(r.requests[0].time[TimeShares::kHost], 10 * 3e-3 + 20e-3));
  CHECK(std::abs(sum_of(r, 0) - e2e_of(r, 0)) < 2e-9);
}

TEST_CASE("taking turns on a device is contention, and the device tells who waited") {
  // 10 ms of work per token. Both there: 10 tokens of 20 ms each, half of it waiting. Then one
  // alone.
  Scenario s = one_pool(1);
  s.nodes[0].type.host_link = "PCIe 5.0 x16";
  textbook_server(s.pools[0], 10e-3);
  s.pools[0].num_blocks_override = 1 << 10;
  s.pools[0].replicas = 2;
  s.pools[0].sharing = {SharingSpec::Mode::kTimeSlice, 0.5};
  s.report.interval = Seconds(0);
  s.trace.requests = {request_at(0.0, 1, 10), request_at(0.0, 1, 20)};
  const RunResult r = run(test_catalog(), s);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(close(r.requests[i].time[TimeShares::kContention], 0.1, 1e-6));
    CHECK(close(r.requests[i].time[TimeShares::kCompute], i == 0 ? 0.1 : 0.2, 1e-6));
    CHECK(close(r.replicas[i].waited_device_s, 0.1, 1e-6));
    CHECK(r.replicas[i].waited_link_s == 0.0);
  }
  REQUIRE(r.links.size() == 1);
  const LinkRecord& device = r.links[0];
  CHECK(device.kind == LinkRecord::Kind::kDeviceTime);
  CHECK(close(device.bytes, 0.3, 1e-6));  // 30 steps of 10 ms, the device never idle
  CHECK(close(device.saturated_s, 0.3, 1e-6));
  const TrafficWaits& kernels = device.waits[static_cast<std::size_t>(TrafficKind::kKernels)];
  CHECK(kernels.count == 20);
  CHECK(close(kernels.seconds, 0.2, 1e-6));
  CHECK(close(device.waited_s(), kernels.seconds));
}

TEST_CASE("batches in a pipeline wait for their turn: the parts still add up") {
  Scenario s = ridge_of_ten();
  s.nodes[0].type.devices = 2;
  s.nodes[0].type.fabric = FabricKind::kSwitch;
  s.nodes[0].type.fabric_link = "NVLink4";
  s.pools[0].pipeline_parallel = 2;
  for (int i = 0; i < 12; ++i) s.trace.requests.push_back(request_at(i * 1e-4, 900 + i, 40 + i));
  const RunResult r = run(test_catalog(), s);
  double stalled = 0.0;
  for (std::size_t i = 0; i < r.requests.size(); ++i) {
    REQUIRE(r.requests[i].status == RequestStatus::kFinished);
    // Steps of a pipeline end on ticks.
    CHECK(std::abs(sum_of(r, i) - e2e_of(r, i)) < 1e-9 * (r.requests[i].output_tokens + 2));
    stalled += r.requests[i].time[TimeShares::kStall];
  }
  CHECK(stalled > 0.0);
}

TEST_CASE("two prompts' KV over one port: each waits as long as the other flows") {
  // 256 kB each at 1 MB/s, together from the end of one prefill step on: .512 s instead of .256.
  Scenario s = split_fleet(1e6);
  s.kv_transfer.overlap = KvTransferSpec::Overlap::kNone;
  s.trace.requests = {request_at(0.0, 1000, 5), request_at(0.0, 1000, 5)};
  const RunResult r = run(test_catalog(), s);
  REQUIRE(r.links.size() == 2);  // out of one device, into the other
  double kv = 0.0, waited = 0.0;
  std::int64_t waits = 0;
  for (const LinkRecord& link : r.links) {
    CHECK(link.kind == LinkRecord::Kind::kWire);
    CHECK(close(link.bytes, 2 * 256e3));
    CHECK(close(link.busy_s, 0.512, 1e-6));
    CHECK(close(link.saturated_s, 0.512, 1e-6));
    waits += link.waits[static_cast<std::size_t>(TrafficKind::kKvTransfer)].count;
    kv += link.waits[static_cast<std::size_t>(TrafficKind::kKvTransfer)].seconds;
    waited += link.waited_s();
  }
  CHECK(waits == 2);
  CHECK(close(kv, 0.512, 1e-6));
  CHECK(close(waited, kv));
}
