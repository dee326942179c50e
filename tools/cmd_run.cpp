#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>

#include "sim/core/error.h"
#include "sim/core/text_file.h"
#include "sim/report/fail_condition.h"
#include "sim/report/output_directory.h"
#include "sim/report/run_table.h"
#include "sim/report/write_report.h"
#include "sim/runtime/simulation.h"
#include "tools/command.h"
#include "tools/draws.h"

namespace medley::cli {

namespace {
using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct RunOptions {
  ScenarioOptions scenario;
  std::string out;
  bool overwrite = false;
  std::string requests;
  bool trace = false;
  Format format = Format::kTable;
  std::vector<std::string> fail_on;
  bool quiet = false;
  bool no_fast_forward = false;
  bool profile = false;
  std::string seed, tie_seed;
  DrawChoice draws;
  bool bottlenecks = false;
  std::string fidelity;
};

/// Flags that name a scenario value are overrides of it, so that the manifest tells the whole truth
/// and its resolved scenario repeats the run.
LoadOptions load_options(const RunOptions& o) {
  LoadOptions load = o.scenario.load();
  const auto set = [&](const char* path, const std::string& value) {
    load.overrides.push_back(fmt::format("{}={}", path, value));
  };
  if (!o.requests.empty()) set("report.requests", o.requests);
  if (o.trace) set("report.trace", "true");
  if (!o.seed.empty()) set("seed", o.seed);
  if (!o.tie_seed.empty()) set("tie_seed", o.tie_seed);
  if (o.fidelity == "folded" || o.fidelity == "layered") set("contention.fidelity", o.fidelity);
  if (o.no_fast_forward) set("fast_forward", "false");
  return load;
}

struct Phases {
  double load = 0.0, simulate = 0.0, analyse = 0.0, draws = 0.0, report = 0.0;
};

void print_profile(const Phases& t, const RunResult& r) {
  constexpr double kKibPerMib = 1024.0;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double loop = r.loop_wall_s;
  const auto rate = [](double n, double s) { return s > 0.0 ? short_number(n / s) : "-"; };
  complain(fmt::format(
      "profile: load {:.3f} s, simulate {:.3f} s (event loop {:.3f} s), analyse {:.3f} s, draws "
      "{:.3f} s, report {:.3f} s",
      t.load, t.simulate, loop, t.analyse, t.draws, t.report));
  const auto arrived = static_cast<double>(r.arrived);
  complain(fmt::format(
      "profile: {} requests, {} events; loop {} requests/s, {} events/s; whole command {} "
      "requests/s; peak memory {:.0f} MiB",
      r.arrived, r.events, rate(arrived, loop), rate(static_cast<double>(r.events), loop),
      rate(arrived, t.load + t.simulate + t.analyse + t.report),
      static_cast<double>(usage.ru_maxrss) / kKibPerMib));
}

void print_result(const RunOptions& o, const Analysis& analysis, const ReportExtras& more,
                  const std::string& out) {
  if (o.format == Format::kJson) {
    print(read_file(out + "/summary.json"));
  } else if (o.format == Format::kCsv) {
    print(read_file(out + "/summary.csv"));
  } else if (!o.quiet) {
    print(run_table(analysis, colour_wanted()) +
          (more.draws ? uncertainty_table(analysis, *more.draws) : "") +
          (more.bottlenecks ? bottleneck_table(*more.bottlenecks) : "") +
          (more.fidelity ? fidelity_table(*more.fidelity) : "") + "report: " + out + "/\n");
  }
}

/// Lines for stderr: what stays blank and is not among the scenario's own warnings.
std::vector<std::string> further_missing(const Analysis& a) {
  std::vector<std::string> lines;
  for (const MissingValue& m : a.account().missing()) {
    const std::string text =
        fmt::format("{}{} is unknown; {} stays blank; supply {}", m.field,
                    m.group.empty() ? "" : " of " + m.group, m.affects, m.set_line);
    const std::string known = m.set_line.substr(0, m.set_line.find('='));
    bool told = false;
    for (const std::string& w : a.scenario().warnings) {
      told = told || w.find(known) != std::string::npos;
    }
    if (!told) lines.push_back(text);
  }
  return lines;
}

/// Why nothing could run, most frequent reason first.
std::string all_rejected(const RunResult& result) {
  std::map<std::string_view, std::int64_t> reasons;
  for (const RequestRecord& r : result.requests) {
    if (r.arrival <= result.end) ++reasons[to_string(r.status)];
  }
  std::string text;
  for (const auto& [reason, count] : reasons)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, reason);
  return fmt::format("none of the {} requests could run: {} (see `medley check` for what fits)",
                     result.arrived, text);
}

int run_command(const RunOptions& o) {
  std::vector<FailCondition> conditions;
  for (const std::string& text : o.fail_on) conditions.push_back(parse_fail_condition(text));
  if (!o.out.empty()) OutputDirectory::check(o.out, o.overwrite);

  Phases t;
  auto start = Clock::now();
  const LoadedScenario loaded = load_with_catalog(load_options(o));
  const Scenario& scenario = loaded.scenario;
  for (const FailCondition& c : conditions) check_fail_condition(c, scenario);
  const std::string out =
      o.out.empty() ? fmt::format("results/{}-{}", scenario.name, scenario.hash8) : o.out;
  OutputDirectory::check(out, o.overwrite);
  if (!o.quiet) warn(scenario.warnings);
  t.load = since(start);

  start = Clock::now();
  RunResult result;
  {
    ProgressLine line(!o.quiet);
    RunHooks hooks;
    hooks.interrupt = &interrupt_flag();
    hooks.progress = [&](double done, SimTime now) {
      if (!line.due()) return;
      line.show(fmt::format("{:5.1f} % of requests ended, simulated {:.0f} s, {:.0f} s",
                            100.0 * done, now.seconds().value(), line.seconds()));
    };
    result = run(*loaded.catalog, scenario, hooks);
  }
  t.simulate = since(start);
  if (result.rejected > 0 && result.rejected == result.arrived)
    throw InfeasibleError(all_rejected(result));

  start = Clock::now();
  const Analysis analysis(scenario, result);
  t.analyse = since(start);
  start = Clock::now();
  std::optional<Uncertainty> draws;
  if (o.draws.draws > 0) {
    if (!o.quiet) warn_of_few_draws(o.draws);
    draws = run_chosen_draws(*loaded.catalog, analysis, o.draws, scenario.name, o.quiet);
  }
  ReportExtras more;
  more.draws = draws ? &*draws : nullptr;
  std::optional<Bottlenecks> bottlenecks;
  if (o.bottlenecks) {
    BottleneckOptions options;
    options.threads = threads_of(o.draws);
    options.interrupt = &interrupt_flag();
    bottlenecks = find_bottlenecks(*loaded.catalog, analysis, options);
    more.bottlenecks = &*bottlenecks;
  }
  std::optional<FidelityCheck> fidelity;
  if (o.fidelity == "both") {
    fidelity = check_fidelity(*loaded.catalog, analysis, &interrupt_flag());
    more.fidelity = &*fidelity;
  }
  t.draws = since(start);
  start = Clock::now();
  write_report(analysis, out, o.overwrite, more);
  t.report = since(start);
  if (!o.quiet) {
    warn(further_missing(analysis));
    if (analysis.fleet().value("num_requests") == 0.0) {
      warn({"no request arrived in the measured window: see measure.warmup and measure.window"});
    }
  }
  print_result(o, analysis, more, out);
  if (o.profile) print_profile(t, result);

  int code = kOk;
  for (const FailCondition& c : conditions) {
    const FailVerdict verdict = judge(c, analysis);
    if (!verdict.holds) continue;
    complain(fmt::format("--fail-on '{}' holds: {}", c.text, verdict.why));
    code = kFailed;
  }
  return code;
}
}  // namespace

