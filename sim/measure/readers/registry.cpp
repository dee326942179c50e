#include <algorithm>

#include "sim/measure/readers/kernel_readers.h"

namespace medley {

const std::vector<KernelReader>& kernel_readers() {
  static const std::vector<KernelReader> readers = {
      {"aiconfigurator", "AIConfigurator tables: gemm, attention, moe, mla, nccl, deepep (ms)",
       takes_aiconfigurator, read_aiconfigurator},
      {"llmservingsim", "LLMServingSim profile bundle: dense, per_sequence, attention, moe (us)",
       takes_llmservingsim, read_llmservingsim},
      {"llmservingsim-v0", "its older profiles: layers and attention, one by one (ns)",
       takes_llmservingsim_v0, read_llmservingsim_v0},
  };
  return readers;
}

}  // namespace medley
