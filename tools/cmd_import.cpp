#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <tuple>

#include "hwmodels/catalog.h"
#include "sim/core/error.h"
#include "sim/core/text_file.h"
#include "sim/measure/kernel_screen.h"
#include "sim/measure/kernel_write.h"
#include "sim/measure/read_kernel_table.h"
#include "tools/command.h"
#include "workloads/trace_stats.h"

namespace medley::cli {

namespace fs = std::filesystem;

namespace {
struct ImportOptions {
  std::string input, kind = "auto", device, model, dtype, out;
  std::vector<std::string> catalog_dirs, zoo_dirs;
  int tp = 0, devices = 0;
  double screen = 0.0;
  bool overwrite = false;
  Format format = Format::kTable;
};

/// One line of the summary.
struct Share {
  std::int64_t rows = 0;
  double least_flops = std::numeric_limits<double>::infinity(), most_flops = 0.0;
  double least_bytes = std::numeric_limits<double>::infinity(), most_bytes = 0.0;
  double flop_rate = 0.0, byte_rate = 0.0;
  double watts = 0.0;
};

/// Traffic below this may come from the last-level cache and says nothing of the memory.
double cached_bytes(const DeviceSpec* device) {
  constexpr double kTimesTheCache = 4.0;
  if (device == nullptr || !device->last_level_cache.known()) return 0.0;
  return kTimesTheCache * (*device->last_level_cache).value();
}

std::string rate_text(double rate) {
  return rate > 0.0 ? short_number(rate) : "-";
}

std::string share_of(double rate, double peak) {
  return rate > 0.0 && peak > 0.0 ? percent(rate / peak) : "-";
}

double peak_rate(const DeviceSpec* device, DType dtype) {
  if (device == nullptr) return 0.0;
  const auto used = compute_fallback(*device, dtype);
  return used ? (*device->peak[index(*used)]).value() : 0.0;
}

TextTable kernel_summary(const KernelTable& table, const DeviceSpec* device) {
  using Key = std::tuple<OpClass, std::string, DType, DType>;
  std::map<Key, Share> shares;
  const double cached = cached_bytes(device);
  for (const KernelSample& s : table.kernels) {
    Share& share = shares[{s.op_class, s.op, s.dtype, s.weights}];
    ++share.rows;
    share.least_flops = std::min(share.least_flops, s.flops);
    share.most_flops = std::max(share.most_flops, s.flops);
    share.least_bytes = std::min(share.least_bytes, s.bytes);
    share.most_bytes = std::max(share.most_bytes, s.bytes);
    share.flop_rate = std::max(share.flop_rate, s.flops / s.time_s);
    if (s.bytes >= cached) share.byte_rate = std::max(share.byte_rate, s.bytes / s.time_s);
    share.watts = std::max(share.watts, s.watts.value_or(0.0));
  }
  const auto right = TextTable::Align::kRight;
  TextTable out({{"op class", "op_class"},
                 {"op", "op"},
                 {"arithmetic", "dtype"},
                 {"weights", "weights"},
                 {"rows", "rows", right},
                 {"flops", "flops_min", right},
                 {"to", "flops_max", right},
                 {"bytes", "bytes_min", right},
                 {"to", "bytes_max", right},
                 {"best flop/s", "flop_per_s_max", right},
                 {"of peak", "peak_share", right},
                 {"best B/s", "byte_per_s_max", right},
                 {"of memory", "bandwidth_share", right},
                 {"most W", "watts_max", right}});
  const double bandwidth = device != nullptr && device->memory_bandwidth.known()
                               ? (*device->memory_bandwidth).value()
                               : 0.0;
  for (const auto& [key, s] : shares) {
    const auto& [op_class, op, dtype, weights] = key;
    out.add({std::string(to_string(op_class)), op, std::string(to_string(dtype)),
             std::string(to_string(weights)), std::to_string(s.rows), short_number(s.least_flops),
             short_number(s.most_flops), short_number(s.least_bytes), short_number(s.most_bytes),
             rate_text(s.flop_rate), share_of(s.flop_rate, peak_rate(device, dtype)),
             rate_text(s.byte_rate), share_of(s.byte_rate, bandwidth),
             s.watts > 0.0 ? short_number(s.watts) : "-"});
  }
  return out;
}

TextTable collective_summary(const KernelTable& table) {
  struct Range {
    std::int64_t rows = 0;
    double least = std::numeric_limits<double>::infinity(), most = 0.0;
    double fastest = std::numeric_limits<double>::infinity(), rate = 0.0;
  };
  std::map<std::tuple<std::string, std::string, int>, Range> ranges;
  for (const CollectiveSample& s : table.collectives) {
    // DeepEP's shapes stand behind its variant; the summary takes them together.
    const std::string variant = s.variant.substr(0, s.variant.find("_hidden"));
    Range& r = ranges[{s.op, variant, s.devices}];
    ++r.rows;
    r.least = std::min(r.least, s.bytes);
    r.most = std::max(r.most, s.bytes);
    r.fastest = std::min(r.fastest, s.time_s);
    r.rate = std::max(r.rate, s.bytes / s.time_s);
  }
  const auto right = TextTable::Align::kRight;
  TextTable out({{"collective", "op"},
                 {"variant", "variant"},
                 {"devices", "devices", right},
                 {"rows", "rows", right},
                 {"bytes", "bytes_min", right},
                 {"to", "bytes_max", right},
                 {"least time", "time_min", right},
                 {"best B/s", "byte_per_s_max", right}});
  for (const auto& [key, r] : ranges) {
    const auto& [op, variant, devices] = key;
    out.add({op, variant, std::to_string(devices), std::to_string(r.rows), short_number(r.least),
             short_number(r.most), short_seconds(r.fastest), short_number(r.rate)});
  }
  return out;
}

TextTable point_summary(const KernelTable& table) {
  struct Range {
    std::int64_t rows = 0;
    int batch = 0, input = 0;
    double prefill = std::numeric_limits<double>::infinity();
    double token = std::numeric_limits<double>::infinity();
  };
  std::map<std::tuple<std::string, std::string, int>, Range> ranges;
  for (const EndToEndPoint& p : table.points) {
    Range& r = ranges[{p.device, p.model, p.tp}];
    ++r.rows;
    r.batch = std::max(r.batch, p.batch);
    r.input = std::max(r.input, p.input);
    r.prefill = std::min(r.prefill, p.prefill_s);
    r.token = std::min(r.token, p.token_s);
  }
  const auto right = TextTable::Align::kRight;
  TextTable out({{"device", "device"},
                 {"model", "model"},
                 {"tp", "tp", right},
                 {"rows", "rows", right},
                 {"batch to", "batch_max", right},
                 {"input to", "input_max", right},
                 {"least prefill", "prefill_min", right},
                 {"least decode step", "token_min", right}});
  for (const auto& [key, r] : ranges) {
    const auto& [device, model, tp] = key;
    out.add({device, model, std::to_string(tp), std::to_string(r.rows), std::to_string(r.batch),
             std::to_string(r.input), short_seconds(r.prefill), short_seconds(r.token)});
  }
  return out;
}

void print_screening(const Screened& s, double tolerance) {
  constexpr std::size_t kShown = 5;
  complain(fmt::format(
      "screened {} curves: {} of {} rows fall behind an earlier one, {} lie more than {} off the "
      "monotone fit and are left out",
      s.curves, s.falling, s.rows, s.removed.size(), percent(tolerance)));
  std::vector<const KernelOutlier*> worst;
  for (const KernelOutlier& o : s.removed) worst.push_back(&o);
  const auto factor = [](const KernelOutlier* o) {
    return std::max(o->time_s / o->fit_s, o->fit_s / o->time_s);
  };
  std::stable_sort(worst.begin(), worst.end(),
                   [&](const auto* a, const auto* b) { return factor(a) > factor(b); });
  for (std::size_t i = 0; i < std::min(kShown, worst.size()); ++i) {
    complain(fmt::format("  {}: {} where the curve has {}", worst[i]->key,
                         short_seconds(worst[i]->time_s), short_seconds(worst[i]->fit_s)));
  }
}

/// Appears whole or not at all.
void write_whole(const std::string& path, const std::string& bytes) {
  const std::string part = fmt::format("{}.partial-{}", path, ::getpid());
  std::error_code error;
  try {
    if (path.ends_with(".gz")) {
      write_file_gzip(part, bytes);
    } else {
      write_file(part, bytes);
    }
    fs::rename(part, path);
  } catch (const std::exception&) {
    fs::remove(part, error);
    throw;
  }
}

KernelReadOptions read_options(const ImportOptions& o) {
  KernelReadOptions options;
  options.format = o.kind;
  options.device = o.device;
  options.model = o.model;
  options.zoo_directories = o.zoo_dirs;
  options.tp = o.tp;
  options.devices = o.devices;
  if (!o.dtype.empty()) {
    const auto dtype = parse_dtype(o.dtype);
    if (!dtype) {
      throw InputError("", "--dtype", fmt::format("unknown number format `{}`", o.dtype),
                       suggest(o.dtype, dtype_names()));
    }
    options.dtype = *dtype;
  }
  return options;
}

bool one_device(const KernelTable& table) {
  return std::none_of(
      table.account.notes.begin(), table.account.notes.end(),
      [](const std::string& note) { return note.starts_with("files of several devices"); });
}

/// The table, and the catalogue's device where it has it. A device that only the file names is
/// looked up once it is read: then the table is read again, against its peak.
std::pair<KernelTable, const DeviceSpec*> read_input(const ImportOptions& o,
                                                     const Catalog& catalog) {
  KernelReadOptions options = read_options(o);
  if (!o.device.empty()) {
    options.spec = &catalog.device(o.device);
    return {read_kernel_table(o.input, options), options.spec};
  }
  KernelTable table = read_kernel_table(o.input, options);
  if (!one_device(table) || table.device.empty() || table.kernels.empty()) {
    return {std::move(table), nullptr};
  }
  options.spec = catalog.find_device(table.device);
  if (options.spec == nullptr) return {std::move(table), nullptr};
  return {read_kernel_table(o.input, options), options.spec};
}

void print_tables(const KernelTable& table, const DeviceSpec* device, Format format) {
  if (!table.kernels.empty()) print_table(kernel_summary(table, device), format);
  if (!table.collectives.empty()) print_table(collective_summary(table), format);
  if (!table.points.empty()) print_table(point_summary(table), format);
}

int import_command(const ImportOptions& o) {
  std::error_code error;
  if (!o.out.empty() && fs::exists(o.out, error) && !o.overwrite) {
    throw InputError(o.out, "", "exists already", "--overwrite replaces it");
  }
  const Catalog catalog(o.catalog_dirs);
  auto [table, device] = read_input(o, catalog);
  complain(account_text(table.account));
  if (!table.device.empty() && one_device(table)) {
    complain(fmt::format("device: {}{}", table.device,
                         device == nullptr ? " (not one of the catalogue: no shares of its peak)"
                         : device->name == table.device
                             ? ""
                             : fmt::format(" ({} of the catalogue)", device->name)));
  }
  if (o.screen > 0.0) print_screening(screen_monotone(table.kernels, o.screen), o.screen);
  if (!o.out.empty()) {
    if (table.kernels.empty() && table.collectives.empty()) {
      throw InputError(o.input, "", "holds no kernels or collectives to write",
                       "end-to-end points have no native form");
    }
    write_whole(o.out, native_kernel_csv(table));
  }
  print_tables(table, device, o.format);
  return kOk;
}
}  // namespace

void add_import(CLI::App& app, Action& action) {
  auto o = std::make_shared<ImportOptions>();
  CLI::App& c = *app.add_subcommand(
      "import", "read measured kernels or collectives: their account, a summary, native CSV");
  c.add_option("input", o->input, "file or folder of measurements")->required()->type_name("PATH");
  std::vector<std::string> kinds = kernel_format_names();
  kinds.emplace_back("auto");
  c.add_option("--input-format", o->kind, "format of the measurements; auto: by their columns")
      ->check(CLI::IsMember(kinds))
      ->type_name("NAME");
  c.add_option("--device", o->device, "device they were taken on, of the catalogue")
      ->type_name("NAME");
  c.add_option("--model", o->model, "model they were taken with, where the files do not say")
      ->type_name("NAME");
  c.add_option("--tp", o->tp, "tensor parallel size, likewise")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  c.add_option("--devices", o->devices, "devices in a collective, likewise")
      ->check(CLI::Range(2, 1000000))
      ->type_name("N");
  c.add_option("--dtype", o->dtype, "number format, likewise (bf16)")->type_name("NAME");
  c.add_option("--screen", o->screen,
               "leave out rows further than this share from the monotone fit of their curve")
      ->expected(0, 1)
      ->default_str("0.1")
      ->check(CLI::Range(1e-3, 10.0))
      ->type_name("SHARE");
  c.add_option("--to", o->out, "native CSV to write (.gz: compressed)")->type_name("FILE");
  c.add_flag("--overwrite", o->overwrite, "replace that file");
  add_catalog_options(c, o->catalog_dirs, o->zoo_dirs);
  add_format_option(c, o->format);
  c.callback([o, &action] { action = [o] { return import_command(*o); }; });
}

}  // namespace medley::cli
