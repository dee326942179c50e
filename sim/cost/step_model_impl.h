#pragma once

// Private to sim/cost.

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/cost/kernel_tables.h"
#include "sim/cost/roofline.h"
#include "sim/cost/step_model.h"

namespace medley {

/// A sum of kernels at phi = 1, one rank. `pairs` are (compute, memory) seconds of each op that can
/// be either, so that another clock needs no op list.
struct Part {
  double time = 0.0;         ///< sum of overlapped(compute, memory) + collectives, launches apart
  double link_time = 0.0;    ///< collectives, inside time
  double memory_time = 0.0;  ///< kernels bound by memory, inside time
  double kernels = 0.0;
  double flop_j = 0.0;  ///< dynamic energy of arithmetic at full voltage, one rank
  double byte_j = 0.0;
  double kv_j = 0.0;       ///< flop and byte energy of decode attention
  double prefill_j = 0.0;  ///< the same of prefill attention
  double flops = 0.0;
  double bytes = 0.0;
  double link_bytes = 0.0;
  /// Seconds by provenance class, and outside the range of what decides them (with its energy).
  /// Only shares are told of them, and a small Part is a fast one: single precision.
  float trust[kProvenanceClasses] = {};
  float extrapolated_s = 0.0F, extrapolated_j = 0.0F;
  std::uint32_t pair_begin = 0;
  std::uint32_t pair_count = 0;
};

struct OpPair {
  double compute = 0.0;
  double memory = 0.0;
  double serial = 0.0;
};

/// Host work around the device's: step = max(device, floor) + after.
struct HostTime {
  double floor_s = 0.0;
  double after_s = 0.0;
  double step_s(double device_s) const {
    return (device_s > floor_s ? device_s : floor_s) + after_s;
  }
};

struct StepModel::Impl {
  explicit Impl(const Catalog& catalog_in, StepModelInput in);

  const Catalog& catalog;
  StepModelInput input;
  std::vector<std::vector<RooflineOp>> tokens_ops, logits_ops, context_ops;  ///< by stage
  std::optional<KernelTables> tables;
  ReplicaPower power;
  FeatureContext context;
  double alpha = 0.0;
  double launch_stream = 0.0, launch_graph = 0.0;
  double host_per_step = 0.0, host_per_sequence = 0.0;
  double sync_per_step = 0.0, sync_per_sequence = 0.0, host_per_kernel = 0.0;
  bool limited = false;  ///< the power limit can act: limit, floor and dynamic energy known
  double floor_w = 0.0, limit_w = 0.0, clock_min = 1.0, voltage_floor = 1.0;

  // Memo of the parts that depend on one integer only, by stage.
  struct Memo {
    std::vector<std::uint32_t> place;  ///< by count: 1 + index into parts; 0: not yet known
    std::deque<Part> parts;
    Part scratch;  ///< for counts beyond the memo
  };
  mutable std::vector<Memo> tokens_memo[2],
      logits_memo;  ///< by stage; tokens: outside / inside a captured graph
  mutable std::vector<OpPair> pairs;

  void add_op(const RooflineOp& r, const Features& x, double skew_tokens, bool graph, Part& part,
              std::vector<OpPair>& out) const;
  const Part& tokens_part(int stage, double tokens, bool graph) const;
  const Part& logits_part(int stage, double logits) const;
  const Part& remember(Memo& memo, std::size_t count, Part part,
                       const std::vector<OpPair>& fresh) const;
  Part context_part(int stage, const Features& x, double max_kv, std::vector<OpPair>& out) const;
  Features with_skew(const Features& x, double max_kv) const;
  bool in_graph(const Features& x) const;
  double launch(const Features& x) const { return in_graph(x) ? launch_graph : launch_stream; }
  /// Of a step with `kernels` launches (hwmodels/backend.h).
  HostTime host(const Features& x, double kernels) const {
    const double sequences = x[static_cast<std::size_t>(Feature::kSequences)];
    const double issue = in_graph(x) ? 0.0 : host_per_kernel * kernels;
    const double beside = host_per_step + host_per_sequence * sequences;
    const double sync = sync_per_step + sync_per_sequence * sequences;
    if (input.backend.host_mode == HostMode::kSerial) return {issue, beside + sync};
    return {issue > beside ? issue : beside, sync};
  }
  double voltage(double phi) const { return voltage_floor + (1.0 - voltage_floor) * phi; }
  double table_time(const Features& x, double max_kv) const;
  /// The part of table_time that lies outside the tables' grids.
  double table_time_outside(const Features& x, double max_kv) const;
  CollectiveTime collective(const StepOp& op, double payload, bool graph) const;
  CollectiveTime stage_send(int stage, Bytes payload) const;
  double constant_time(const Features& x) const;
  /// Device time of a pure decode step from kernel tables.
  double tables_decode_s(double decodes, double mean_kv, double max_kv) const;

  StepCost step(const Features& x, double max_kv, std::optional<double> clock) const;
};

inline constexpr int kClockSteps = 64;
inline constexpr std::size_t kMemoLimit = 16384;

}  // namespace medley
