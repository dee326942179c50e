#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>

#include "sim/core/error.h"
#include "sim/core/text_file.h"
#include "sim/validation/validation.h"
#include "tools/command.h"

namespace medley::cli {

namespace {

struct ValidateOptions {
  std::vector<std::string> sets;
  std::string data;
  std::string output;
  bool fail = false;
  bool rows = false;
  bool groups = false;
  bool list = false;
  unsigned threads = 0;
  int draws = 0;
  Format format = Format::kTable;
};

std::string default_data() {
  const char* named = std::getenv("MEDLEY_SHARED_DATA");
  return named != nullptr ? named : "../shared/data";
}

void list_sets(Format format) {
  TextTable table({{"set", "set"},
                   {"what", "what"},
                   {"row key", "key"},
                   {"naive model", "baseline"},
                   {"source", "source"},
                   {"others on it", "peers"}});
  for (const ValidationSet& s : validation_sets()) {
    table.add({s.name, s.summary, s.key, s.baseline, s.source, s.peers});
  }
  print_table(table, format);
}

TextTable row_table() {
  return TextTable({{"set", "set"},
                    {"key", "key"},
                    {"basis", "basis"},
                    {"metric", "metric"},
                    {"measured", "measured", TextTable::Align::kRight},
                    {"predicted", "predicted", TextTable::Align::kRight},
                    {"error %", "error_pct", TextTable::Align::kRight},
                    {"half", "half"},
                    {"note", "note"}});
}

void add_rows(const std::string& set, const std::vector<ValidationRow>& rows, TextTable& table) {
  for (const ValidationRow& r : rows) {
    const bool known = r.predicted_known();
    table.add({set, r.key, r.basis, r.metric, fmt::format("{:.5g} {}", r.measured, r.unit),
               known ? fmt::format("{:.5g} {}", r.predicted, r.unit) : "-",
               known ? fmt::format("{:+.2f}", r.error_pct()) : "-", std::string(to_string(r.half)),
               r.note});
  }
}

TextTable summary_table() {
  return TextTable({{"set", "set"},
                    {"basis", "basis"},
                    {"group", "group"},
                    {"metric", "metric"},
                    {"half", "half"},
                    {"n", "n", TextTable::Align::kRight},
                    {"bias %", "bias_pct", TextTable::Align::kRight},
                    {"median %", "median_pct", TextTable::Align::kRight},
                    {"p90 %", "p90_pct", TextTable::Align::kRight},
                    {"tau", "kendall_tau", TextTable::Align::kRight},
                    {"covered %", "coverage_pct", TextTable::Align::kRight},
                    {"naive %", "baseline_median_pct", TextTable::Align::kRight},
                    {"target", "target"},
                    {"met", "met"}});
}

void add_summary(const std::vector<ValidationSummary>& summary, bool groups, TextTable& table) {
  for (const ValidationSummary& s : summary) {
    if (s.group != "all" && !groups && !s.target) continue;
    const bool any = s.n > 0;
    table.add({s.set, s.basis, s.group, s.metric, std::string(to_string(s.half)),
               s.failed > 0 ? fmt::format("{} ({} failed)", s.n, s.failed) : fmt::format("{}", s.n),
               any ? fmt::format("{:+.1f}", s.bias_pct) : "-",
               any ? fmt::format("{:.1f}", s.median_pct) : "-",
               any ? fmt::format("{:.1f}", s.p90_pct) : "-",
               s.tau ? fmt::format("{:.2f}", *s.tau) : "-",
               s.coverage_pct ? fmt::format("{:.0f}", *s.coverage_pct) : "-",
               s.baseline_pct ? fmt::format("{:.0f}", *s.baseline_pct) : "-",
               s.target ? fmt::format("{} {} {:g}", s.target->statistic,
                                      s.target->statistic == "tau" ? ">=" : "<=", s.target->limit)
                        : "-",
               s.target ? (s.met ? "yes" : "NO") : "-"});
  }
}

constexpr std::string_view kBegin = "<!-- table: medley validate -->\n";
constexpr std::string_view kEnd = "<!-- end of table -->";

/// The marked part of DIR/README.md, where there is one.
void update_readme(const std::filesystem::path& folder,
                   const std::vector<ValidationSummary>& summary) {
  const std::filesystem::path path = folder / "README.md";
  if (!std::filesystem::exists(path)) return;
  std::string text = read_file(path.string());
  const std::size_t begin = text.find(kBegin);
  const std::size_t end = text.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) return;
  text.replace(begin + kBegin.size(), end - begin - kBegin.size(), validation_markdown(summary));
  write_file(path.string(), text);
}

int validate_command(const ValidateOptions& o) {
  if (o.list) {
    list_sets(o.format);
    return kOk;
  }
  std::vector<const ValidationSet*> sets;
  for (const std::string& name : o.sets) sets.push_back(&validation_set(name));
  if (sets.empty()) {
    for (const ValidationSet& s : validation_sets()) sets.push_back(&s);
  }
  ValidationContext context;
  context.data = o.data.empty() ? default_data() : o.data;
  context.threads = o.threads > 0 ? o.threads : std::max(1U, std::thread::hardware_concurrency());
  context.draws = o.draws;
  TextTable rows_table = row_table();
  TextTable table = summary_table();
  std::vector<ValidationSummary> all;
  bool met = true;
  for (const ValidationSet* set : sets) {
    if (stderr_is_terminal()) {
      context.progress = [&](std::size_t done, std::size_t n) {
        fmt::print(stderr, "\r{}: {} of {} {}", set->name, done, n, done == n ? "\n" : "");
      };
    }
    const std::vector<ValidationRow> rows = run_validation(*set, context);
    const std::vector<ValidationSummary> summary = summarise(*set, rows);
    add_rows(set->name, rows, rows_table);
    add_summary(summary, o.groups, table);
    for (const ValidationSummary& s : summary) met = met && s.met;
    all.insert(all.end(), summary.begin(), summary.end());
    if (!o.output.empty()) {
      std::filesystem::create_directories(o.output);
      write_file((std::filesystem::path(o.output) / (set->name + ".csv")).string(),
                 validation_csv(rows));
    }
  }
  if (!o.output.empty() && o.sets.empty()) {
    write_file((std::filesystem::path(o.output) / "summary.csv").string(),
               validation_summary_csv(all));
    update_readme(o.output, all);
  }
  print_table(o.rows ? rows_table : table, o.format);
  return o.fail && !met ? kFailed : kOk;
}

}  // namespace

void add_validate(CLI::App& app, Action& action) {
  auto o = std::make_shared<ValidateOptions>();
  CLI::App& c =
      *app.add_subcommand("validate", "run simulated-versus-measured tables on measured data");
  c.add_option("sets", o->sets, "which sets (default: all; --list names them)");
  c.add_option("--data", o->data,
               "folder of the measured data (default: $MEDLEY_SHARED_DATA or ../shared/data)");
  c.add_option("--out", o->output,
               "write <set>.csv into this folder; with all sets also summary.csv and the table "
               "of its README.md");
  c.add_flag("--rows", o->rows, "print every measured point instead of the summary");
  c.add_flag("--groups", o->groups, "print the summary of every group too");
  c.add_flag("--list", o->list, "only list the sets");
  c.add_option("--threads", o->threads, "threads (default: all cores)");
  c.add_option("--draws", o->draws,
               "parameter draws per point, for intervals and their coverage (sets that simulate)")
      ->check(CLI::Range(0, 1000));
  c.add_flag("--fail", o->fail, "exit with 1 when a target is missed");
  add_format_option(c, o->format);
  c.callback([o, &action] { action = [o] { return validate_command(*o); }; });
}

}  // namespace medley::cli
