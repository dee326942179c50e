#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "sim/cost/step_model.h"

namespace medley {

/// The non-zero terms of one or more LinearForms added up.
class SparseForm {
 public:
  void add(const LinearForm& form);
  double operator()(const Features& x) const {
    double sum = 0.0;
    for (int i = 0; i < terms_; ++i) sum += coefficient_[i] * x[feature_[i]];
    return sum;
  }
  double operator[](Feature f) const;

 private:
  int terms_ = 0;
  std::uint8_t feature_[kFeatures] = {};
  double coefficient_[kFeatures] = {};
};

/// One kernel kind of a step, joined with the rates of the device it runs on. Times of one repeat:
///   compute = (F + half_flops) * inv_compute / phi,   memory = (B + half_bytes) * inv_memory,
///   time = max(compute, memory) + serial min(compute, memory)   (`overlapped`).
struct RooflineOp {
  StepOp op;
  SparseForm flops, bytes;  ///< bytes: weights, KV and activations together
  int stage = 0;
  double inv_compute = 0.0;  ///< 1 / (peak * fraction) [s/flop]; 0: compute time not modelled
  double half_flops = 0.0;
  double inv_memory = 0.0;  ///< 1 / (bandwidth * fraction) [s/B]
  double half_bytes = 0.0;
  double serial = 0.0;  ///< see Ramp
  /// Work of the kernels that the ramps were fitted to.
  double flops_low = 0.0, flops_high = std::numeric_limits<double>::infinity();
  double bytes_low = 0.0, bytes_high = std::numeric_limits<double>::infinity();
  double j_flop = 0.0;  ///< at full voltage; 0 when unknown (ReplicaPower::dynamic_known says so)
  double j_byte = 0.0;
  double kernels = 0.0;  ///< launches of all repeats, after fusion
  bool grows = false;    ///< work grows with the decode context: decode attention, indexer scan
  Provenance compute_class = Provenance::kAssumed;
  Provenance memory_class = Provenance::kAssumed;
  std::string compute_source;
  std::string memory_source;

  double compute_s(double work) const { return work > 0 ? (work + half_flops) * inv_compute : 0; }
  double memory_s(double work) const { return work > 0 ? (work + half_bytes) * inv_memory : 0; }
  /// The ramp knows which work it was fitted to.
  bool ranged(bool by_compute) const {
    return by_compute ? flops_low > 0.0 || std::isfinite(flops_high)
                      : bytes_low > 0.0 || std::isfinite(bytes_high);
  }
  /// The ramp that decides the time was not fitted to kernels of this much work.
  bool extrapolated(bool by_compute, double work_flops, double work_bytes) const {
    return by_compute ? work_flops < flops_low || work_flops > flops_high
                      : work_bytes < bytes_low || work_bytes > bytes_high;
  }
};

/// Which features an op's forms use.
enum class OpGroup : std::uint8_t {
  kTokens,  ///< only One, Tokens, ExpertsHit: a function of the token count
  kLogits,  ///< only One, Logits
  kContext  ///< anything else: attention, recurrent state
};
OpGroup group_of(const StepOp& op);

/// The ops of every stage joined with the device's rates. Throws InputError for a rate that is
/// needed and unknown, naming the catalogue field.
std::vector<RooflineOp> join_device(const StepModelInput& input);

/// Power of the replica's devices, with the list of unknown fields.
ReplicaPower replica_power(const StepModelInput& input);

}  // namespace medley
