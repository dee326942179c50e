#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "sim/measure/readers/kernel_readers.h"

namespace medley {

inline constexpr double kMilli = 1e-3;
inline constexpr double kMicro = 1e-6;
inline constexpr double kNano = 1e-9;

/// A CSV of measured kernels with its account: every row that `next` or a getter turns down is
/// counted as dropped, with the reason.
class RowTable {
 public:
  RowTable(const KernelFile& file, KernelSink& sink)
      : csv(file.path, file.constants), sink_(sink), device_(csv.find("device")) {}

  /// Which column is the time, and seconds per unit of it.
  void set_time(KernelCsv::Column column, double unit) {
    time_ = column;
    unit_ = unit;
  }
  void set_power(KernelCsv::Column watts, KernelCsv::Column limit) {
    power_ = watts;
    limit_ = limit;
  }
  /// Next whole row. False at the end.
  bool next();
  using Count = std::pair<KernelCsv::Column, std::int64_t*>;
  using Number = std::pair<KernelCsv::Column, double*>;
  /// Whole numbers of the row, not negative. An absent column leaves its value alone.
  bool counts(std::initializer_list<Count> wanted);
  /// Positive numbers.
  bool numbers(std::initializer_list<Number> wanted);
  std::optional<double> time() const;
  /// Keeps the row (or drops it for its time).
  void add(const KernelCurve& curve, const Features& x, double position);
  void add(const KernelCurve& curve, double flops, double bytes, double position,
           double companion_bytes = 0.0);
  /// Joins the raw texts that make a curve; good until the next call.
  const std::string& key(std::initializer_list<KernelCsv::Column> columns);
  /// ",name=value" where the column is in the file and so tells rows apart.
  std::string suffix(const char* name, KernelCsv::Column column) const;
  /// Number format of a column (options.dtype where absent); nullopt (row dropped) when unknown.
  std::optional<KernelFormat> kernel_format(KernelCsv::Column column);

  KernelCsv csv;

 private:
  std::optional<double> positive(KernelCsv::Column column) const;
  KernelSink& sink_;
  KernelCsv::Column device_;
  KernelCsv::Column time_ = KernelCsv::kAbsent;
  KernelCsv::Column power_ = KernelCsv::kAbsent;
  KernelCsv::Column limit_ = KernelCsv::kAbsent;
  double unit_ = 1.0;
  std::string last_device_, key_;
};

}  // namespace medley
