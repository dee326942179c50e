// Work outside the range of its kernel model, on the round device: 100 TFLOP/s, 1 TB/s, 1 pJ/flop,
// 100 pJ/B, perfect efficiency, no launch.
#include <doctest/doctest.h>

#include <cmath>

#include "sim/cost/kernel_tables.h"
#include "tests/support/builders.h"
#include "tests/support/scratch_directory.h"

using namespace medley;
using namespace medley::testing;

namespace {
constexpr double kSingle = 1e-6;  // shares are added in single precision

StepModelInput ranged_input(double low, double high) {
  StepModelInput in;
  in.model = small_model();
  in.device = round_device();
  Ramp& ramp = *in.device.efficiency[index(OpClass::kGemm)].memory.value;
  ramp.low = low;
  ramp.high = high;
  in.backend = ideal_backend();
  in.backend.name = "test";
  in.node.devices = 1;
  return in;
}
Features one_decode(const StepModel& model, std::int64_t context) {
  FeatureBuilder b(model.context());
  b.add_decode(context);
  return b.features();
}

/// A profile folder: dense layers at 1 and 100 tokens, attention over 1 and 8 decodes, KV 16 to
/// 1024, chunks 0 and 512.
void write_profile(const ScratchDirectory& dir) {
  std::string dense = "layer,tokens,time_us\n";
  for (const char* layer : {"layernorm", "qkv_proj", "rotary_emb", "o_proj", "gate_up_proj",
                            "act_fn", "down_proj", "embedding", "final_layernorm"}) {
    for (const char* point : {",1,1\n", ",100,2\n"}) dense += layer + std::string(point);
  }
  dir.write("dense.csv", dense);
  dir.write("per_sequence.csv",
            "layer,sequences,time_us\nlm_head,1,1\nlm_head,8,2\nsampler,1,1\nsampler,8,2\n");
  std::string attention = "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n";
  for (const char* n : {"1", "8"}) {
    for (const char* kv : {"16", "1024"}) {
      attention += "0,0," + std::string(n) + "," + kv + ",5\n";
      attention += "512,0," + std::string(n) + "," + kv + ",9\n";
    }
  }
  dir.write("attention.csv", attention);
}
}  // namespace

TEST_CASE("the share of a decode step outside a ramp's range, by hand") {
  // GEMM bytes of one decode (see cost_step_test): qkv 64 x 128 x 2 + (64 + 128) x 2 = 16,768;
  // o 64 x 64 x 2 + 128 x 2 = 8,448; gate and up 64 x 256 x 2 + (64 + 256) x 2 = 33,408;
  // down 128 x 64 x 2 + (128 + 64) x 2 = 16,768; head 64 x 1000 x 2 + (64 + 1000) x 2 = 130,128.
  // A ramp fitted to 10 to 100 kB has seen qkv, gate and up, down (all times 2 layers): outside are
  // o (2 x 8,448 B) and the head (130,128 B), at 1 TB/s 16.896 + 130.128 = 147.024 ns.
  const StepModel model(test_catalog(), ranged_input(10e3, 100e3));
  const Features x = one_decode(model, 10);
  const StepCost cost = model.step(x, 10.0);
  CHECK(close(cost.extrapolated.time * cost.device_s, 147.024e-9, kSingle));
  // Energy: bytes x 100 pJ + flops x 1 pJ; o 2 x 2 x 64 x 64, head 2 x 64 x 1000 flops.
  CHECK(close(cost.extrapolated.energy * cost.dynamic_j,
              147024 * 100e-12 + (16384.0 + 128000.0) * 1e-12, kSingle));
  for (const OpCost& op : model.explain(x, 10.0)) {
    CAPTURE(op.name);
    const bool gemm = op.op_class == OpClass::kGemm;
    const bool out = op.name == "o_proj" || op.name == "lm_head";
    CHECK(op.range == (!gemm ? "" : out ? "outside" : "inside"));
  }
}

TEST_CASE("no range, nothing extrapolated; a decode batch tells what its first step does") {
  const StepModel plain(test_catalog(), ranged_input(0.0, HUGE_VAL));
  CHECK(plain.step(one_decode(plain, 10), 10.0).extrapolated.time == 0.0);
  const StepModel ranged(test_catalog(), ranged_input(10e3, 100e3));
  const Features x = one_decode(ranged, 10);
  const StepCost step = ranged.step(x, 10.0);
  const DecodeBatch batch = ranged.decode_batch(x, 10.0, 0.0);
  CHECK(batch.extrapolated().time == step.extrapolated.time);
  CHECK(batch.extrapolated().energy == step.extrapolated.energy);
  CHECK(step.extrapolated.time > 0.0);
}

