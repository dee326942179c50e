#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "sim/validation/csv_rows.h"
#include "sim/validation/parallel.h"
#include "sim/validation/serving_case.h"
#include "sim/validation/sets/sets.h"

namespace medley {

namespace {

namespace fs = std::filesystem;

/// One log: one replica of one plan.
struct Log {
  std::string workload;  ///< "creation_05"
  std::string plan;      ///< "8TP", "2DP4TP", ...
  int tensor_parallel = 0;
  ServingCase deployment;
  double ttft_s = 0.0, tpot_s = 0.0;
  int requests = 0;
};

/// Appends the requests of `path`; `replicas` empty: all of them.
void read_requests(const std::string& path, const std::string& suffix,
                   const std::vector<int>& replicas, std::vector<CaseRequest>& out) {
  const CsvRows csv(path);
  const bool split = csv.has("replica");
  const std::string prompt = split ? "served_prompt" : "served_prompt_" + suffix;
  const std::string output = split ? "served_output" : "served_output_" + suffix;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    if (split && !replicas.empty() &&
        std::find(replicas.begin(), replicas.end(), csv.integer(i, "replica")) == replicas.end())
      continue;
    const bool served = csv.has(prompt) && !csv.blank(i, prompt) && !csv.blank(i, output);
    const int in = csv.integer(i, served ? prompt : "context_tokens");
    const int generated = csv.integer(i, served ? output : "generated_tokens");
    if (in < 1 || generated < 1) continue;
    out.push_back({csv.number(i, "arrival_offset_ns") / 1e9, in, generated});
  }
}

/// The trace of one log. Summarization's whole trace and its halves are unions of the quarters.
bool read_trace(const std::string& folder, const std::string& workload, const std::string& plan,
                int replica, std::vector<CaseRequest>& requests) {
  const std::string stem = folder + "trace_llama_" + workload;
  const std::string own = stem + (replica < 0 ? "" : "_" + plan) + ".csv";
  if (fs::exists(own)) {
    read_requests(own, plan, replica < 0 ? std::vector<int>{} : std::vector<int>{replica},
                  requests);
  } else if (fs::exists(stem + "_4DP2TP.csv")) {
    std::vector<int> parts;
    if (replica >= 0) parts = {replica, replica + 2};
    read_requests(stem + "_4DP2TP.csv", plan, parts, requests);
  }
  std::stable_sort(
      requests.begin(), requests.end(),
      [](const CaseRequest& a, const CaseRequest& b) { return a.arrival_s < b.arrival_s; });
  return !requests.empty();
}

/// "vllm/results/llama_creation_025_validation_2DP4TP_0.txt"
std::optional<Log> log_of(const CsvRows& csv, std::size_t i, const std::string& folder) {
  const std::string name = fs::path(csv.text(i, "result_file")).stem().string();
  const std::size_t at = name.find("_validation_");
  if (at == std::string::npos || !name.starts_with("llama_")) return {};
  Log log;
  log.workload = name.substr(6, at - 6);
  log.plan = name.substr(at + 12);
  int replica = -1;
  const std::size_t mark = log.plan.find('_');
  if (mark != std::string::npos) {
    replica = std::stoi(log.plan.substr(mark + 1));
    log.plan.resize(mark);
  }
  log.tensor_parallel = log.plan[log.plan.size() - 3] - '0';
  ServingCase& c = log.deployment;
  c.node = "8xH100-SXM";
  c.model = "llama-3.1-70b";
  c.backend = "vllm-2024";
  c.tensor_parallel = log.tensor_parallel;
  c.max_num_batched_tokens = 8192;
  c.overrides = {"pools.p.max_model_len=8192"};
  if (!read_trace(folder, log.workload, log.plan, replica, c.requests)) return {};
  log.ttft_s = csv.number(i, "ttft_mean_s");
  log.tpot_s = csv.number(i, "tpot_mean_s");
  log.requests = csv.integer(i, "requests_logged");
  return log;
}

struct PlanMeans {
  double weight = 0.0, ttft = 0.0, tpot = 0.0;
  double predicted_ttft = 0.0, predicted_tpot = 0.0, naive_ttft = 0.0, naive_tpot = 0.0;
  double measured_pct = 0.0, extrapolated_pct = 0.0;
  std::string note;
};

std::vector<ValidationRow> run_parallel_plans(const ValidationContext& context) {
  const std::string folder = context.data + "/traces/apexplus-8xh100/";
  const CsvRows csv(folder + "measured_summary.csv");
  std::vector<Log> logs;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    if (auto log = log_of(csv, i, folder)) logs.push_back(std::move(*log));
  }
  std::vector<ServingOutcome> outcomes(logs.size());
  std::vector<ServingOutcome> naive(logs.size());
  for_each_row(context, logs.size(), [&](std::size_t i) {
    outcomes[i] = run_case(logs[i].deployment);
    ServingCase ideal = logs[i].deployment;
    ideal.backend = "ideal";
    naive[i] = run_case(ideal);
  });
  std::map<std::pair<std::string, std::string>, PlanMeans> plans;
  for (std::size_t i = 0; i < logs.size(); ++i) {
    PlanMeans& p = plans[{logs[i].workload, logs[i].plan}];
    const double w = logs[i].requests;
    p.weight += w;
    p.ttft += w * logs[i].ttft_s;
    p.tpot += w * logs[i].tpot_s;
    p.predicted_ttft += w * outcomes[i].ttft_mean;
    p.predicted_tpot += w * outcomes[i].tpot_mean;
    p.naive_ttft += w * naive[i].ttft_mean;
    p.naive_tpot += w * naive[i].tpot_mean;
    p.measured_pct += w * outcomes[i].measured_pct;
    p.extrapolated_pct += w * outcomes[i].extrapolated_pct;
    if (!outcomes[i].problem.empty()) p.note = outcomes[i].problem;
    if (outcomes[i].saturated) p.note = "saturated";
  }
  std::vector<ValidationRow> rows;
  for (const auto& [name, p] : plans) {
    for (const bool tpot : {false, true}) {
      ValidationRow r;
      r.key = name.first + "|" + name.second;
      r.group = name.first;
      r.basis = "catalogue";
      r.metric = tpot ? "tpot_mean" : "ttft_mean";
      r.unit = "s";
      r.measured = (tpot ? p.tpot : p.ttft) / p.weight;
      r.predicted = (tpot ? p.predicted_tpot : p.predicted_ttft) / p.weight;
      r.baseline = (tpot ? p.naive_tpot : p.naive_ttft) / p.weight;
      r.n = static_cast<int>(p.weight);
      r.measured_pct = p.measured_pct / p.weight;
      r.extrapolated_pct = p.extrapolated_pct / p.weight;
      r.note = p.note;
      rows.push_back(std::move(r));
    }
  }
  return rows;
}

}  // namespace

ValidationSet parallel_plans_set() {
  ValidationSet set = {
      "parallel_plans",
      "which plan wins on eight H100: TP8, 2xTP4, 4xTP2, TP4, TP2; Llama-3.1-70B bf16, vLLM 0.6.0",
      "microsoft/apex_plus@8769096 (MIT)",
      "workload|plan, replicas of a plan weighted by their requests; nothing is fitted",
      "plain roofline: datasheet rates, no overhead",
      "",
      {{"ttft_mean", "", "", "tau", 0.8}, {"tpot_mean", "", "", "tau", 0.8}},
      run_parallel_plans};
  set.rank_within_groups = true;
  return set;
}

}  // namespace medley
