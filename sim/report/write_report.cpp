#include "sim/report/write_report.h"

#include <algorithm>

#include "sim/core/text_file.h"
#include "sim/report/output_directory.h"
#include "sim/report/writers.h"

namespace medley {

namespace {
constexpr std::int64_t kMostPlainRows = 1000000;
}

void write_report(const Analysis& a, const std::string& directory, bool overwrite,
                  const ReportExtras& more) {
  OutputDirectory out(directory, overwrite);
  const ReportSpec& spec = a.scenario().report;
  std::vector<std::string> files;
  const auto next = [&](const char* name) {
    files.emplace_back(name);
    return out.file(name);
  };
  if (spec.requests != ReportSpec::Requests::kNone) {
    const std::int64_t rows = spec.requests == ReportSpec::Requests::kSample
                                  ? std::min(spec.sample, a.result().arrived)
                                  : a.result().arrived;
    const bool gzip = rows > kMostPlainRows;
    write_requests_csv(a, next(gzip ? "requests.csv.gz" : "requests.csv"), gzip);
  }
  write_summary_csv(a, next("summary.csv"), more.draws);
  if (more.draws) write_uncertainty_csv(*more.draws, next("uncertainty.csv"));
  if (more.bottlenecks) write_bottlenecks_csv(*more.bottlenecks, next("bottlenecks.csv"));
  write_devices_csv(a, next("devices.csv"));
  write_links_csv(a, next("links.csv"));
  write_energy_csv(a, next("energy.csv"));
  write_timeseries_csv(a, next("timeseries.csv"));
  if (!a.result().tiers.empty()) write_tiers_csv(a, next("tiers.csv"));
  if (a.scenario().migration.policy != MigrationSpec::Policy::kNone) {
    write_migrations_csv(a, next("migrations.csv"));
  }
  if (spec.chrome_trace) write_chrome_trace(a, next("trace.json"));
  write_file(next("summary.json"), summary_json(a, more.draws));
  write_file(next("columns.json"), columns_json());
  write_file(out.file("manifest.json"), manifest_json(a, files, more));
  out.commit();
}

}  // namespace medley
