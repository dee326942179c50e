#pragma once

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "workloads/step_ops.h"

namespace medley {

inline std::string zoo_directory() {
  return std::string(MEDLEY_SOURCE_DIR) + "/workloads/zoo";
}
inline ModelSpec zoo_model(const std::string& name) {
  return ModelZoo({zoo_directory()}).find(name);
}

/// Folder of the shared model descriptions, or "" where this machine has none.
inline std::string shared_models() {
  const char* set = std::getenv("MEDLEY_SHARED_DATA");
  const std::string base = set ? set : std::string(MEDLEY_SOURCE_DIR) + "/../shared/data";
  const std::string models = base + "/models";
  return std::filesystem::is_directory(models) ? models : "";
}

inline bool near(double a, double b, double relative = 1e-12) {
  return std::abs(a - b) <= relative * std::max(std::abs(a), std::abs(b));
}

/// One quantity of a step, over all kernels and their repeats.
inline double total(const std::vector<StepOp>& ops, LinearForm StepOp::*form, const Features& x) {
  double sum = 0.0;
  for (const StepOp& op : ops) sum += op.repeats * (op.*form)(x);
  return sum;
}
/// Flops of matrix products and attention alone.
inline double matrix_flops(const std::vector<StepOp>& ops, const Features& x) {
  double sum = 0.0;
  for (const StepOp& op : ops) {
    const bool counts = op.op_class == OpClass::kGemm || op.op_class == OpClass::kGroupedGemm ||
                        op.op_class == OpClass::kAttentionPrefill ||
                        op.op_class == OpClass::kAttentionDecode;
    if (counts) sum += op.repeats * op.flops(x);
  }
  return sum;
}
inline const StepOp* find_op(const std::vector<StepOp>& ops, const std::string& name) {
  for (const StepOp& op : ops) {
    if (op.name == name) return &op;
  }
  return nullptr;
}

}  // namespace medley
