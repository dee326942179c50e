#include "sim/cost/step_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/core/error.h"
#include "sim/core/unit_text.h"
#include "sim/cost/step_model_impl.h"
#include "sim/network/nccl_model.h"

namespace medley {

StepModel::Impl::Impl(const Catalog& catalog_in, StepModelInput in)
    : catalog(catalog_in), input(std::move(in)), power(replica_power(input)) {
  const auto stages = static_cast<std::size_t>(input.pipeline_parallel);
  tokens_ops.resize(stages);
  logits_ops.resize(stages);
  context_ops.resize(stages);
  tokens_memo[0].resize(stages);
  tokens_memo[1].resize(stages);
  logits_memo.resize(stages);
  for (RooflineOp& r : join_device(input)) {
    const auto stage = static_cast<std::size_t>(r.stage);
    const OpGroup group = group_of(r.op);
    (group == OpGroup::kTokens   ? tokens_ops
     : group == OpGroup::kLogits ? logits_ops
                                 : context_ops)[stage]
        .push_back(std::move(r));
  }
  context = feature_context(input.model);
  if (input.spec.kind == StepModelKind::kTables)
    tables = KernelTables::load(input.spec.tables_directory);

  const DeviceSpec& device = input.device;
  const BackendSpec& backend = input.backend;
  if (!backend.ideal()) {
    alpha = input.spec.decode_skew.value_or(backend.decode_skew.known() &&
                                                    input.spec.kind == StepModelKind::kRoofline
                                                ? *backend.decode_skew
                                                : 0.0);
    const double form = input.spec.time_factor;
    launch_stream = device.launch_stream.known() ? form * (*device.launch_stream).value() : 0.0;
    launch_graph =
        device.launch_graph.known() ? form * (*device.launch_graph).value() : launch_stream;
    host_per_step = backend.host_per_step.known() ? (*backend.host_per_step).value() : 0.0;
    host_per_sequence =
        backend.host_per_sequence.known() ? (*backend.host_per_sequence).value() : 0.0;
    const auto seconds = [](const Sourced<Seconds>& s) { return s.known() ? (*s).value() : 0.0; };
    sync_per_step = seconds(backend.sync_per_step);
    sync_per_sequence = seconds(backend.sync_per_sequence);
    if (input.spec.kind == StepModelKind::kRoofline)
      host_per_kernel = seconds(backend.host_per_kernel);
  } else {
    alpha = input.spec.decode_skew.value_or(0.0);
  }

  limited = power.limit && power.active_floor && power.dynamic_known &&
            input.spec.kind == StepModelKind::kRoofline;
  if (limited) {
    floor_w = power.active_floor->value();
    limit_w = power.limit->value();
    clock_min = device.power.clock_min.known() ? *device.power.clock_min : 1.0;
    voltage_floor = device.power.voltage_floor.known() ? *device.power.voltage_floor : 1.0;
    if (limit_w <= floor_w) {
      throw InfeasibleError(fmt::format(
          "power limit {} of {} is not above its active floor {}: it can do no work",
          format_quantity(*power.limit), device.name, format_quantity(*power.active_floor)));
    }
  }
}

void StepModel::Impl::add_op(const RooflineOp& r, const Features& x, double skew_tokens, bool graph,
                             Part& part, std::vector<OpPair>& out) const {
  const double repeats = r.op.repeats;
  if (r.op.op_class == OpClass::kCollective) {
    const double payload = r.op.message_bytes(x);
    if (payload <= 0.0) return;
    const CollectiveTime t = collective(r.op, payload, graph);
    const double time = repeats * t.time.value();
    part.time += time;
    part.link_time += time;
    part.link_bytes += repeats * payload;
    part.trust[static_cast<std::size_t>(t.provenance)] += static_cast<float>(time);
    if (t.extrapolated) part.extrapolated_s += static_cast<float>(time);
    return;
  }
  const double flops = r.flops(x);
  const double bytes = r.bytes(x);
  if (flops <= 0.0 && bytes <= 0.0) return;
  double timed_flops = flops;
  double timed_bytes = bytes;
  if (skew_tokens > 0.0) {  // the time (not the work) of a longer context
    timed_flops += skew_tokens * r.flops[Feature::kDecodeContext];
    timed_bytes += skew_tokens * r.bytes[Feature::kDecodeContext];
  }
  const double compute = repeats * r.compute_s(timed_flops);
  const double memory = repeats * r.memory_s(timed_bytes);
  const double both = overlapped(compute, memory, r.serial);
  part.time += both;
  part.kernels += r.kernels;
  part.flop_j += repeats * r.j_flop * flops;
  part.byte_j += repeats * r.j_byte * bytes;
  if (r.op.op_class == OpClass::kAttentionPrefill) {
    part.prefill_j += repeats * (r.j_flop * flops + r.j_byte * bytes);
  } else if (r.grows) {
    part.kv_j += repeats * (r.j_flop * flops + r.j_byte * bytes);
  }
  part.flops += repeats * flops;
  part.bytes += repeats * bytes;
  if (!(compute > memory)) part.memory_time += both;
  const Provenance p = compute > memory ? r.compute_class : r.memory_class;
  part.trust[static_cast<std::size_t>(p)] += static_cast<float>(both);
  if (r.extrapolated(compute > memory, timed_flops, timed_bytes)) {
    part.extrapolated_s += static_cast<float>(both);
    part.extrapolated_j += static_cast<float>(repeats * (r.j_flop * flops + r.j_byte * bytes));
  }
  out.push_back({compute, memory, r.serial});
  ++part.pair_count;
}

CollectiveTime StepModel::Impl::collective(const StepOp& op, double payload, bool graph) const {
  const int ranks = input.tensor_parallel;
  CollectiveTime t;
  if (ranks > std::max(input.node.devices, input.node.domain)) {  // over the network
    EstimateOptions options;
    options.in_graph = graph;
    t = estimate_collective(catalog, input.node,
                            op.all_to_all ? CollectiveKind::kAllToAll : CollectiveKind::kAllReduce,
                            ranks, ranks / input.node.devices, Bytes(payload), options)
            .time;
  } else {
    t = op.all_to_all ? all_to_all_time(catalog, input.node, ranks, Bytes(payload))
                      : all_reduce_time(catalog, input.node, ranks, Bytes(payload), graph);
  }
  t.time *= input.spec.time_factor;
  return t;
}

/// Between neighbouring stages. Ranks of one node that send to another share its network.
CollectiveTime StepModel::Impl::stage_send(int stage, Bytes payload) const {
  const int tp = input.tensor_parallel;
  const int joined = std::max(input.node.devices, input.node.domain);
  if (stage * tp / joined == (stage - 1) * tp / joined) {
    return send_time(catalog, input.node, payload);
  }
  const double together = std::min(tp, input.node.devices);
  return estimate_collective(catalog, input.node, CollectiveKind::kSendRecv, 2, 2,
                             payload * together)
      .time;
}

const Part& StepModel::Impl::tokens_part(int stage, double tokens, bool graph) const {
  Memo& memo = tokens_memo[graph ? 1 : 0][static_cast<std::size_t>(stage)];
  const auto count = static_cast<std::size_t>(tokens);
  if (count < memo.place.size() && memo.place[count] != 0) return memo.parts[memo.place[count] - 1];
  Part part;
  Features x{};
  at(x, Feature::kOne) = 1.0;
  at(x, Feature::kTokens) = tokens;
  at(x, Feature::kExpertsHit) = experts_hit(tokens, context.experts, context.experts_per_token);
  std::vector<OpPair> fresh;
  for (const RooflineOp& r : tokens_ops[static_cast<std::size_t>(stage)])
    add_op(r, x, 0.0, graph, part, fresh);
  if (stage > 0) {
    const Bytes payload(tokens * stage_bytes_per_token(input.model, input.precision) /
                        input.tensor_parallel);
    const CollectiveTime t = stage_send(stage, payload);
    const double time = t.time.value() * input.spec.time_factor;
    part.time += time;
    part.link_time += time;
    part.link_bytes += payload.value();
    part.trust[static_cast<std::size_t>(t.provenance)] += static_cast<float>(time);
  }
  return remember(memo, count, part, fresh);
}

const Part& StepModel::Impl::logits_part(int stage, double logits) const {
  Memo& memo = logits_memo[static_cast<std::size_t>(stage)];
  const auto count = static_cast<std::size_t>(logits);
  if (count < memo.place.size() && memo.place[count] != 0) return memo.parts[memo.place[count] - 1];
  Part part;
  Features x{};
  at(x, Feature::kOne) = 1.0;
  at(x, Feature::kLogits) = logits;
  std::vector<OpPair> fresh;
  if (logits > 0.0) {
    for (const RooflineOp& r : logits_ops[static_cast<std::size_t>(stage)])
      add_op(r, x, 0.0, true, part, fresh);
  }
  return remember(memo, count, part, fresh);
}

/// Keeps `part` for its count; counts beyond the memo share one scratch place.
const Part& StepModel::Impl::remember(Memo& memo, std::size_t count, Part part,
                                      const std::vector<OpPair>& fresh) const {
  if (count >= kMemoLimit) {
    // The scratch place keeps its pairs at one spot that only grows.
    if (memo.scratch.pair_count < fresh.size()) {
      part.pair_begin = static_cast<std::uint32_t>(pairs.size());
      pairs.resize(pairs.size() + fresh.size());
    } else {
      part.pair_begin = memo.scratch.pair_begin;
    }
    std::copy(fresh.begin(), fresh.end(), pairs.begin() + part.pair_begin);
    memo.scratch = part;
    return memo.scratch;
  }
  part.pair_begin = static_cast<std::uint32_t>(pairs.size());
  pairs.insert(pairs.end(), fresh.begin(), fresh.end());
  if (memo.place.size() <= count) memo.place.resize(count + 1, 0);
  memo.parts.push_back(part);
  memo.place[count] = static_cast<std::uint32_t>(memo.parts.size());
  return memo.parts.back();
}

Part StepModel::Impl::context_part(int stage, const Features& x, double max_kv,
                                   std::vector<OpPair>& out) const {
  Part part;
  const double skew =
      alpha * std::max(0.0, at(x, Feature::kDecodes) * max_kv - at(x, Feature::kDecodeContext));
  for (const RooflineOp& r : context_ops[static_cast<std::size_t>(stage)]) {
    add_op(r, x, r.grows ? skew : 0.0, true, part, out);
  }
  return part;
}

bool StepModel::Impl::in_graph(const Features& x) const {
  return input.backend.graph_capture && at(x, Feature::kChunkTokens) == 0.0 &&
         at(x, Feature::kDecodes) <= input.backend.graph_max_sequences;
}

namespace {
/// Sum of the overlapped times of (compute / phi, memory) pairs.
double at_clock(const OpPair* begin, std::size_t count, double phi) {
  double sum = 0.0;
  for (std::size_t i = 0; i < count; ++i)
    sum += overlapped(begin[i].compute / phi, begin[i].memory, begin[i].serial);
  return sum;
}
/// Of that, what memory bounds.
double memory_at_clock(const OpPair* begin, std::size_t count, double phi) {
  double sum = 0.0;
  for (std::size_t i = 0; i < count; ++i) {
    if (begin[i].compute / phi > begin[i].memory) continue;
    sum += overlapped(begin[i].compute / phi, begin[i].memory, begin[i].serial);
  }
  return sum;
}
}  // namespace

StepCost StepModel::Impl::step(const Features& x, double max_kv,
                               std::optional<double> fixed_clock) const {
  StepCost cost;
  const int stages = input.pipeline_parallel;
  const double per_launch = launch(x);
  Part total;
  double trust[kProvenanceClasses] = {};  // s
  Extrapolated outside;                   // s and J
  double kernels = 0.0;
  thread_local std::vector<OpPair> context_pairs;
  context_pairs.clear();
  struct StageSpan {
    const Part* tokens;
    const Part* logits;
    std::uint32_t context_begin, context_count;
    double fixed;  // launches and collectives
    double time;   // at full clock
  };
  StageSpan spans[64];
  MEDLEY_CHECK(stages <= 64, "more than 64 pipeline stages");
  for (int s = 0; s < stages; ++s) {
    const auto begin = static_cast<std::uint32_t>(context_pairs.size());
    const Part attention = context_part(s, x, max_kv, context_pairs);
    const Part& logits = logits_part(s, at(x, Feature::kLogits));
    const Part& tokens = tokens_part(s, at(x, Feature::kTokens), in_graph(x));
    const double launches = per_launch * (tokens.kernels + logits.kernels + attention.kernels);
    spans[s] = {&tokens,
                &logits,
                begin,
                attention.pair_count,
                launches + tokens.link_time + logits.link_time + attention.link_time,
                launches + tokens.time + logits.time + attention.time};
    cost.launch_s += launches;
    for (const Part* p : {&tokens, &logits, &attention}) {
      cost.memory_s += p->memory_time;
      cost.link_s += p->link_time;
      total.flop_j += p->flop_j;
      total.byte_j += p->byte_j;
      total.kv_j += p->kv_j;
      total.prefill_j += p->prefill_j;
      total.flops += p->flops;
      total.bytes += p->bytes;
      total.link_bytes += p->link_bytes;
      for (int c = 0; c < kProvenanceClasses; ++c) trust[c] += p->trust[c];
      outside.time += p->extrapolated_s;
      outside.energy += p->extrapolated_j;
    }
    kernels += tokens.kernels + logits.kernels + attention.kernels;
    cost.device_s += spans[s].time;
    cost.stage_s = std::max(cost.stage_s, spans[s].time);
  }
  const auto device_at = [&](double phi, double& slowest) {
    double sum = 0.0;
    slowest = 0.0;
    for (int s = 0; s < stages; ++s) {
      const double t =
          spans[s].fixed +
          at_clock(pairs.data() + spans[s].tokens->pair_begin, spans[s].tokens->pair_count, phi) +
          at_clock(pairs.data() + spans[s].logits->pair_begin, spans[s].logits->pair_count, phi) +
          at_clock(context_pairs.data() + spans[s].context_begin, spans[s].context_count, phi);
      sum += t;
      slowest = std::max(slowest, t);
    }
    return sum;
  };

  double volt2 = 1.0;
  if (input.spec.kind == StepModelKind::kTables) {
    // Tables do not say what bounds a kernel: in the proportions of the roofline, launches apart.
    const double share =
        cost.device_s > cost.launch_s ? cost.memory_s / (cost.device_s - cost.launch_s) : 0.0;
    cost.device_s = cost.stage_s = table_time(x, max_kv);
    cost.memory_s = share * cost.device_s;
    cost.link_s = cost.launch_s = 0.0;
    std::fill(std::begin(trust), std::end(trust), 0.0);
    trust[0] = cost.device_s;
    outside = {table_time_outside(x, max_kv), 0.0};
  } else if (input.spec.kind == StepModelKind::kConstant) {
    cost.device_s = cost.stage_s = constant_time(x);
    cost.memory_s = cost.link_s = cost.launch_s = 0.0;
    std::fill(std::begin(trust), std::end(trust), 0.0);
    trust[static_cast<std::size_t>(Provenance::kAssumed)] = cost.device_s;
    outside = {};
  } else if (limited) {
    // Average watts over the device time of all stages; stages of one step run on different
    // devices.
    const auto watts = [&](double phi, double device_s) {
      const double v = voltage(phi);
      return floor_w + (total.flop_j * v * v + total.byte_j) / device_s;
    };
    double phi = 1.0;
    double slowest = cost.stage_s;
    double device = cost.device_s;
    if (fixed_clock) {
      phi = *fixed_clock;
      if (phi < 1.0) device = device_at(phi, slowest);
    } else if (device > 0.0 && watts(1.0, device) > limit_w) {
      // Highest of kClockSteps equal steps in [clock_min, 1]; watts fall with the clock.
      int low = 0, high = kClockSteps;  // step `high` is over the limit; `low` may be too
      const auto clock_of = [&](int k) { return clock_min + (1.0 - clock_min) * k / kClockSteps; };
      while (high - low > 1) {
        const int middle = (low + high) / 2;
        double unused = 0.0;
        const double f = clock_of(middle);
        (watts(f, device_at(f, unused)) <= limit_w ? low : high) = middle;
      }
      phi = clock_of(low);
      device = device_at(phi, slowest);
    }
    if (phi < 1.0) {
      cost.memory_s = 0.0;
      for (int s = 0; s < stages; ++s) {
        const StageSpan& span = spans[s];
        cost.memory_s +=
            memory_at_clock(pairs.data() + span.tokens->pair_begin, span.tokens->pair_count, phi) +
            memory_at_clock(pairs.data() + span.logits->pair_begin, span.logits->pair_count, phi) +
            memory_at_clock(context_pairs.data() + span.context_begin, span.context_count, phi);
      }
    }
    cost.kernels_s = device;
    const double v = voltage(phi);
    volt2 = v * v;
    const double dynamic = total.flop_j * volt2 + total.byte_j;
    // Below the lowest clock the work is duty-cycled: the average meets the limit.
    const double least = dynamic / (limit_w - floor_w);
    if (phi <= clock_min && device < least) {
      slowest *= least / device;
      device = least;
    }
    cost.device_s = device;
    cost.stage_s = slowest;
    cost.clock = phi;
  }
  const double ranks = input.tensor_parallel;
  const HostTime around = host(x, kernels);
  cost.step_s = around.step_s(cost.device_s);
  cost.host_floor_s = around.floor_s;
  cost.dynamic_j = ranks * (total.flop_j * volt2 + total.byte_j);
  cost.kv_j = ranks * total.kv_j;
  cost.prefill_j = ranks * total.prefill_j;
  cost.flops = ranks * total.flops;
  cost.bytes = ranks * total.bytes;
  cost.link_bytes = ranks * total.link_bytes;
  double trusted = 0.0;
  for (double t : trust) trusted += t;
  if (trusted > 0.0) {
    for (int c = 0; c < kProvenanceClasses; ++c) cost.trust[c] = trust[c] / trusted;
    if (outside.time > 0.0) {
      cost.extrapolated.time = std::min(1.0, outside.time / trusted);
      // Tables time a step as a whole: its energy goes with the time.
      const double dynamic = total.flop_j + total.byte_j;
      cost.extrapolated.energy = input.spec.kind == StepModelKind::kTables ? cost.extrapolated.time
                                 : dynamic > 0.0 ? std::min(1.0, outside.energy / dynamic)
                                                 : 0.0;
    }
  }
  return cost;
}

StepModel::StepModel(const Catalog& catalog, StepModelInput input)
    : impl_(std::make_unique<Impl>(catalog, std::move(input))) {}
StepModel::~StepModel() = default;
StepModel::StepModel(StepModel&&) noexcept = default;

StepCost StepModel::step(const Features& x, double max_kv) const {
  return impl_->step(x, max_kv, {});
}
StepCost StepModel::step_at_clock(const Features& x, double max_kv, double clock) const {
  return impl_->step(x, max_kv, clock);
}
const FeatureContext& StepModel::context() const {
  return impl_->context;
}
const ReplicaPower& StepModel::power() const {
  return impl_->power;
}
const StepModelInput& StepModel::input() const {
  return impl_->input;
}

}  // namespace medley
