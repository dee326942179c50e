#include "sim/measure/kernel_table.h"

#include <fmt/format.h>

namespace medley {

std::string KernelSample::key() const {
  return fmt::format("{}|{}|{}|{}|{}", op, to_string(dtype), to_string(weights), curve, position);
}

}  // namespace medley
