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

}  // namespace medley
