#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/engine/engine.h"
#include "sim/runtime/tier_record.h"
#include "sim/runtime/transport.h"
#include "sim/scenario/scenario.h"
#include "sim/serving/kv_backing.h"
#include "sim/serving/kv_tier.h"

namespace medley {

/// The KV tiers of a fleet and what moves between them and the replicas.
///
/// Every device of a replica keeps its own part of a block (its heads, its layers); a recall or a
/// store is one flow per device and tier, over the cluster's wires like anything else:
///   alone: latency of the route + bytes / least bandwidth on it
/// Places: host: DRAM of the device's socket; nvme: the drives of its server; cxl: the memory pool
/// behind the sockets (modules in turn); remote: DRAM of a node group (its nodes in turn). Tiers of
/// a node or of the cluster are shared by the replicas of ONE pool there.
///
/// Stores go down one level; what a level evicts goes down the next, or is lost at the last. The
/// room is taken when a store starts, hits begin when it has arrived. What a store copies may be
/// overwritten at once: engines keep some blocks ahead of the writer; `staging` bounds what a
/// replica may have under way, and an eviction beyond it is dropped and counted.
///
/// Assumes: the blocks that decoding takes are evicted at the end of a run of steps (at most 512 of
/// them late); prompts take theirs at once. Energy of DRAM, drives and links is not counted.
///
/// Law: a tier's bytes_in and bytes_out are the sums of the flows that start; used <= capacity.
class KvTiers {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    /// A recall starts (bytes from the tiers, tokens), or all of it has arrived.
    virtual void on_recall(std::uint32_t unit, std::uint32_t request, bool again,
                           std::int64_t tokens) = 0;
    virtual void on_recalled(std::uint32_t unit, std::uint32_t slot, std::uint32_t request,
                             Seconds took) = 0;
  };
  struct Site {  ///< a replica
    std::uint16_t pool = 0;
    std::uint32_t replica = 0;
    DevicePlace place;
  };
  /// `kind`: the tag's upper bits; lower ones are ours.
  KvTiers(const Scenario& scenario, Engine& engine, Transport& transport,
          const std::vector<Site>& sites, std::uint64_t tag, Listener& listener);
  ~KvTiers();

  /// Null where the replica's pool has no tiers.
  KvBacking* backing(std::uint32_t unit);
  /// Starts what the replicas asked for since the last call; before Transport::settle.
  void flush();
  void on_arrived(std::uint64_t tag);
  /// A replica has failed: what it fetched and what it stored from its devices stops.
  void fail(std::uint32_t unit);
  /// A node has failed: what its DRAM held is gone.
  void lose_node(const Scenario& scenario, std::uint32_t group, std::uint32_t node);
  std::vector<TierRecord> records() const;

 private:
  class Port;
  struct Store {
    KvTier tier;
    TierRecord record;
    double block_bytes = 0.0;
  };
  struct Unit {
    std::uint32_t request_hash = 0;
    std::vector<double> block_bytes;                   ///< by device
    std::vector<std::uint32_t> devices;                ///< vertices
    std::vector<std::uint32_t> stores;                 ///< by level
    std::vector<std::vector<std::uint32_t>> vertices;  ///< by level and device
    double under_way = 0.0;                            ///< bytes of its stores
    const KvTieringSpec* spec = nullptr;
    std::int32_t block_tokens = 0;
  };
  struct Held {
    std::uint32_t store = 0;
    std::uint64_t id = 0;
  };
  /// One recall, or one batch of entries on their way down.
  struct Job {
    bool open = false;
    bool recall = false;
    std::uint32_t unit = 0, slot = 0, request = 0;
    int from = 0, to = 0;  ///< levels; -1: the device
    SimTime started;
    std::vector<Held> entries;
    std::vector<double> blocks;  ///< by level
    double bytes = 0.0;
    std::int32_t flows_left = 0;
    std::vector<TransferHandle> flows;
  };

  void add_unit(const Scenario& scenario, const Site& site);
  std::uint32_t vertex_of(const Scenario& scenario, const KvTierSpec& tier, const Site& site,
                          std::uint32_t device) const;
  std::uint32_t new_job();
  void start(std::uint32_t job);
  void offer(std::uint32_t unit, int from, std::uint64_t id, std::int64_t blocks);
  void forget(std::uint32_t unit, std::uint64_t id);
  std::int64_t find(std::uint32_t unit, std::uint64_t id) const;
  std::size_t level_with(const Unit& unit, std::uint64_t id, std::int64_t blocks) const;
  bool worth(std::uint32_t unit, const std::vector<KvBacking::Part>& parts,
             double recompute_s) const;
  void fetch(std::uint32_t unit, std::uint32_t slot, std::uint32_t request, bool again,
             const std::vector<KvBacking::Part>& parts);
  void flows_of(const Job& job, std::uint64_t tag, std::vector<TransportFlow>& out) const;

  Engine& engine_;
  Transport& transport_;
  Listener& listener_;
  std::uint64_t tag_;
  std::vector<Unit> units_;
  std::vector<std::unique_ptr<Port>> ports_;
  std::vector<Store> stores_;
  std::vector<Job> jobs_;
  std::vector<std::uint32_t> spare_jobs_;
  std::vector<std::uint32_t> waiting_;  ///< jobs to start at the next flush
  std::vector<KvTier::Piece> evicted_;
  std::vector<TransportFlow> flows_;
};

}  // namespace medley
