#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "sim/core/error.h"
#include "sim/runtime/fleet.h"
#include "sim/scenario/placement.h"
#include "sim/scenario/validate.h"

namespace medley {

namespace {

EngineOptions engine_options(const Scenario& scenario, const RunHooks& hooks) {
  EngineOptions options;
  options.tie_seed = scenario.tie_seed;
  options.interrupt = hooks.interrupt;
  return options;
}

}  // namespace

Fleet::Fleet(const Catalog& catalog, const Scenario& scenario, const RunHooks& hooks)
    : scenario_(scenario),
      trace_(scenario.trace),
      loops_(scenario.trace),
      hooks_(hooks),
      engine_(engine_options(scenario, hooks)),
      rng_(scenario.seed, "routing"),
      sample_every_(scenario.report.interval),
      placement_(place_replicas(scenario)) {
  build_pools(catalog);
  build_sharing(catalog);
  build_replicas();
  router_ = make_router(scenario.routing, "/routing/policy", candidates_);
  build_handoff(catalog);
  build_tiers(catalog);

  central_.resize(trace_.models.size());
  expected_.resize(trace_.classes.size());
  expected_at_dispatch_.assign(trace_.requests.size(), 0.0F);
  result_.requests.resize(trace_.requests.size());
  for (std::size_t i = 0; i < trace_.requests.size(); ++i) {
    result_.requests[i].arrival = trace_.requests[i].arrival;
    if (trace_.requests[i].arrival != SimTime::max()) open_requests_ = i + 1;
  }
  if (scenario.measure.warmup > SimTime() && trace_.follow_ups.empty() && open_requests_ > 0 &&
      trace_.requests[open_requests_ - 1].arrival < scenario.measure.warmup) {
    throw InputError(scenario.file, "/measure/warmup",
                     "is longer than the workload: no request is left to measure",
                     fmt::format("the last one arrives at {:.6g} s",
                                 trace_.requests[open_requests_ - 1].arrival.seconds().value()));
  }
  engine_.bind<&Fleet::on_event>(*this);
  engine_.add_source(*this);
  engine_.reserve(units_.size() * 2 + 64);
  build_weights(catalog);
  build_migration(catalog);
  build_failures(catalog);
}

std::unique_ptr<Router> Fleet::make_router(
    const RoutingPolicy& policy, const char* pointer,
    const std::vector<std::vector<std::uint32_t>>& groups) const {
  const auto* entry = routing_registry().find(policy.name);
  if (entry == nullptr) {
    throw InputError(scenario_.file, pointer, "unknown routing policy \"" + policy.name + "\"",
                     suggest(policy.name, routing_registry().names()));
  }
  std::map<std::string, double> params;
  for (const ParamInfo& p : entry->params) params[p.name] = p.fallback;
  for (const auto& [name, value] : policy.params) params[name] = value;
  return entry->make({units_.size(), &groups, &params});
}

void Fleet::build_pools(const Catalog& catalog) {
  const std::vector<MemoryAccount> memory = check_feasible(catalog, scenario_);
  result_.pools.resize(scenario_.pools.size());
  models_.reserve(scenario_.pools.size());
  for (std::size_t p = 0; p < scenario_.pools.size(); ++p) {
    models_.emplace_back(catalog, step_model_input(scenario_, scenario_.pools[p]));
    result_.pools[p].memory = memory[p];
    result_.pools[p].power = models_[p].power();
  }
  for (std::size_t p = 0; p < scenario_.pools.size(); ++p)
    result_.pools[p].profile = profile_pool(p);
}

void Fleet::build_replicas() {
  std::size_t count = 0;
  for (const PoolSpec& pool : scenario_.pools) count += static_cast<std::size_t>(pool.replicas);
  units_.resize(count);
  result_.replicas.resize(count);
  const double interval = scenario_.report.interval.value();
  result_.bin = Seconds(interval > 0.0 ? std::min(1.0, interval) : 1.0);
  const SimTime bin = SimTime::from_seconds(result_.bin);

  std::size_t next = 0;
  std::vector<std::vector<std::uint32_t>> replicas_of_pool(scenario_.pools.size());
  for (std::size_t p = 0; p < scenario_.pools.size(); ++p) {
    const PoolSpec& pool = scenario_.pools[p];
    const ReplicaPower& power = result_.pools[p].power;
    ReplicaConfig config;
    config.policy = pool.batching;
    config.blocks = result_.pools[p].memory.blocks;
    config.max_model_len = pool.max_model_len;
    config.lanes = pool.pipeline_parallel;
    config.fast_forward = scenario_.fast_forward;
    if (pool.role == PoolRole::kPrefill) config.handoff = scenario_.kv_transfer.first_token;
    config.floor_w = watts_or_zero(power.active_floor) * power.devices;
    for (int i = 0; i < pool.replicas; ++i, ++next) {
      config.shared = player_ && player_->footprint(static_cast<std::uint32_t>(next)).shared;
      ReplicaRecord& record = result_.replicas[next];
      record.pool = static_cast<std::uint16_t>(p);
      record.replica = static_cast<std::uint32_t>(i);
      record.node = placement_.pools[p][static_cast<std::size_t>(i)].node;
      record.first_device = placement_.pools[p][static_cast<std::size_t>(i)].first_device;
      record.blocks = config.blocks;
      Unit& unit = units_[next];
      unit.pool = static_cast<std::uint16_t>(p);
      unit.role = pool.role;
      unit.shared = config.shared;
      unit.place = {static_cast<std::uint32_t>(pool.node_group), record.node, record.first_device};
      unit.meter = std::make_unique<ReplicaMeter>(
          config.floor_w, watts_or_zero(power.context_idle) * power.devices, config.lanes, bin,
          record, result_.pools[p].itl, scenario_.report.chrome_trace ? &result_.spans : nullptr);
      const BackendSpec& backend = scenario_.pools[p].backend;
      if (!backend.ideal()) {
        unit.per_request = backend.request_overhead.value.value_or(Seconds(0.0));
        unit.per_prompt_token = backend.prompt_token_overhead.value.value_or(Seconds(0.0));
      }
      unit.replica = std::make_unique<Replica>(config, models_[p], trace_,
                                               static_cast<ReplicaListener&>(*this), *unit.meter);
      unit.ends.resize(static_cast<std::size_t>(config.lanes));
      replicas_of_pool[p].push_back(static_cast<std::uint32_t>(next));
    }
  }
  for (const auto& replicas : replicas_of_pool) first_unit_.push_back(replicas.front());
  candidates_.resize(trace_.models.size());
  pools_of_model_.resize(trace_.models.size());
  for (std::size_t m = 0; m < trace_.models.size(); ++m) {
    for (std::size_t p = 0; p < scenario_.pools.size(); ++p) {
      if (scenario_.pools[p].model_name != trace_.models[m]) continue;
      if (scenario_.pools[p].role == PoolRole::kDecode) continue;
      pools_of_model_[m].push_back(static_cast<std::uint16_t>(p));
      candidates_[m].insert(candidates_[m].end(), replicas_of_pool[p].begin(),
                            replicas_of_pool[p].end());
    }
  }
}

PoolProfile Fleet::profile_pool(std::size_t p) const {
  const PoolSpec& pool = scenario_.pools[p];
  const StepModel& model = models_[p];
  const MemoryAccount& memory = result_.pools[p].memory;
  PoolProfile profile;
  const auto decode = [&](std::int64_t n) {
    FeatureBuilder builder(model.context());
    for (std::int64_t i = 0; i < n; ++i) builder.add_decode(PoolProfile::kReferenceContext);
    return model.step(builder.features(), static_cast<double>(PoolProfile::kReferenceContext));
  };
  const std::int64_t batch = std::max<std::int64_t>(
      1, std::min<std::int64_t>(pool.batching.max_num_seqs,
                                memory.concurrent(PoolProfile::kReferenceContext)));
  for (std::int64_t n = 1; n < 2 * batch; n *= 2)
    profile.step_s_at.push_back(decode(std::min(n, batch)).step_s);
  const StepCost full = decode(batch);
  const double n = static_cast<double>(batch);
  profile.decode_tokens_per_s =
      full.step_s > 0.0 ? n / full.step_s : std::numeric_limits<double>::max();
  FeatureBuilder prefill(model.context());
  prefill.add_chunk({pool.batching.max_num_batched_tokens, 0, true});
  const double chunk_s = model.step(prefill.features(), 0.0).step_s;
  profile.prefill_tokens_per_s = chunk_s > 0.0 ? pool.batching.max_num_batched_tokens / chunk_s
                                               : std::numeric_limits<double>::max();
  const NodeGroup& group = scenario_.nodes[pool.node_group];
  const double devices = pool.device_share();
  if (group.device.rent.known()) {
    profile.usd_per_s = (*group.device.rent).value() * devices;
  } else if (group.type.rent.known() && group.type.devices > 0) {
    profile.usd_per_s = (*group.type.rent).value() * devices / group.type.devices;
  }
  const ReplicaPower& power = result_.pools[p].power;
  if (power.active_floor && power.dynamic_known) {
    profile.joules_per_token =
        (power.active_floor->value() * devices * full.step_s + full.dynamic_j) / n;
  }
  return profile;
}

}  // namespace medley
