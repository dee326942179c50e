#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>

#include "sim/core/error.h"
#include "sim/core/text_file.h"
#include "sim/measure/bench_json.h"
#include "sim/validation/check_against.h"
#include "tools/command.h"

namespace medley::cli {

namespace {

struct CheckAgainstOptions {
  std::vector<std::string> files;
  std::string as = "auto";
  CheckDeployment deployment;
  CheckLoad load;
  std::string rate, power, out, scenario_out, points;
  std::optional<double> power_from, power_to;
  bool all = false;
  Format format = Format::kTable;
};

std::string with_unit(double value, const std::string& unit) {
  if (!std::isfinite(value)) return "-";
  if (unit == "s") return short_seconds(value);
  return fmt::format("{:.4g} {}", value, unit);
}

std::string point_name(const CheckedRun& run, std::size_t number) {
  const std::string& label = run.measured.label;
  return label.empty() ? fmt::format("{}: {}", number + 1, run.load)
                       : fmt::format("{}: {}", label, run.load);
}

/// Of several runs only the first figure of each kind is shown, unless all are asked for.
bool shown(const CheckedRun& run, std::size_t i, bool all) {
  if (all) return true;
  const auto kind = [](const std::string& metric) {
    const std::size_t end = metric.find("_p");
    const std::size_t mean = metric.find("_mean");
    const std::size_t cut = std::min(end, mean);
    return cut == std::string::npos || metric.find("_per_") != std::string::npos
               ? metric
               : metric.substr(0, cut);
  };
  for (std::size_t k = 0; k < i; ++k) {
    if (kind(run.rows[k].metric) == kind(run.rows[i].metric)) return false;
  }
  return run.rows[i].metric != "tokens_per_s";
}

TextTable check_table(const std::vector<CheckedRun>& runs, bool all) {
  constexpr auto kRight = TextTable::Align::kRight;
  TextTable table({{"point", "point"},
                   {"metric", "metric"},
                   {"measured", "measured", kRight},
                   {"predicted", "predicted", kRight},
                   {"error %", "error_pct", kRight}});
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (i > 0) table.rule();
    bool first = true;
    for (std::size_t k = 0; k < runs[i].rows.size(); ++k) {
      const CheckRow& row = runs[i].rows[k];
      if (!shown(runs[i], k, all || runs.size() == 1)) continue;
      table.add({first ? point_name(runs[i], i) : "", row.metric, with_unit(row.measured, row.unit),
                 with_unit(row.predicted, row.unit),
                 std::isfinite(row.error_pct()) ? fmt::format("{:+.1f}", row.error_pct()) : "-"});
      first = false;
    }
  }
  return table;
}

/// Whether the metric is one of those that the table of runs shows.
bool shown_somewhere(const std::string& metric, const std::vector<CheckedRun>& runs, bool all) {
  for (const CheckedRun& run : runs) {
    for (std::size_t i = 0; i < run.rows.size(); ++i) {
      if (run.rows[i].metric == metric && shown(run, i, all)) return true;
    }
  }
  return false;
}

TextTable check_summary_table(const std::vector<CheckSummary>& summary,
                              const std::vector<CheckedRun>& runs, bool all) {
  constexpr auto kRight = TextTable::Align::kRight;
  TextTable table({{"metric", "metric"},
                   {"n", "n", kRight},
                   {"bias %", "bias_pct", kRight},
                   {"median |e| %", "median_abs_pct", kRight},
                   {"p90 |e| %", "p90_abs_pct", kRight},
                   {"tau", "kendall_tau", kRight}});
  for (const CheckSummary& s : summary) {
    if (!shown_somewhere(s.metric, runs, all)) continue;
    table.add({s.metric, std::to_string(s.n), fmt::format("{:+.1f}", s.bias_pct),
               fmt::format("{:.1f}", s.median_pct), fmt::format("{:.1f}", s.p90_pct),
               s.tau ? fmt::format("{:.2f}", *s.tau) : "-"});
  }
  return table;
}

std::string check_headline(const CheckedRun& run) {
  const BenchResult& m = run.measured;
  const bool single = run.tensor_parallel == 1 && run.pipeline_parallel == 1;
  return fmt::format(
      "{}{}{}: {} on {} x {}{}, {}\n", m.tool, m.version.empty() ? "" : " ", m.version, run.model,
      run.gpus, run.device,
      single ? "" : fmt::format(" (tp {}, pp {})", run.tensor_parallel, run.pipeline_parallel),
      run.backend);
}

/// Notes that hold for all runs once, the others with their point.
std::string check_notes(const std::vector<CheckedRun>& runs) {
  std::vector<std::string> order;
  std::string text;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const std::string& note : runs[i].notes) {
      if (std::find(order.begin(), order.end(), note) != order.end()) continue;
      order.push_back(note);
      std::size_t with = 0;
      for (const CheckedRun& run : runs) {
        with += std::find(run.notes.begin(), run.notes.end(), note) != run.notes.end() ? 1U : 0U;
      }
      text += with == runs.size() ? fmt::format("  {}\n", note)
                                  : fmt::format("  {} (first at {}, {} of {} points)\n", note,
                                                point_name(runs[i], i), with, runs.size());
    }
  }
  return text;
}

