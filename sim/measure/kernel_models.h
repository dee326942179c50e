#pragma once

#include <string>
#include <vector>

#include "sim/measure/kernel_work.h"
#include "sim/measure/read_kernel_table.h"
#include "workloads/model.h"

namespace medley {

/// Shape of the model whose kernels a table holds: options.model when given, else `named` (zoo name
/// or alias, also without organisation or with its published suffixes). Throws InputError naming
/// `file` where neither is known.
ModelSpec kernel_model(const KernelReadOptions& options, const std::string& named,
                       const std::string& file);

/// Attention layer of a model with compressed latents as one module: projections, rotary, cache
/// write and attention over `heads` heads on one device. op_class is attention's.
/// latent_core: attention alone, in the latent space (decode) or expanded (prefill).
KernelForms latent_core(const ModelSpec& model, int heads, const KernelFormat& gemm, DType kv,
                        bool decode);
KernelForms latent_module(const ModelSpec& model, int heads, const KernelFormat& gemm, DType kv,
                          bool decode);

}  // namespace medley
