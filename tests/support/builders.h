#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "hwmodels/catalog.h"
#include "sim/runtime/simulation.h"
#include "sim/scenario/scenario.h"
#include "workloads/model.h"

namespace medley::testing {

inline bool close(double a, double b, double relative = 1e-9) {
  return std::abs(a - b) <= relative * std::max(std::abs(a), std::abs(b));
}

template <class T>
Sourced<T> known(T value) {
  return {value, Provenance::kAssumed, "test"};
}

/// 100 TFLOP/s bf16, 1 TB/s, 80 GB, perfect efficiency, no launch; 10 W deep idle, 50 W context
/// idle, 100 W active floor, 1 pJ/flop, 100 pJ/B, 1 kW limit.
inline DeviceSpec round_device() {
  DeviceSpec d;
  d.name = "round";
  d.vendor = "test";
  d.kind = "gpu";
  d.file = "test";
  for (const DType t : {DType::kBf16, DType::kFp16}) {
    d.peak[index(t)] = known(FlopsPerSec(100e12));
    d.power.energy_per_flop[index(t)] = known(JoulesPerFlop(1e-12));
  }
  d.memory_capacity = known(Bytes(80e9));
  d.memory_bandwidth = known(BytesPerSec(1e12));
  for (OpEfficiency& e : d.efficiency) {
    for (auto& ramp : e.compute) ramp = known(Ramp{});
    e.memory = known(Ramp{});
  }
  d.launch_stream = known(Seconds(0));
  d.launch_graph = known(Seconds(0));
  d.power.limit = known(Watts(1000));
  d.power.deep_idle = known(Watts(10));
  d.power.context_idle = known(Watts(50));
  d.power.active_floor = known(Watts(100));
  d.power.energy_per_byte = known(JoulesPerByte(100e-12));
  d.power.clock_min = known(0.25);
  d.power.voltage_floor = known(0.5);
  d.rent = known(UsdPerSec(3.6 / 3600.0));
  return d;
}

inline BackendSpec ideal_backend() {
  BackendSpec b;
  b.name = "ideal";
  b.memory_utilization = known(1.0);
  b.weight_dtypes = b.kv_dtypes = {DType::kBf16};
  b.device_kinds = {"gpu"};
  return b;
}

/// 2 layers, hidden 64, 4 heads of 16 (2 KV heads), FFN 128 gated, vocabulary 1000.
inline ModelSpec small_model() {
  ModelSpec m;
  m.name = "small";
  m.family = "decoder";
  m.file = "test";
  m.hidden = 64;
  m.vocab = 1000;
  LayerGroup g;
  g.count = 2;
  g.heads = 4;
  g.kv_heads = 2;
  g.head_dim = g.v_head_dim = 16;
  g.ffn_hidden = 128;
  m.layers = {g};
  return m;
}

/// One pool of `replicas` replicas of `model` on a node big enough for them.
inline Scenario one_pool(int replicas = 1) {
  Scenario s;
  s.name = "test";
  NodeGroup group;
  group.name = "n";
  group.type.name = "node";
  group.type.device = "round";
  group.type.devices = replicas;
  group.type.fabric = FabricKind::kNone;
  group.device = round_device();
  s.nodes = {group};
  PoolSpec pool;
  pool.name = "p";
  pool.model = small_model();
  pool.model_name = "small";
  pool.backend = ideal_backend();
  pool.replicas = replicas;
  pool.memory_utilization = 1.0;
  s.pools = {pool};
  s.routing = {"least_outstanding_requests", {}};
  s.trace.models = {"small"};
  s.trace.classes = {"default"};
  s.trace.tenants = {"default"};
  return s;
}

/// Service of exactly `per_token` per output token, one request at a time: the textbook server.
inline void textbook_server(PoolSpec& pool, double per_token_s) {
  pool.batching.max_num_seqs = 1;
  pool.batching.max_num_batched_tokens = 1 << 20;
  pool.step_model.kind = StepModelKind::kConstant;
  pool.step_model.per_step = Seconds(per_token_s);
}

inline Request request_at(double seconds, std::int32_t input, std::int32_t output) {
  Request r;
  r.arrival = SimTime::from_seconds(Seconds(seconds));
  r.input_tokens = input;
  r.output_tokens = output;
  return r;
}

inline const Catalog& test_catalog() {
  static const Catalog catalog{{}};
  return catalog;
}

}  // namespace medley::testing