std::string account_line(const ImportAccount& a) {
  std::string text =
      fmt::format("{}: {}, {} row(s) read, {} kept", a.source, a.format, a.rows_read, a.kept);
  for (const auto& [reason, n] : a.dropped) text += fmt::format(", {} dropped ({})", n, reason);
  for (const std::string& note : a.notes) text += "; " + note;
  return text + "\n";
}

/// "runs/a.json" and number 2 of 3 -> "runs/a-2.json".
std::string numbered(const std::string& path, std::size_t i, std::size_t all) {
  if (all == 1) return path;
  const std::filesystem::path p(path);
  return (p.parent_path() /
          fmt::format("{}-{}{}", p.stem().string(), i + 1, p.extension().string()))
      .string();
}

void write_check_outputs(const CheckAgainstOptions& o, const std::vector<CheckedRun>& runs,
                         const std::vector<CheckSummary>& summary) {
  if (!o.out.empty()) {
    std::filesystem::create_directories(o.out);
    write_file((std::filesystem::path(o.out) / "check.csv").string(), checks_csv(runs));
    write_file((std::filesystem::path(o.out) / "check_summary.csv").string(),
               check_summary_csv(summary));
  }
  if (!o.points.empty()) write_file(o.points, check_points_csv(runs));
  if (o.scenario_out.empty()) return;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string path = numbered(o.scenario_out, i, runs.size());
    const std::filesystem::path trace =
        std::filesystem::path(path).replace_extension(".requests.csv");
    std::string text = runs[i].scenario_json;
    if (!runs[i].trace_csv.empty()) {
      const std::string placeholder = "\"requests.csv\"";
      const std::size_t at = text.find(placeholder);
      MEDLEY_CHECK(at != std::string::npos, "the rebuilt scenario names no trace");
      text.replace(at, placeholder.size(), "\"" + trace.filename().string() + "\"");
      write_file(trace.string(), runs[i].trace_csv);
    }
    write_file(path, text);
  }
}

std::string check_text(const CheckAgainstOptions& o, const std::vector<CheckedRun>& runs,
                       const std::vector<CheckSummary>& summary, const std::string& accounts) {
  if (o.format == Format::kCsv) return checks_csv(runs);
  if (o.format == Format::kJson) {
    return fmt::format("{{\"rows\": {}, \"summary\": {}}}\n", check_table(runs, true).json(),
                       check_summary_table(summary, runs, true).json());
  }
  std::string text =
      accounts + check_headline(runs.front()) + "\n" + check_table(runs, o.all).aligned();
  if (runs.size() > 1) text += "\n" + check_summary_table(summary, runs, o.all).aligned();
  return text + "\nnotes\n" + check_notes(runs);
}

int check_against_command(CheckAgainstOptions o) {
  if (!o.rate.empty()) {
    double rate = 0.0;
    if (!parse_bench_number(o.rate, rate) || !(rate > 0.0)) {
      throw InputError("--rate", "", fmt::format("`{}` is no rate", o.rate), "10 or inf");
    }
    o.load.rate = rate;
  }
  CheckPower power;
  std::optional<PowerLog> log;
  std::string accounts;
  std::vector<BenchResult> results;
  Problems problems;
  const auto reading = [&](const auto& read) {
    try {
      read();
    } catch (const InputError& error) {
      for (const Problem& p : error.problems()) problems.add(p);
    }
  };
  for (const std::string& file : o.files) {
    reading([&] {
      BenchFile bench = read_bench(file, o.as);
      accounts += account_line(bench.account);
      for (BenchResult& r : bench.results) results.push_back(std::move(r));
    });
  }
  if (!o.power.empty()) {
    reading([&] {
      log = read_power_log(o.power);
      accounts += account_line(log->account);
    });
  }
  problems.throw_if_any();
  if (log) power = {&*log, o.power_from, o.power_to};
  std::vector<CheckedRun> runs;
  for (const BenchResult& r : results) {
    runs.push_back(check_against(r, o.deployment, o.load, power));
  }
  const std::vector<CheckSummary> summary = summarise_checks(runs);
  print(check_text(o, runs, summary, accounts));
  write_check_outputs(o, runs, summary);
  return kOk;
}

