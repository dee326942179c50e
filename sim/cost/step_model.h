#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hwmodels/backend.h"
#include "hwmodels/catalog.h"
#include "hwmodels/device.h"
#include "hwmodels/node.h"
#include "sim/core/provenance.h"
#include "workloads/model.h"
#include "workloads/step_ops.h"

namespace medley {

enum class StepModelKind : std::uint8_t { kRoofline, kTables, kConstant };

/// How the time of a step is found.
struct StepModelSpec {
  StepModelKind kind = StepModelKind::kRoofline;
  /// kTables: a profile folder (dense.csv, attention.csv, per_sequence.csv; times in us).
  std::string tables_directory;
  /// Decode skew alpha: t = t(mean KV) + alpha (t(max KV) - t(mean KV)); absent: the backend's.
  std::optional<double> decode_skew;
  /// kConstant: step = per_step + per_prompt_token * chunk tokens + per_sequence * sequences.
  Seconds per_step;
  Seconds per_prompt_token;
  Seconds per_sequence;
  /// Multiplies every device time: the error of the model's form under a parameter draw
  /// (hwmodels/draw.h). No kernel gets faster than its datasheet rate (INV-9).
  double time_factor = 1.0;
};

/// Shares of a step in kernels outside the range that what decides their time was fitted to or
/// measured on: the ramp's `low` to `high`, the grid of a kernel table, the payloads of a
/// collective table. Ramps without a range (priors, data sheets) never count: their class says
/// enough.
struct Extrapolated {
  double time = 0.0;    ///< of device_s, launches apart
  double energy = 0.0;  ///< of dynamic_j
};

/// Cost of one step of one replica (all its devices together where energy is meant).
struct StepCost {
  double kernels_s = 0.0;  ///< device time before a duty cycle; set where the power limit can act
  double stage_s = 0.0;    ///< device time of the slowest pipeline stage
  double device_s = 0.0;   ///< device time through all stages
  double step_s = 0.0;     ///< with the host: what the requests wait for
  double host_floor_s = 0.0;  ///< step_s = max(device_s, host_floor_s) + what the host adds
  double dynamic_j = 0.0;     ///< energy above the active floor, all devices
  double prefill_j = 0.0;     ///< part of dynamic_j: prefill attention
  double kv_j = 0.0;          ///< part of dynamic_j: decode attention, linear in decode context
  double clock = 1.0;         ///< phi: 1 unless the power limit binds
  // What bounds device_s; the rest of it is bound by arithmetic (and what a duty cycle adds).
  double memory_s = 0.0;                  ///< kernels bound by memory, through all stages
  double link_s = 0.0;                    ///< collectives and sends
  double launch_s = 0.0;                  ///< launches, which the host paces
  double flops = 0.0;                     ///< all devices
  double bytes = 0.0;                     ///< device-memory traffic, all devices
  double link_bytes = 0.0;                ///< collective payload moved, all devices
  double trust[kProvenanceClasses] = {};  ///< shares of device_s by provenance class, sum 1
  Extrapolated extrapolated;
};

/// What a step uses of what others may use too; times as if alone.
///   kernels: device_s - link_s seconds of every device, of which compute_s at full arithmetic rate
///   and memory_s at full memory rate (sums over kernels; they overlap)
///   links: link_s seconds, in which each rank moves the payloads below
struct StepUse {
  double step_s = 0.0;
  double device_s = 0.0;
  double host_floor_s = 0.0;  ///< see StepCost
  double compute_s = 0.0;     ///< per device
  double memory_s = 0.0;      ///< per device
  double link_s = 0.0;
  double all_reduce_bytes = 0.0;  ///< payload per rank, all stages
  double all_to_all_bytes = 0.0;
  double send_bytes = 0.0;  ///< between pipeline stages, per rank, all boundaries
  int collectives = 0;      ///< messages one after the other in the step
};

/// One step of a decode batch.
struct DecodePoint {
  double step_s = 0.0;
  double busy_s = 0.0;  ///< device-busy part of the step
  double dynamic_j = 0.0;
  double kv_j = 0.0;
  double flops = 0.0;
  double bytes = 0.0;
  double memory_s = 0.0;  ///< of busy_s: kernels bound by memory
};

/// Consecutive decode steps j = 0, 1, ... of an unchanged batch: everything linear in j.
struct DecodeLine {
  DecodePoint first;       ///< step 0
  DecodePoint slope;       ///< added per step
  std::int64_t steps = 1;  ///< how many steps the line holds for, >= 1
};

class DecodeBatch;

/// One row of `medley explain`: a kernel kind in one step.
struct OpCost {
  std::string name;
  OpClass op_class = OpClass::kGemm;
  DType dtype = DType::kBf16;
  int stage = 0;
  int repeats = 0;
  double flops = 0.0;  ///< of one repeat, one rank
  double bytes = 0.0;
  double message_bytes = 0.0;
  double compute_s = 0.0;  ///< of one repeat
  double memory_s = 0.0;
  double serial = 0.0;  ///< share of the shorter of the two that the longer does not hide
  double launch_s = 0.0;
  double time_s = 0.0;  ///< all repeats
  std::string bound;    ///< "compute", "memory", "link", "launch", "table", "constant"
  Provenance provenance = Provenance::kAssumed;
  std::string source;
  std::string range;  ///< "inside" or "outside" what decides its time; empty: it has no range
};

/// Power of one replica's devices; absent values are unknown ("missing:<field>").
struct ReplicaPower {
  int devices = 1;
  std::optional<Watts> deep_idle;  ///< per device
  std::optional<Watts> context_idle;
  std::optional<Watts> active_floor;
  std::optional<Watts> limit;
  bool dynamic_known = false;        ///< energy per flop (of the dtypes used) and per byte known
  std::vector<std::string> missing;  ///< field names
  Provenance provenance = Provenance::kAssumed;  ///< weakest of those used
};

/// Everything that decides the cost of a step.
struct StepModelInput {
  ModelSpec model;
  DeviceSpec device;
  NodeSpec node;
  BackendSpec backend;
  Precision precision;
  int tensor_parallel = 1;
  int pipeline_parallel = 1;
  bool expert_parallel = false;
  StepModelSpec spec;
};

/// Time and energy of serving steps from the batch's composition. Immutable after construction but
/// for internal memo tables: one instance per run and pool, not shared between threads.
///
/// Roofline, per kernel kind i (repeated r_i times):
///   C_i = (F + F_half) / (phi peak e_F),  M_i = (B + B_half) / (BW e_B)
///   t_i = launch + max(C_i, M_i) + serial min(C_i, M_i)
///   device = sum r_i t_i + collectives,  step: hwmodels/backend.h.
/// Clock phi: the highest of 64 steps in [clock_min, 1] with floor + (j_F v(phi)^2 F + j_B
/// B)/t(phi)
/// <= limit; below clock_min the step is stretched until the average meets the limit.
/// Skew of KV lengths adds alpha (n max_kv - sum kv) tokens to the decode attention's context.
/// Law: step_s non-decreasing in every feature; never below the roofline with e = 1 (INV-9).
class StepModel {
 public:
  /// Throws InputError (missing peak, memory or bandwidth; dtype not covered) or InfeasibleError.
  StepModel(const Catalog& catalog, StepModelInput input);
  ~StepModel();
  StepModel(StepModel&&) noexcept;

