#include "sim/calibration/calibrate.h"

#include <fmt/format.h>

#include <utility>

#include "sim/core/error.h"

namespace medley {

namespace {
/// "ai-dynamo/...: 2500 bf16 rows (median 4.6 %, p90 12 %, bias +0.2 % on the other half), ..."
std::string citation(OpClass op_class, const KernelFit& kernels, const CalibrationLabel& label) {
  std::string text = fmt::format("{}: fit of {} ramps", label.source, to_string(op_class));
  const char* before = ", held-out half: ";
  for (const KernelFitRow& row : kernels.rows) {
    if (row.op_class != op_class || row.fitted == 0) continue;
    std::string formats(to_string(row.dtype));
    if (row.block_scaled) formats += " block-scaled";
    if (row.stored != row.dtype) formats += fmt::format("/{}", to_string(row.stored));
    text += fmt::format("{}{} median {:.2g} %, p90 {:.2g} %, bias {:+.1f} %", before, formats,
                        100.0 * row.held_out.median, 100.0 * row.held_out.p90,
                        100.0 * row.held_out.bias);
    before = "; ";
  }
  return text;
}
}  // namespace

Calibration make_calibration(const DeviceSpec& device, const KernelFit& kernels,
                             const PowerFit& power, const CalibrationLabel& label) {
  Calibration c;
  c.device = device.name;
  c.date = label.date;
  c.command = label.command;
  c.notes = label.notes;
  const auto cite = [&](auto& value, const std::string& text) {
    if (value.known()) value.source = text;
  };
  for (int i = 0; i < kOpClasses; ++i) {
    const auto op_class = static_cast<OpClass>(i);
    OpEfficiency e = kernels.efficiency[index(op_class)];
    const std::string text = citation(op_class, kernels, label);
    bool any = e.memory.known();
    cite(e.memory, text);
    for (std::size_t d = 0; d < kDTypes; ++d) {
      any = any || e.compute[d].known();
      cite(e.compute[d], text);
      cite(e.compute_block_scaled[d], text);
      cite(e.compute_by_format[d], text);
      cite(e.memory_by_format[d], text);
    }
    if (any) c.sources[std::string(to_string(op_class))] = text;
    c.device_values.efficiency[index(op_class)] = std::move(e);
  }
  bool sustained = false;
  for (std::size_t d = 0; d < kDTypes; ++d) {
    auto& value = c.device_values.sustained[d];
    value = power.sustained[d];
    cite(value, label.source + ": GEMMs at the power limit over the peak, median");
    sustained = sustained || value.known();
  }
  if (sustained)
    c.sources["sustained"] = label.source + ": GEMMs at the power limit over the peak, median";
  if (power.known()) {
    const std::string text = fmt::format(
        "{}: three-term power fit to medians of {} bins of {} kernels below the limit, median "
        "{:.2g} "
        "% on the held-out half",
        label.source, power.bins, power.rows, 100.0 * power.median_error);
    PowerSpec& p = c.device_values.power;
    p.active_floor = power.active_floor;
    p.energy_per_byte = power.energy_per_byte;
    p.energy_per_flop = power.energy_per_flop;
    cite(p.active_floor, text);
    cite(p.energy_per_byte, text);
    for (auto& value : p.energy_per_flop) cite(value, text);
    c.sources["power"] = text;
  }
  return c;
}

}  // namespace medley
