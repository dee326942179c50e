#pragma once

#include <string>
#include <vector>

#include "sim/measure/kernel_csv.h"
#include "sim/measure/kernel_sink.h"

namespace medley {

/// A file that may hold measured kernels, looked at but not read.
struct KernelFile {
  std::string path;
  std::vector<std::string> head;     ///< its first lines
  std::vector<std::string> columns;  ///< cells of the first line that is no comment
  KernelConstants constants;         ///< from an INDEX.csv in a folder above
  bool has(std::initializer_list<std::string_view> names) const;  ///< all, in file or constants
  std::string name() const;                                       ///< without folders and ".gz"
};

struct KernelReader {
  const char* name;
  const char* summary;
  bool (*takes)(const KernelFile& file);
  void (*read)(const KernelFile& file, KernelSink& sink);
};
/// In order of detection: one line per reader.
const std::vector<KernelReader>& kernel_readers();

// One pair per file of this folder.
bool takes_aiconfigurator(const KernelFile& file);
void read_aiconfigurator(const KernelFile& file, KernelSink& sink);
bool takes_llmservingsim(const KernelFile& file);
void read_llmservingsim(const KernelFile& file, KernelSink& sink);
bool takes_llmservingsim_v0(const KernelFile& file);
void read_llmservingsim_v0(const KernelFile& file, KernelSink& sink);
bool takes_vidur(const KernelFile& file);
void read_vidur(const KernelFile& file, KernelSink& sink);
bool takes_splitwise(const KernelFile& file);
void read_splitwise(const KernelFile& file, KernelSink& sink);
bool takes_nccl_tests(const KernelFile& file);
void read_nccl_tests(const KernelFile& file, KernelSink& sink);
bool takes_infersim(const KernelFile& file);
void read_infersim(const KernelFile& file, KernelSink& sink);
bool takes_llmcompass(const KernelFile& file);
void read_llmcompass(const KernelFile& file, KernelSink& sink);
bool takes_native_kernels(const KernelFile& file);
void read_native_kernels(const KernelFile& file, KernelSink& sink);
bool takes_aiconfigurator_comm(const KernelFile& file);
void read_aiconfigurator_comm(const KernelFile& file, KernelSink& sink);

}  // namespace medley