  /// One step. `max_kv` is the longest decode context (the new token included), 0 without decodes.
  StepCost step(const Features& x, double max_kv) const;
  /// The same at a clock decided earlier (a decode run keeps the clock of its first step).
  StepCost step_at_clock(const Features& x, double max_kv, double clock) const;
  /// The coming decode steps of a pure decode batch, its clock decided now. `below_window`
  /// sequences have not yet filled the sliding window (their windowed context still grows).
  DecodeBatch decode_batch(const Features& x, double max_kv, double below_window) const;

  /// What the step of `cost` uses of devices and links. Measured tables and constants count as
  /// kernels that use all of their device; tables hold collectives in their kernels' times.
  StepUse use(const Features& x, double max_kv, const StepCost& cost) const;

  /// What the caller needs to build Features.
  const FeatureContext& context() const;

  std::vector<OpCost> explain(const Features& x, double max_kv) const;
  const ReplicaPower& power() const;
  const StepModelInput& input() const;

  struct Impl;  ///< private to sim/cost

 private:
  std::unique_ptr<Impl> impl_;
};

/// A decode batch ready to be stepped: what does not change with the contexts added up once, the
/// kernels that grow kept apart. Valid while the batch is unchanged and the model lives.
/// Law: at(j) = StepModel::step_at_clock of the batch j tokens later, to rounding.
class DecodeBatch {
 public:
  DecodeBatch() = default;
  /// Step j evaluated by itself.
  DecodePoint at(double j) const;
  /// The straight piece that starts at step j0: at(j0 + j) = first + j slope for j < steps.
  DecodeLine line(double j0) const;
  double clock() const { return clock_; }
  double host_floor_s() const { return host_floor_s_; }
  double stage_s() const { return stage_s_; }  ///< slowest pipeline stage, at step 0
  double link_bytes() const { return link_bytes_; }
  double link_s() const { return link_s_; }      ///< see StepCost; the same in every step
  double launch_s() const { return launch_s_; }  ///< likewise
  const double* trust() const { return trust_; }
  const Extrapolated& extrapolated() const { return extrapolated_; }  ///< at step 0
  /// Energy of decode attention per token of context: the slope of kv_j over the batch's context.
  double kv_j_per_step() const { return slope_.kv_j; }

