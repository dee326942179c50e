#include "workloads/generator_load.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "sim/core/error.h"

namespace medley {

std::string find_input_file(ObjectReader& reader, std::string_view key, const std::string& file,
                            const SearchDirs& dirs) {
  namespace fs = std::filesystem;
  if (file.empty()) return {};
  std::error_code ignored;
  if (fs::path(file).is_absolute()) {
    if (fs::is_regular_file(file, ignored)) return file;
  } else {
    for (const std::string& dir : dirs) {
      const std::string path = (fs::path(dir) / file).lexically_normal().string();
      if (fs::is_regular_file(path, ignored)) return path;
    }
  }
  reader.problem(key, fmt::format("there is no file `{}`", file),
                 dirs.size() > 1 ? "relative paths start at the scenario's folder, then at the "
                                   "shipped data"
                                 : "relative paths start at the scenario's folder");
  return {};
}

namespace {
constexpr std::int64_t kMostRequests = std::int64_t{1} << 31;
constexpr double kDay = 86400.0;

double rate_of(ObjectReader& reader, std::string_view key, Range range = Range::positive()) {
  return reader.quantity<PerSec>(key, range).value();
}

RateCurve load_ramp(ObjectReader r) {
  const double from = rate_of(r, "from", Range::non_negative());
  const double to = rate_of(r, "to", Range::non_negative());
  const double over = r.quantity<Seconds>("over", Range::positive()).value();
  const double hold = r.quantity_or<Seconds>("hold", Seconds(0.0)).value();
  r.finish();
  if (from <= 0.0 && to <= 0.0) r.problem("to", "a ramp from 0 to 0 has no arrivals");
  return RateCurve::linear({{0.0, from}, {over, to}, {over + hold, to}});
}

RateCurve load_diurnal(ObjectReader r) {
  const double mean = rate_of(r, "mean");
  const double amplitude = r.number("amplitude", Range::fraction());
  const double period = r.quantity_or<Seconds>("period", Seconds(kDay), Range::positive()).value();
  const double peak = r.quantity_or<Seconds>("peak", Seconds(period / 2.0)).value();
  r.finish();
  return RateCurve::sinusoid(mean, amplitude, period, peak);
}

/// Relative levels of equal parts of a period, scaled to a mean rate.
RateCurve load_hourly(ObjectReader r) {
  const double mean = rate_of(r, "mean");
  const std::vector<double> levels = r.numbers_or_empty("levels", Range::non_negative());
  const double period = r.quantity_or<Seconds>("period", Seconds(kDay), Range::positive()).value();
  r.finish();
  double sum = 0.0;
  for (const double level : levels) sum += level;
  if (sum <= 0.0) {
    r.problem("levels", "no level is above 0", "24 numbers, one an hour, only their ratios count");
    return RateCurve::constant(1.0);
  }
  const double part = period / static_cast<double>(levels.size());
  std::vector<RateCurve::Knot> knots;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    knots.push_back({part * static_cast<double>(i),
                     mean * levels[i] * static_cast<double>(levels.size()) / sum});
  }
  return RateCurve::steps(knots, period, true);
}

class SeriesLoader {
 public:
  SeriesLoader(ObjectReader& reader, const SearchDirs& dirs) : r_(reader), dirs_(dirs) {}

  RateCurve run() {
    CsvRequest request;
    request.file = r_.text("file");
    request.path = find_input_file(r_, "file", request.file, dirs_);
    request.header = r_.boolean_or("header", true);
    request.names = {r_.text_or("time", request.header ? "t_s" : "1"),
                     r_.text_or("rate", request.header ? "rate" : "2")};
    if (auto where = r_.maybe_object("where")) {
      for (const std::string& key : where->keys())
        request.where.emplace_back(key, where->text(key));
    }
    const std::string unit = r_.choice_or("time_unit", {"s", "ms", "us", "ns", "min", "h"}, "s");
    const double scale = r_.number_or("scale", 1.0, Range::positive());
    linear_ = r_.choice_or("interpolate", {"step", "linear"}, "step") == "linear";
    repeat_ = r_.boolean_or("repeat", false);
    r_.finish();
    if (request.path.empty()) return RateCurve::constant(1.0);
    try {
      return curve(read_csv_columns(request), unit_seconds(unit), scale);
    } catch (const InputError& error) {
      for (const Problem& p : error.problems()) r_.problem("file", to_text(p));
    }
    return RateCurve::constant(1.0);
  }

 private:
  static double unit_seconds(const std::string& unit) {
    if (unit == "min") return 60.0;
    if (unit == "h") return 3600.0;
    return unit == "s" ? 1.0 : unit == "ms" ? 1e-3 : unit == "us" ? 1e-6 : 1e-9;
  }

  RateCurve curve(const CsvColumns& columns, double unit, double scale) {
    std::vector<RateCurve::Knot> knots;
    double highest = 0.0;
    for (std::size_t i = 0; i < columns.values[0].size(); ++i) {
      knots.push_back(
          {(columns.values[0][i] - columns.values[0][0]) * unit, columns.values[1][i] * scale});
      highest = std::max(highest, knots.back().rate);
      const bool ordered = i == 0 || knots[i].t > knots[i - 1].t;
      if (knots.back().rate >= 0.0 && ordered) continue;
      r_.problem("file", fmt::format("row {}: times must ascend and rates not be negative", i + 1),
                 R"(keep one series with "where")");
      return RateCurve::constant(1.0);
    }
    if (knots.size() < 2 || highest <= 0.0) {
      r_.problem("file", "a rate series needs two rows and a rate above 0");
      return RateCurve::constant(1.0);
    }
    if (linear_) {
      if (repeat_) r_.problem("repeat", R"(works with "interpolate": "step")");
      return RateCurve::linear(knots);
    }
    const double last_width = knots.back().t - knots[knots.size() - 2].t;
    return RateCurve::steps(knots, knots.back().t + last_width, repeat_);
  }

