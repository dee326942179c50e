#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "sim/report/text_table.h"
#include "sim/scenario/load.h"

namespace medley::cli {

/// What a chosen subcommand does; returns the exit code. Set by CLI11's callbacks, run by main
/// after parsing, so that exceptions of the work are never mistaken for errors of usage.
using Action = std::function<int()>;

// One per file cmd_<name>.cpp.
void add_run(CLI::App& app, Action& action);
void add_compare(CLI::App& app, Action& action);
void add_check(CLI::App& app, Action& action);
void add_list(CLI::App& app, Action& action);
void add_show(CLI::App& app, Action& action);
void add_explain(CLI::App& app, Action& action);
void add_trace(CLI::App& app, Action& action);
void add_calibrate(CLI::App& app, Action& action);
void add_check_against(CLI::App& app, Action& action);
void add_import(CLI::App& app, Action& action);
void add_validate(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);

inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;  ///< ran, but infeasible or a --fail-on condition holds
inline constexpr int kBadInput = 2;
inline constexpr int kInternal = 3;
inline constexpr int kInterrupted = 130;

/// Options of every command that takes a scenario.
struct ScenarioOptions {
  std::string path;
  std::vector<std::string> sets, catalog_dirs, zoo_dirs;
  bool assume_missing = false;
  LoadOptions load() const;
};
void add_scenario_options(CLI::App& command, ScenarioOptions& options);
/// The same without the scenario itself.
void add_scenario_settings(CLI::App& command, ScenarioOptions& options);
void add_catalog_options(CLI::App& command, std::vector<std::string>& catalog_dirs,
                         std::vector<std::string>& zoo_dirs);

/// --format of commands that print lists.
enum class Format : std::uint8_t { kTable, kJson, kCsv };
void add_format_option(CLI::App& command, Format& format);
void print_table(const TextTable& table, Format format);

/// Set by SIGINT.
const std::atomic<bool>& interrupt_flag();

/// Writes to stdout; throws when it is closed or full.
void print(std::string_view text);
/// Writes one line "medley: <text>" to stderr.
void complain(std::string_view text);
void warn(const std::vector<std::string>& warnings);

/// Scenario zoo folder list with the shipped one first.
std::vector<std::string> zoo_folders(const std::vector<std::string>& more);

bool stdout_is_terminal();
bool stderr_is_terminal();
bool colour_wanted();  ///< stdout is a terminal and NO_COLOR is unset

}  // namespace medley::cli
