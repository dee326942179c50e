#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hwmodels/backend.h"
#include "hwmodels/device.h"
#include "hwmodels/node.h"
#include "hwmodels/topology/cluster.h"
#include "sim/core/sim_time.h"
#include "sim/core/units.h"
#include "sim/cost/step_model.h"
#include "sim/scenario/failure_spec.h"
#include "sim/serving/policy_spec.h"
#include "workloads/model.h"
#include "workloads/request.h"
#include "workloads/step_ops.h"

namespace medley {

/// `count` servers of one type; devices numbered node by node.
struct NodeGroup {
  std::string name;
  NodeSpec type;
  DeviceSpec device;              ///< with the scenario's overrides and power limit applied
  std::optional<DeviceSpec> cpu;  ///< host CPU, where the node type names one
  int count = 1;
  /// Its devices are the host CPUs of the servers of this group (a pool with "device": "cpu").
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t host_of = kNone;
};

/// Which part of a request a pool runs.
enum class PoolRole : std::uint8_t { kUnified, kPrefill, kDecode };

/// How prompts' KV moves from prefill to decode pools of a model.
struct KvTransferSpec {
  /// When bytes may leave: layer by layer while the prompt is computed, chunk by chunk, or all
  /// together once it is computed.
  enum class Overlap : std::uint8_t { kLayer, kChunk, kNone } overlap = Overlap::kLayer;
  Handoff first_token = Handoff::kDecodeToken;
  /// Picks the decode replica, among those with room for the prompt's KV.
  RoutingPolicy pairing{"least_outstanding_tokens", {}};
};

/// How a pool's replicas share devices with replicas of other pools (or of their own).
struct SharingSpec {
  enum class Mode : std::uint8_t {
    kExclusive,
    kTimeSlice,  ///< kernels of one replica at a time
    kMps,        ///< kernels side by side: arithmetic and memory bandwidth shared as demanded
    kMig         ///< a fixed slice of the device: nothing shared
  } mode = Mode::kExclusive;
  double fraction = 1.0;  ///< of each device's memory (kMig: of everything)
};

/// What slows steps down.
struct ContentionSpec {
  bool steps = true;     ///< steps wait for others on shared devices and links; false: as if alone
  bool layered = false;  ///< kernels and messages of every layer in turn; else of a whole step
};

/// Storage for KV below the devices' own memory.
struct KvTierSpec {
  enum class Where : std::uint8_t { kHost, kCxl, kNvme, kRemote } where = Where::kHost;
  /// Who shares it, among the replicas of the pool.
  enum class Scope : std::uint8_t { kNode, kReplica, kCluster } scope = Scope::kNode;
  Bytes capacity;              ///< of each node's, replica's or the one
  std::size_t node_group = 0;  ///< kRemote: whose DRAM
};
std::string_view to_string(KvTierSpec::Where where);

/// A pool's tiers and what moves between them.
struct KvTieringSpec {
  std::vector<KvTierSpec> tiers;  ///< in order; empty: what is evicted is lost
  bool write_through = false;     ///< stored when computed, not when evicted
  bool recall_if_faster = false;  ///< only where it beats recomputing
  bool swap = false;              ///< blocks of preempted requests go to the tiers too
  Bytes staging = Bytes(4e9);     ///< most bytes of a replica on their way down at a time
};

/// How a replica's weights reach its devices before it serves.
struct WeightLoadSpec {
  enum class From : std::uint8_t {
    kNone,    ///< they are there
    kNvme,    ///< the drives of its server
    kHost,    ///< DRAM of its devices' sockets
    kNetwork  ///< DRAM of a node group, its nodes in turn
  } from = From::kNone;
  bool at_start = true;  ///< also when the run begins; else only when it starts again
  Seconds engine_start = Seconds(0.0);  ///< of the engine, once they are there
  std::size_t node_group = 0;           ///< kNetwork
};

/// Decoding requests that move to other replicas of their pool with their KV.
struct MigrationSpec {
  enum class Policy : std::uint8_t { kNone, kBalance, kDrain } policy = Policy::kNone;
  Seconds interval = Seconds(1.0);  ///< between looks
  double threshold = 0.2;           ///< kBalance: difference of KV usage (shares of the blocks)
  std::int64_t queue = 8;           ///< kBalance: difference of waiting requests
  std::int64_t stop_tokens = 64;    ///< it stops once at most so many are left to send,
  std::int64_t rounds = 4;          ///< or after so many copies while it decodes
  struct Drain {
    std::size_t pool = 0;
    std::uint32_t replica = 0;
    SimTime at;  ///< from then on it takes nothing new and gives away what it has
  };
  std::vector<Drain> drains;  ///< kDrain
};

/// Replicas of one model on one node group: everything resolved.
struct PoolSpec {
  std::string name;
  std::size_t node_group = 0;  ///< index into Scenario::nodes
  ModelSpec model;
  std::string model_name;  ///< as written; requests name it
  BackendSpec backend;     ///< with the pool's overrides applied
  Precision precision;
  PoolRole role = PoolRole::kUnified;
  SharingSpec sharing;
  int replicas = 1;
  int tensor_parallel = 1;
  int pipeline_parallel = 1;
  bool expert_parallel = false;
  BatchPolicy batching;  ///< scheduler, limits, admission order
  double memory_utilization = 0.9;
  std::int64_t max_model_len = 0;        ///< 0: the model's own
  std::int64_t num_blocks_override = 0;  ///< 0: from memory
  StepModelSpec step_model;              ///< roofline, kernel tables or constants
  KvTieringSpec tiering;
  WeightLoadSpec load_weights;
  int devices_per_replica() const { return tensor_parallel * pipeline_parallel; }
  /// Devices that a replica pays for: a part of each where it shares them.
  double device_share() const { return devices_per_replica() * sharing.fraction; }
};

struct SloSpec {
  std::optional<Seconds> ttft;
  std::optional<Seconds> tpot;
  std::optional<Seconds> e2e;
};

/// Money and carbon. Unknown values leave their cells blank.
struct PriceSpec {
  std::optional<UsdPerJoule> energy;         ///< electricity
  std::optional<double> carbon_g_per_joule;  ///< grid intensity
  double pue = 1.0;                          ///< site energy over IT energy
  bool prefer_capex = false;                 ///< amortise capex instead of renting
  Seconds amortization = Seconds(4.0 * 365.0 * 86400.0);
};

struct MeasureSpec {
  SimTime warmup;                 ///< requests arriving earlier are left out of the summary
  std::optional<Seconds> window;  ///< length after warm-up; to the end of the run when absent
};

struct ReportSpec {
  Seconds interval = Seconds(1.0);  ///< of timeseries.csv and energy.csv
  enum class Requests { kAll, kNone, kSample } requests = Requests::kAll;
  std::int64_t sample = 0;
  bool chrome_trace = false;
};

/// A frozen, fully resolved run: plain values, safe to share between threads.
struct Scenario {
  std::string name;
  std::string file;
  std::uint64_t seed = 1;
  std::vector<NodeGroup> nodes;
  ClusterFabricSpec fabric;  ///< how they are joined; empty: see build_cluster
  std::vector<PoolSpec> pools;
  RoutingPolicy routing;
  KvTransferSpec kv_transfer;
  MigrationSpec migration;
  ContentionSpec contention;
  FailureSpec failures;
  Trace trace;
  std::map<std::string, SloSpec> slo;  ///< by class; "default" serves classes without their own
  PriceSpec price;
  MeasureSpec measure;
  std::optional<SimTime> horizon;  ///< stop here; absent: until the last request ends
  ReportSpec report;
  bool fast_forward = true;
  std::optional<std::uint64_t> tie_seed;  ///< permute simultaneous events
  bool assume_missing = false;
  std::string resolved_json;          ///< the scenario after includes, overrides and defaults
  std::string hash8;                  ///< first 8 hex digits of its FNV-1a
  std::vector<std::string> warnings;  ///< worth telling on stderr
};

}  // namespace medley
