#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace medley {

/// One column of a report file. The header lines of the CSV files are written from this table, and
/// columns.json repeats it in every run.
struct ColumnInfo {
  std::string_view file;
  std::string_view column;
  std::string_view unit;  ///< "" for names, "1" for pure numbers
  std::string_view definition;
};
const std::vector<ColumnInfo>& report_columns();

/// Metrics of summary.csv (and, in their own units or ms, keys of summary.json).
struct MetricInfo {
  std::string_view metric;
  std::string_view unit;
  bool distribution;
  std::string_view definition;
};
const std::vector<MetricInfo>& report_metrics();
const MetricInfo* find_metric(std::string_view metric);
std::vector<std::string> metric_names();

/// Every name a report may hold, and the schema that each file states or is known by.
struct ReportFile {
  std::string_view name;
  std::string_view schema;
  std::string_view content;
};
const std::vector<ReportFile>& report_files();
const std::vector<std::string>& report_file_names();

}  // namespace medley
