#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/validation/csv_rows.h"
#include "sim/validation/parallel.h"
#include "sim/validation/serving_case.h"
#include "sim/validation/sets/sets.h"

namespace medley {

namespace {

/// The load generator's 44 workers hold at most 10 requests each.
constexpr int kClientSlots = 440;
constexpr int kSharedPrefixes = 10;
constexpr int kSharedTokens = 128;

/// Server variants whose settings are known: sequences at once and what is cached.
struct Variant {
  const char* backend;
  int max_num_seqs;
  bool prefix_caching;
};
const std::map<std::string, Variant>& variants() {
  static const std::map<std::string, Variant> known = {
      {"vllm", {"vllm-2025", 128, false}},
      {"vllm+batch_size", {"vllm-2025", 192, false}},
      {"vllm+chunking_and_prefix_caching", {"vllm-2025", 256, true}},
      {"vllm+v0_engine", {"vllm-2024", 128, false}}};
  return known;
}

struct Stage {
  std::string key, variant;
  double offered = 0.0, achieved = 0.0, latency = 0.0, ttft = 0.0;
  int input = 0, output = 0, count = 0;
};

/// With prefix caching the ten shared system prompts are found in the cache: their tokens are not
/// computed. They are taken out of the prompt here, since the requests carry no prefix identity.
int computed_input(const Stage& s, const Variant& v) {
  return v.prefix_caching ? s.input - kSharedTokens + kSharedTokens * kSharedPrefixes / s.count
                          : s.input;
}

ServingCase case_of(const Stage& s, const Variant& v) {
  ServingCase c;
  c.node = "8xH100-SXM";
  c.model = "llama-3-8b";
  c.backend = v.backend;
  c.max_num_seqs = v.max_num_seqs;
  const int n = std::min(s.count, 6000);
  c.requests = equal_requests(n, computed_input(s, v), s.output);
  if (s.achieved < 0.97 * s.offered) {
    c.concurrency = kClientSlots;  // every slot is taken: a closed loop
  } else {
    for (int i = 0; i < n; ++i) {
      c.requests[static_cast<std::size_t>(i)].arrival_s = i / s.offered;
    }
  }
  return c;
}

std::vector<ValidationRow> run_rate_sweep(const ValidationContext& context) {
  const CsvRows csv(context.data +
                    "/traces/tool-outputs/inference-perf/"
                    "derived_sweep_llama3.1-8b_1xH100_vllm.csv");
  std::vector<Stage> stages;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    if (csv.text(i, "stage") == "summary" || !variants().count(csv.text(i, "variant"))) continue;
    Stage s;
    s.variant = csv.text(i, "variant");
    s.offered = csv.number(i, "requested_rps");
    s.achieved = csv.number(i, "achieved_rps");
    s.key = fmt::format("{}|{} req/s", s.variant, s.offered);
    s.latency = csv.number(i, "lat_mean_s");
    s.ttft = csv.number(i, "ttft_mean_s");
    s.input = csv.integer(i, "prompt_len_mean");
    s.output = csv.integer(i, "output_len_mean");
    s.count = csv.integer(i, "ok");
    stages.push_back(std::move(s));
  }
  constexpr std::size_t kMetrics = 4;
  std::vector<ValidationRow> rows(kMetrics * stages.size());
  for_each_row(context, stages.size(), [&](std::size_t i) {
    const Stage& s = stages[i];
    ServingCase c = case_of(s, variants().at(s.variant));
    const ServingOutcome o = run_case(c, context.draws);
    c.backend = "ideal";
    const ServingOutcome naive = run_case(c);
    const auto add = [&](std::size_t m, const char* metric, const char* unit, double measured,
                         double predicted, double baseline) {
      ValidationRow& r = rows[kMetrics * i + m];
      r.key = s.key;
      r.half = half_of(s.key);
      r.group = s.variant;
      r.basis = "catalogue";
      r.metric = metric;
      r.unit = unit;
      r.measured = measured;
      r.predicted = predicted;
      r.baseline = baseline;
      r.n = s.count;
      r.measured_pct = o.measured_pct;
      r.extrapolated_pct = o.extrapolated_pct;
      r.note = c.concurrency > 0 ? "the client's slots are all taken" : "";
    };
    const auto range = [&](std::size_t m, const Spread& spread) {
      rows[kMetrics * i + m].low = spread.low;
      rows[kMetrics * i + m].high = spread.high;
    };
    const double gaps = s.output - 1;
    add(0, "e2e_mean", "s", s.latency, o.e2e_mean, naive.e2e_mean);
    add(1, "ttft_mean", "s", s.ttft, o.ttft_mean, naive.ttft_mean);
    add(2, "tpot_mean", "s", (s.latency - s.ttft) / gaps, o.tpot_mean, naive.tpot_mean);
    add(3, c.concurrency > 0 ? "saturation_rate" : "achieved_rate", "1/s", s.achieved,
        o.requests_per_s, naive.requests_per_s);
    range(0, o.e2e_spread);
    range(1, o.ttft_spread);
    range(2, o.tpot_spread);
  });
  return rows;
}

}  // namespace

ValidationSet rate_sweep_set() {
  return {"rate_sweep",
          "latency against offered rate, and where it saturates: Llama-3-8B on one H100, vLLM "
          "0.9-0.11",
          "kubernetes-sigs/inference-perf@7de5ef2 (Apache-2.0)",
          "variant|rate; the host overheads of vLLM rest on this fit half too",
          "plain roofline: datasheet rates, no overhead",
          "",
          {{"e2e_mean", "", "", "median_pct", 8.0},
           {"ttft_mean", "", "", "median_pct", 15.0},
           {"tpot_mean", "", "", "median_pct", 8.0},
           {"saturation_rate", "", "", "median_pct", 8.0}},
          run_rate_sweep};
}

}  // namespace medley
