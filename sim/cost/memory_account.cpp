#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/core/error.h"
#include "sim/cost/step_model.h"

namespace medley {

std::int64_t MemoryAccount::concurrent(std::int64_t context_tokens) const {
  const std::int64_t per_request = (context_tokens + block_size - 1) / block_size;
  return per_request > 0 ? blocks / per_request : 0;
}

namespace {
double gib(Bytes b) {
  return b.value() / 1073741824.0;
}
}  // namespace

MemoryAccount memory_account(const StepModelInput& in, double utilization,
                             std::int64_t max_num_batched_tokens, std::int64_t block_size,
                             std::int64_t max_num_seqs, std::int64_t blocks_override) {
  if (!in.device.memory_capacity.known()) {
    throw InputError(in.device.file, "/memory/capacity",
                     fmt::format("device {} has no memory capacity", in.device.name),
                     "supply it with --set cluster.nodes.<group>.overrides.memory.capacity=<size>");
  }
  MemoryAccount a;
  a.capacity = *in.device.memory_capacity;
  a.utilization = utilization;
  a.block_size = block_size;
  const int tp = in.tensor_parallel;
  const int pp = in.pipeline_parallel;
  a.weights = weight_bytes(in.model, tp, pp, in.precision.weights);
  if (!in.backend.ideal()) {
    const double factor =
        in.backend.activation_factor.known() ? *in.backend.activation_factor : 0.0;
    a.activations = Bytes(factor * static_cast<double>(max_num_batched_tokens) * in.model.hidden *
                          bytes_of(in.precision.activations));
    a.context = in.backend.context_reserve.known() ? *in.backend.context_reserve : Bytes(0);
  }
  for (int stage = 0; stage < pp; ++stage) {
    a.kv_bytes_per_token = std::max(a.kv_bytes_per_token,
                                    kv_bytes_per_token(in.model, tp, pp, stage, in.precision.kv));
    a.state_per_sequence =
        std::max(a.state_per_sequence, Bytes(state_bytes_per_sequence(in.model, tp, pp, stage)));
  }
  const Bytes states = a.state_per_sequence * static_cast<double>(max_num_seqs);
  a.kv = utilization * a.capacity - a.weights - a.activations - a.context - states;
  const std::string where = fmt::format("{} on {} (tp {}, pp {}, weights {})", in.model.name,
                                        in.device.name, tp, pp, to_string(in.precision.weights));
  if (a.weights > utilization * a.capacity) {
    throw InfeasibleError(fmt::format(
        "{} does not fit: {:.2f} GiB of weights per device against {:.2f} GiB ({} of {:.2f} GiB); "
        "use a larger "
        "tensor_parallel_size or pipeline_parallel_size, a narrower quantization, or another "
        "device",
        where, gib(a.weights), gib(utilization * a.capacity), utilization, gib(a.capacity)));
  }
  const double block_bytes = a.kv_bytes_per_token * static_cast<double>(block_size);
  if (blocks_override > 0) {
    a.blocks = blocks_override;
    a.overridden = true;
    return a;
  }
  // A model without per-token KV (pure state space) is bounded by its sequences only.
  a.blocks = block_bytes > 0.0
                 ? static_cast<std::int64_t>(std::floor(std::max(0.0, a.kv.value()) / block_bytes))
                 : std::int64_t{1} << 40;
  if (a.kv.value() < 0.0 || a.blocks < 1) {
    throw InfeasibleError(fmt::format(
        "{} leaves no room for KV: {:.2f} GiB usable - {:.2f} weights - {:.2f} activations - "
        "{:.2f} context - {:.2f} "
        "states; raise gpu_memory_utilization, shard further, or set num_gpu_blocks_override",
        where, gib(utilization * a.capacity), gib(a.weights), gib(a.activations), gib(a.context),
        gib(states)));
  }
  return a;
}

}  // namespace medley
