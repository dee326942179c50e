#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/scenario/read.h"

namespace medley {

std::string_view to_string(KvTierSpec::Where where) {
  switch (where) {
    case KvTierSpec::Where::kHost:
      return "host";
    case KvTierSpec::Where::kCxl:
      return "cxl";
    case KvTierSpec::Where::kNvme:
      return "nvme";
    case KvTierSpec::Where::kRemote:
      return "remote";
  }
  return "";
}

namespace {
constexpr double kMostBytes = 1e18;
constexpr double kLongestStart = 1e6;  ///< s

/// The node group that key "node" names; reports what is wrong.
std::size_t read_store_group(ResolvingReader& at, const std::vector<NodeGroup>& groups) {
  const std::string name = at.text("node");
  const auto group = std::find_if(groups.begin(), groups.end(),
                                  [&](const NodeGroup& g) { return g.name == name; });
  if (group != groups.end()) return static_cast<std::size_t>(group - groups.begin());
  std::vector<std::string> names;
  for (const NodeGroup& g : groups) names.push_back(g.name);
  if (!name.empty()) {
    at.problem("node", fmt::format("the cluster has no node group \"{}\"", name),
               suggest(name, names));
  }
  return 0;
}

KvTierSpec read_tier(ResolvingReader& at, const std::vector<NodeGroup>& groups) {
  KvTierSpec tier;
  if (!at.has("where")) at.problem("where", "missing required key", "host, cxl, nvme or remote");
  const std::string where = at.choice_or("where", {"host", "cxl", "nvme", "remote"}, "host");
  tier.where = where == "host"   ? KvTierSpec::Where::kHost
               : where == "cxl"  ? KvTierSpec::Where::kCxl
               : where == "nvme" ? KvTierSpec::Where::kNvme
                                 : KvTierSpec::Where::kRemote;
  const bool local =
      tier.where == KvTierSpec::Where::kHost || tier.where == KvTierSpec::Where::kNvme;
  const std::string scope =
      at.choice_or("scope",
                   local ? std::vector<std::string>{"node", "replica"}
                         : std::vector<std::string>{"cluster", "node", "replica"},
                   local ? "node" : "cluster");
  tier.scope = scope == "node"      ? KvTierSpec::Scope::kNode
               : scope == "replica" ? KvTierSpec::Scope::kReplica
                                    : KvTierSpec::Scope::kCluster;
  if (const auto capacity = at.maybe_quantity<Bytes>("capacity", Range{1.0, kMostBytes})) {
    tier.capacity = *capacity;
  } else if (!at.has("capacity")) {
    at.problem("capacity", "missing required key", "how much KV it holds, for example \"200 GB\"");
  }
  at.choice_or("policy", {"lru"}, "lru");
  if (tier.where == KvTierSpec::Where::kRemote) {
    tier.node_group = read_store_group(at, groups);
  } else if (at.has("node")) {
    at.problem("node", fmt::format("a {} tier is where its replicas are", where),
               "leave it out, or \"where\": \"remote\"");
  }
  at.in().raw("node");
  at.finish();
  return tier;
}

/// Calls `visit` for each object of the list `key`, with a reader that writes its resolved form.
template <class Visit>
void each_of_list(ResolvingReader& from, const char* key, const Visit& visit) {
  nlohmann::json list = nlohmann::json::array();
  from.in().each_element(key, [&](std::size_t, ObjectReader reader) {
    nlohmann::json out;
    ResolvingReader at(std::move(reader), out, from.problems());
    visit(at);
    list.push_back(out);
  });
  if (!list.empty()) from.out()[key] = list;
}

/// DRAM is shared by what the pools of a group keep there.
void check_host_capacity(ResolvingReader& pool, const PoolSpec& spec, const NodeGroup& group) {
  double asked = 0.0;
  for (const KvTierSpec& tier : spec.tiering.tiers) {
    if (tier.where != KvTierSpec::Where::kHost) continue;
    const double copies = tier.scope == KvTierSpec::Scope::kReplica
                              ? std::max(1, group.type.devices / spec.devices_per_replica())
                              : 1;
    asked += copies * tier.capacity.value();
  }
  const Sourced<Bytes>& there = group.type.host_memory;
  if (!there.known() || asked <= (*there).value()) return;
  pool.problem("kv_tiers",
               fmt::format("host tiers of {:.6g} GB in a node with {:.6g} GB of DRAM", asked / 1e9,
                           (*there).value() / 1e9),
               "less, or more \"host\": {\"memory\"}");
}
}  // namespace

void read_tiering(ResolvingReader& pool, PoolSpec& spec, const std::vector<NodeGroup>& groups,
                  bool known) {
  KvTieringSpec& t = spec.tiering;
  each_of_list(pool, "kv_tiers",
               [&](ResolvingReader& at) { t.tiers.push_back(read_tier(at, groups)); });
  for (const char* key : {"kv_offload", "kv_recall", "kv_staging", "preemption"}) {
    pool.in().raw(key);
    if (t.tiers.empty() && pool.has(key)) {
      pool.problem(key, "there is no tier to move KV to",
                   "give kv_tiers, for example [{\"where\": \"host\", \"capacity\": \"200 GB\"}]");
    }
  }
  if (t.tiers.empty()) return;
  t.write_through =
      pool.choice_or("kv_offload", {"on_evict", "write_through"}, "on_evict") == "write_through";
  t.recall_if_faster =
      pool.choice_or("kv_recall", {"always", "if_faster"}, "always") == "if_faster";
  t.swap = pool.choice_or("preemption", {"recompute", "swap"}, "recompute") == "swap";
  t.staging = pool.quantity_or<Bytes>("kv_staging", t.staging, Range::positive());
  if (!spec.batching.prefix_caching) {
    pool.problem("kv_tiers", "needs the prefix cache, which is off", "enable_prefix_caching: true");
  }
  if (!known) return;
  if (kv_bytes_per_token(spec.model, 1, 1, 0, spec.precision.kv) <= 0.0) {
    pool.problem("kv_tiers", fmt::format("{} keeps no KV per token", spec.model.name));
  }
  check_host_capacity(pool, spec, groups[spec.node_group]);
}

WeightLoadSpec read_load_weights(ResolvingReader& pool, const std::vector<NodeGroup>& groups) {
  WeightLoadSpec spec;
  if (!pool.has("load_weights")) {
    pool.in().raw("load_weights");
    return spec;
  }
  ResolvingReader at = pool.object_or_empty("load_weights");
  if (!at.has("from")) at.problem("from", "missing required key", "nvme, host or network");
  const std::string from = at.choice_or("from", {"nvme", "host", "network"}, "nvme");
  spec.from = from == "nvme"   ? WeightLoadSpec::From::kNvme
              : from == "host" ? WeightLoadSpec::From::kHost
                               : WeightLoadSpec::From::kNetwork;
  spec.at_start = at.boolean_or("at_start", true);
  spec.engine_start =
      at.quantity_or<Seconds>("engine_start", Seconds(0.0), Range{0.0, kLongestStart});
  if (spec.from == WeightLoadSpec::From::kNetwork) {
    spec.node_group = read_store_group(at, groups);
  } else if (at.has("node")) {
    at.problem("node", "its own server has them", "leave it out, or \"from\": \"network\"");
  }
  at.in().raw("node");
  at.finish();
  return spec;
}

namespace {
void read_drain(ResolvingReader& at, const std::vector<PoolSpec>& pools, MigrationSpec& spec) {
  MigrationSpec::Drain drain;
  const std::string name = at.text("pool");
  const auto pool =
      std::find_if(pools.begin(), pools.end(), [&](const PoolSpec& p) { return p.name == name; });
  drain.replica = static_cast<std::uint32_t>(at.integer_or("replica", 0, 0, 1000000));
  drain.at = SimTime::from_seconds(at.quantity_or<Seconds>("at", Seconds(0.0), Range{0.0, 9e9}));
  if (pool == pools.end()) {
    std::vector<std::string> names;
    for (const PoolSpec& p : pools) names.push_back(p.name);
    if (!name.empty()) {
      at.problem("pool", fmt::format("there is no pool \"{}\"", name), suggest(name, names));
    }
  } else {
    drain.pool = static_cast<std::size_t>(pool - pools.begin());
    if (drain.replica >= static_cast<std::uint32_t>(pool->replicas)) {
      at.problem("replica",
                 fmt::format("{} has {} replicas, numbered from 0", name, pool->replicas));
    } else if (pool->replicas < 2) {
      at.problem("pool", fmt::format("{} has no other replica to take the work", name),
                 "replicas: 2 or more");
    }
    spec.drains.push_back(drain);
  }
  at.finish();
}
}  // namespace

MigrationSpec read_migration(ResolvingReader& root, const std::vector<PoolSpec>& pools) {
  MigrationSpec spec;
  if (!root.has("migration")) {
    root.in().raw("migration");
    return spec;
  }
  ResolvingReader at = root.object_or_empty("migration");
  const std::string policy = at.choice_or("policy", {"none", "balance", "drain"}, "none");
  spec.policy = policy == "none"      ? MigrationSpec::Policy::kNone
                : policy == "balance" ? MigrationSpec::Policy::kBalance
                                      : MigrationSpec::Policy::kDrain;
  spec.interval = at.quantity_or<Seconds>("interval", spec.interval, Range{1e-3, 9e9});
  spec.threshold = at.number_or("threshold", spec.threshold, Range::fraction());
  spec.queue = at.integer_or("queue", spec.queue, 1, 1000000);
  spec.stop_tokens = at.integer_or("stop_tokens", spec.stop_tokens, 1, 1000000);
  spec.rounds = at.integer_or("rounds", spec.rounds, 1, 1000);
  each_of_list(at, "drain", [&](ResolvingReader& entry) { read_drain(entry, pools, spec); });
  const bool drains = spec.policy == MigrationSpec::Policy::kDrain;
  if (drains != at.has("drain")) {
    at.problem("drain", drains ? "the policy drains nothing" : "belongs to the policy \"drain\"",
               "\"drain\": [{\"pool\": ..., \"replica\": 0, \"at\": \"60 s\"}]");
  }
  if (spec.policy != MigrationSpec::Policy::kNone) {
    for (const PoolSpec& pool : pools) {
      if (pool.pipeline_parallel == 1) continue;
      at.problem("policy",
                 fmt::format("pool {} is a pipeline: its requests do not move", pool.name),
                 "pipeline_parallel_size: 1");
    }
  }
  at.finish();
  return spec;
}

}  // namespace medley
