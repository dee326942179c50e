#include "sim/measure/power_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/core/error.h"
#include "sim/measure/bench_readers.h"
#include "sim/measure/power_log_readers.h"

namespace medley {

namespace {
/// Integral over [from, to] of the line through (t0, w0) and (t1, w1), or of w1 where constant.
double piece(double t0, double t1, double w0, double w1, double from, double to) {
  const double a = std::max(t0, from), b = std::min(t1, to);
  if (!(b > a)) return 0.0;
  const auto at = [&](double t) { return w0 + (w1 - w0) * (t - t0) / (t1 - t0); };
  return (at(a) + at(b)) / 2.0 * (b - a);
}

struct Integral {
  double joules = 0.0;
  double seconds = 0.0;
};

Integral integrate(const PowerSeries& s, double from, double to) {
  Integral sum;
  for (std::size_t i = 1; i < s.time_s.size(); ++i) {
    const double w0 = s.from_counter ? s.watts[i] : s.watts[i - 1];
    sum.joules += piece(s.time_s[i - 1], s.time_s[i], w0, s.watts[i], from, to);
    sum.seconds += std::max(0.0, std::min(s.time_s[i], to) - std::max(s.time_s[i - 1], from));
  }
  return sum;
}

/// Readings of one whole second are spread over it, in their order.
void spread_equal_times(std::vector<double>& times) {
  for (std::size_t i = 0; i < times.size();) {
    std::size_t end = i;
    while (end < times.size() && times[end] == times[i]) ++end;
    const double width = end < times.size() ? std::min(1.0, times[end] - times[i]) : 1.0;
    const double start = times[i];
    for (std::size_t k = i; k < end; ++k) {
      times[k] = start + width * static_cast<double>(k - i) / static_cast<double>(end - i);
    }
    i = end;
  }
}
}  // namespace

std::string_view to_string(PowerScope scope) {
  switch (scope) {
    case PowerScope::kDevice:
      return "devices";
    case PowerScope::kServer:
      return "server";
    case PowerScope::kContainer:
      break;
  }
  return "container";
}

double PowerLog::start_s() const {
  double first = kNotTold;
  for (const PowerSeries& s : series) {
    if (!s.time_s.empty()) first = std::fmin(first, s.time_s.front());
  }
  return first;
}

double PowerLog::end_s() const {
  double last = kNotTold;
  for (const PowerSeries& s : series) {
    if (!s.time_s.empty()) last = std::fmax(last, s.time_s.back());
  }
  return last;
}

std::optional<double> PowerLog::energy_j(double from, double to) const {
  Integral sum;
  for (const PowerSeries& s : series) {
    const Integral one = integrate(s, from, to);
    sum.joules += one.joules;
    sum.seconds += one.seconds;
  }
  if (!(sum.seconds > 0.0)) return std::nullopt;
  return sum.joules;
}

std::optional<double> PowerLog::mean_w(double from, double to) const {
  std::optional<double> watts;
  for (const PowerSeries& s : series) {
    const Integral one = integrate(s, from, to);
    if (one.seconds > 0.0) watts = watts.value_or(0.0) + one.joules / one.seconds;
  }
  return watts;
}

void PowerCollector::add(const std::string& name, double time_s, double value) {
  Readings* readings = nullptr;
  for (Readings& r : readings_) {
    if (r.name == name) readings = &r;
  }
  if (readings == nullptr) readings = &readings_.emplace_back(Readings{name, {}});
  readings->values.push_back({time_s, value});
  ++account_.kept;
}

void PowerCollector::drop(const std::string& reason) {
  drop_row(account_, reason);
}

PowerLog PowerCollector::finish(PowerScope scope, double joules_per_count) {
  PowerLog log;
  log.scope = scope;
  for (Readings& r : readings_) {
    std::stable_sort(r.values.begin(), r.values.end(),
                     [](const Reading& a, const Reading& b) { return a.time_s < b.time_s; });
    PowerSeries s;
    s.name = r.name;
    s.from_counter = joules_per_count > 0.0;
    std::vector<double> times;
    for (const Reading& v : r.values) times.push_back(v.time_s);
    spread_equal_times(times);
    for (std::size_t i = 0; i < r.values.size(); ++i) {
      if (!s.from_counter) {
        s.time_s.push_back(times[i]);
        s.watts.push_back(r.values[i].value);
        continue;
      }
      const double grown = i == 0 ? 0.0 : r.values[i].value - r.values[i - 1].value;
      if (grown < 0.0) {
        account_.notes.push_back(fmt::format("counter of {} restarted", r.name));
        account_.kept -= static_cast<std::int64_t>(r.values.size() - i);
        for (std::size_t k = i; k < r.values.size(); ++k)
          drop("readings behind a restarted counter");
        break;
      }
      s.time_s.push_back(times[i]);
      s.watts.push_back(i == 0 ? 0.0 : grown * joules_per_count / (times[i] - times[i - 1]));
    }
    if (s.from_counter && s.watts.size() > 1) s.watts[0] = s.watts[1];
    log.series.push_back(std::move(s));
  }
  std::stable_sort(log.series.begin(), log.series.end(),
                   [](const PowerSeries& a, const PowerSeries& b) { return a.name < b.name; });
  log.account = account_;
  return log;
}

}  // namespace medley
