#include <algorithm>

#include "sim/measure/readers/kernel_readers.h"

namespace medley {

const std::vector<KernelReader>& kernel_readers() {
  static const std::vector<KernelReader> readers = {
      {"aiconfigurator", "AIConfigurator tables: gemm, attention, moe, mla, nccl, deepep (ms)",
       takes_aiconfigurator, read_aiconfigurator},
  };
  return readers;
}

}  // namespace medley
