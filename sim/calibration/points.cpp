#include "sim/calibration/points.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "sim/calibration/solve.h"
#include "sim/core/csv.h"
#include "sim/core/error.h"
#include "sim/core/text_file.h"

namespace medley {

namespace {
constexpr double kHostShows = 1.05;
constexpr double kLeastOff = 0.02;
const std::vector<std::string>& point_columns() {
  static const std::vector<std::string> names = {
      "model",  "tp",     "input", "output",           "concurrency",   "rate",   "ttft_s",
      "tpot_s", "device", "gpus",  "output_tok_per_s", "watts_per_gpu", "backend"};
  return names;
}

class PointReader {
 public:
  explicit PointReader(const std::string& path) : path_(path), reader_(path) {}

  std::vector<ServingPoint> read() {
    std::string_view line;
    if (!reader_.next(line)) throw InputError(path_, "line 1", "the table is empty");
    header(line);
    problems_.throw_if_any();
    std::vector<ServingPoint> points;
    while (reader_.next(line)) {
      if (line.empty()) continue;
      if (!split_csv(line, cells_) || cells_.size() != width_) {
        problem(fmt::format("expected {} cells", width_));
        continue;
      }
      points.push_back(point());
    }
    problems_.throw_if_any();
    if (points.empty()) throw InputError(path_, "", "the table has no rows");
    return points;
  }

 private:
  void header(std::string_view line) {
    std::vector<std::string> names;
    split_csv(line, names);
    width_ = names.size();
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (std::find(point_columns().begin(), point_columns().end(), names[i]) ==
          point_columns().end()) {
        problem(fmt::format("unknown column \"{}\"", names[i]), suggest(names[i], point_columns()));
      } else if (!at_.emplace(names[i], i).second) {
        problem(fmt::format("column \"{}\" twice", names[i]));
      }
    }
    for (const char* name : {"model", "tp", "input", "output"}) {
      if (at_.count(name) == 0) problem(fmt::format("column \"{}\" is missing", name));
    }
    if (at_.count("tpot_s") == 0 && at_.count("output_tok_per_s") == 0) {
      problem("neither tpot_s nor output_tok_per_s is there");
    }
  }

  ServingPoint point() {
    ServingPoint p;
    p.model = cells_[at_["model"]];
    p.tensor_parallel = static_cast<int>(number("tp").value_or(1.0));
    p.input_tokens = number("input").value_or(1.0);
    p.output_tokens = number("output").value_or(1.0);
    const auto tpot = maybe("tpot_s"), rate = maybe("output_tok_per_s");
    const auto batch = maybe("concurrency");
    if (batch) {
      p.batch = *batch;
    } else if (tpot && rate) {
      p.batch = *tpot * *rate;  // Little's law
    } else {
      problem("give concurrency, or tpot_s and output_tok_per_s");
    }
    if (!tpot && !rate) problem("give tpot_s or output_tok_per_s");
    p.step_s = tpot ? *tpot : rate ? p.batch / *rate : 1.0;
    p.watts = maybe("watts_per_gpu");
    return p;
  }

  std::optional<double> maybe(const char* name) {
    const auto it = at_.find(name);
    if (it == at_.end() || cells_[it->second].empty()) return std::nullopt;
    return number(name);
  }
  std::optional<double> number(const char* name) {
    const std::string& text = cells_[at_[name]];
    double value = 0.0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && std::isfinite(value) &&
        value > 0.0) {
      return value;
    }
    problem(fmt::format("{}: \"{}\" is no positive number", name, text));
    return std::nullopt;
  }
  void problem(std::string message, std::string hint = "") {
    problems_.add(path_, fmt::format("line {}", reader_.line_number()), std::move(message),
                  std::move(hint));
  }

  std::string path_;
  LineReader reader_;
  Problems problems_;
  std::map<std::string, std::size_t> at_;
  std::vector<std::string> cells_;
  std::size_t width_ = 0;
};

/// y = x0 a + x1 b over rows (a, b, y), least absolute relative deviations, x >= 0.
struct Term {
  double a, b, y, scale;
};
std::vector<double> two_terms(const std::vector<Term>& rows) {
  std::vector<double> x(2, 0.0), weight(rows.size(), 1.0);
  for (int round = 0; round < 8; ++round) {
    std::vector<double> lhs, rhs;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double w = std::sqrt(weight[i]) / rows[i].scale;
      lhs.insert(lhs.end(), {w * rows[i].a, w * rows[i].b});
      rhs.push_back(w * rows[i].y);
    }
    x = non_negative_least_squares(lhs, 2, rhs);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double off = (x[0] * rows[i].a + x[1] * rows[i].b - rows[i].y) / rows[i].scale;
      weight[i] = 1.0 / std::max(std::fabs(off), kLeastOff);
    }
  }
  return x;
}

template <class Q>
Sourced<Q> fitted(double value, double error, int n) {
  Sourced<Q> out;
  out.value = Q(rounded(value));
  out.provenance = Provenance::kMeasured;
  out.error = rounded(error, 3);
  out.n = n;
  return out;
}
}  // namespace

std::string ServingPoint::key() const {
  return fmt::format("{},{},{},{},{}", model, tensor_parallel, batch, input_tokens, output_tokens);
}

std::vector<ServingPoint> read_points(const std::string& path) {
  return PointReader(path).read();
}

HostFit fit_host(const std::vector<ServingPoint>& points, HostMode mode,
                 const std::function<DeviceStep(const ServingPoint&)>& device) {
  HostFit fit;
  std::vector<Term> host, power;
  std::vector<std::pair<ServingPoint, DeviceStep>> judge;
  for (const ServingPoint& p : points) {
    const DeviceStep step = device(p);
    if ((fnv1a(p.key()) & 1U) != 0) {
      judge.emplace_back(p, step);
      continue;
    }
    if (mode == HostMode::kSerial) {
      host.push_back({1.0, p.batch, p.step_s - step.device_s, p.step_s});
    } else if (p.step_s > kHostShows * step.device_s) {
      host.push_back({1.0, p.batch, p.step_s, p.step_s});
    }
    if (p.watts) {
      const double busy = std::min(1.0, step.device_s / p.step_s);
      power.push_back({busy, 1.0 - busy, *p.watts - step.dynamic_w, *p.watts});
    }
  }
  fit.rows = static_cast<int>(host.size());
  fit.judged = static_cast<int>(judge.size());
  if (host.size() < 3) return fit;
  const auto x = two_terms(host);
  std::vector<double> off, magnitude;
  for (const auto& [p, step] : judge) {
    const double h = x[0] + x[1] * p.batch;
    const double predicted =
        mode == HostMode::kSerial ? step.device_s + h : std::max(step.device_s, h);
    off.push_back(predicted / p.step_s - 1.0);
    magnitude.push_back(std::fabs(off.back()));
  }
  fit.median_error = median(magnitude);
  fit.bias = median(off);
  const double sigma = 1.4826 * fit.median_error;
  fit.per_step = fitted<Seconds>(x[0], sigma, fit.rows);
  fit.per_sequence = fitted<Seconds>(x[1], sigma, fit.rows);
  if (power.size() >= 3) {
    const auto w = two_terms(power);
    const int n = static_cast<int>(power.size());
    if (w[0] > 0.0) fit.active_floor = fitted<Watts>(w[0], 0.0, n);
    if (w[1] > 0.0) fit.context_idle = fitted<Watts>(std::min(w[1], w[0]), 0.0, n);
  }
  return fit;
}

}  // namespace medley
