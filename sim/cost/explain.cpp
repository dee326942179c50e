#include <algorithm>
#include <cmath>

#include "sim/cost/step_model.h"
#include "sim/cost/step_model_impl.h"

namespace medley {

namespace {
OpCost describe(const RooflineOp& r) {
  OpCost row;
  row.name = r.op.name;
  row.op_class = r.op.op_class;
  row.dtype = r.op.dtype;
  row.stage = r.stage;
  row.repeats = r.op.repeats;
  return row;
}
OpCost stage_transfer(const StepModel::Impl& m, int stage, double tokens) {
  const double per_token = stage_bytes_per_token(m.input.model, m.input.precision);
  OpCost row;
  row.name = "stage_transfer";
  row.op_class = OpClass::kCopy;
  row.stage = stage;
  row.repeats = 1;
  row.message_bytes = tokens * per_token / m.input.tensor_parallel;
  const CollectiveTime t = m.stage_send(stage, Bytes(row.message_bytes));
  row.time_s = m.input.spec.time_factor * t.time.value();
  row.bound = "link";
  row.provenance = t.provenance;
  row.source = t.source;
  return row;
}
}  // namespace

std::vector<OpCost> StepModel::explain(const Features& x, double max_kv) const {
  const Impl& m = *impl_;
  std::vector<OpCost> rows;
  const StepCost whole = step(x, max_kv);
  if (m.input.spec.kind != StepModelKind::kRoofline) {
    OpCost row;
    const bool tables = m.input.spec.kind == StepModelKind::kTables;
    row.name = tables ? "step (kernel tables)" : "step (constant)";
    row.repeats = 1;
    row.time_s = whole.device_s;
    row.flops = whole.flops;
    row.bytes = whole.bytes;
    row.bound = tables ? "table" : "constant";
    row.provenance = tables ? Provenance::kMeasured : Provenance::kAssumed;
    row.source = tables ? m.input.spec.tables_directory : "scenario step_model";
    if (tables) row.range = whole.extrapolated.time > 0.0 ? "outside" : "inside";
    rows.push_back(row);
    return rows;
  }
  Features full = x;
  medley::at(full, Feature::kOne) = 1.0;
  medley::at(full, Feature::kExpertsHit) =
      experts_hit(medley::at(x, Feature::kTokens), m.context.experts, m.context.experts_per_token);
  Features skewed = full;
  medley::at(skewed, Feature::kDecodeContext) +=
      m.alpha * std::max(0.0, medley::at(x, Feature::kDecodes) * max_kv -
                                  medley::at(x, Feature::kDecodeContext));
  const double per_launch = m.launch(x);
  for (int stage = 0; stage < m.input.pipeline_parallel; ++stage) {
    if (stage > 0) rows.push_back(stage_transfer(m, stage, medley::at(x, Feature::kTokens)));
    for (const auto* group : {&m.tokens_ops, &m.logits_ops, &m.context_ops}) {
      for (const RooflineOp& r : (*group)[static_cast<std::size_t>(stage)]) {
        OpCost row = describe(r);
        if (r.op.op_class == OpClass::kCollective) {
          row.message_bytes = r.op.message_bytes(full);
          if (row.message_bytes <= 0.0) continue;
          const CollectiveTime t =
              m.collective(r.op, row.message_bytes, group == &m.logits_ops || m.in_graph(x));
          if (!m.input.node.all_reduce.empty() && !r.op.all_to_all)
            row.range = t.extrapolated ? "outside" : "inside";
          row.time_s = r.op.repeats * t.time.value();
          row.bound = "link";
          row.provenance = t.provenance;
          row.source = t.source;
          rows.push_back(row);
          continue;
        }
        const bool decode = r.op.op_class == OpClass::kAttentionDecode;
        if (decode && medley::at(x, Feature::kDecodes) == 0.0) continue;
        if (r.op.op_class == OpClass::kAttentionPrefill &&
            medley::at(x, Feature::kChunkTokens) == 0.0)
          continue;
        const auto bytes_of_features = [&](const Features& f) {
          return r.op.weight_bytes(f) + r.op.kv_bytes(f) + r.op.activation_bytes(f);
        };
        row.flops = r.op.flops(full);
        row.bytes = bytes_of_features(full);
        if (row.flops <= 0.0 && row.bytes <= 0.0) continue;
        const Features& timed = r.grows ? skewed : full;
        row.compute_s = r.compute_s(r.op.flops(timed)) / whole.clock;
        row.memory_s = r.memory_s(bytes_of_features(timed));
        row.launch_s = per_launch * r.kernels / std::max(1, r.op.repeats);
        row.serial = r.serial;
        const double work = overlapped(row.compute_s, row.memory_s, r.serial);
        row.time_s = r.op.repeats * (work + row.launch_s);
        const bool compute = row.compute_s > row.memory_s;
        row.bound = row.launch_s > work ? "launch" : compute ? "compute" : "memory";
        row.provenance = compute ? r.compute_class : r.memory_class;
        row.source = compute ? r.compute_source : r.memory_source;
        if (r.ranged(compute)) {
          const bool out = r.extrapolated(compute, r.op.flops(timed), bytes_of_features(timed));
          row.range = out ? "outside" : "inside";
        }
        rows.push_back(row);
      }
    }
  }
  return rows;
}

}  // namespace medley
