#pragma once

#include <string>
#include <vector>

#include "hwmodels/device.h"
#include "sim/measure/kernel_table.h"

namespace medley {

/// How to read measured kernels.
struct KernelReadOptions {
  std::string format;                ///< a name of kernel_format_names(); empty: told by the layout
  std::string device;                ///< name to keep instead of the file's
  const DeviceSpec* spec = nullptr;  ///< rows faster than its peak are dropped as timer faults
  std::string model;                 ///< zoo name or .json, where path and meta data name none
  std::vector<std::string> zoo_directories;  ///< besides the shipped zoo
  int devices = 0;                           ///< of collectives, where the file does not say
  int tp = 0;                                ///< 0: as path or columns say
  DType dtype = DType::kBf16;                ///< where a table does not say
  int head_dim = 128;                        ///< likewise
};

/// Share of a device's dense peak above which a time is taken for a fault of the timer.
inline constexpr double kTimerFault = 1.005;

/// Reads measured kernels, plain or gzip. A folder means all files beneath, in order of path,
/// merged into one table; files that no reader knows are left out with a note. Work is counted as
/// lower_step counts it (kernel_work.h). The formats, their units and their quirks are in
/// sim/measure/README.md.
/// The account holds every row: read = kept + dropped by reason. Dropped are rows that cannot be
/// read, with times that are not positive, of number formats we do not know, that repeat a row
/// (same curve and position) of the same file, and those that would exceed kTimerFault times the
/// peak of options.spec.
/// Throws InputError: no such file, no known format, a column that is missing, or an unknown column
/// whose values differ (it would be an axis nobody looks at).
KernelTable read_kernel_table(const std::string& path, const KernelReadOptions& options = {});

struct KernelFormatInfo {
  std::string name;
  std::string summary;
};
const std::vector<KernelFormatInfo>& kernel_formats();
std::vector<std::string> kernel_format_names();

}  // namespace medley