 private:
  friend class StepModel;
  /// max(compute0 + j compute1, memory0 + j memory1), all repeats; each with the share of the
  /// other that it does not hide.
  struct Kernel {
    double compute0, compute1, memory0, memory1;
  };
  static constexpr int kMostKernels = 12;
  const StepModel::Impl* model_ = nullptr;
  Kernel kernels_[kMostKernels];
  int kernel_count_ = 0;
  double fixed_s_ = 0.0;  ///< device time beside the kernels
  DecodePoint base_;      ///< dynamic_j, kv_j, flops, bytes at j = 0
  DecodePoint slope_;     ///< and per step
  double host_floor_s_ = 0.0, host_after_s_ = 0.0;
  double clock_ = 1.0;
  double stage_s_ = 0.0;
  double least_s_per_j_ =
      0.0;  ///< duty cycle: device time >= this * dynamic energy; 0: not limited
  double link_bytes_ = 0.0;
  double link_s_ = 0.0, launch_s_ = 0.0;
  double memory_fixed_s_ = 0.0;  ///< of fixed_s_: bound by memory
  double memory_share_ = 0.0;    ///< kernel tables: of their time, as the roofline has it
  double trust_[kProvenanceClasses] = {};
  Extrapolated extrapolated_;
  // Kernel tables: contexts at j = 0.
  double decodes_ = 0.0, mean_kv_ = 0.0, max_kv_ = 0.0;

  double device_s(double j, double& memory_s) const;
};

/// Where the memory of one device goes.
///   kv = utilization * capacity - weights - activation reserve - context reserve
struct MemoryAccount {
  Bytes capacity;
  double utilization = 0.0;
  Bytes weights;
  Bytes activations;  ///< activation_factor * max_num_batched_tokens * hidden * dtype bytes
  Bytes context;      ///< driver context, graphs
  Bytes kv;           ///< what is left for KV blocks (>= 0 or infeasible)
  double kv_bytes_per_token = 0.0;  ///< on the heaviest rank
  Bytes state_per_sequence;
  std::int64_t blocks = 0;
  std::int64_t block_size = 0;
  bool overridden = false;  ///< num_gpu_blocks_override
  /// Most concurrent requests at a context length: floor(blocks / ceil(context / block_size)).
  std::int64_t concurrent(std::int64_t context_tokens) const;
};
MemoryAccount memory_account(const StepModelInput& input, double utilization,
                             std::int64_t max_num_batched_tokens, std::int64_t block_size,
                             std::int64_t max_num_seqs, std::int64_t blocks_override);

}  // namespace medley