void add_deployment_options(CLI::App& c, CheckDeployment& d) {
  c.add_option("--scenario", d.scenario, "what served: a scenario whose workload is replaced")
      ->type_name("FILE");
  c.add_option("--node", d.node, "what served: a node type (medley list nodes)")
      ->type_name("NAME")
      ->excludes("--scenario");
  c.add_option("--device", d.device, "what served: a device (medley list devices)")
      ->type_name("NAME")
      ->excludes("--scenario")
      ->excludes("--node");
  c.add_option("--gpus", d.gpus, "devices in all (default: those of one replica)")
      ->check(CLI::PositiveNumber)
      ->needs("--device");
  c.add_option("--model", d.model, "what was served (default: as the file names it)");
  c.add_option("--backend", d.backend, "serving engine (medley list backends)")
      ->capture_default_str();
  c.add_option("--tp", d.tensor_parallel, "tensor parallel size")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  c.add_option("--pp", d.pipeline_parallel, "pipeline parallel size")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  c.add_option("--replicas", d.replicas, "servers behind one address")->check(CLI::PositiveNumber);
  c.add_option("--set", d.sets, "one value of the scenario, as pools.server.max_num_seqs=128")
      ->type_name("PATH=VALUE")
      ->take_all()
      ->allow_extra_args(false);
  c.add_flag("--assume-missing", d.assume_missing,
             "fill unknown power and price with class priors, marked assumed");
  add_catalog_options(c, d.catalog_dirs, d.zoo_dirs);
}

void add_load_options(CLI::App& c, CheckAgainstOptions& o) {
  c.add_option("--input", o.load.input,
               "prompt lengths the file does not list: 512, uniform:1:1024, exponential:300, "
               "lognormal:MEAN:CV")
      ->type_name("LENGTHS");
  c.add_option("--output", o.load.output, "answer lengths, likewise")->type_name("LENGTHS");
  c.add_option(
       "--range-ratio", o.load.range_ratio,
       "of random data: SGLang draws uniformly from N x ratio to N, vLLM from N (1 - ratio) "
       "to N (1 + ratio)")
      ->check(CLI::Range(0.0, 1.0));
  c.add_option("--requests", o.load.requests, "how many (default: as many as were completed)")
      ->check(CLI::PositiveNumber);
  c.add_option("--rate", o.rate, "offered load in requests per second, or inf");
  c.add_option("--concurrency", o.load.concurrency, "requests in flight")
      ->check(CLI::PositiveNumber);
  c.add_option("--seed", o.load.seed, "of arrivals and lengths")->capture_default_str();
}

}  // namespace

void add_check_against(CLI::App& app, Action& action) {
  auto o = std::make_shared<CheckAgainstOptions>();
  CLI::App& c = *app.add_subcommand(
      "check-against", "simulate what a load generator measured and compare, metric by metric");
  c.add_option("files", o->files,
               "results of vllm bench serve, SGLang, genai-perf, AIPerf, "
               "inference-perf (file or folder), guidellm, llmperf, ...")
      ->required()
      ->type_name("FILE");
  std::string names;
  for (const BenchFormat& f : bench_formats()) names += (names.empty() ? "" : ", ") + f.name;
  c.add_option("--as", o->as, "format of the files: auto, " + names)->type_name("FORMAT");
  add_deployment_options(c, o->deployment);
  add_load_options(c, *o);
  c.add_option("--power", o->power, "log of nvidia-smi, DCGM, Kepler or a server's meter")
      ->type_name("FILE");
  c.add_option("--power-from", o->power_from, "seconds from the log's start")->needs("--power");
  c.add_option("--power-to", o->power_to, "seconds from the log's start")->needs("--power");
  c.add_flag("--all", o->all, "show every figure of several runs, not one of each kind");
  c.add_option("--out", o->out, "write check.csv and check_summary.csv into this folder")
      ->type_name("DIR");
  c.add_option(
       "--scenario-out", o->scenario_out,
       "write the rebuilt scenario, to be run with medley run (several: FILE-1, FILE-2, ...)")
      ->type_name("FILE");
  c.add_option("--to-points", o->points,
               "write the end-to-end points that medley calibrate --points takes")
      ->type_name("FILE");
  add_format_option(c, o->format);
  c.callback([o, &action] { action = [o] { return check_against_command(*o); }; });
}

}  // namespace medley::cli
