#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "sim/core/error.h"
#include "sim/core/text_file.h"
#include "sim/report/compare.h"
#include "sim/report/output_directory.h"
#include "sim/runtime/simulation.h"
#include "tools/command.h"
#include "tools/draws.h"

namespace medley::cli {

namespace {
struct CompareOptions {
  ScenarioOptions common;  ///< its path stays empty
  std::vector<std::string> paths;
  DrawChoice draws;
  std::string out;
  bool overwrite = false;
  bool quiet = false;
  Format format = Format::kTable;
};

/// A scenario with what came of it, at one place in memory: the analysis refers to the others.
struct Loaded {
  LoadedScenario scenario;
  RunResult result;
  std::optional<Analysis> analysis;
  std::optional<Uncertainty> draws;
};

std::string label_of(std::size_t i) {
  constexpr std::size_t kLetters = 26;
  std::string label(1, static_cast<char>('A' + i % kLetters));
  return i < kLetters ? label : label + std::to_string(i / kLetters);
}

/// "FILE@path=value@path=value": a scenario with overrides of its own, after those of --set.
void split_own_overrides(const std::string& text, LoadOptions& options) {
  std::error_code ignored;
  std::size_t at = std::filesystem::exists(text, ignored) ? std::string::npos : text.find('@');
  options.path = text.substr(0, at);
  while (at != std::string::npos) {
    const std::size_t next = text.find('@', at + 1);
    options.overrides.push_back(text.substr(at + 1, next - at - 1));
    at = next;
  }
}

std::unique_ptr<Loaded> load(const CompareOptions& o, const std::string& text) {
  auto one = std::make_unique<Loaded>();
  LoadOptions options = o.common.load();
  split_own_overrides(text, options);
  one->scenario = load_with_catalog(options);
  one->scenario.scenario.report.chrome_trace = false;
  return one;
}

void simulate(const CompareOptions& o, const std::string& label, Loaded& one) {
  const Scenario& scenario = one.scenario.scenario;
  try {
    RunHooks hooks;
    hooks.interrupt = &interrupt_flag();
    one.result = run(*one.scenario.catalog, scenario, hooks);
  } catch (const InfeasibleError& e) {
    throw InfeasibleError(fmt::format("{} ({}): {}", label, scenario.file, e.what()));
  }
  if (one.result.arrived > 0 && one.result.rejected == one.result.arrived) {
    throw InfeasibleError(fmt::format("{} ({}): none of the {} requests could run", label,
                                      scenario.file, one.result.arrived));
  }
  one.analysis.emplace(scenario, one.result);
  if (o.draws.draws > 0) {
    one.draws = run_chosen_draws(*one.scenario.catalog, *one.analysis, o.draws, label, o.quiet);
  }
}

int compare_command(const CompareOptions& o) {
  if (!o.out.empty()) OutputDirectory::check(o.out, o.overwrite);
  std::vector<std::unique_ptr<Loaded>> loaded;
  for (const std::string& path : o.paths) loaded.push_back(load(o, path));
  if (o.draws.draws > 0 && !o.quiet) warn_of_few_draws(o.draws);
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < loaded.size(); ++i) {
    Loaded& one = *loaded[i];
    const std::string label = label_of(i);
    if (!o.quiet) {
      for (const std::string& w : one.scenario.scenario.warnings) warn({label + ": " + w});
    }
    simulate(o, label, one);
    candidates.push_back({label, o.paths[i], &*one.analysis, one.draws ? &*one.draws : nullptr});
  }
  if (!o.quiet) warn(workload_differences(candidates));
  const std::string csv = compare_csv(candidates);
  const std::string json = compare_json(candidates);
  if (!o.out.empty()) {
    OutputDirectory out(o.out, o.overwrite);
    write_file(out.file("compare.csv"), csv);
    write_file(out.file("compare.json"), json);
    out.commit();
  }
  print(o.format == Format::kCsv    ? csv
        : o.format == Format::kJson ? json
                                    : compare_table(candidates));
  return kOk;
}
}  // namespace

void add_compare(CLI::App& app, Action& action) {
  constexpr int kFewest = 2;
  auto o = std::make_shared<CompareOptions>();
  CLI::App& c = *app.add_subcommand(
      "compare",
      "run scenarios and set their key metrics side by side, with the odds that one "
      "beats the other");
  c.add_option("scenarios", o->paths,
               "scenario files, each with overrides of its own behind it where wanted "
               "(FILE@path=value@path=value); differences are to the first")
      ->required()
      ->expected(kFewest, CLI::detail::expected_max_vector_size)
      ->type_name("FILE[@PATH=VALUE]");
  add_scenario_settings(c, o->common);
  add_draw_options(c, o->draws);
  c.add_option("--out", o->out, "also write compare.csv and compare.json into this directory")
      ->type_name("DIR");
  c.add_flag("--overwrite", o->overwrite, "replace an earlier comparison there");
  c.add_flag("-q,--quiet", o->quiet, "no warnings or progress");
  add_format_option(c, o->format);
  c.callback([o, &action] { action = [o] { return compare_command(*o); }; });
}

}  // namespace medley::cli
