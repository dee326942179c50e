// Step costs by hand, on the round device: 100 TFLOP/s, 1 TB/s, perfect efficiency, no launch.
#include <doctest/doctest.h>

#include <cmath>

#include "sim/core/error.h"
#include "tests/support/builders.h"

using namespace medley;
using namespace medley::testing;

namespace {

StepModelInput input_of(const DeviceSpec& device, const BackendSpec& backend = ideal_backend()) {
  StepModelInput in;
  in.model = small_model();
  in.device = device;
  in.backend = backend;
  in.node.name = "node";
  in.node.devices = 1;
  return in;
}

Features decodes(const StepModel& model, std::vector<std::int64_t> contexts) {
  FeatureBuilder b(model.context());
  for (const std::int64_t c : contexts) b.add_decode(c);
  return b.features();
}
Features chunk(const StepModel& model, std::int64_t tokens, std::int64_t prior = 0) {
  FeatureBuilder b(model.context());
  b.add_chunk({tokens, prior, true});
  return b.features();
}

}  // namespace

TEST_CASE("explain's rows add up to the step, and each is its roofline") {
  const StepModel model(test_catalog(), input_of(round_device()));
  for (const Features& x : {decodes(model, {100, 200, 300}), chunk(model, 700, 50)}) {
    const double longest = at(x, Feature::kDecodes) > 0 ? 300.0 : 0.0;
    double sum = 0.0, flops = 0.0;
    for (const OpCost& op : model.explain(x, longest)) {
      CAPTURE(op.name);
      CHECK(close(op.time_s, op.repeats * std::max(op.compute_s, op.memory_s), 1e-12));
      CHECK(close(op.memory_s, op.bytes / 1e12, 1e-12));
      if (op.compute_s > 0.0) CHECK(close(op.compute_s, op.flops / 100e12, 1e-12));
      sum += op.time_s;
      flops += op.repeats * op.flops;
    }
    const StepCost cost = model.step(x, longest);
    CHECK(close(cost.device_s, sum, 1e-12));
    CHECK(close(cost.flops, flops, 1e-12));
    CHECK(cost.step_s == cost.device_s);
  }
}

TEST_CASE("qkv projection of one decode by hand") {
  // hidden 64 -> (4 + 2 * 2) heads of 16 = 128 columns: weights 64 * 128 * 2 B = 16,384 B, and 64 +
  // 128 activations of 2 B in and out = 384 B; flops 2 * 64 * 128 = 16,384. Memory bound: 16,768 B
  // at 1 TB/s.
  const StepModel model(test_catalog(), input_of(round_device()));
  bool found = false;
  for (const OpCost& op : model.explain(decodes(model, {10}), 10.0)) {
    if (op.name != "qkv_proj") continue;
    found = true;
    CHECK(op.repeats == 2);
    CHECK(op.flops == 16384.0);
    CHECK(op.bytes == 16768.0);
    CHECK(op.bound == "memory");
    CHECK(close(op.time_s, 2 * 16768e-12));
  }
  CHECK(found);
}

TEST_CASE("host overhead: serial adds, overlapped takes the slower") {
  BackendSpec b = ideal_backend();
  b.name = "test";
  b.decode_skew = known(0.0);
  b.host_per_step = known(Seconds(1e-3));
  b.host_per_sequence = known(Seconds(1e-4));
  b.host_mode = HostMode::kSerial;
  const StepModel serial(test_catalog(), input_of(round_device(), b));
  b.host_mode = HostMode::kOverlapped;
  const StepModel overlapped(test_catalog(), input_of(round_device(), b));
  const Features x = decodes(serial, {10, 10});
  const StepCost s = serial.step(x, 10), o = overlapped.step(x, 10);
  CHECK(close(s.step_s, s.device_s + 1.2e-3));
  CHECK(close(o.step_s, 1.2e-3));  // the device needs far less
}

