#include <algorithm>

#include "sim/measure/readers/kernel_readers.h"

namespace medley {

const std::vector<KernelReader>& kernel_readers() {
  static const std::vector<KernelReader> readers = {
      {"native", "our own CSV: sizes or flops and bytes, time in the unit of its header",
       takes_native_kernels, read_native_kernels},
      {"aiconfigurator", "AIConfigurator tables: gemm, attention, moe, mla, nccl, deepep (ms)",
       takes_aiconfigurator, read_aiconfigurator},
      {"llmservingsim", "LLMServingSim profile bundle: dense, per_sequence, attention, moe (us)",
       takes_llmservingsim, read_llmservingsim},
      {"llmservingsim-v0", "its older profiles: layers and attention, one by one (ns)",
       takes_llmservingsim_v0, read_llmservingsim_v0},
      {"vidur", "Vidur and Frontier profiles: linear operators, attention, experts, network (ms)",
       takes_vidur, read_vidur},
      {"splitwise", "Splitwise's perf_model.csv: prefill and decode times of whole batches (ms)",
       takes_splitwise, read_splitwise},
      {"nccl-tests", "output of nccl-tests as text or CSV: size, time, algbw, busbw (us)",
       takes_nccl_tests, read_nccl_tests},
      {"infersim", "InferSim's bench_data: gemm, grouped_gemm, mha, mla (us)", takes_infersim,
       read_infersim},
      {"llmcompass", "LLMCompass matmul measurements: no header, fp16 (ms)", takes_llmcompass,
       read_llmcompass},
  };
  return readers;
}

}  // namespace medley
