#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "sim/engine/fluid.h"
#include "sim/validation/csv_rows.h"
#include "sim/validation/sets/sets.h"

namespace medley {

namespace {

/// Two training jobs on one GPU, each with its speed alone.
struct Pair {
  std::string key, gpu;
  std::size_t a = 0, b = 0;                                                 ///< indices of jobs
  double alone_a = 0.0, alone_b = 0.0, together_a = 0.0, together_b = 0.0;  ///< iterations/s
  Half half = Half::kReport;
};
struct Jobs {
  std::vector<std::string> names;  ///< "gpu|job"
  std::vector<Pair> pairs;
};

std::size_t index_of(Jobs& jobs, const std::string& name) {
  const auto it = std::find(jobs.names.begin(), jobs.names.end(), name);
  if (it != jobs.names.end()) return static_cast<std::size_t>(it - jobs.names.begin());
  jobs.names.push_back(name);
  return jobs.names.size() - 1;
}

Jobs read_pairs(const std::string& folder) {
  std::map<std::string, double> alone;
  const CsvRows single(folder + "/derived_isolated.csv");
  for (std::size_t i = 0; i < single.size(); ++i) {
    if (single.integer(i, "workers") != 1) continue;
    alone[single.text(i, "gpu") + "|" + single.text(i, "job")] = single.number(i, "steps_per_s");
  }
  Jobs jobs;
  const CsvRows both(folder + "/derived_colocated.csv");
  for (std::size_t i = 0; i < both.size(); ++i) {
    if (both.integer(i, "workers_a") != 1 || both.integer(i, "workers_b") != 1) continue;
    Pair p;
    p.gpu = both.text(i, "gpu");
    if (p.gpu.find('_') != std::string::npos) continue;  // spread placement: no matter for one GPU
    const std::string a = p.gpu + "|" + both.text(i, "job_a");
    const std::string b = p.gpu + "|" + both.text(i, "job_b");
    p.together_a = both.number(i, "steps_per_s_a");
    p.together_b = both.number(i, "steps_per_s_b");
    // Every pair is listed from both sides; zero: it does not fit.
    if (b < a || p.together_a <= 0.0 || p.together_b <= 0.0) continue;
    if (!alone.count(a) || !alone.count(b) || alone[a] <= 0.0 || alone[b] <= 0.0) continue;
    p.key = a + "|" + both.text(i, "job_b");
    p.alone_a = alone[a];
    p.alone_b = alone[b];
    p.a = index_of(jobs, a);
    p.b = index_of(jobs, b);
    p.half = half_of(p.key);
    jobs.pairs.push_back(p);
  }
  return jobs;
}

/// Relative speeds of two jobs that keep the device busy for shares u of their time alone, by the
/// fluid solver: each alternates between the device, shared by time, and the host.
std::array<double, 2> play(double ua, double ta, double ub, double tb) {
  constexpr double kWarm = 20.0, kLong = 200.0;
  FluidSystem fluid;
  const std::uint32_t device = fluid.add_resource(1.0);
  const double share[2] = {ua, ub}, time[2] = {ta, tb};
  double done[2] = {0.0, 0.0}, since[2] = {0.0, 0.0};
  double counted[2] = {0.0, 0.0};
  bool on_device[2] = {false, false};
  const auto begin = [&](std::uint64_t j) {
    const double seconds = (on_device[j] ? share[j] : 1.0 - share[j]) * time[j];
    const FluidDemand demand{device, seconds};
    FluidActivity activity;
    if (on_device[j]) activity.demands = {&demand, 1};
    activity.work = seconds > 0.0 ? 1.0 : 0.0;
    activity.level = seconds > 0.0 ? seconds : 1.0;
    activity.bound = seconds > 0.0 ? 1.0 / seconds : 1.0;
    activity.tag = j;
    fluid.start(activity);
  };
  const double longest = std::max(ta, tb);
  for (const std::uint64_t j : {0, 1}) begin(j);
  std::vector<FluidCompletion> ended;
  fluid.solve();
  while (fluid.now().seconds() < kLong * longest) {
    fluid.advance(fluid.next_completion());
    ended.clear();
    fluid.take_completions(ended);
    for (const FluidCompletion& c : ended) {
      if (on_device[c.tag]) {
        done[c.tag] += 1.0;
        if (since[c.tag] == 0.0 && fluid.now().seconds() > kWarm * longest) {
          since[c.tag] = fluid.now().seconds();
          counted[c.tag] = done[c.tag];
        }
      }
      on_device[c.tag] = !on_device[c.tag];
      begin(c.tag);
    }
    fluid.solve();
  }
  std::array<double, 2> speed{};
  for (int j = 0; j < 2; ++j) {
    speed[static_cast<std::size_t>(j)] =
        (done[j] - counted[j]) * time[j] / (fluid.now().seconds() - since[j]);
  }
  return speed;
}

/// The same in the mean: while one is on the device the other is there for its own share f of time,
/// and each then gets half. Used to fit, never to report.
std::array<double, 2> in_the_mean(double ua, double ub) {
  double xa = 1.0, xb = 1.0, fa = ua, fb = ub;
  for (int i = 0; i < 60; ++i) {
    const double sa = 1.0 / (1.0 - fb / 2.0), sb = 1.0 / (1.0 - fa / 2.0);
    xa = 1.0 / (1.0 - ua + ua * sa);
    xb = 1.0 / (1.0 - ub + ub * sb);
    fa = ua * sa * xa;
    fb = ub * sb * xb;
  }
  return {xa, xb};
}

/// Busy share of each job: least absolute logarithmic error over its pairs of the fit half.
std::vector<double> fit_shares(const Jobs& jobs) {
  std::vector<double> u(jobs.names.size(), 0.8);
  for (int round = 0; round < 8; ++round) {
    for (std::size_t j = 0; j < u.size(); ++j) {
      double best = INFINITY, chosen = u[j];
      for (double v = 0.05; v < 1.001; v += 0.05) {
        u[j] = v;
        double error = 0.0;
        for (const Pair& p : jobs.pairs) {
          if (p.half != Half::kFit || (p.a != j && p.b != j)) continue;
          const auto x = in_the_mean(u[p.a], u[p.b]);
          error += std::fabs(std::log(x[0] * p.alone_a / p.together_a)) +
                   std::fabs(std::log(x[1] * p.alone_b / p.together_b));
        }
        if (error < best) {
          best = error;
          chosen = v;
        }
      }
      u[j] = chosen;
    }
  }
  return u;
}

std::vector<ValidationRow> run_colocation(const ValidationContext& context) {
  const Jobs jobs = read_pairs(context.data + "/traces/gavel");
  const std::vector<double> u = fit_shares(jobs);
  std::vector<ValidationRow> rows;
  for (const Pair& p : jobs.pairs) {
    const auto x = play(u[p.a], 1.0 / p.alone_a, u[p.b], 1.0 / p.alone_b);
    for (const bool second : {false, true}) {
      ValidationRow r;
      r.key = p.key;
      r.group = p.gpu;
      r.basis = "calibrated";
      r.metric = "relative_speed";
      r.unit = "1";
      r.measured = second ? p.together_b / p.alone_b : p.together_a / p.alone_a;
      r.predicted = x[second ? 1 : 0];
      r.baseline = 0.5;
      r.half = p.half;
      r.measured_pct = 100.0;
      r.n = 1;
      r.note = fmt::format("busy shares {:.2f} and {:.2f}", u[p.a], u[p.b]);
      rows.push_back(std::move(r));
    }
  }
  return rows;
}

}  // namespace

ValidationSet colocation_set() {
  return {
      "colocation",
      "speed of two training jobs on one GPU over alone: K80, P100, V100",
      "Gavel (OSDI 2020), measured throughputs of stanford-futuredata/gavel (MIT)",
      "gpu|job|job; one busy share per job and GPU is fitted to the pairs of the fit half",
      "half the speed each",
      "",
      {},
      run_colocation,
  };
}

}  // namespace medley
