#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/validation/csv_rows.h"
#include "sim/validation/sets/sets.h"

namespace medley {

namespace {

/// One training job under one power limit.
struct Run {
  std::string key;
  double cap_w = 0.0, time_s = 0.0, watts = 0.0;
  double free_time_s = 0.0, free_watts = 0.0;  ///< the same job at the highest limit
  Half half = Half::kReport;
};

/// A job under the clock, in the form of the step model (sim/cost/step_model.h) for one lumped
/// kernel of unit time at full clock:
///   t(phi) = compute/phi + 1 - compute,  P(phi) = floor + (P_free - floor) (s v^2 + 1 - s) / t,
///   v = v0 + (1 - v0) phi;  phi the highest with P <= cap; below phi_min duty-cycled.
struct Shape {
  double compute = 0.5;     ///< share of the time that follows the clock
  double on_clock = 0.5;    ///< s: share of the dynamic energy that follows the voltage
  double floor_share = .3;  ///< floor over the highest limit
  double v0 = 0.5;
  double phi_min = 0.3;
};
struct Ratio {
  double time = 1.0, watts = 1.0;
};

Ratio under_cap(const Shape& s, double free_w, double top_w, double cap_w) {
  constexpr int kSteps = 64;
  const double floor_w = std::min(s.floor_share * top_w, 0.9 * free_w);
  double time = 1.0;
  double watts = free_w;
  for (int k = kSteps; k >= 0; --k) {
    const double phi = s.phi_min + (1.0 - s.phi_min) * k / kSteps;
    const double v = s.v0 + (1.0 - s.v0) * phi;
    time = s.compute / phi + 1.0 - s.compute;
    watts = floor_w + (free_w - floor_w) * (s.on_clock * v * v + 1.0 - s.on_clock) / time;
    if (watts <= cap_w) return {time, watts / free_w};
  }
  // Duty cycle: the dynamic energy is spread until the mean meets the cap.
  const double least = (watts - floor_w) * time / std::max(1.0, cap_w - floor_w);
  return {std::max(time, least), cap_w / free_w};
}

std::vector<Run> read_runs(const std::string& path, const std::string& device) {
  const CsvRows csv(path);
  std::map<std::string, std::vector<std::size_t>> jobs;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    jobs[fmt::format("{}|{}|{}|b{}|{}", device, csv.text(i, "dataset"), csv.text(i, "network"),
                     csv.text(i, "batch_size"), csv.text(i, "optimizer"))]
        .push_back(i);
  }
  std::vector<Run> runs;
  for (const auto& [job, rows] : jobs) {
    const std::size_t top =
        *std::max_element(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
          return csv.number(a, "power_limit") < csv.number(b, "power_limit");
        });
    for (const std::size_t i : rows) {
      if (i == top) continue;
      Run r;
      r.cap_w = csv.number(i, "power_limit");
      r.key = fmt::format("{}|{:g} W", job, r.cap_w);
      r.time_s = csv.number(i, "time_per_epoch");
      r.watts = csv.number(i, "average_power");
      r.free_time_s = csv.number(top, "time_per_epoch");
      r.free_watts = csv.number(top, "average_power");
      r.half = half_of(job);  // whole jobs are held out
      runs.push_back(std::move(r));
    }
  }
  return runs;
}

/// Least mean absolute logarithmic error of time over the fit half.
Shape fit(const std::vector<Run>& runs, double top_w) {
  Shape best;
  double least = INFINITY;
  for (double compute = 0.2; compute < 1.01; compute += 0.1) {
    for (double s = 0.4; s < 1.01; s += 0.2) {
      for (double floor = 0.15; floor < 0.41; floor += 0.05) {
        for (double v0 = 0.3; v0 < 0.71; v0 += 0.1) {
          for (const double phi_min : {0.2, 0.3, 0.4, 0.5}) {
            const Shape shape{compute, s, floor, v0, phi_min};
            double error = 0.0;
            for (const Run& r : runs) {
              if (r.half != Half::kFit) continue;
              const Ratio p = under_cap(shape, r.free_watts, top_w, r.cap_w);
              error += std::fabs(std::log(p.time * r.free_time_s / r.time_s)) +
                       0.5 * std::fabs(std::log(p.watts * r.free_watts / r.watts));
            }
            if (error < least) {
              least = error;
              best = shape;
            }
          }
        }
      }
    }
  }
  return best;
}

std::vector<ValidationRow> run_cap_sweep(const ValidationContext& context) {
  struct Device {
    const char* file;
    const char* name;
    double top_w;
  };
  constexpr Device kDevices[] = {{"a40", "A40", 300.0},
                                 {"v100", "V100", 250.0},
                                 {"rtx6000", "Quadro RTX 6000", 260.0},
                                 {"p100", "P100", 250.0}};
  std::vector<ValidationRow> rows;
  for (const Device& d : kDevices) {
    const std::vector<Run> runs = read_runs(
        fmt::format("{}/energy/zeus-nsdi23/summary_power_{}.csv", context.data, d.file), d.name);
    const Shape shape = fit(runs, d.top_w);
    for (const Run& run : runs) {
      const Ratio p = under_cap(shape, run.free_watts, d.top_w, run.cap_w);
      const double time = run.time_s / run.free_time_s;
      const double energy = time * run.watts / run.free_watts;
      for (const bool is_energy : {false, true}) {
        ValidationRow r;
        r.key = run.key;
        r.group = d.name;
        r.basis = "calibrated";
        r.metric = is_energy ? "energy_ratio" : "time_ratio";
        r.unit = "1";
        r.measured = is_energy ? energy : time;
        r.predicted = is_energy ? p.time * p.watts : p.time;
        // Naive: fixed work at fixed joules, as fast as the cap allows.
        const double slower = std::max(1.0, run.free_watts / run.cap_w);
        r.baseline = is_energy ? 1.0 : slower;
        r.half = run.half;
        r.measured_pct = 100.0;
        r.n = 1;
        if (&run == &runs.front() && !is_energy) {
          r.note = fmt::format(
              "compute share {:.1f}, on clock {:.1f}, floor {:.2f} of the limit, "
              "v0 {:.1f}, lowest clock {:.1f}",
              shape.compute, shape.on_clock, shape.floor_share, shape.v0, shape.phi_min);
        }
        rows.push_back(std::move(r));
      }
    }
  }
  return rows;
}

}  // namespace

ValidationSet cap_sweep_set() {
  return {
      "cap_sweep",
      "time and energy of training jobs under power caps over uncapped: A40, V100, RTX 6000, "
      "P100",
      "ml-energy/zeus (NSDI 2023) power sweeps (Apache-2.0)",
      "device|dataset|network|batch|optimizer; five numbers per device are fitted to the jobs of "
      "the fit half, the uncapped draw of a job is given",
      "constant joules per job",
      "",
      {{"time_ratio", "", "", "mape_pct", 8.0}, {"energy_ratio", "", "", "mape_pct", 8.0}},
      run_cap_sweep};
}

}  // namespace medley
