#include "sim/measure/kernel_write.h"

#include "sim/core/csv.h"

namespace medley {

namespace {
void number_or_blank(CsvWriter& csv, const std::optional<double>& value) {
  if (value) {
    csv.field(*value);
  } else {
    csv.blank();
  }
}
}  // namespace

std::string native_kernel_csv(const KernelTable& table) {
  CsvWriter csv({"op_class", "dtype", "weights", "op", "curve", "position", "flops", "bytes",
                 "kernels", "variant", "devices", "time_s", "watts", "limit_watts", "device"});
  for (const KernelSample& s : table.kernels) {
    csv.field(to_string(s.op_class)).field(to_string(s.dtype)).field(to_string(s.weights));
    csv.field(s.op).field(s.curve).field(s.position).field(s.flops).field(s.bytes);
    csv.field(s.kernels).blank().blank().field(s.time_s);
    number_or_blank(csv, s.watts);
    number_or_blank(csv, s.limit_watts);
    csv.field(table.device).end_row();
  }
  for (const CollectiveSample& s : table.collectives) {
    csv.field(to_string(OpClass::kCollective)).blank().blank().field(s.op).blank().blank().blank();
    csv.field(s.bytes).blank().field(s.variant).field(s.devices).field(s.time_s);
    csv.blank().blank().field(table.device).end_row();
  }
  return csv.take();
}

}  // namespace medley
