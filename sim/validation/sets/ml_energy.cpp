#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "sim/calibration/solve.h"
#include "sim/core/rng.h"
#include "sim/validation/csv_rows.h"
#include "sim/validation/parallel.h"
#include "sim/validation/serving_case.h"
#include "sim/validation/sets/sets.h"

namespace medley {

namespace {

struct Point {
  std::string key, group;
  ServingCase deployment;
  double watts = 0.0, joules_per_token = 0.0, itl_s = 0.0;
  std::string device;
  bool dense = false;
  /// GPQA runs on B200 have two to three times the gaps of chat runs of the same model and batch:
  /// they measure something beside the device.
  bool host_bound = false;
  double tdp_w = 0.0;  ///< of all devices: the naive model
};

const std::map<std::string, std::string>& models() {
  static const std::map<std::string, std::string> names = {
      {"Qwen/Qwen3-8B", "qwen3-8b"},
      {"Qwen/Qwen3-14B", "qwen3-14b"},
      {"Qwen/Qwen3-32B", "qwen3-32b"},
      {"Qwen/Qwen3-30B-A3B-Thinking-2507", "qwen3-30b-a3b"},
      {"Qwen/Qwen3-235B-A22B-Thinking-2507-FP8", "qwen3-235b-a22b"},
      {"Qwen/Qwen3-235B-A22B-Instruct-2507", "qwen3-235b-a22b"},
      {"Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", "qwen3-235b-a22b"},
      {"openai/gpt-oss-20b", "gpt-oss-20b"}};
  return names;
}

/// Prompts are not in the data: about 250 tokens of a GPQA question, 120 of a chat turn (assumed).
constexpr std::int32_t kGpqaPrompt = 250;
constexpr std::int32_t kChatPrompt = 120;

std::optional<Point> point_of(const CsvRows& csv, std::size_t i) {
  const std::string& task = csv.text(i, "task");
  const auto model = models().find(csv.text(i, "model_id"));
  if ((task != "gpqa" && task != "lm-arena-chat") || model == models().end()) return {};
  if (csv.integer(i, "data_parallel") != 1) return {};
  Point p;
  ServingCase& c = p.deployment;
  const bool hopper = csv.text(i, "gpu_model") == "H100";
  c.node = hopper ? "8xH100-SXM" : "8xB200-SXM";
  c.model = model->second;
  c.backend = "vllm-2025";
  const std::string& precision = csv.text(i, "weight_precision");
  c.quantization = precision == "fp8" ? "fp8" : precision == "bfloat16" ? "none" : "";
  const int devices = csv.integer(i, "num_gpus");
  c.tensor_parallel = devices;
  c.expert_parallel = csv.integer(i, "expert_parallel") > 1;
  const int users = std::max(1, csv.integer(i, "avg_batch_size"));
  c.concurrency = users;
  c.max_num_seqs = std::max(8, users);
  p.key = fmt::format("{}|{}|{}|{} devices|ep {}|seqs {}", csv.text(i, "gpu_model"), task,
                      csv.text(i, "model_id"), devices, csv.integer(i, "expert_parallel"),
                      csv.integer(i, "max_num_seqs"));
  Rng rng(1, p.key);
  const double output = csv.number(i, "avg_output_len");
  for (int k = 0; k < 4 * users; ++k) {
    c.requests.push_back({0.0, task == "gpqa" ? kGpqaPrompt : kChatPrompt,
                          std::max(2, static_cast<int>(rng.uniform(0.4, 1.6) * output))});
  }
  const bool dense = csv.text(i, "architecture") == "Dense Transformer";
  const bool large = csv.number(i, "total_params_billions") >= 14.0;
  p.group = fmt::format("{}, {}", csv.text(i, "gpu_model"),
                        dense ? (large ? "dense >= 14 B" : "dense < 14 B") : "MoE");
  p.device = csv.text(i, "gpu_model");
  p.dense = dense;
  p.host_bound = !hopper && task == "gpqa";
  if (p.host_bound) p.group = "B200, GPQA";
  p.watts = csv.number(i, "avg_power_watts");
  p.joules_per_token = csv.number(i, "energy_per_token_joules");
  p.itl_s = csv.number(i, "median_itl_ms") / 1e3;
  p.tdp_w = (hopper ? 700.0 : 1000.0) * devices;
  return p;
}

/// Watts of one device from its mean rates over a run,
///   P = floor + e_F * flops/s + e_B * bytes/s + e_s * sequences,
/// e_B given, the others by least squares of relative errors, no term negative. The last term
/// stands for what grows with the batch and is no model flop (attention tiles padded to the tensor
/// cores' height, sampling).
struct PowerFit {
  double floor_w = 0.0, per_flop = 0.0, per_byte = 0.0, per_sequence = 0.0;
  double watts(const Point& p, const ServingOutcome& o) const {
    const double devices = p.deployment.tensor_parallel;
    return floor_w + (per_flop * o.flops_per_s + per_byte * o.bytes_per_s) / devices +
           per_sequence * o.batch_mean / devices;
  }
};

bool usable(const Point& p, const ServingOutcome& o) {
  return p.dense && !p.host_bound && o.problem.empty() && o.batch_mean > 0.0;
}

/// HBM3 and HBM3e, whole path: fits to H200 and A100 streams (hwmodels/catalog/devices).
constexpr double kMemoryEnergy = 120e-12;

/// Over the dense models of one device type but `left_out`.
PowerFit fit_power_of(const std::vector<Point>& points, const std::vector<ServingOutcome>& outcomes,
                      const std::string& device, const std::string& left_out) {
  constexpr double kTera = 1e12;
  std::vector<double> rows;
  std::vector<double> target;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Point& p = points[i];
    const ServingOutcome& o = outcomes[i];
    if (p.device != device || p.deployment.model == left_out || !usable(p, o)) continue;
    const double devices = p.deployment.tensor_parallel;
    const double w = devices / p.watts;
    for (const double x : {w, w * o.flops_per_s / devices / kTera, w * o.batch_mean / devices})
      rows.push_back(x);
    target.push_back(1.0 - w * kMemoryEnergy * o.bytes_per_s / devices);
  }
  const std::vector<double> x = non_negative_least_squares(rows, 3, target);
  return {x[0], x[1] / kTera, kMemoryEnergy, x[2]};
}

void add_rows(const Point& p, const ServingOutcome& o, const char* basis, double watts,
              std::vector<ValidationRow>& rows) {
  const auto add = [&](const char* metric, const char* unit, double measured, double predicted,
                       std::optional<double> naive) {
    ValidationRow r;
    r.key = p.key;
    r.group = p.group;
    r.basis = basis;
    r.metric = metric;
    r.unit = unit;
    r.measured = measured;
    r.predicted = predicted;
    r.baseline = naive;
    r.n = static_cast<int>(p.deployment.requests.size());
    r.measured_pct = o.measured_pct;
    r.extrapolated_pct = o.extrapolated_pct;
    r.note = o.problem;
    rows.push_back(std::move(r));
  };
  add("watts", "W", p.watts, watts, p.tdp_w);
  add("joules_per_token", "J", p.joules_per_token, watts / o.output_rate_steady,
      p.tdp_w / (p.watts / p.joules_per_token));
  add("itl_p50", "s", p.itl_s, o.itl_p50, {});
}

std::vector<ValidationRow> run_ml_energy(const ValidationContext& context) {
  const CsvRows csv(context.data + "/energy/ml-energy-v3/llm_mllm.csv");
  std::vector<Point> points;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    if (auto p = point_of(csv, i)) points.push_back(std::move(*p));
  }
  std::vector<ServingOutcome> outcomes(points.size());
  for_each_row(context, points.size(),
               [&](std::size_t i) { outcomes[i] = run_case(points[i].deployment, context.draws); });
  std::map<std::pair<std::string, std::string>, PowerFit> fits;
  std::vector<ValidationRow> rows;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Point& p = points[i];
    const ServingOutcome& o = outcomes[i];
    const std::size_t nominal = rows.size();
    add_rows(p, o, "catalogue", o.watts, rows);
    rows[nominal].low = o.watts_spread.low;
    rows[nominal].high = o.watts_spread.high;
    if (!usable(p, o)) continue;
    const auto key = std::pair(p.device, p.deployment.model);
    if (!fits.count(key)) fits[key] = fit_power_of(points, outcomes, key.first, key.second);
    const PowerFit& fit = fits[key];
    const std::size_t first = rows.size();
    add_rows(p, o, "leave one model out",
             std::min(p.tdp_w, fit.watts(p, o) * p.deployment.tensor_parallel), rows);
    rows[first].note =
        fmt::format("floor {:.0f} W, {:.2f} pJ/flop, {:.0f} pJ/B, {:.2f} W/sequence", fit.floor_w,
                    fit.per_flop * 1e12, fit.per_byte * 1e12, fit.per_sequence);
  }
  return rows;
}

}  // namespace

