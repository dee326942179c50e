#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "sim/cost/roofline.h"
#include "sim/runtime/records.h"
#include "sim/scenario/validate.h"
#include "tests/support/builders.h"

namespace medley::testing {

/// A run of 10 s written down by hand: 2 nodes of 2 devices, 3 replicas, one spare device.
/// Replica 0 draws 150 W in [0, 4) s, everything else 50 W (context idle); the spare draws 10 W.
///   A: arrives 0, admitted 0.5, first token 1, last 3, 5 tokens, 400 J
///   B: arrives 1, admitted 1,   first token 2, last 10, 3 tokens, 200 J
///   C: arrives 5, rejected
struct HandRun {
  Scenario scenario;
  RunResult result;
};

inline SimTime at_s(double seconds) {
  return SimTime::from_seconds(Seconds(seconds));
}

inline RequestRecord finished_request(double arrival, double scheduled, double first, double last,
                                      std::int32_t out, double joules) {
  RequestRecord r;
  r.arrival = at_s(arrival);
  r.scheduled = at_s(scheduled);
  r.first_token = at_s(first);
  r.last_token = at_s(last);
  r.output_tokens = out;
  r.pool = 0;
  r.status = RequestStatus::kFinished;
  r.energy_j = joules;
  return r;
}

inline HandRun hand_run() {
  HandRun run;
  Scenario& s = run.scenario;
  s = one_pool(3);
  s.file = "configs/test.json";
  s.hash8 = "00000000";
  NodeGroup& group = s.nodes[0];
  group.count = 2;
  group.type.devices = 2;
  group.type.overhead = known(Watts(100));
  group.type.psu_efficiency = known(0.8);
  s.price.energy = UsdPerJoule(1e-7);
  s.price.carbon_g_per_joule = 1e-4;
  s.price.pue = 1.25;
  s.slo["default"].ttft = Seconds(1.0);
  s.trace.requests = {request_at(0, 100, 5), request_at(1, 200, 3), request_at(5, 300, 7)};
  for (std::uint32_t i = 0; i < 3; ++i) s.trace.requests[i].row = i;

  RunResult& r = run.result;
  r.end = at_s(10);
  r.requests = {finished_request(0, 0.5, 1, 3, 5, 400), finished_request(1, 1, 2, 10, 3, 200), {}};
  r.requests[2].arrival = at_s(5);
  r.requests[2].status = RequestStatus::kRejectedNeverFits;
  r.arrived = 3, r.finished = 2, r.rejected = 1;
  r.pools.resize(1);
  r.pools[0].power = replica_power(step_model_input(s, s.pools[0]));
  r.pools[0].memory.block_size = 16;
  r.pools[0].memory.blocks = 100;
  r.pools[0].itl.add(0.5, 4);
  r.pools[0].itl.add(4.0, 2);
  for (std::uint32_t i = 0; i < 3; ++i) {
    ReplicaRecord replica;
    replica.replica = i;
    replica.node = i / 2;
    replica.first_device = i % 2;
    replica.blocks = 100;
    replica.idle_energy_j = i == 0 ? 300 : 500;
    r.replicas.push_back(replica);
  }
  ReplicaRecord& busy = r.replicas[0];
  busy.busy_s = 4;
  busy.active_energy_j = busy.attributed_j = 600;
  busy.extra_energy_j = {100, 100, 100, 100};
  busy.flops = 100e12;  // a quarter of 4 s at 100 TFLOP/s
  busy.bytes = 2e12;    // half of 4 s at 1 TB/s
  busy.peak_blocks = 40;
  busy.extrapolated_s = 0.5;
  busy.extrapolated_j = 60;
  busy.trust_s[static_cast<std::size_t>(Provenance::kMeasured)] = 3;
  busy.trust_s[static_cast<std::size_t>(Provenance::kAssumed)] = 1;
  for (int t = 0; t <= 10; t += 5) {
    PoolSample sample;
    sample.time = at_s(t);
    sample.running = t == 5 ? 1 : 0;
    sample.kv_usage = t == 5 ? 0.25 : 0.0;
    sample.prompt_tokens = t >= 5 ? 300 : 0;
    sample.output_tokens = t == 0 ? 0 : t == 5 ? 6 : 8;
    r.samples.push_back(sample);
  }
  return run;
}

inline std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace medley::testing
