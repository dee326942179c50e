#include "sim/measure/kernel_sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace medley {

namespace {
void count_rows(std::vector<std::pair<std::string, std::int64_t>>& list, std::string_view what,
                std::int64_t rows) {
  for (auto& [name, count] : list) {
    if (name == what) {
      count += rows;
      return;
    }
  }
  list.emplace_back(what, rows);
}

std::uint64_t mixed(std::uint64_t x) {  // finaliser of MurmurHash3: a bijection
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdULL;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}
}  // namespace

KernelSink::KernelSink(KernelTable& table, const KernelReadOptions& options)
    : table_(table), options_(options) {
  if (options.spec == nullptr) return;
  for (int d = 0; d < kDTypes; ++d) {
    const auto used = compute_fallback(*options.spec, static_cast<DType>(d));
    if (used) peak_[static_cast<std::size_t>(d)] = options.spec->peak[index(*used)].value->value();
  }
}

void KernelSink::begin_file() {
  forms_.clear();
  curves_.clear();  // ids go on, so that no later row meets an earlier file's
  seen_.clear();
  seen_collectives_.clear();
}

void KernelSink::drop(std::string_view reason) {
  count_rows(table_.account.dropped, reason, 1);
}

void KernelSink::note(const std::string& text) {
  auto& notes = table_.account.notes;
  if (std::find(notes.begin(), notes.end(), text) == notes.end()) notes.push_back(text);
}

void KernelSink::adjust(std::string_view what, std::int64_t rows) {
  count_rows(table_.account.adjusted, what, rows);
}

void KernelSink::device(std::string_view name) {
  if (name.empty() || !options_.device.empty()) return;
  if (table_.device.empty()) table_.device = std::string(name);
  if (table_.device != name) {
    note(fmt::format("files of several devices: {} and {}", table_.device, name));
  }
}

void KernelSink::format(std::string_view name) {
  if (table_.format.empty()) {
    table_.format = std::string(name);
  } else if (table_.format != name) {
    table_.format = "several";
  }
}

bool KernelSink::repeated(std::uint64_t curve, double position) {
  return !seen_.insert(mixed(curve) ^ std::bit_cast<std::uint64_t>(position)).second;
}

bool KernelSink::take_time(const std::optional<double>& time_s) {
  if (!time_s) {
    drop("time cannot be read");
    return false;
  }
  if (*time_s <= 0.0) {
    drop("time is not positive");
    return false;
  }
  return true;
}

void KernelSink::add(const KernelCurve& curve, const Features& x, const Row& row) {
  add(curve, curve.forms.flops(x), curve.forms.bytes(x), row, curve.forms.companion_bytes(x));
}

void KernelSink::add(const KernelCurve& curve, double flops, double bytes, const Row& row,
                     double companion_bytes) {
  const std::string_view fault = try_add(curve, flops, bytes, row, companion_bytes);
  if (fault.empty()) {
    keep_row();
  } else {
    drop(fault);
  }
}

std::string_view KernelSink::try_add(const KernelCurve& curve, double flops, double bytes,
                                     const Row& row, double companion_bytes) {
  if (!(row.time_s > 0.0)) return "time is not positive";
  if (const double limit = peak_[index(curve.forms.dtype)];
      limit > 0.0 && flops > kTimerFault * limit * row.time_s) {
    return "faster than the device's peak (timer fault)";
  }
  if (repeated(curve.id, row.position)) return "repeats an earlier row";
  KernelSample& s = table_.kernels.emplace_back();
  s.op_class = curve.forms.op_class;
  s.dtype = curve.forms.dtype;
  s.weights = curve.forms.weights;
  s.block_scaled = curve.forms.block_scaled;
  s.companion_bytes = companion_bytes;
  s.flops = flops;
  s.bytes = bytes;
  s.kernels = curve.forms.kernels;
  s.time_s = row.time_s;
  s.watts = row.watts;
  s.limit_watts = row.limit_watts;
  s.curve = curve.name;
  s.position = row.position;
  s.op = curve.op;
  return {};
}

void KernelSink::add(CollectiveSample sample) {
  if (!seen_collectives_
           .insert(
               fmt::format("{}|{}|{}|{}", sample.op, sample.variant, sample.devices, sample.bytes))
           .second) {
    drop("repeats an earlier row");
    return;
  }
  table_.collectives.push_back(std::move(sample));
  ++table_.account.kept;
}

}  // namespace medley
