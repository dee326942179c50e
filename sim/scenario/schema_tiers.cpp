#include "sim/scenario/schema_sections.h"

namespace medley {

std::vector<SchemaSection> tier_sections() {
  return {
      {"KV tiers",
       "Storage below a pool's own KV blocks. What its prefix cache evicts goes to the first tier, "
       "what that evicts to the next; a prompt that goes on in a tier waits for the transfer, "
       "takes "
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
         "most KV of a replica on its way to the tiers at a time; evictions beyond it are lost"}}},
      {"Cold start",
       "A replica serves once its weights have crossed the links, which those of its node share, "
       "and "
       "its engine has started. Others of its model are asked first meanwhile.",
       {{"pools.<name>.load_weights.from", "nvme, host, network", "required",
         "the drives of its server, DRAM there, or DRAM of node group `node`"},
        {"pools.<name>.load_weights.node", "name of a node group", "required for network", ""},
        {"pools.<name>.load_weights.at_start", "true/false", "true",
         "load when the run begins; false: only when a replica starts again"},
        {"pools.<name>.load_weights.engine_start", "time", "0 s",
         "of the engine once the weights are there: graph capture, warm-up"}}},
      {"Live migration",
       "Decoding requests move to another replica of their pool: their KV is copied while they "
       "decode, then they stop and the tokens made meanwhile follow.",
       {{"migration.policy", "none, balance, drain", "none",
         "balance: from the replica with the most KV in use to the one with the least; drain: away "
         "from the replicas listed"},
        {"migration.interval", "time", "1 s", "between looks"},
        {"migration.threshold", "number 0..1", "0.2", "balance: least difference of KV usage"},
        {"migration.queue", "integer >= 1", "8",
         "balance: or the least difference of waiting requests"},
        {"migration.stop_tokens", "integer >= 1", "64",
         "a request stops once at most so many tokens are left to send"},
        {"migration.rounds", "integer >= 1", "4", "or after so many copies"},
        {"migration.drain", "list of {pool, replica, at}", "",
         "drain: from `at` on the replica takes nothing new and gives away what it has"}}}};
}

}  // namespace medley
