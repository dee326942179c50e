#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "sim/core/text_file.h"
#include "sim/validation/validation.h"
#include "tools/command.h"

namespace medley::cli {

namespace {

struct Options {
  std::vector<std::string> sets;
  std::string data;
  std::string output;
  bool fail = false;
  Format format = Format::kTable;
};

std::string default_data() {
  const char* named = std::getenv("MEDLEY_SHARED_DATA");
  return named != nullptr ? named : "../shared/data";
}

int validate_command(const Options& o) {
  std::vector<std::string> sets = o.sets;
  if (sets.empty()) {
    for (const ValidationSet& s : validation_sets()) sets.push_back(s.name);
  }
  TextTable table({{"run", "run"},
                   {"basis", "basis"},
                   {"metric", "metric"},
                   {"measured", "measured", TextTable::Align::kRight},
                   {"predicted", "predicted", TextTable::Align::kRight},
                   {"error %", "error_pct", TextTable::Align::kRight},
                   {"target %", "target_pct", TextTable::Align::kRight},
                   {"met", "met"}});
  bool met = true;
  for (const std::string& set : sets) {
    const std::vector<ValidationRow> rows =
        run_validation(set, o.data.empty() ? default_data() : o.data);
    for (const ValidationRow& r : rows) {
      table.add({r.run, r.basis, r.metric, fmt::format("{:.5g} {}", r.measured, r.unit),
                 fmt::format("{:.5g} {}", r.predicted, r.unit),
                 fmt::format("{:+.2f}", r.error_pct()),
                 r.target_pct ? fmt::format("{:g}", *r.target_pct) : "-",
                 r.target_pct ? (r.met() ? "yes" : "NO") : "-"});
      met = met && r.met();
    }
    if (!o.output.empty()) {
      std::filesystem::create_directories(o.output);
      write_file((std::filesystem::path(o.output) / (set + ".csv")).string(), validation_csv(rows));
    }
  }
  print_table(table, o.format);
  return o.fail && !met ? kFailed : kOk;
}

}  // namespace

void add_validate(CLI::App& app, Action& action) {
  auto o = std::make_shared<Options>();
  CLI::App& c =
      *app.add_subcommand("validate", "run simulated-versus-measured tables on measured data");
  c.add_option("sets", o->sets, "which sets (default: all)");
  c.add_option("--data", o->data,
               "folder of the measured data (default: $MEDLEY_SHARED_DATA or ../shared/data)");
  c.add_option("--out", o->output, "write <set>.csv into this folder");
  c.add_flag("--fail", o->fail, "exit with 1 when a target is missed");
  add_format_option(c, o->format);
  c.callback([o, &action] { action = [o] { return validate_command(*o); }; });
}

}  // namespace medley::cli
