#pragma once

#include "tests/support/builders.h"

namespace medley::testing {

/// One node of two devices behind a switch of `bandwidth` per device: device 0 prefills, device 1
/// decodes. Constant steps: 1 ms per prompt token, 10 ms per sequence. KV of the small model: 2
/// layers x 2 (K, V) x 2 heads x 16 x 2 B = 256 B per token.
inline Scenario split_fleet(double bandwidth) {
  Scenario s = one_pool(2);
  NodeSpec& node = s.nodes[0].type;
  node.fabric = FabricKind::kSwitch;
  node.fabric_link = "NVLink4";
  LinkSpec link;
  link.name = "NVLink4";
  link.bandwidth = known(BytesPerSec(bandwidth));
  link.achieved = known(1.0);
  link.latency = known(Seconds(1e-6));
  node.resolved_link = link;
  node.fabric_bandwidth = known(BytesPerSec(bandwidth));
  PoolSpec pool = s.pools[0];
  pool.replicas = 1;
  pool.step_model.kind = StepModelKind::kConstant;
  pool.step_model.per_prompt_token = Seconds(1e-3);
  pool.step_model.per_sequence = Seconds(10e-3);
  pool.batching.max_num_batched_tokens = 1 << 20;
  pool.num_blocks_override = 1 << 20;
  pool.name = "prefill";
  pool.role = PoolRole::kPrefill;
  s.pools = {pool, pool};
  s.pools[1].name = "decode";
  s.pools[1].role = PoolRole::kDecode;
  s.report.interval = Seconds(0.05);
  return s;
}

}  // namespace medley::testing
