#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <set>

#include "hwmodels/catalog.h"
#include "sim/calibration/calibrate.h"
#include "sim/core/text_file.h"
#include "sim/measure/read_kernel_table.h"
#include "tools/command.h"

namespace medley::cli {

namespace {
struct CalibrateOptions {
  std::string device, out, date, source, notes;
  std::vector<std::string> kernels, only, catalog_dirs;
  std::string input_format, model;
  bool holdout = false;
  bool power = false;
  Format format = Format::kTable;
};

std::set<OpClass> classes_of(const std::vector<std::string>& names) {
  std::set<OpClass> classes;
  for (const std::string& name : names) {
    const auto op_class = parse_op_class(name);
    if (!op_class) {
      throw InputError("", "--only", fmt::format("unknown op class \"{}\"", name),
                       suggest(name, op_class_names()));
    }
    classes.insert(*op_class);
  }
  return classes;
}

std::string percent(double share) {
  return fmt::format("{:.1f}", 100.0 * share);
}
std::string range_text(const KernelFitRow& row) {
  return fmt::format("{:.1e}-{:.1e} flop, {:.1e}-{:.1e} B", row.low_flops, row.high_flops,
                     row.low_bytes, row.high_bytes);
}

void print_fits(const KernelFit& fit, Format format) {
  using Align = TextTable::Align;
  TextTable table({{"op class", "op_class"},
                   {"format", "format"},
                   {"stored", "stored"},
                   {"read", "read", Align::kRight},
                   {"dropped", "dropped", Align::kRight},
                   {"fitted", "fitted", Align::kRight},
                   {"held out", "held_out", Align::kRight},
                   {"median %", "median_pct", Align::kRight},
                   {"p90 %", "p90_pct", Align::kRight},
                   {"bias %", "bias_pct", Align::kRight},
                   {"compute", "compute_fraction", Align::kRight},
                   {"after us", "compute_ramp_us", Align::kRight},
                   {"serial", "serial", Align::kRight},
                   {"memory", "memory_fraction", Align::kRight},
                   {"after us", "memory_ramp_us", Align::kRight},
                   {"range", "range"}});
  for (const KernelFitRow& row : fit.rows) {
    int dropped = 0;
    for (const auto& [reason, n] : row.dropped) dropped += n;
    std::vector<std::string> cells = {std::string(to_string(row.op_class)),
                                      std::string(to_string(row.dtype)),
                                      std::string(to_string(row.stored)),
                                      std::to_string(row.read),
                                      std::to_string(dropped),
                                      std::to_string(row.fitted)};
    if (row.fitted > 0) {
      const Residuals& r = row.held_out;
      for (const std::string& text :
           {std::to_string(r.n), percent(r.median), percent(r.p90),
            fmt::format("{:+.1f}", 100.0 * r.bias),
            fmt::format("{:.3f}", row.ramps.compute.fraction),
            fmt::format("{:.2f}", 1e6 * row.compute_ramp_s()),
            fmt::format("{:.2f}", row.ramps.compute.serial),
            fmt::format("{:.3f}", row.ramps.memory.fraction),
            fmt::format("{:.2f}", 1e6 * row.memory_ramp_s()), range_text(row)}) {
        cells.push_back(text);
      }
    } else {
      cells.resize(16, "-");
    }
    table.add(std::move(cells));
  }
  print_table(table, format);
}

/// What to type to make the overlay again; paths from the root of the file system only by name.
std::string command_text(const CalibrateOptions& o) {
  std::string text = fmt::format("medley calibrate --device \"{}\"", o.device);
  for (const std::string& path : o.kernels) {
    const std::filesystem::path p(path);
    text += " --kernels " + (p.is_absolute() ? p.filename() : p).string();
  }
  if (!o.only.empty()) text += fmt::format(" --only {}", fmt::join(o.only, ","));
  if (o.holdout) text += " --holdout";
  if (o.power) text += " --power";
  return text;
}

int calibrate(const CalibrateOptions& o) {
  if (!o.out.empty() && (o.date.empty() || o.source.empty())) {
    throw InputError("", "--out", "an overlay states when and from what it was made",
                     "add --date YYYY-MM-DD --source <text>");
  }
  if (o.kernels.empty()) {
    throw InputError("", "--kernels", "nothing to fit to", "name files or folders of kernels");
  }
  const Catalog catalog(o.catalog_dirs);
  const DeviceSpec& device = catalog.device(o.device);
  KernelReadOptions read;
  read.format = o.input_format;
  read.spec = &device;
  read.model = o.model;
  std::vector<KernelSample> samples;
  for (const std::string& path : o.kernels) {
    KernelTable table = read_kernel_table(path, read);
    samples.insert(samples.end(), std::make_move_iterator(table.kernels.begin()),
                   std::make_move_iterator(table.kernels.end()));
  }
  KernelFitOptions options;
  options.holdout = o.holdout;
  options.only = classes_of(o.only);
  const KernelFit kernels = fit_kernels(samples, device, options);
  const PowerFit power = o.power ? fit_power(samples, device) : PowerFit{};
  if (o.out != "-") print_fits(kernels, o.format);
  if (power.known() && o.out != "-") {
    print(fmt::format("power: floor {}, {} per byte, median error {} % over {} bins\n",
                      format_quantity(*power.active_floor),
                      power.energy_per_byte.known() ? format_quantity(*power.energy_per_byte) : "-",
                      percent(power.median_error), power.bins));
  }
  if (o.out.empty()) return kOk;
  const Calibration c = make_calibration(device, kernels, power, {o.date, o.source, command_text(o), o.notes});
  const std::string text = to_json_text(c);
  if (o.out == "-") {
    print(text);
  } else {
    write_file(o.out, text);
  }
  return kOk;
}
}  // namespace

void add_calibrate(CLI::App& app, Action& action) {
  auto o = std::make_shared<CalibrateOptions>();
  CLI::App& c =
      *app.add_subcommand("calibrate", "fit a device's efficiencies and power to measured kernels");
  c.add_option("--device", o->device, "catalogue name")->required();
  c.add_option("--kernels", o->kernels, "files or folders of measured kernels");
  c.add_option("--input-format", o->input_format, "of the kernel files (default: by layout)");
  c.add_option("--model", o->model, "model of the kernel files, where they do not say");
  c.add_option("--only", o->only, "op classes to fit")->delimiter(',');
  c.add_flag("--holdout", o->holdout,
             "fit to one half of the rows only, so that the other stays unseen");
  c.add_flag("--power", o->power, "fit power too, where the kernels have watts");
  c.add_option("--out", o->out, "write the overlay here (- for stdout)");
  c.add_option("--date", o->date, "date of the overlay, YYYY-MM-DD");
  c.add_option("--source", o->source, "what was measured, by whom");
  c.add_option("--notes", o->notes, "kept in the overlay");
  c.add_option("--catalog", o->catalog_dirs, "more catalogue directories");
  add_format_option(c, o->format);
  c.callback([o, &action] { action = [o] { return calibrate(*o); }; });
}

}  // namespace medley::cli
