#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "sim/measure/kernel_csv.h"
#include "sim/measure/kernel_work.h"
#include "sim/measure/read_kernel_table.h"

namespace medley {

/// One curve of a table: what its rows share.
struct KernelCurve {
  std::string op;
  std::string name;  ///< KernelSample::curve
  KernelForms forms;
  int window = 0;
  double scale = 1.0;  ///< readers' own
  std::uint64_t id = 0;
};

/// Takes rows of one file after another into a table and keeps the account.
class KernelSink {
 public:
  KernelSink(KernelTable& table, const KernelReadOptions& options);

  /// Rows of different files are never duplicates of one another.
  void begin_file();
  void row() { ++table_.account.rows_read; }
  void drop(std::string_view reason);
  void note(const std::string& text);  ///< once
  void adjust(std::string_view what, std::int64_t rows);
  void device(std::string_view name);  ///< as the file names it
  void format(std::string_view name);

  /// Curves by the raw text that tells them apart; `make` is called once for each.
  template <class Make>
  const KernelCurve* curve(const std::string& key, Make make) {
    const auto found = curves_.find(key);
    if (found != curves_.end()) return found->second.op.empty() ? nullptr : &found->second;
    KernelCurve made = make();
    made.id = ++last_id_;
    const KernelCurve& kept = curves_.emplace(key, std::move(made)).first->second;
    return kept.op.empty() ? nullptr : &kept;
  }

  /// Work shared by many curves (batch sizes of one shape), likewise by the text that tells it
  /// apart.
  template <class Make>
  const KernelForms& forms(const std::string& key, Make make) {
    const auto found = forms_.find(key);
    return found != forms_.end() ? found->second : forms_.emplace(key, make()).first->second;
  }

  struct Row {
    double position = 0.0;
    double time_s = 0.0;
    std::optional<double> watts;
    std::optional<double> limit_watts;
  };
  /// Keeps or drops the row.
  void add(const KernelCurve& curve, const Features& x, const Row& row);
  void add(const KernelCurve& curve, double flops, double bytes, const Row& row,
           double companion_bytes = 0.0);
  /// The same without counting: for rows that hold several kernels. Why it was not taken; empty: it
  /// was.
  std::string_view try_add(const KernelCurve& curve, double flops, double bytes, const Row& row,
                           double companion_bytes = 0.0);
  void keep_row() { ++table_.account.kept; }
  /// True when it may be kept (and counts it as dropped otherwise).
  bool take_time(const std::optional<double>& time_s);
  void add(CollectiveSample sample);  ///< keeps the row
  void add_more(CollectiveSample sample) { table_.collectives.push_back(std::move(sample)); }
  const KernelReadOptions& options() const { return options_; }
  KernelTable& table() { return table_; }

 private:
  bool repeated(std::uint64_t curve, double position);
  KernelTable& table_;
  const KernelReadOptions& options_;
  std::unordered_map<std::string, KernelCurve> curves_;
  std::unordered_map<std::string, KernelForms> forms_;
  std::uint64_t last_id_ = 0;
  PerDType<double> peak_{};  ///< flop/s; 0: unknown
  std::unordered_set<std::uint64_t> seen_;
  std::unordered_set<std::string> seen_collectives_;
};

}  // namespace medley
