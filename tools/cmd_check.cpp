#include <fmt/format.h>

#include <memory>

#include "sim/report/run_table.h"
#include "sim/scenario/validate.h"
#include "tools/command.h"
#include "workloads/trace_stats.h"

namespace medley::cli {

namespace {
int check_command(const ScenarioOptions& o) {
  const LoadedScenario loaded = load_with_catalog(o.load());
  const Scenario& s = loaded.scenario;
  warn(s.warnings);
  std::string text = fmt::format("{}: valid ({} pools, {} requests, hash {})\n\n", o.path,
                                 s.pools.size(), s.trace.requests.size(), s.hash8);
  text += "memory per device, and the most requests that fit at once by context length\n";
  text += memory_table(s, check_feasible(*loaded.catalog, s));
  text += "\nimports\n";
  for (const ImportAccount& account : s.trace.accounts) text += account_text(account) + "\n";
  print(text);
  return kOk;
}
}  // namespace

void add_check(CLI::App& app, Action& action) {
  auto o = std::make_shared<ScenarioOptions>();
  CLI::App& c = *app.add_subcommand(
      "check", "validate a scenario and account for memory and imports, without running");
  add_scenario_options(c, *o);
  c.callback([o, &action] { action = [o] { return check_command(*o); }; });
}

}  // namespace medley::cli