TEST_CASE("kernel tables know their grid on every axis") {
  const ScratchDirectory dir;
  write_profile(dir);
  const KernelTables t = KernelTables::load(dir.path());
  CHECK(t.dense_inside(1));
  CHECK(t.dense_inside(100));
  CHECK_FALSE(t.dense_inside(101));
  CHECK(t.per_sequence_inside(0));
  CHECK(t.per_sequence_inside(8));
  CHECK_FALSE(t.per_sequence_inside(9));
  CHECK(t.attention_inside(0, 0, 4, 500));
  CHECK(t.attention_inside(100, 0, 4, 500));  // between chunks 0 and 512
  CHECK_FALSE(t.attention_inside(600, 0, 4, 500));
  CHECK_FALSE(t.attention_inside(0, 0, 9, 500));
  CHECK_FALSE(t.attention_inside(0, 0, 4, 1025));
  CHECK_FALSE(t.attention_inside(0, 0, 4, 15));
  CHECK(t.attention_inside(0, 7, 4, 500));  // one prior only: it does not depend on it
}

TEST_CASE("a step from tables counts the parts outside their grid, by hand") {
  // One decode of 2,000 tokens, 2 layers. Dense at 1 token: 2 (2 + 6) + 2 = 18 us; sequence 2 us;
  // attention beyond KV 1,024 is flat at 5 us a layer: 10 of 30 us are outside.
  const ScratchDirectory dir;
  write_profile(dir);
  StepModelInput in = ranged_input(0.0, HUGE_VAL);
  in.spec.kind = StepModelKind::kTables;
  in.spec.tables_directory = dir.path();
  const StepModel model(test_catalog(), in);
  const StepCost outside = model.step(one_decode(model, 2000), 2000.0);
  CHECK(close(outside.device_s, 30e-6));
  CHECK(close(outside.extrapolated.time, 1.0 / 3.0));
  CHECK(close(outside.extrapolated.energy, 1.0 / 3.0));
  CHECK(model.step(one_decode(model, 1000), 1000.0).extrapolated.time == 0.0);
}

TEST_CASE("a factor on the step's form scales its times, and never beats the data sheet") {
  // Every ramp at half its rate: a factor of 1.25 takes 1.25 times as long.
  for (const auto kind :
       {StepModelKind::kRoofline, StepModelKind::kTables, StepModelKind::kConstant}) {
    CAPTURE(static_cast<int>(kind));
    const ScratchDirectory dir;
    write_profile(dir);
    StepModelInput in = ranged_input(0.0, HUGE_VAL);
    for (OpEfficiency& e : in.device.efficiency) {
      for (auto& r : e.compute) r.value->fraction = 0.5;
      e.memory.value->fraction = 0.5;
    }
    in.device.launch_stream = in.device.launch_graph = known(Seconds(1e-6));
    in.spec.kind = kind;
    in.spec.tables_directory = dir.path();
    in.spec.per_step = Seconds(1e-3);
    in.spec.per_sequence = Seconds(1e-4);
    const StepModel nominal(test_catalog(), in);
    in.spec.time_factor = 1.25;
    const StepModel slower(test_catalog(), in);
    in.spec.time_factor = 0.01;
    const StepModel fast(test_catalog(), in);
    const Features x = one_decode(nominal, 300);
    const double t = nominal.step(x, 300.0).device_s;
    CHECK(close(slower.step(x, 300.0).device_s, 1.25 * t));
    const DecodeBatch batch = slower.decode_batch(x, 300.0, 0.0);
    CHECK(close(batch.at(7).busy_s, 1.25 * nominal.decode_batch(x, 300.0, 0.0).at(7).busy_s));
    CHECK(close(batch.line(0).slope.busy_s,
                1.25 * nominal.decode_batch(x, 300.0, 0.0).line(0).slope.busy_s, 1e-9));
    if (kind != StepModelKind::kRoofline) continue;
    double roofline = 0.0;
    for (const OpCost& op : fast.explain(x, 300.0)) {
      roofline += op.repeats * std::max(op.flops / 100e12, op.bytes / 1e12);
    }
    CHECK(fast.step(x, 300.0).device_s >= roofline);
  }
}
