#include "sim/runtime/handoff.h"

#include <algorithm>

#include "workloads/model.h"

namespace medley {

std::vector<KvPath> kv_paths(const PoolSpec& prefill, const PoolSpec& decode) {
  std::vector<KvPath> paths;
  const int tp_p = prefill.tensor_parallel, pp_p = prefill.pipeline_parallel;
  const int tp_d = decode.tensor_parallel, pp_d = decode.pipeline_parallel;
  for (int stage = 0; stage < pp_d; ++stage) {
    const int from_stage = std::min(pp_p - 1, ((2 * stage + 1) * pp_p) / (2 * pp_d));
    const double token = kv_bytes_per_token(decode.model, tp_d, pp_d, stage, decode.precision.kv);
    const double state = state_bytes_per_sequence(decode.model, tp_d, pp_d, stage);
    for (int rank = 0; rank < tp_d; ++rank) {
      const int sources = std::max(1, tp_p / tp_d);
      for (int k = 0; k < sources; ++k) {
        const int from_rank = tp_p >= tp_d ? rank * sources + k : rank * tp_p / tp_d;
        paths.push_back(
            {from_stage * tp_p + from_rank, stage * tp_d + rank, token / sources, state / sources});
      }
    }
  }
  return paths;
}

}  // namespace medley
