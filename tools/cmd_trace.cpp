#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "hwmodels/catalog.h"
#include "sim/core/csv.h"
#include "sim/core/error.h"
#include "sim/core/json_reader.h"
#include "tools/command.h"
#include "workloads/trace_reader.h"
#include "workloads/trace_stats.h"
#include "workloads/trace_write.h"

namespace medley::cli {

namespace fs = std::filesystem;

namespace {
struct TraceOptions {
  std::string input, out;
  std::string input_format = "auto";
  std::uint64_t seed = 1;
  bool overwrite = false, drop_bad_rows = false;
  Format format = Format::kTable;
};

/// A workload: its own file, or the "workload" of a scenario.
Trace build_from_json(const TraceOptions& o) {
  const auto root = load_json(o.input);
  const bool scenario = root.is_object() && root.contains("workload");
  Problems problems;
  ObjectReader reader(scenario ? root["workload"] : root, o.input, scenario ? "/workload" : "",
                      problems);
  const std::string folder = fs::path(o.input).parent_path().string();
  const WorkloadSpec spec =
      load_workload(reader, {folder.empty() ? "." : folder, shipped_data_directory()});
  problems.throw_if_any();
  return build_trace(spec, o.seed);
}

Trace read_input(const TraceOptions& o) {
  if (o.input.ends_with(".json") && o.input_format == "auto") return build_from_json(o);
  TraceFileSpec spec;
  spec.file = spec.path = o.input;
  spec.format = o.input_format;
  if (o.drop_bad_rows) spec.on_bad_row = TraceFileSpec::BadRow::kDrop;
  return read_trace(spec);
}

TextTable stats_table(const TraceStats& s) {
  TextTable table({{"what", "what"}, {"value", "value", TextTable::Align::kRight}});
  const auto add = [&](const char* what, const std::string& value) { table.add({what, value}); };
  const auto count = [&](const char* what, std::int64_t n) { add(what, std::to_string(n)); };
  count("requests", s.requests);
  count("arriving on the clock", s.open);
  count("following another", s.closed);
  count("sessions", s.sessions);
  add("span s", number_text(s.span_s));
  add("rate 1/s", number_text(s.rate_per_s));
  add("burstiness (variance over mean per second)", number_text(s.burstiness));
  count("busiest second", s.busiest_second);
  add("longest gap s", number_text(s.longest_gap_s));
  count("most at one instant", s.most_at_once);
  const auto lengths = [&](const std::string& what, const LengthStats& l, std::int64_t total) {
    table.add({what + " tokens", std::to_string(total)});
    table.add({what + " mean", number_text(l.mean)});
    table.add({what + " min", std::to_string(l.min)});
    table.add({what + " p50", std::to_string(l.p50)});
    table.add({what + " p90", std::to_string(l.p90)});
    table.add({what + " p99", std::to_string(l.p99)});
    table.add({what + " max", std::to_string(l.max)});
  };
  lengths("input", s.input, s.input_tokens);
  lengths("output", s.output, s.output_tokens);
  count("tokens per prefix id", s.hash_block_tokens);
  add("prefix reuse, infinite cache", number_text(s.ideal_prefix_reuse));
  const auto shares = [&](const std::string& what, const std::vector<TraceStats::Share>& all) {
    for (const TraceStats::Share& share : all) {
      table.add({what + " " + share.name, std::to_string(share.requests)});
    }
  };
  shares("model", s.models);
  shares("class", s.classes);
  shares("tenant", s.tenants);
  return table;
}

void print_accounts(const Trace& trace) {
  for (const ImportAccount& a : trace.accounts) complain(account_text(a));
}

int show_command(const TraceOptions& o) {
  const Trace trace = read_input(o);
  print_accounts(trace);
  print_table(stats_table(trace_stats(trace)), o.format);
  return kOk;
}

/// Appears whole or not at all.
void write_trace(const TraceOptions& o, const Trace& trace) {
  const bool gzip = o.out.ends_with(".gz");
  const std::string part = fmt::format("{}.partial-{}{}", o.out, ::getpid(), gzip ? ".gz" : "");
  std::error_code error;
  try {
    write_native_csv(trace, part);
    fs::rename(part, o.out);
  } catch (const std::exception&) {
    fs::remove(part, error);
    throw;
  }
}

int write_command(const TraceOptions& o) {
  std::error_code error;
  if (fs::exists(o.out, error) && !o.overwrite) {
    throw InputError(o.out, "", "exists already", "--overwrite replaces it");
  }
  const Trace trace = read_input(o);
  print_accounts(trace);
  write_trace(o, trace);
  print(fmt::format("{}: {} requests\n", o.out, trace.requests.size()));
  return kOk;
}

void add_input(CLI::App& c, TraceOptions& o, const char* what) {
  c.add_option("input", o.input, what)->required()->type_name("FILE");
  c.add_option("--seed", o.seed, "seed of generated workloads")->type_name("N");
}

void add_reading(CLI::App& c, TraceOptions& o) {
  c.add_option("--input-format", o.input_format,
               "format of a trace file (medley list formats); auto: by its columns")
      ->check(CLI::IsMember(trace_format_names()))
      ->type_name("NAME");
  c.add_flag("--drop-bad-rows", o.drop_bad_rows, "drop and count rows that cannot be read");
}

void add_output(CLI::App& c, TraceOptions& o) {
  c.add_option("--out", o.out, "native CSV to write (.gz: compressed)")
      ->required()
      ->type_name("FILE");
  c.add_flag("--overwrite", o.overwrite, "replace that file");
}
}  // namespace

void add_trace(CLI::App& app, Action& action) {
  CLI::App& trace = *app.add_subcommand("trace", "look at, generate and convert request traces");
  trace.require_subcommand(1);
  const auto sub = [&](const char* name, const char* what) {
    return trace.add_subcommand(name, what);
  };
  {
    auto o = std::make_shared<TraceOptions>();
    CLI::App& c = *sub("show", "statistics of a trace, and its import account");
    add_input(c, *o, "trace file, or a scenario (.json) whose workload is meant");
    add_reading(c, *o);
    add_format_option(c, o->format);
    c.callback([o, &action] { action = [o] { return show_command(*o); }; });
  }
  {
    auto o = std::make_shared<TraceOptions>();
    CLI::App& c = *sub("generate", "write the requests of a workload as native CSV");
    add_input(c, *o, "workload or scenario (.json)");
    add_output(c, *o);
    c.callback([o, &action] { action = [o] { return write_command(*o); }; });
  }
  {
    auto o = std::make_shared<TraceOptions>();
    CLI::App& c = *sub("convert", "read a trace in any known format and write native CSV");
    add_input(c, *o, "trace file");
    add_reading(c, *o);
    add_output(c, *o);
    c.callback([o, &action] { action = [o] { return write_command(*o); }; });
  }
}

}  // namespace medley::cli
