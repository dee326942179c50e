#pragma once

#include <map>
#include <string>
#include <vector>

#include "hwmodels/catalog.h"
#include "sim/core/error.h"
#include "sim/scenario/resolving_reader.h"
#include "sim/scenario/scenario.h"
#include "workloads/model.h"

namespace medley {

/// What the readers of one load share.
struct ReadContext {
  const Catalog& catalog;
  const ModelZoo& zoo;
  std::string folder;  ///< of the scenario file
  bool assume_missing = false;
  std::vector<std::string>& warnings;
  std::map<std::string, std::vector<std::string>>& assumed;  ///< node group -> fields, sorted
};

/// {"nodes": {name: {"type" | inline node, "count", "power_limit", "overrides"}}, "fabric": how
/// they are joined (read_cluster_fabric), kept as written in the resolved form}
std::vector<NodeGroup> read_cluster(ResolvingReader& cluster, const ReadContext& context,
                                    ClusterFabricSpec& fabric);

/// Catalogue values of a group's device and node ("node." in front) replaced by the scenario's:
/// {"power": {"context_idle": "60 W"}, "node.price.rent": "20 USD/h"}. A bare value is marked
/// `assumed`; {"value", "class", "source"} is taken as is. An overridden rate keeps its efficiency
/// curve: the whole curve scales.
void apply_overrides(ResolvingReader& group, DeviceSpec& device, NodeSpec& node);
/// A node type spelled out in the scenario: the catalogue's format with bare values allowed.
NodeSpec read_inline_node(ResolvingReader& group, const std::string& name);

/// {name: pool}. `groups` are those of read_cluster.
/// A pool on host CPUs adds their group behind the others.
std::vector<PoolSpec> read_pools(ResolvingReader& root, std::vector<NodeGroup>& groups,
                                 const ReadContext& context);

/// Number formats of a pool from "dtype", "quantization", "kv_cache_dtype",
/// "allow_dtype_fallback":
///   dtype "auto"   the checkpoint's (32-bit ones run in 16 bit)
///   quantization   fp8, int8 = w8a8: weights and GEMM arithmetic; awq, gptq, int4, mxfp4: weights
///                  only; nvfp4: both; none; auto: the checkpoint's
///   kv "auto"      dtype
/// A format the device computes in only after conversion is a problem naming the fallback.
/// `model.dtype` becomes the deployed 16- or 32-bit format.
Precision read_precision(ResolvingReader& pool, ModelSpec& model, const DeviceSpec& device,
                         const BackendSpec& backend, const std::string& group);

/// A pool's "kv_tiers" (list, from the nearest on) with "kv_offload", "kv_recall", "kv_staging",
/// "preemption"; `known`: model and node group are.
void read_tiering(ResolvingReader& pool, PoolSpec& spec, const std::vector<NodeGroup>& groups,
                  bool known);
/// A pool's "load_weights".
WeightLoadSpec read_load_weights(ResolvingReader& pool, const std::vector<NodeGroup>& groups);
/// "migration": decoding requests that move between replicas.
MigrationSpec read_migration(ResolvingReader& root, const std::vector<PoolSpec>& pools);

RoutingPolicy read_routing(ResolvingReader& root);
/// "kv_transfer": how prefill pools hand prompts to decode pools. Checks that every model with one
/// has the other and that the backends can deploy the pair (BackendSpec::kv_transfer).
ContentionSpec read_contention(ResolvingReader& root);
SharingSpec read_sharing(ResolvingReader& pool);
/// "failures": what fails, when, and what is done about it.
FailureSpec read_failures(ResolvingReader& root, const std::vector<NodeGroup>& groups,
                          const std::vector<PoolSpec>& pools, const ClusterFabricSpec& fabric,
                          const ReadContext& context);
KvTransferSpec read_kv_transfer(ResolvingReader& root, const std::vector<PoolSpec>& pools);
std::map<std::string, SloSpec> read_slo(ResolvingReader& root);
PriceSpec read_price(ResolvingReader& root);
MeasureSpec read_measure(ResolvingReader& root);
ReportSpec read_report(ResolvingReader& root);

/// Calls `get`; what it throws is recorded as problems at `key`. Returns false then.
template <class Get>
bool try_at(ResolvingReader& reader, std::string_view key, const Get& get) {
  try {
    get();
    return true;
  } catch (const InputError& error) {
    for (const Problem& p : error.problems()) {
      if (p.file.empty()) {
        reader.problem(key, p.message, p.hint);
      } else {
        reader.problems().add(p);
      }
    }
    return false;
  }
}

}  // namespace medley
