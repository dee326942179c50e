// Shipped calibrations come from the measured data by the shipped command.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "hwmodels/catalog.h"
#include "sim/calibration/kernel_fit.h"
#include "sim/measure/read_kernel_table.h"

using namespace medley;

namespace {
std::string data_directory() {
  const char* named = std::getenv("MEDLEY_SHARED_DATA");
  return named != nullptr ? named : std::string(MEDLEY_SOURCE_DIR) + "/../shared/data";
}
bool have(const std::string& path) {
  if (std::filesystem::exists(path)) return true;
  MESSAGE("skipped: no measured data at ", path);
  return false;
}
KernelFit fit_of(const std::string& path, const DeviceSpec& device) {
  KernelReadOptions read;
  read.spec = &device;
  KernelFitOptions options;
  options.holdout = true;
  return fit_kernels(read_kernel_table(path, read).kernels, device, options);
}
bool equal(const Sourced<Ramp>& a, const Sourced<Ramp>& b) {
  return a.known() && b.known() && a.value->fraction == b.value->fraction &&
         a.value->half == b.value->half && a.value->serial == b.value->serial && a.n == b.n;
}
}  // namespace

TEST_CASE("a fit of the RTX 4090 profile gives the shipped ramps to the digit") {
  const std::string path = data_directory() + "/serving/LLMServingSim/v2-profiles/RTX4090";
  if (!have(path)) return;
  const Catalog catalog({});
  const DeviceSpec& device = catalog.device("RTX 4090");
  const KernelFit fit = fit_of(path, device);
  for (const OpClass c : {OpClass::kGemm, OpClass::kAttentionPrefill, OpClass::kAttentionDecode}) {
    CHECK(equal(fit.efficiency[index(c)].memory, device.efficiency[index(c)].memory));
  }
}

TEST_CASE("H100: held-out errors of single kernels stay where the page says they are") {
  const std::string path = data_directory() + "/serving/aiconfigurator/perf-csv/h100_sxm/attention";
  if (!have(path)) return;
  const Catalog catalog({});
  const KernelFit fit = fit_of(path, catalog.device("h100"));
  int seen = 0;
  for (const KernelFitRow& row : fit.rows) {
    if (row.stored != DType::kBf16) continue;
    ++seen;
    CHECK(row.held_out.median < 0.08);
    CHECK(std::abs(row.held_out.bias) < 0.02);
    CHECK(row.held_out.n > 1000);
    int dropped = 0;
    for (const auto& [reason, n] : row.dropped) dropped += n;
    CHECK(row.read > dropped);
  }
  CHECK(seen == 2);
}
