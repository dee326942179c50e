#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "sim/core/csv.h"
#include "sim/core/text_file.h"
#include "sim/measure/bench_json.h"
#include "sim/measure/power_log_readers.h"
#include "workloads/timestamp.h"

namespace medley {

namespace {

constexpr std::string_view kPowerMetric = "DCGM_FI_DEV_POWER_USAGE";
constexpr std::string_view kEnergyMetric = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION";
constexpr double kBlankSentinel = 9.2e18;

struct Line {
  std::int64_t number = 0;
  std::string text;
};

std::vector<Line> lines_of(const std::string& path) {
  std::vector<Line> lines;
  LineReader reader(path);
  std::string_view line;
  while (reader.next(line)) {
    if (!trimmed(line).empty()) lines.push_back({reader.line_number(), std::string(trimmed(line))});
  }
  return lines;
}

class Reader {
 public:
  explicit Reader(const std::string& path) : file_(path), out_(path), lines_(lines_of(path)) {}

  PowerLog run() {
    if (lines_.empty()) throw InputError(file_, "", "is empty");
    PowerLog log = by_content();
    settle_torn_rows(log);
    if (log.series.empty() && problems_.empty())
      problems_.add(file_, "", "holds no reading of power");
    problems_.throw_if_any();
    log.format = format_;
    log.account.format = format_;
    return log;
  }

 private:
  /// A few torn lines (a logger killed, two that write at once) are dropped and counted; a file
  /// with more of them than 1 % is wrong.
  void settle_torn_rows(PowerLog& log) {
    const auto torn = static_cast<std::int64_t>(torn_.size());
    const bool few =
        log.account.kept > 0 && torn <= std::max<std::int64_t>(1, log.account.rows_read / 100);
    if (torn == 0) return;
    if (few) {
      log.account.dropped.emplace_back("unreadable rows", torn);
      return;
    }
    for (std::size_t i = 0; i < std::min(torn_.size(), kMostProblems); ++i)
      problems_.add(torn_.list()[i]);
  }

  PowerLog by_content() {
    const std::string& first = lines_.front().text;
    if (first.starts_with('#') || first.find("DCGM_FI_") == 0) return prometheus();
    if (first.find("power.draw") != std::string::npos) return nvidia_smi();
    if (first.starts_with("timestamp,")) return metric_csv();
    std::vector<std::string> cells;
    split_csv(first, cells);
    if (cells.size() >= 2 && time_of(cells[0]) == time_of(cells[0])) {
      return cells.size() == 2 ? server_csv() : nvidia_smi();
    }
    problems_.add(file_, fmt::format("line {}", lines_.front().number),
                  "is the log of no power meter that is known here",
                  "nvidia-smi --query-gpu=timestamp,index,power.draw --format=csv, DCGM, Kepler or "
                  "time,watts");
    return {};
  }

  /// Seconds of a wall clock or of an epoch; NaN when it is neither.
  static double time_of(std::string_view text) {
    const ParsedNs wall = parse_wall_clock(trimmed(text));
    if (wall.fault == TextFault::kNone) return static_cast<double>(wall.ns) * 1e-9;
    double number = 0.0;
    if (!parse_bench_number(text, number) || !(number >= 0.0)) return kNotTold;
    return number > 1e11 ? number * 1e-3 : number;  // epoch milliseconds from the year 1973 on
  }

  static bool not_available(std::string_view cell) {
    return cell.starts_with("[") || cell == "N/A" || cell.empty();
  }

  void wrong_file(const Line& line, std::string message, std::string hint = "") {
    problems_.add(file_, fmt::format("line {}", line.number), std::move(message), std::move(hint));
  }

  void bad(const Line& line, std::string message, std::string hint = "") {
    torn_.add(file_, fmt::format("line {}", line.number), std::move(message), std::move(hint));
  }

  /// Calls `row` with the trimmed cells of each line from `first` on.
  void each_row(std::size_t first, std::size_t cells_wanted,
                const std::function<void(const Line&, const std::vector<std::string>&)>& row) {
    std::vector<std::string> cells;
    for (std::size_t i = first; i < lines_.size(); ++i) {
      ++out_.account().rows_read;
      split_csv(lines_[i].text, cells);
      for (std::string& c : cells) c = std::string(trimmed(c));
      if (cells.size() < cells_wanted) {
        bad(lines_[i],
            fmt::format("has {} cells, not {}: is the file complete?", cells.size(), cells_wanted));
        continue;
      }
      row(lines_[i], cells);
    }
  }

