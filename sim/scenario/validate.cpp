#include "sim/scenario/validate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/scenario/document.h"
#include "sim/scenario/missing.h"
#include "sim/scenario/placement.h"

namespace medley {

namespace {
std::string pool_pointer(const PoolSpec& pool, std::string_view key) {
  return pointer_join(pointer_join("/pools", pool.name), key);
}
std::string group_pointer(const NodeGroup& group, std::string_view key) {
  return pointer_join(pointer_join("/cluster/nodes", group.name), key);
}

/// One problem for a group whose pools ask for more than it has.
void check_devices(const Scenario& scenario, std::size_t g, const Placement& placement,
                   Problems& problems) {
  const NodeGroup& group = scenario.nodes[g];
  std::vector<std::string> asked;
  std::int64_t needed = 0;
  bool fits = true;
  const PoolSpec* only = nullptr;
  for (std::size_t p = 0; p < scenario.pools.size(); ++p) {
    const PoolSpec& pool = scenario.pools[p];
    if (pool.node_group != g) continue;
    const std::int64_t devices = std::int64_t{pool.replicas} * pool.devices_per_replica();
    needed += devices;
    asked.push_back(
        fmt::format("{} ({} x {})", pool.name, pool.replicas, pool.devices_per_replica()));
    fits = fits && placement.missing[p] == 0;
    only = &pool;
  }
  if (fits) return;
  const std::int64_t there = std::int64_t{group.count} * group.type.devices;
  const bool one = asked.size() == 1;
  const std::string pointer = one ? pool_pointer(*only, "replicas") : group_pointer(group, "count");
  if (needed > there) {
    problems.add(scenario.file, pointer,
                 fmt::format("{} {} {} devices of node group \"{}\", which has {} x {} = {}",
                             fmt::join(asked, " and "), one ? "needs" : "together need", needed,
                             group.name, group.count, group.type.devices, there),
                 fmt::format("--set cluster.nodes.{}.count={}, or fewer replicas", group.name,
                             (needed + group.type.devices - 1) / group.type.devices));
    return;
  }
  problems.add(scenario.file, pointer,
               fmt::format("replicas of {} do not pack into nodes of {} devices: a replica stays "
                           "within one node",
                           fmt::join(asked, ", "), group.type.devices),
               "use sizes that divide the node, or more nodes");
}

void check_known(const Scenario& scenario, const PoolSpec& pool, Problems& problems) {
  const NodeGroup& group = scenario.nodes[pool.node_group];
  const auto need = [&](bool known, const char* field, const char* what) {
    if (known) return;
    problems.add(scenario.file, pool_pointer(pool, "node"),
                 fmt::format("the catalogue has no {} of {} ({})", what, group.device.name, field),
                 "supply it with " + set_line(group.name, field));
  };
  need(group.device.memory_capacity.known(), "memory.capacity", "memory capacity");
  need(group.device.memory_bandwidth.known(), "memory.bandwidth", "memory bandwidth");
}

void check_tiers(const Scenario& scenario, const PoolSpec& pool, Problems& problems) {
  const auto& tiers = pool.tiering.tiers;
  for (std::size_t i = 0; i < tiers.size(); ++i) {
    if (tiers[i].where != KvTierSpec::Where::kCxl || scenario.fabric.pool) continue;
    problems.add(scenario.file, pool_pointer(pool, "kv_tiers") + fmt::format("/{}/where", i),
                 "the cluster has no memory pool", "give cluster.fabric.pool, of kind cxl-pool");
  }
}

/// Formats whose energy per flop the pools of a group use.
std::vector<DType> used_dtypes(const Scenario& scenario, std::size_t g) {
  std::vector<DType> used;
  for (const PoolSpec& pool : scenario.pools) {
    const DType d = pool.precision.activations;
    if (pool.node_group == g && std::find(used.begin(), used.end(), d) == used.end()) {
      used.push_back(d);
    }
  }
  return used;
}

std::string all_lines(const std::string& group, const std::vector<std::string>& fields) {
  std::string lines;
  for (const std::string& f : fields) lines += (lines.empty() ? "" : " ") + set_line(group, f);
  return lines;
}
}  // namespace

void validate_hardware(const Scenario& scenario, Problems& problems) {
  const Placement placement = place_replicas(scenario);
  for (std::size_t g = 0; g < scenario.nodes.size(); ++g) {
    check_devices(scenario, g, placement, problems);
  }
  for (const PoolSpec& pool : scenario.pools) {
    check_known(scenario, pool, problems);
    check_tiers(scenario, pool, problems);
  }
}

std::vector<std::string> missing_value_warnings(const Scenario& scenario) {
  std::vector<std::string> warnings;
  for (std::size_t g = 0; g < scenario.nodes.size(); ++g) {
    const NodeGroup& group = scenario.nodes[g];
    const std::vector<DType> used = used_dtypes(scenario, g);
    if (used.empty()) continue;
    const auto warn = [&](const std::vector<std::string>& fields, const char* cells) {
      if (fields.empty()) return;
      warnings.push_back(
          fmt::format("cluster.nodes.{} ({}): unknown {}; {} cells stay blank; supply {} or "
                      "--assume-missing",
                      group.name, group.device.name, fmt::join(fields, ", "), cells,
                      all_lines(group.name, fields)));
    };
    warn(unknown_power(group.device, group.type, used), "energy");
    warn(unknown_price(group.device, group.type, scenario.price.prefer_capex), "cost");
  }
  if (!scenario.price.energy) {
    warnings.push_back(
        "price.energy is not given: the cost of electricity stays blank; supply "
        "--set 'price.energy=0.12 USD/kWh'");
  }
  if (!scenario.price.carbon_g_per_joule) {
    warnings.push_back(
        "price.carbon_intensity is not given: carbon stays blank; supply "
        "--set 'price.carbon_intensity=400 gCO2/kWh'");
  }
  return warnings;
}

std::vector<std::string> assumed_value_warnings(
    const Scenario& scenario, const std::map<std::string, std::vector<std::string>>& assumed) {
  std::vector<std::string> warnings;
  for (std::size_t g = 0; g < scenario.nodes.size(); ++g) {
    const NodeGroup& group = scenario.nodes[g];
    const auto it = assumed.find(group.name);
    const std::vector<DType> used = used_dtypes(scenario, g);
    if (it == assumed.end() || used.empty()) continue;
    std::vector<std::string> fields;
    for (const std::string& field : it->second) {
      const bool per_flop = field.find("energy_per_flop.") != std::string::npos;
      const bool needed = per_flop
                              ? std::any_of(used.begin(), used.end(),
                                            [&](DType d) { return field.ends_with(to_string(d)); })
                              : !field.ends_with(scenario.price.prefer_capex ? ".rent" : ".capex");
      if (needed) fields.push_back(field);
    }
    if (fields.empty()) continue;
    warnings.push_back(fmt::format("cluster.nodes.{} ({}): assumed from class priors: {}",
                                   group.name, group.device.name, fmt::join(fields, ", ")));
  }
  return warnings;
}

DeviceSpec device_of(const Scenario& scenario, const PoolSpec& pool) {
  DeviceSpec d = scenario.nodes[pool.node_group].device;
  const double f = pool.sharing.fraction;
  if (f >= 1.0) return d;
  const auto scale = [&](auto& sourced, double by) {
    if (sourced.value) *sourced.value *= by;
  };
  scale(d.memory_capacity, f);
  scale(d.power.deep_idle, f);
  scale(d.power.context_idle, f);
  scale(d.rent, f);
  scale(d.capex, f);
  if (pool.sharing.mode == SharingSpec::Mode::kMig) {
    scale(d.power.active_floor, f);
    scale(d.power.limit, f);
    for (auto& peak : d.peak) scale(peak, f);
    scale(d.memory_bandwidth, f);
    for (OpEfficiency& e : d.efficiency) {  // as many kernels' worth of work fill a smaller slice
      for (auto& ramp : e.compute) {
        if (ramp.value) ramp.value->half *= f;
      }
      if (e.memory.value) e.memory.value->half *= f;
      for (auto& ramp : e.memory_by_format) {
        if (ramp.value) ramp.value->half *= f;
      }
    }
    return d;
  }
  // Its part of the floor; the whole device's room above it, while the others are quiet.
  if (d.power.limit.value && d.power.active_floor.value) {
    *d.power.limit.value -= *d.power.active_floor.value * (1.0 - f);
  }
  scale(d.power.active_floor, f);
  return d;
}

StepModelInput step_model_input(const Scenario& scenario, const PoolSpec& pool) {
  const NodeGroup& group = scenario.nodes[pool.node_group];
  StepModelInput input;
  input.model = pool.model;
  input.device = device_of(scenario, pool);
  input.node = group.type;
  input.backend = pool.backend;
  input.precision = pool.precision;
  input.tensor_parallel = pool.tensor_parallel;
  input.pipeline_parallel = pool.pipeline_parallel;
  input.expert_parallel = pool.expert_parallel;
  input.spec = pool.step_model;
  return input;
}

std::vector<MemoryAccount> check_feasible(const Catalog&, const Scenario& scenario) {
  std::vector<MemoryAccount> accounts;
  std::string reasons;
  for (const PoolSpec& pool : scenario.pools) {
    try {
      accounts.push_back(memory_account(step_model_input(scenario, pool), pool.memory_utilization,
                                        pool.batching.max_num_batched_tokens,
                                        pool.batching.block_size, pool.batching.max_num_seqs,
                                        pool.num_blocks_override));
    } catch (const InfeasibleError& e) {
      reasons += fmt::format("{}pools.{}: {}", reasons.empty() ? "" : "\n", pool.name, e.what());
    }
  }
  if (!reasons.empty()) throw InfeasibleError(reasons);
  return accounts;
}

}  // namespace medley
