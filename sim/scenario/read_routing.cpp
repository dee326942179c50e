#include <fmt/format.h>

#include <algorithm>

#include "sim/scenario/read.h"
#include "sim/serving/routing.h"

namespace medley {

namespace {
/// `at`: the object that holds "policy" and the policy's parameters.
RoutingPolicy read_policy(ResolvingReader& at, const std::string& fallback) {
  RoutingPolicy policy;
  policy.name = at.text_or("policy", fallback);
  const auto* entry = routing_registry().find(policy.name);
  if (!entry) {
    at.problem("policy", fmt::format("unknown routing policy \"{}\"", policy.name),
               suggest(policy.name, routing_registry().names()));
    return policy;
  }
  for (const ParamInfo& p : entry->params) {
    policy.params[p.name] = at.number_or(p.name, p.fallback, Range{p.min, p.max});
  }
  return policy;
}

std::string pool_key(const PoolSpec& pool, const char* key) {
  return "pools." + pool.name + "." + key;
}

/// What keeps `decode` from taking the KV of `prefill`; empty when nothing does.
std::string pair_problem(const PoolSpec& prefill, const PoolSpec& decode) {
  if (prefill.backend.name != decode.backend.name) {
    return fmt::format("engines differ ({} and {}): their KV layouts do too", prefill.backend.name,
                       decode.backend.name);
  }
  if (prefill.precision.kv != decode.precision.kv) {
    return fmt::format("KV formats differ ({} and {})", to_string(prefill.precision.kv),
                       to_string(decode.precision.kv));
  }
  if (prefill.batching.block_size != decode.batching.block_size) {
    return fmt::format("block sizes differ ({} and {})", prefill.batching.block_size,
                       decode.batching.block_size);
  }
  const int p = prefill.tensor_parallel;
  const int d = decode.tensor_parallel;
  switch (prefill.backend.kv_transfer) {
    case KvTransferSupport::kNone:
      return fmt::format("{} cannot move KV between instances", prefill.backend.name);
    case KvTransferSupport::kEqual:
      if (p == d) return "";
      return fmt::format("{} needs equal tensor_parallel_size, not {} and {}", prefill.backend.name,
                         p, d);
    case KvTransferSupport::kDecodeMultiple:
      if (d % p == 0) return "";
      return fmt::format(
          "{} needs a decode tensor_parallel_size that is a multiple of the prefill's: {} and {}",
          prefill.backend.name, d, p);
    case KvTransferSupport::kAny:
      break;
  }
  if (p % d == 0 || d % p == 0) return "";
  return fmt::format("KV heads of tensor_parallel_size {} do not regroup into {}", p, d);
}

void check_pairs(ResolvingReader& root, const std::vector<PoolSpec>& pools) {
  for (const PoolSpec& pool : pools) {
    if (pool.role == PoolRole::kUnified) continue;
    const PoolRole other = pool.role == PoolRole::kPrefill ? PoolRole::kDecode : PoolRole::kPrefill;
    const bool paired = std::any_of(pools.begin(), pools.end(), [&](const PoolSpec& p) {
      return p.role == other && p.model_name == pool.model_name;
    });
    if (!paired) {
      root.problem("pools/" + pool.name + "/role",
                   fmt::format("no pool of model {} has role \"{}\"", pool.model_name,
                               other == PoolRole::kDecode ? "decode" : "prefill"),
                   "prefill and decode pools come in pairs");
    }
    if (pool.role != PoolRole::kPrefill) continue;
    for (const PoolSpec& decode : pools) {
      if (decode.role != PoolRole::kDecode || decode.model_name != pool.model_name) continue;
      const std::string reason = pair_problem(pool, decode);
      if (reason.empty()) continue;
      root.problem("pools/" + decode.name + "/role",
                   fmt::format("cannot take the KV of {}: {}", pool_key(pool, "role"), reason));
    }
  }
}
}  // namespace

RoutingPolicy read_routing(ResolvingReader& root) {
  ResolvingReader routing = root.object_or_empty("routing");
  RoutingPolicy policy = read_policy(routing, RoutingPolicy{}.name);
  routing.finish();
  return policy;
}

KvTransferSpec read_kv_transfer(ResolvingReader& root, const std::vector<PoolSpec>& pools) {
  KvTransferSpec spec;
  check_pairs(root, pools);
  root.in().raw("kv_transfer");
  const bool split = std::any_of(pools.begin(), pools.end(),
                                 [](const PoolSpec& p) { return p.role != PoolRole::kUnified; });
  if (!split) {
    if (root.has("kv_transfer")) {
      root.problem("kv_transfer", "no pool has role \"prefill\": nothing is transferred",
                   "give two pools of a model the roles prefill and decode, or leave it out");
    }
    return spec;
  }
  ResolvingReader at = root.object_or_empty("kv_transfer");
  const std::string overlap = at.choice_or("overlap", {"layer", "chunk", "none"}, "layer");
  spec.overlap = overlap == "layer"   ? KvTransferSpec::Overlap::kLayer
                 : overlap == "chunk" ? KvTransferSpec::Overlap::kChunk
                                      : KvTransferSpec::Overlap::kNone;
  const std::string first = at.choice_or("first_token", {"decode", "prefill"}, "decode");
  spec.first_token = first == "decode" ? Handoff::kDecodeToken : Handoff::kPrefillToken;
  ResolvingReader pairing = at.object_or_empty("pairing");
  spec.pairing = read_policy(pairing, spec.pairing.name);
  if (spec.pairing.name == "central_queue") {
    pairing.problem("policy", "a prompt is paired as soon as a decode replica has room for it",
                    "choose least_outstanding_tokens, round_robin, ...");
  }
  pairing.finish();
  at.finish();
  return spec;
}

}  // namespace medley