ValidationSet ml_energy_set() {
  return {"ml_energy",
          "GPU watts, J/token and median gap against batch: vLLM 0.11.1 on H100 and B200",
          "ml-energy/leaderboard@0cd52da, data of 2026-02-16 (Apache-2.0)",
          "device|task|model|devices|ep|max_num_seqs. Basis catalogue: the active floors of H100 "
          "and B200 "
          "rest on these dense rows (in-sample), nothing else is fitted; leave one model "
          "out: the power model of a dense model is fitted to the other dense models of its device",
          "TDP as power",
          "in-sample fits per device: P = a + b log2(batch) 6.6 % (H100) and 26 % (B200) of watts",
          {{"joules_per_token", "leave one model out", "H100, dense >= 14 B", "mape_pct", 10.0},
           {"joules_per_token", "leave one model out", "H100, dense < 14 B", "mape_pct", 10.0},
           {"joules_per_token", "leave one model out", "B200, dense >= 14 B", "mape_pct", 12.0},
           {"watts", "leave one model out", "H100, dense >= 14 B", "mape_pct", 7.0},
           {"watts", "leave one model out", "H100, dense < 14 B", "mape_pct", 7.0},
           {"watts", "leave one model out", "B200, dense >= 14 B", "mape_pct", 7.0}},
          run_ml_energy};
}

}  // namespace medley
