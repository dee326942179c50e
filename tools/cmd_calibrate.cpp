#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>

#include "hwmodels/catalog.h"
#include "sim/calibration/calibrate.h"
#include "sim/calibration/device_step.h"
#include "sim/calibration/transfer.h"
#include "sim/core/text_file.h"
#include "sim/measure/read_kernel_table.h"
#include "tools/command.h"
#include "workloads/model.h"

namespace medley::cli {

namespace {
struct CalibrateOptions {
  std::string device, out, date, source, notes;
  std::vector<std::string> kernels, only, leave_out, catalog_dirs;
  std::string input_format, model, points, node;
  std::string backend = "vllm-2026";
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
    std::vector<std::string> cells = {
        std::string(to_string(row.op_class)),
        std::string(to_string(row.dtype)),
        fmt::format("{}{}", to_string(row.stored), row.block_scaled ? " block" : ""),
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

std::vector<KernelSample> read_samples(const std::string& path, const CalibrateOptions& o,
                                       const DeviceSpec& device) {
  KernelReadOptions read;
  read.format = o.input_format;
  read.spec = &device;
  read.model = o.model;
  return read_kernel_table(path, read).kernels;
}

int leave_one_out(const CalibrateOptions& o) {
  const Catalog catalog(o.catalog_dirs);
  std::vector<TransferCase> cases;
  for (const std::string& text : o.leave_out) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) {
      throw InputError("", "--leave-one-device-out", fmt::format("\"{}\" names no files", text),
                       "write <device>=<file or folder of kernels>");
    }
    const DeviceSpec& device = catalog.device(text.substr(0, equals));
    cases.push_back({&device, read_samples(text.substr(equals + 1), o, device)});
  }
  KernelFitOptions options;
  options.only = classes_of(o.only);
  using Align = TextTable::Align;
  TextTable table({{"device", "device"},
                   {"op class", "op_class"},
                   {"format", "format"},
                   {"n", "n", Align::kRight},
                   {"own %", "own_median_pct", Align::kRight},
                   {"nearest", "nearest"},
                   {"its ramps %", "nearest_median_pct", Align::kRight},
                   {"bias %", "nearest_bias_pct", Align::kRight},
                   {"others", "others", Align::kRight},
                   {"medians %", "medians_median_pct", Align::kRight},
                   {"bias %", "medians_bias_pct", Align::kRight}});
  for (const TransferRow& r : leave_one_device_out(cases, options)) {
    table.add({r.device, std::string(to_string(r.op_class)), std::string(to_string(r.dtype)),
               std::to_string(r.own.n), percent(r.own.median), r.donor, percent(r.nearest.median),
               fmt::format("{:+.1f}", 100.0 * r.nearest.bias), std::to_string(r.donors),
               percent(r.medians.median), fmt::format("{:+.1f}", 100.0 * r.medians.bias)});
  }
  print_table(table, o.format);
  return kOk;
}

/// The node type whose devices these are, and the smallest that has enough of them.
const NodeSpec& node_of(const Catalog& catalog, const CalibrateOptions& o, const DeviceSpec& device,
                        int devices) {
  if (!o.node.empty()) return catalog.node(o.node);
  const NodeSpec* best = nullptr;
  for (const NodeSpec* n : catalog.nodes()) {
    if (catalog.device(n->device).name != device.name || n->devices < devices) continue;
    if (best == nullptr || n->devices < best->devices) best = n;
  }
  if (best == nullptr) {
    throw InputError("", "--node", fmt::format("no node type has {} {}", devices, device.name),
                     "name one with --node");
  }
  return *best;
}

/// Host times of a backend from end-to-end points.
int calibrate_points(const CalibrateOptions& o) {
  const Catalog catalog(o.catalog_dirs);
  const DeviceSpec& device = catalog.device(o.device);
  const BackendSpec& backend = catalog.backend(o.backend);
  const std::vector<ServingPoint> points = read_points(o.points);
  int most = 1;
  for (const ServingPoint& p : points) most = std::max(most, p.tensor_parallel);
  const ModelZoo zoo(zoo_folders({}));
  const HostFit fit =
      fit_host(points, backend.host_mode,
               device_steps(catalog, device, node_of(catalog, o, device, most), backend,
                            Precision{}, [&](const std::string& name) { return zoo.find(name); }));
  if (!fit.per_step.known()) {
    throw InputError(o.points, "", "too few points show the host",
                     backend.host_mode == HostMode::kOverlapped
                         ? "measure small batches, where the step is longer than the device's work"
                         : "give at least three points");
  }
  if (o.out != "-") {
    print(
        fmt::format("host: {} per step, {} per sequence; {} points fitted, {} held out: median "
                    "error {} %, bias {:+.1f} %\n",
                    format_quantity(*fit.per_step), format_quantity(*fit.per_sequence), fit.rows,
                    fit.judged, percent(fit.median_error), 100.0 * fit.bias));
    if (fit.active_floor.known()) {
      print(fmt::format("power: floor {}, context idle {}\n", format_quantity(*fit.active_floor),
                        fit.context_idle.known() ? format_quantity(*fit.context_idle) : "-"));
    }
  }
  if (o.out.empty()) return kOk;
  Calibration c;
  c.backend = backend.name;
  c.date = o.date;
  c.notes = o.notes;
  c.command = fmt::format("medley calibrate --device \"{}\" --backend {} --points {}", device.name,
                          backend.name, std::filesystem::path(o.points).filename().string());
  c.sources["points"] = fmt::format("{}: fit to {} points, median error {} % on the held-out half",
                                    o.source, fit.rows, percent(fit.median_error));
  c.backend_values.host_per_step = fit.per_step;
  c.backend_values.host_per_sequence = fit.per_sequence;
  c.backend_values.host_per_step.source = c.backend_values.host_per_sequence.source =
      c.sources["points"];
  const std::string text = to_json_text(c);
  if (o.out == "-") {
    print(text);
  } else {
    write_file(o.out, text);
  }
  return kOk;
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
  if (!o.leave_out.empty()) return leave_one_out(o);
  if (o.device.empty()) {
    throw InputError("", "--device", "whose kernels are these?", "name a device of the catalogue");
  }
  if (!o.out.empty() && (o.date.empty() || o.source.empty())) {
    throw InputError("", "--out", "an overlay states when and from what it was made",
                     "add --date YYYY-MM-DD --source <text>");
  }
  if (!o.points.empty()) return calibrate_points(o);
  if (o.kernels.empty()) {
    throw InputError("", "--kernels", "nothing to fit to",
                     "name files or folders of kernels, or --points");
  }
  const Catalog catalog(o.catalog_dirs);
  const DeviceSpec& device = catalog.device(o.device);
  std::vector<KernelSample> samples;
  for (const std::string& path : o.kernels) {
    std::vector<KernelSample> more = read_samples(path, o, device);
    samples.insert(samples.end(), std::make_move_iterator(more.begin()),
                   std::make_move_iterator(more.end()));
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
  const Calibration c =
      make_calibration(device, kernels, power, {o.date, o.source, command_text(o), o.notes});
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
  c.add_option("--device", o->device, "catalogue name");
  c.add_option("--kernels", o->kernels, "files or folders of measured kernels");
  c.add_option("--points", o->points, "CSV of end-to-end points: fits the host times of --backend");
  c.add_option("--backend", o->backend, "of the points")->capture_default_str();
  c.add_option("--node", o->node, "node type of the points (default: the smallest that fits)");
  c.add_option("--leave-one-device-out", o->leave_out,
               "<device>=<kernels> ...: what each device's kernels say of the others' ramps");
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