// Work that nothing hides comes on top in both modes; a step outside a captured graph waits for the
// issue of its kernels, one inside does not.
TEST_CASE("host work that cannot be hidden, and kernels issued one by one") {
  BackendSpec b = ideal_backend();
  b.name = "test";
  b.decode_skew = known(0.0);
  b.sync_per_step = known(Seconds(2e-3));
  b.sync_per_sequence = known(Seconds(5e-4));
  b.host_mode = HostMode::kOverlapped;
  const StepModel synced(test_catalog(), input_of(round_device(), b));
  const Features x = decodes(synced, {10, 10});
  const StepCost s = synced.step(x, 10);
  CHECK(close(s.step_s, s.device_s + 2e-3 + 2 * 5e-4));

  b.host_per_kernel = known(Seconds(1e-3));
  b.host_mode = HostMode::kSerial;
  const StepModel eager(test_catalog(), input_of(round_device(), b));
  double kernels = 0.0;
  for (const OpCost& op : eager.explain(x, 10)) kernels += op.repeats;
  const StepCost e = eager.step(x, 10);
  CHECK(close(e.host_floor_s, 1e-3 * kernels));  // far more than the device needs
  CHECK(close(e.step_s, 1e-3 * kernels + 3e-3));
  b.graph_capture = true;
  b.graph_max_sequences = 2;
  const StepModel captured(test_catalog(), input_of(round_device(), b));
  CHECK(close(captured.step(x, 10).step_s, captured.step(x, 10).device_s + 3e-3));
  // Three sequences are more than the graph was captured for; a decode batch says the same.
  const Features more = decodes(captured, {10, 10, 10});
  CHECK(captured.step(more, 10).host_floor_s > 0.0);
  const DecodeBatch batch = captured.decode_batch(more, 10.0, 0.0);
  CHECK(close(batch.at(0.0).step_s, captured.step(more, 10).step_s));
}

TEST_CASE("skew of KV lengths lengthens decode attention by alpha (n max - sum)") {
  BackendSpec b = ideal_backend();
  b.name = "test";
  b.decode_skew = known(0.1);
  const StepModel skewed(test_catalog(), input_of(round_device(), b));
  b.decode_skew = known(0.0);
  const StepModel plain(test_catalog(), input_of(round_device(), b));
  const Features even = decodes(plain, {500, 500}), uneven = decodes(plain, {100, 900});
  CHECK(close(skewed.step(even, 500).step_s, plain.step(even, 500).step_s, 1e-12));
  // n max - sum = 2 * 900 - 1000 = 800 tokens more, a tenth of them: like a context of 1,080.
  const Features longer = decodes(plain, {180, 900});
  CHECK(close(skewed.step(uneven, 900).step_s, plain.step(longer, 900).step_s, 1e-12));
  // Work and energy are those of the real contexts.
  CHECK(close(skewed.step(uneven, 900).dynamic_j, plain.step(uneven, 900).dynamic_j, 1e-12));
}

TEST_CASE("a binding power limit slows compute-bound work and spares memory-bound work") {
  DeviceSpec d = round_device();
  const StepModel free(test_catalog(), input_of(d));
  const Features prefill = chunk(free, 4096);
  const Features decode = decodes(free, {4000});
  const auto watts = [&](const StepCost& c) { return 100.0 + c.dynamic_j / c.device_s; };
  const double prefill_w = watts(free.step(prefill, 0.0));
  const double decode_w = watts(free.step(decode, 4000.0));
  CAPTURE(prefill_w);
  CAPTURE(decode_w);
  double before = 0.0;
  for (const double limit : {1000.0, 220.0, 200.0, 180.0, 150.0}) {
    CAPTURE(limit);
    d.power.limit = known(Watts(limit));
    const StepModel capped(test_catalog(), input_of(d));
    for (const Features* x : {&prefill, &decode}) {
      const double longest = x == &decode ? 4000.0 : 0.0;
      const StepCost c = capped.step(*x, longest);
      CHECK(watts(c) <= limit * (1.0 + 1e-9));
      CHECK(c.device_s >= free.step(*x, longest).device_s * (1.0 - 1e-12));
      CHECK(c.clock <= 1.0);
      CHECK(c.clock >= 0.25);
    }
    const double now = capped.step(prefill, 0.0).device_s;
    CHECK(now >= before);  // a lower limit is never faster
    before = now;
  }
  d.power.limit = known(Watts(90));
  CHECK_THROWS_AS(StepModel(test_catalog(), input_of(d)), InfeasibleError);
}

