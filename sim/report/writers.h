#pragma once

#include <string>
#include <vector>

#include "sim/report/analysis.h"
#include "sim/report/uncertainty.h"
#include "sim/report/write_report.h"

namespace medley {

/// One file of the report each, written to `path`. Deterministic bytes.
void write_requests_csv(const Analysis& analysis, const std::string& path, bool gzip);
void write_devices_csv(const Analysis& analysis, const std::string& path);
void write_links_csv(const Analysis& analysis, const std::string& path);
void write_tiers_csv(const Analysis& analysis, const std::string& path);
void write_migrations_csv(const Analysis& analysis, const std::string& path);
void write_energy_csv(const Analysis& analysis, const std::string& path);
void write_timeseries_csv(const Analysis& analysis, const std::string& path);
/// `u`: the run's parameter draws, or nullptr.
void write_summary_csv(const Analysis& analysis, const std::string& path, const Uncertainty* u);
void write_uncertainty_csv(const Uncertainty& u, const std::string& path);
void write_chrome_trace(const Analysis& analysis, const std::string& path);
std::string summary_json(const Analysis& analysis, const Uncertainty* u);
/// `files`: names of the others in this report.
std::string manifest_json(const Analysis& analysis, const std::vector<std::string>& files,
                          const ReportExtras& more);
std::string columns_json();

/// Energy of something over time, from equal bins: cumulative, interpolated inside a bin.
class PowerCourse {
 public:
  /// Bins of `bin` seconds over `run` seconds.
  PowerCourse(double bin, double run);
  std::size_t bins() const { return bins_; }
  double begin(std::size_t b) const;  ///< start of bin b; bins() gives the end of the run
  void add_constant(double watts);
  /// Extra energy by bin (shorter vectors: zero after their end), times `factor`.
  void add(const std::vector<double>& joules, double factor = 1.0);
  void finish();  ///< call once after the last add
  double joules(double from, double to) const;
  double bin_joules(std::size_t b) const { return upto_[b + 1] - upto_[b]; }
  /// Highest mean power over `span` seconds (to the nearest whole number of bins) ending in bins
  /// (first, last]; NaN when no whole span has passed by then, or a bin is longer than the span.
  double peak_w(double span, std::size_t first, std::size_t last) const;

 private:
  double at(double t) const;
  double bin_ = 0.0, run_ = 0.0;
  std::size_t bins_ = 0;
  std::vector<double> upto_;  ///< before finish: energy of bin b at b + 1
};

}  // namespace medley
