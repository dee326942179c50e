#include <fmt/format.h>

#include <algorithm>

#include "hwmodels/catalog.h"
#include "sim/core/text_file.h"
#include "sim/measure/read_kernel_table.h"
#include "sim/validation/sets/sets.h"

namespace medley {

namespace {

/// Kernels whose power the 100 ms samples can tell: shorter and longer loops are biased.
constexpr double kShortest = 1e-4;
constexpr double kLongest = 5e-2;
/// One row in so many is kept: the tables hold a hundred thousand.
constexpr std::uint64_t kEvery = 256;

void add_table(const std::string& path, const DeviceSpec& device, const char* op,
               std::vector<ValidationRow>& rows) {
  KernelReadOptions options;
  options.format = "aiconfigurator";
  const KernelTable table = read_kernel_table(path, options);
  const PowerSpec& power = device.power;
  for (const KernelSample& k : table.kernels) {
    if (!k.watts || k.time_s < kShortest || k.time_s > kLongest) continue;
    ValidationRow r;
    r.key = fmt::format("{}|{}", device.name, k.key());
    if ((fnv1a(r.key) >> 8) % kEvery != 0) continue;
    const Sourced<JoulesPerFlop>& flop = power.energy_per_flop[index(k.dtype)];
    r.group = fmt::format("{}, {} {}", device.name, op, to_string(k.dtype));
    r.basis = "calibrated";
    r.metric = "watts";
    r.unit = "W";
    r.measured = *k.watts;
    r.half = half_of(k.key());
    r.n = 1;
    r.baseline = (*power.limit).value();
    r.predicted = std::numeric_limits<double>::quiet_NaN();
    if (flop.known() && power.energy_per_byte.known() && power.active_floor.known()) {
      const double watts =
          (*power.active_floor).value() +
          ((*flop).value() * k.flops + (*power.energy_per_byte).value() * k.bytes) / k.time_s;
      r.predicted = std::min(watts, (*power.limit).value());
      r.measured_pct = power.energy_per_byte.provenance == Provenance::kMeasured ? 100.0 : 0.0;
    } else {
      r.note = "no energy per flop in this format";
    }
    rows.push_back(std::move(r));
  }
}

std::vector<ValidationRow> run_kernel_power(const ValidationContext& context) {
  const Catalog catalog({});
  const std::string folder = context.data + "/energy/aiconfigurator-kernel-power/";
  std::vector<ValidationRow> rows;
  for (const auto& [system, name] :
       {std::pair{"h200_sxm", "H200-SXM-141GB"}, std::pair{"b200_sxm", "B200-SXM-180GB"}}) {
    const DeviceSpec& device = catalog.device(name);
    for (const char* op : {"gemm", "context_attention", "generation_attention"}) {
      add_table(fmt::format("{}{}__vllm-0.22.0__{}.csv.gz", folder, system, op), device, op, rows);
    }
  }
  return rows;
}

}  // namespace

ValidationSet kernel_power_set() {
  return {"kernel_power",
          "mean watts of single kernels of 0.1 to 50 ms on H200 and B200, their time given",
          "ai-dynamo/aiconfigurator@095f58a kernel tables with power (Apache-2.0)",
          "device|op|formats|shape; one row in 256 is shown. The halves are those of the "
          "calibration",
          "the power limit",
          "",
          {},
          run_kernel_power};
}

}  // namespace medley