TEST_CASE("a decode batch stepped j tokens equals the step of the batch j tokens later") {
  DeviceSpec d = round_device();
  d.memory_bandwidth = known(BytesPerSec(1e9));
  for (const double limit : {1000.0, 100.5, 100.05}) {
    CAPTURE(limit);
    d.power.limit = known(Watts(limit));
    BackendSpec b = ideal_backend();
    b.name = "test";
    b.decode_skew = known(0.05);
    b.host_per_step = known(Seconds(2e-4));
    b.host_mode = HostMode::kOverlapped;
    const StepModel model(test_catalog(), input_of(d, b));
    const DecodeBatch batch = model.decode_batch(decodes(model, {30, 80, 200}), 200.0, 0.0);
    for (std::int64_t j = 0; j < 400; j += 37) {
      CAPTURE(j);
      const StepCost c = model.step_at_clock(decodes(model, {30 + j, 80 + j, 200 + j}),
                                             200.0 + static_cast<double>(j), batch.clock());
      const DecodePoint p = batch.at(static_cast<double>(j));
      CHECK(close(p.step_s, c.step_s, 1e-11));
      CHECK(close(p.dynamic_j, c.dynamic_j, 1e-11));
      CHECK(close(p.flops, c.flops, 1e-11));
      CHECK(close(p.bytes, c.bytes, 1e-11));
      // And the straight piece starting here holds as long as it says.
      const DecodeLine line = batch.line(static_cast<double>(j));
      const std::int64_t last = std::min<std::int64_t>(line.steps - 1, 100000);
      CHECK(close(line.first.step_s + line.slope.step_s * static_cast<double>(last),
                  batch.at(static_cast<double>(j + last)).step_s, 1e-10));
    }
  }
}

TEST_CASE("law: time and energy never fall as a batch grows") {
  const StepModel model(test_catalog(), input_of(round_device()));
  double time = 0.0, energy = 0.0;
  std::vector<std::int64_t> contexts;
  for (int n = 1; n <= 300; ++n) {
    contexts.push_back(1 + (n * 37) % 500);
    const StepCost c = model.step(decodes(model, contexts), 500.0);
    CHECK(c.step_s >= time);
    CHECK(c.dynamic_j >= energy);
    time = c.step_s;
    energy = c.dynamic_j;
  }
  time = 0.0;
  for (int n = 1; n <= 20000; n += 997) {
    const StepCost c = model.step(chunk(model, n, 100), 0.0);
    CHECK(c.step_s >= time);
    time = c.step_s;
  }
}

TEST_CASE("memory: Llama-3.1-8B on exactly 24 GiB gives 3,400 blocks at .9 and 2,588 at .833919") {
  // 0.9 * 24 GiB = 23,192,823,398 B; weights 16,060,522,496 B (8,030,261,248 parameters in bf16);
  // a block of 16 tokens is 2,097,152 B: (23,192,823,398 - 16,060,522,496) / 2,097,152 = 3,400.9.
  StepModelInput in = input_of(round_device());
  in.model = ModelZoo({shipped_data_directory() + "/workloads/zoo"}).find("llama-3.1-8b");
  in.device.memory_capacity = known(Bytes(24.0 * 1073741824.0));
  MemoryAccount a = memory_account(in, 0.9, 2048, 16, 256, 0);
  CHECK(a.kv_bytes_per_token == 131072.0);
  CHECK(a.weights.value() == 16060522496.0);
  CHECK(a.blocks == 3400);
  CHECK(a.concurrent(2048) == 3400 / 128);
  CHECK(memory_account(in, 0.833919, 2048, 16, 256, 0).blocks == 2588);
  CHECK(memory_account(in, 0.9, 2048, 16, 256, 100).blocks == 100);
  in.device.memory_capacity = known(Bytes(8e9));
  CHECK_THROWS_AS(memory_account(in, 0.9, 2048, 16, 256, 0), InfeasibleError);
}

TEST_CASE("an unknown rate that the run needs is an error naming the field") {
  DeviceSpec d = round_device();
  d.memory_bandwidth = {};
  CHECK_THROWS_WITH_AS(StepModel(test_catalog(), input_of(d)),
                       doctest::Contains("memory.bandwidth"), InputError);
  d = round_device();
  d.peak = {};
  CHECK_THROWS_WITH_AS(StepModel(test_catalog(), input_of(d)), doctest::Contains("peak.bf16"),
                       InputError);
  // Unknown power never stops a timing run.
  d = round_device();
  d.power.energy_per_byte = {};
  const StepModel model(test_catalog(), input_of(d));
  CHECK_FALSE(model.power().dynamic_known);
  CHECK(model.power().missing == std::vector<std::string>{"power.energy_per_byte"});
}
