#include "sim/scenario/schema_sections.h"

namespace medley {

SchemaSection tiers_section() {
  return {
      "KV tiers",
      "Storage below a pool's own KV blocks. What its prefix cache evicts goes to the first tier, "
      "what that evicts to the next; a prompt that goes on in a tier waits for the transfer, takes "
      "its blocks meanwhile and blocks nobody. Everything crosses the cluster's wires.",
      {{"pools.<name>.kv_tiers", "list of {where, capacity, scope, policy, node}", "none",
        "from the nearest on. where: host (DRAM of the node), cxl (`cluster.fabric.pool`), nvme "
        "(the node's drives), remote (DRAM of node group `node`); scope: who of the pool shares "
        "one "
        "of that capacity: node (host, nvme), cluster (cxl, remote) or replica; policy: lru"},
       {"pools.<name>.kv_offload", "on_evict, write_through", "on_evict",
        "store blocks when they are evicted, or when they are computed"},
       {"pools.<name>.kv_recall", "always, if_faster", "always",
        "if_faster: only where the transfer alone beats prefilling the same tokens alone"},
       {"pools.<name>.preemption", "recompute, swap", "recompute",
        "swap: blocks of preempted requests go to the tiers too"},
       {"pools.<name>.kv_staging", "size", "4 GB",
        "most KV of a replica on its way to the tiers at a time; evictions beyond it are lost"}}};
}

}  // namespace medley