  PowerLog nvidia_smi() {
    format_ = "nvidia-smi";
    std::vector<std::string> header;
    split_csv(lines_.front().text, header);
    for (std::string& c : header) c = std::string(trimmed(c));
    const bool named = lines_.front().text.find("power.draw") != std::string::npos;
    const auto column = [&](std::initializer_list<const char*> names) {
      for (const char* name : names) {
        for (std::size_t i = 0; i < header.size(); ++i) {
          if (header[i] == name || header[i].starts_with(std::string(name) + " [")) return i;
        }
      }
      return header.size();
    };
    std::size_t time = 0, index = 1, power = header.size() - 1;
    if (named) {
      time = column({"timestamp"});
      index = column({"index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id"});
      power = column({"power.draw", "power.draw.average", "power.draw.instant"});
    }
    if (time == header.size() || power == header.size()) {
      wrong_file(lines_.front(), "has no timestamp or no power.draw column",
                 "--query-gpu=timestamp,index,power.draw");
      return {};
    }
    const std::size_t least = std::max({time, power, index < header.size() ? index : 0}) + 1;
    each_row(named ? 1 : 0, least, [&](const Line& line, const std::vector<std::string>& cells) {
      const double t = time_of(cells[time]);
      if (std::isnan(t)) return bad(line, fmt::format("`{}` is no time", cells[time]));
      if (not_available(cells[power])) return out_.drop("readings not available");
      std::string value = cells[power];
      double factor = 1.0;
      if (value.ends_with(" mW")) factor = 1e-3;
      if (value.ends_with(" W") || value.ends_with(" mW")) value.resize(value.find(' '));
      double watts = 0.0;
      if (!parse_bench_number(value, watts) || watts < 0.0) {
        return bad(line, fmt::format("`{}` is no power", cells[power]), "71.20 W, or 71.20");
      }
      out_.add(index < header.size() ? cells[index] : "0", t, watts * factor);
    });
    return out_.finish(PowerScope::kDevice, 0.0);
  }

  PowerLog server_csv() {
    format_ = "server-csv";
    most_cells_ = 2;
    each_row(0, 2, [&](const Line& line, const std::vector<std::string>& cells) {
      const double t = time_of(cells[0]);
      double watts = 0.0;
      if (std::isnan(t)) return bad(line, fmt::format("`{}` is no time", cells[0]));
      if (not_available(cells[1])) return out_.drop("readings not available");
      if (!parse_bench_number(cells[1], watts) || watts < 0.0) {
        return bad(line, fmt::format("`{}` is no power", cells[1]));
      }
      out_.add("server", t, watts);
    });
    return out_.finish(PowerScope::kServer, 0.0);
  }

  PowerLog metric_csv() {
    format_ = "metric-csv";
    std::vector<std::string> header;
    split_csv(lines_.front().text, header);
    const std::string metric = header.size() > 1 ? std::string(trimmed(header[1])) : "";
    const bool kepler = metric.starts_with("kepler_") && metric.find("joules") != metric.npos;
    if (metric != kPowerMetric && metric != kEnergyMetric && !kepler) {
      wrong_file(
          lines_.front(), fmt::format("`{}` measures no power or energy", metric),
          "DCGM_FI_DEV_POWER_USAGE, DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION, kepler_..._joules_total");
      return {};
    }
    each_row(1, 2, [&](const Line& line, const std::vector<std::string>& cells) {
      reading(line, metric, cells[0], cells[1]);
    });
    if (metric == kPowerMetric) return out_.finish(PowerScope::kDevice, 0.0);
    const bool node = metric.starts_with("kepler_node");
    return out_.finish(!kepler ? PowerScope::kDevice
                       : node  ? PowerScope::kServer
                               : PowerScope::kContainer,
                       kepler ? 1.0 : 1e-3);
  }

  void reading(const Line& line, const std::string& name, std::string_view time,
               std::string_view text) {
    const double t = time_of(time);
    double value = 0.0;
    if (std::isnan(t)) return bad(line, fmt::format("`{}` is no time", time));
    if (!parse_bench_number(text, value) || value < 0.0) {
      return bad(line, fmt::format("`{}` is no reading", text));
    }
    if (value > kBlankSentinel) return out_.drop("blank readings");
    out_.add(name, t, value);
  }

  /// `DCGM_FI_DEV_POWER_USAGE{gpu="0",...} 71.2 1738324800000`
  PowerLog prometheus() {
    format_ = "dcgm-prom";
    const bool gauge = std::any_of(lines_.begin(), lines_.end(),
                                   [](const Line& l) { return l.text.starts_with(kPowerMetric); });
    const std::string_view wanted = gauge ? kPowerMetric : kEnergyMetric;
    for (const Line& line : lines_) {
      if (!line.text.starts_with(wanted)) continue;
      ++out_.account().rows_read;
      const std::size_t close = line.text.rfind('}');
      const std::size_t values = close == std::string::npos ? wanted.size() : close + 1;
      const std::string_view rest = trimmed(std::string_view(line.text).substr(values));
      const std::size_t gap = rest.find(' ');
      if (gap == std::string_view::npos) {
        wrong_file(line, "has no time stamp: power over time is not known",
                   "scrapes with time stamps, or a CSV of timestamp,DCGM_FI_DEV_POWER_USAGE");
        break;
      }
      reading(line, gpu_of(line.text), trimmed(rest.substr(gap + 1)), rest.substr(0, gap));
    }
    return out_.finish(PowerScope::kDevice, gauge ? 0.0 : 1e-3);
  }

  static std::string gpu_of(const std::string& line) {
    const std::size_t at = line.find("gpu=\"");
    if (at == std::string::npos) return "0";
    const std::size_t begin = at + 5;
    return line.substr(begin, line.find('"', begin) - begin);
  }

  static constexpr std::size_t kMostProblems = 20;
  const std::string& file_;
  PowerCollector out_;
  std::vector<Line> lines_;
  Problems problems_;
  Problems torn_;  ///< of single rows
  std::string format_;
  std::size_t most_cells_ = SIZE_MAX;
};

}  // namespace

PowerLog read_power_log(const std::string& path) {
  return Reader(path).run();
}

}  // namespace medley
