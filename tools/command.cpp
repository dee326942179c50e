#include "tools/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "hwmodels/catalog.h"

namespace medley::cli {

LoadOptions ScenarioOptions::load() const {
  LoadOptions o;
  o.path = path;
  o.overrides = sets;
  o.catalog_dirs = catalog_dirs;
  o.model_dirs = zoo_dirs;
  o.assume_missing = assume_missing;
  return o;
}

void add_catalog_options(CLI::App& command, std::vector<std::string>& catalog_dirs,
                         std::vector<std::string>& zoo_dirs) {
  command.add_option("--catalog", catalog_dirs, "folder of hardware entries of your own")
      ->type_name("DIR")
      ->take_all()
      ->allow_extra_args(false);
  command.add_option("--zoo", zoo_dirs, "folder of model descriptions of your own")
      ->type_name("DIR")
      ->take_all()
      ->allow_extra_args(false);
}

void add_scenario_options(CLI::App& command, ScenarioOptions& o) {
  command.add_option("scenario", o.path, "scenario file (configs/README.md)")
      ->required()
      ->type_name("FILE");
  add_scenario_settings(command, o);
}

void add_scenario_settings(CLI::App& command, ScenarioOptions& o) {
  command
      .add_option("--set", o.sets,
                  "override one value, for example pools.chat.replicas=6 (repeatable)")
      ->type_name("PATH=VALUE")
      ->take_all()
      ->allow_extra_args(false);
  command.add_flag("--assume-missing", o.assume_missing,
                   "fill unknown power and price with class priors, marked assumed");
  add_catalog_options(command, o.catalog_dirs, o.zoo_dirs);
}

void add_format_option(CLI::App& command, Format& format) {
  command
      .add_option_function<std::string>(
          "--format",
          [&format](const std::string& word) {
            format = word == "json" ? Format::kJson : word == "csv" ? Format::kCsv : Format::kTable;
          },
          "what stdout gets: table, json or csv")
      ->check(CLI::IsMember({"table", "json", "csv"}))
      ->type_name("FORMAT")
      ->default_str("table");
}

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw std::runtime_error(fmt::format("cannot write to stdout: {}", std::strerror(errno)));
  }
}

void print_table(const TextTable& table, Format format) {
  print(format == Format::kJson  ? table.json()
        : format == Format::kCsv ? table.csv()
                                 : table.aligned());
}

void complain(std::string_view text) {
  const std::string line = fmt::format("medley: {}\n", text);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void warn(const std::vector<std::string>& warnings) {
  for (const std::string& w : warnings) complain("warning: " + w);
}

std::vector<std::string> zoo_folders(const std::vector<std::string>& more) {
  std::vector<std::string> all = {
      (std::filesystem::path(shipped_data_directory()) / "workloads" / "zoo").string()};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

bool stdout_is_terminal() {
  return ::isatty(STDOUT_FILENO) == 1;
}

bool stderr_is_terminal() {
  return ::isatty(STDERR_FILENO) == 1;
}

bool colour_wanted() {
  const char* no = std::getenv("NO_COLOR");
  return stdout_is_terminal() && (no == nullptr || *no == '\0');
}

}  // namespace medley::cli
