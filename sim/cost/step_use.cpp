#include <algorithm>

#include "sim/cost/step_model.h"
#include "sim/cost/step_model_impl.h"

namespace medley {

StepUse StepModel::use(const Features& x, double max_kv, const StepCost& cost) const {
  const Impl& m = *impl_;
  StepUse use;
  use.step_s = cost.step_s;
  use.device_s = cost.device_s;
  use.host_floor_s = cost.host_floor_s;
  const int stages = m.input.pipeline_parallel;
  if (m.input.spec.kind != StepModelKind::kRoofline) {
    use.compute_s = use.memory_s = cost.device_s / stages;
    return use;
  }
  thread_local std::vector<OpPair> context_pairs;
  context_pairs.clear();
  double kernels_s = 0.0;
  const auto take = [&](const Part& part, const OpPair* pairs) {
    for (std::uint32_t i = 0; i < part.pair_count; ++i) {
      use.compute_s += pairs[i].compute / cost.clock / stages;
      use.memory_s += pairs[i].memory / stages;
    }
    use.link_s += part.link_time;
    kernels_s += part.time - part.link_time;
  };
  for (int s = 0; s < stages; ++s) {
    const auto begin = context_pairs.size();
    const Part attention = m.context_part(s, x, max_kv, context_pairs);
    take(attention, context_pairs.data() + begin);
    const Part& logits = m.logits_part(s, at(x, Feature::kLogits));
    take(logits, m.pairs.data() + logits.pair_begin);
    const Part& tokens = m.tokens_part(s, at(x, Feature::kTokens), m.in_graph(x));
    take(tokens, m.pairs.data() + tokens.pair_begin);
    for (const auto* ops : {&m.tokens_ops, &m.logits_ops, &m.context_ops}) {
      for (const RooflineOp& r : (*ops)[static_cast<std::size_t>(s)]) {
        if (r.op.op_class != OpClass::kCollective) continue;
        const double payload = r.op.message_bytes(x);
        if (payload <= 0.0) continue;
        (r.op.all_to_all ? use.all_to_all_bytes : use.all_reduce_bytes) += r.op.repeats * payload;
        use.collectives += r.op.repeats;
      }
    }
    if (s > 0) {
      use.send_bytes += at(x, Feature::kTokens) *
                        stage_bytes_per_token(m.input.model, m.input.precision) /
                        m.input.tensor_parallel;
      ++use.collectives;
    }
  }
  use.link_s = std::min(use.link_s, cost.device_s);
  return use;
}

}  // namespace medley