void add_run(CLI::App& app, Action& action) {
  auto o = std::make_shared<RunOptions>();
  CLI::App& c = *app.add_subcommand("run", "simulate a scenario and write its report");
  add_scenario_options(c, o->scenario);
  c.add_option("--out", o->out, "directory of the report (default results/<scenario>-<hash>)")
      ->type_name("DIR");
  c.add_flag("--overwrite", o->overwrite, "replace an earlier report in that directory");
  c.add_option("--requests", o->requests, "rows of requests.csv: all, none or sample:N")
      ->type_name("ROWS");
  c.add_flag("--trace", o->trace, "also write trace.json for Perfetto or chrome://tracing");
  add_format_option(c, o->format);
  c.add_option("--fail-on", o->fail_on,
               "exit with 1 when a condition holds, for example 'slo_attainment<0.99' (repeatable)")
      ->type_name("CONDITION")
      ->take_all()
      ->allow_extra_args(false);
  c.add_flag("-q,--quiet", o->quiet, "no table, warnings or progress");
  c.add_flag("--no-fast-forward", o->no_fast_forward, "take every decode step by itself");
  c.add_option("--seed", o->seed, "seed of all random streams")->type_name("N");
  c.add_option("--tie-seed", o->tie_seed, "permute events of the same instant by this seed")
      ->type_name("N");
  add_draw_options(c, o->draws);
  CLI::Option* threads = c.get_option("--threads");
  threads->remove_needs(c.get_option("--uncertainty"));
  c.add_flag("--bottlenecks", o->bottlenecks,
             "also run with 10 % more of each resource in turn and tell what that gains");
  c.add_option("--fidelity", o->fidelity,
               "how shared steps are played: folded, layered, or both and by how much they differ")
      ->check(CLI::IsMember({"folded", "layered", "both"}));
  c.add_flag("--profile", o->profile, "tell on stderr where the time went");
  c.callback([o, threads, &action] {
    if (threads->count() > 0 && o->draws.draws == 0 && !o->bottlenecks) {
      throw CLI::RequiresError("--threads", "--uncertainty or --bottlenecks");
    }
    action = [o] { return run_command(*o); };
  });
}

}  // namespace medley::cli