  ObjectReader& r_;
  const SearchDirs& dirs_;
  bool linear_ = false;
  bool repeat_ = false;
};

RateCurve load_rate(ObjectReader& reader, const SearchDirs& dirs) {
  const std::vector<std::string> ways = {"rate", "ramp", "diurnal", "hourly", "series"};
  std::vector<std::string> given;
  for (const std::string& way : ways) {
    if (reader.has(way)) given.push_back(way);
  }
  if (given.size() != 1) {
    reader.problem("", fmt::format("needs exactly one of {}", fmt::join(ways, ", ")),
                   R"("rate": "5 req/s")");
    for (const std::string& way : ways) reader.raw(way);
    return RateCurve::constant(1.0);
  }
  if (given[0] == "ramp") return load_ramp(reader.object("ramp"));
  if (given[0] == "diurnal") return load_diurnal(reader.object("diurnal"));
  if (given[0] == "hourly") return load_hourly(reader.object("hourly"));
  if (given[0] == "series") {
    ObjectReader series = reader.object("series");
    return SeriesLoader(series, dirs).run();
  }
  return RateCurve::constant(rate_of(reader, "rate"));
}

SessionSpec load_session(ObjectReader r, const SearchDirs& dirs) {
  SessionSpec s;
  s.turns = load_distribution(r, "turns", Measure::kPositive, dirs);
  s.think_time = load_distribution(r, "think_time", Measure::kSeconds, dirs);
  r.raw("first_input_tokens");  // known though absent
  if (r.has("first_input_tokens")) {
    s.first_input_tokens = load_distribution(r, "first_input_tokens", Measure::kPositive, dirs);
  }
  s.max_context_tokens = r.integer_or("max_context_tokens", 0, 0, INT32_MAX);
  r.finish();
  return s;
}

PrefixSpec load_prefix(ObjectReader r, const SearchDirs& dirs) {
  constexpr std::int64_t kMostGroups = 10'000'000;
  PrefixSpec p;
  p.groups = r.integer_or("groups", 1, 1, kMostGroups);
  p.tokens = load_distribution(r, "tokens", Measure::kCount, dirs);
  p.zipf = r.number_or("zipf", 0.0, Range{0.0, 20.0});
  p.share = r.number_or("share", 1.0, Range::fraction());
  r.finish();
  return p;
}
}  // namespace

ArrivalSpec load_arrivals(ObjectReader reader, const SearchDirs& dirs) {
  ArrivalSpec spec;
  const std::string process =
      reader.choice("process", {"constant", "poisson", "gamma", "weibull", "closed_loop"});
  if (process == "closed_loop") {
    spec.gap = ArrivalSpec::Gap::kClosedLoop;
    spec.concurrency = reader.integer("concurrency", 1, kMostRequests);
    spec.think_time = reader.has("think_time")
                          ? load_distribution(reader, "think_time", Measure::kSeconds, dirs)
                          : Distribution::fixed(0.0);
    spec.ramp_up = reader.quantity_or<Seconds>("ramp_up", Seconds(0.0));
    spec.shared_queue = reader.choice_or("queue", {"per_user", "shared"}, "per_user") == "shared";
    reader.finish();
    return spec;
  }
  spec.gap = process == "constant"  ? ArrivalSpec::Gap::kConstant
             : process == "gamma"   ? ArrivalSpec::Gap::kGamma
             : process == "weibull" ? ArrivalSpec::Gap::kWeibull
                                    : ArrivalSpec::Gap::kPoisson;
  if (process == "gamma" || process == "weibull") spec.cv = reader.number("cv", Range{0.01, 30.0});
  spec.rate = load_rate(reader, dirs);
  reader.finish();
  return spec;
}

GeneratorSpec load_generator(ObjectReader reader, const SearchDirs& dirs) {
  GeneratorSpec spec;
  spec.arrivals = load_arrivals(reader.object("arrivals"), dirs);
  spec.input_tokens = load_distribution(reader, "input_tokens", Measure::kPositive, dirs);
  spec.output_tokens = load_distribution(reader, "output_tokens", Measure::kPositive, dirs);
  if (auto session = reader.maybe_object("session")) spec.session = load_session(*session, dirs);
  if (auto prefix = reader.maybe_object("shared_prefix")) {
    spec.shared_prefix = load_prefix(*prefix, dirs);
  }
  spec.duration = reader.maybe_quantity<Seconds>("duration", Range::positive());
  spec.requests = reader.maybe_integer("requests", 1, kMostRequests);
  spec.hash_block_tokens =
      static_cast<std::int32_t>(reader.integer_or("hash_block_tokens", 16, 1, 1 << 20));
  reader.finish();
  const bool closed = spec.arrivals.gap == ArrivalSpec::Gap::kClosedLoop;
  if (closed && !spec.requests) {
    reader.problem("requests", "is missing: how long a closed loop takes is not known beforehand",
                   R"("requests": 10000; the run's horizon limits time)");
  } else if (closed && spec.duration) {
    reader.problem("duration", "does not limit a closed loop", R"(use "requests")");
  } else if (closed && spec.arrivals.shared_queue && spec.session) {
    reader.problem("session", "does not go with a shared queue: a session's turns are its user's",
                   R"(leave "queue" at "per_user")");
  } else if (!spec.requests && !spec.duration && spec.arrivals.rate.end() == RateCurve::kForever) {
    reader.problem("", R"(needs "duration" or "requests": nothing ends its arrivals)");
  }
  return spec;
}

}  // namespace medley
