#pragma once

#include <string>

#include "sim/measure/kernel_table.h"

namespace medley {

/// A table as native CSV (sim/measure/README.md): kernels with their work, then collectives.
/// Reading it back gives the same kernels and collectives. End-to-end points are not part of it.
std::string native_kernel_csv(const KernelTable& table);

}  // namespace medley
