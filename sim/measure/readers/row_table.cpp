#include "sim/measure/readers/row_table.h"

#include <fmt/format.h>

#include <cmath>

namespace medley {

bool RowTable::next() {
  while (csv.next()) {
    sink_.row();
    if (csv.broken()) {
      sink_.drop("wrong number of fields");
      continue;
    }
    if (device_ != KernelCsv::kAbsent && csv.text(device_) != last_device_) {
      last_device_ = std::string(csv.text(device_));
      sink_.device(last_device_);
    }
    return true;
  }
  return false;
}

bool RowTable::counts(std::initializer_list<Count> wanted) {
  for (const auto& [column, into] : wanted) {
    if (column == KernelCsv::kAbsent) continue;
    const auto value = csv.number(column);
    if (!value || *value < 0.0 || *value > 2e9 || *value != std::floor(*value)) {
      sink_.drop("a size cannot be read");
      return false;
    }
    *into = static_cast<std::int64_t>(*value);
  }
  return true;
}

bool RowTable::numbers(std::initializer_list<Number> wanted) {
  for (const auto& [column, into] : wanted) {
    if (column == KernelCsv::kAbsent) continue;
    const auto value = csv.number(column);
    if (!value || *value <= 0.0) {
      sink_.drop(value ? "a size is not positive" : "a size cannot be read");
      return false;
    }
    *into = *value;
  }
  return true;
}

std::optional<double> RowTable::time() const {
  const auto value = csv.number(time_);
  return value ? std::optional(*value * unit_) : std::nullopt;
}

void RowTable::add(const KernelCurve& curve, const Features& x, double position) {
  add(curve, curve.forms.flops(x), curve.forms.bytes(x), position, curve.forms.companion_bytes(x));
}

void RowTable::add(const KernelCurve& curve, double flops, double bytes, double position,
                   double companion_bytes) {
  const auto time_s = time();
  if (!sink_.take_time(time_s)) return;
  sink_.add(curve, flops, bytes, {position, *time_s, positive(power_), positive(limit_)},
            companion_bytes);
}

const std::string& RowTable::key(std::initializer_list<KernelCsv::Column> columns) {
  key_.clear();
  for (const KernelCsv::Column c : columns) {
    key_ += csv.text(c);
    key_ += ',';
  }
  return key_;
}

std::string RowTable::suffix(const char* name, KernelCsv::Column column) const {
  if (column < 0 || csv.text(column).empty()) return {};
  return fmt::format(",{}={}", name, csv.text(column));
}

std::optional<KernelFormat> RowTable::kernel_format(KernelCsv::Column column) {
  if (column == KernelCsv::kAbsent) {
    return KernelFormat{sink_.options().dtype, sink_.options().dtype};
  }
  const auto format = parse_kernel_format(csv.text(column));
  if (!format) sink_.drop(fmt::format("unknown number format `{}`", csv.text(column)));
  return format;
}

std::optional<double> RowTable::positive(KernelCsv::Column column) const {
  const auto value = csv.number(column);
  return value && *value > 0.0 ? value : std::nullopt;
}

}  // namespace medley
