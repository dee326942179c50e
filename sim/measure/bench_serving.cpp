#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/measure/bench_readers.h"

namespace medley {

namespace {
using Json = nlohmann::ordered_json;

BenchQuantiles milliseconds_of(const LooseObject& o, const std::string& name) {
  const auto read = [&](const char* what) {
    return o.number({fmt::format("{}_{}_ms", what, name)}) * 1e-3;
  };
  BenchQuantiles q;
  q.mean = read("mean");
  q.p50 = read("median");
  if (std::isnan(q.p50)) q.p50 = read("p50");
  q.p90 = read("p90");
  q.p95 = read("p95");
  q.p99 = read("p99");
  q.std = read("std");
  return q;
}

BenchQuantiles first_known(const BenchQuantiles& a, const BenchQuantiles& b) {
  return a.known() ? a : b;
}

bool is_sglang(const LooseObject& o) {
  return o.has("total_output_tokens_retokenized") || o.has("random_range_ratio") ||
         o.has("sharegpt_output_len") || o.has("dataset_name") || o.has("mean_e2e_latency_ms");
}

/// vLLM keeps the gaps of a request without its first token; the sum with it is the latency.
double sum_of(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double v : values) sum += v;
  return sum;
}

std::vector<std::vector<double>> gap_lists(const LooseObject& o) {
  std::vector<std::vector<double>> lists;
  const Json* node = o.find("itls");
  if (node == nullptr) return lists;
  if (!node->is_array()) {
    o.problem("itls", "is no list of lists");
    return lists;
  }
  for (std::size_t i = 0; i < node->size(); ++i) {
    std::vector<double> gaps;
    bool fine = (*node)[i].is_array();
    for (std::size_t k = 0; fine && k < (*node)[i].size(); ++k) {
      fine = (*node)[i][k].is_number();
      if (fine) gaps.push_back((*node)[i][k].get<double>());
    }
    if (!fine) {
      o.problem("itls", fmt::format("element {} is no list of numbers", i));
      return {};
    }
    lists.push_back(std::move(gaps));
  }
  return lists;
}

bool failed_request(const Json* errors, std::size_t i) {
  if (errors == nullptr || !errors->is_array() || i >= errors->size()) return false;
  return (*errors)[i].is_string() && !(*errors)[i].get<std::string>().empty();
}

/// The arrays of --save-detailed (SGLang: --output-details).
void read_details(const LooseObject& o, BenchResult& r, BenchFile& out) {
  const std::vector<double> inputs = o.numbers("input_lens");
  const std::vector<double> outputs = o.numbers("output_lens");
  if (inputs.empty() && outputs.empty()) return;
  const std::vector<double> ttfts = o.numbers("ttfts");
  const std::vector<double> starts = o.numbers("start_times");
  const std::vector<std::vector<double>> itls = gap_lists(o);
  const std::size_t n = inputs.size();
  const auto fits = [&](std::size_t size, const char* key) {
    if (size == n || size == 0) return true;
    o.problem(key, fmt::format("has {} elements, input_lens has {}", size, n));
    return false;
  };
  if (!fits(outputs.size(), "output_lens") || outputs.empty() || !fits(ttfts.size(), "ttfts") ||
      !fits(starts.size(), "start_times") || !fits(itls.size(), "itls")) {
    if (outputs.empty() && n > 0) o.problem("output_lens", "is missing beside input_lens");
    return;
  }
  double first = kNotTold;
  for (const double s : starts) first = std::isnan(first) ? s : std::fmin(first, s);
  for (std::size_t i = 0; i < n; ++i) {
    ++out.account.rows_read;
    if (failed_request(o.find("errors"), i) || !(outputs[i] >= 1.0) || !(inputs[i] >= 1.0)) {
      drop_row(out.account, "failed requests");
      continue;
    }
    ++out.account.kept;
    BenchRequest request;
    request.input = std::llrint(inputs[i]);
    request.output = std::llrint(outputs[i]);
    if (!starts.empty()) request.start_s = starts[i] - first;
    if (!ttfts.empty()) request.ttft_s = ttfts[i];
    if (!itls.empty() && !ttfts.empty()) {
      request.itls = itls[i];
      request.e2e_s = ttfts[i] + sum_of(itls[i]);
    }
    r.requests.push_back(std::move(request));
  }
}

void read_load(const LooseObject& o, BenchResult& r) {
  const double rate = o.number({"request_rate"});
  if (rate > 0.0) r.request_rate = rate;
  if (!std::isnan(rate) && !(rate > 0.0)) o.problem("request_rate", "is not above 0");
  const double limit = o.number({"max_concurrency"});
  if (limit >= 1.0) r.concurrency = std::llrint(limit);
  const double burst = o.number({"burstiness"});
  if (burst > 0.0) r.burstiness = burst;
  // Nominal lengths stand in the file even where another data set was used.
  if (o.has("dataset_name") && !o.text({"dataset_name"}).starts_with("random")) return;
  const double in = o.number({"random_input_len", "random_input", "input_len"});
  const double outlen = o.number({"random_output_len", "random_output", "output_len"});
  const double ratio = o.number({"random_range_ratio"});
  if (in > 0.0) r.random_input = in;
  if (outlen > 0.0) r.random_output = outlen;
  if (ratio >= 0.0 && ratio <= 1.0) r.range_ratio = ratio;
}

BenchResult serving_result(const LooseObject& o, BenchFile& out) {
  BenchResult r;
  r.tool = is_sglang(o) ? "sglang bench_serving" : "vllm bench serve";
  r.version = o.text({"version"});
  r.engine = o.text({"backend", "endpoint_type"});
  r.model = o.text({"model_id", "model"});
  r.source = o.file() + (o.pointer().empty() ? "" : ":" + o.pointer());
  read_load(o, r);
  r.duration_s = o.number({"duration"});
  const double completed = o.number({"completed"});
  if (!o.has("completed")) o.problem("completed", "is missing: how many requests were answered");
  if (completed >= 1.0) r.completed = std::llrint(completed);
  const double asked = o.number({"num_prompts"});
  const double failed = o.number({"failed"});
  if (failed > 0.0) r.failed = std::llrint(failed);
  if (std::isnan(failed) && asked > completed) r.failed = std::llrint(asked - completed);
  r.input_tokens = o.number({"total_input_tokens", "total_input"});
  r.output_tokens = o.number({"total_output_tokens", "total_output"});
  r.requests_per_s = o.number({"request_throughput"});
  r.output_tokens_per_s = o.number({"output_throughput"});
  r.tokens_per_s = o.number({"total_token_throughput", "total_throughput"});
  r.ttft = milliseconds_of(o, "ttft");
  r.tpot = milliseconds_of(o, "tpot");
  r.itl = milliseconds_of(o, "itl");
  r.e2e = first_known(milliseconds_of(o, "e2el"), milliseconds_of(o, "e2e_latency"));
  if (o.node().contains("request_goodput:"))
    r.notes.push_back("written by a vLLM of 2025-05 or before");
  if (o.number({"accept_length"}) > 1.01) {
    r.notes.push_back(
        fmt::format("speculative decoding: {:g} tokens a step", o.number({"accept_length"})));
  }
  read_details(o, r, out);
  return r;
}
}  // namespace

void read_bench_serving(const BenchObjects& objects, BenchFile& out) {
  for (const LooseObject& o : objects) {
    const std::int64_t before = out.account.rows_read;
    BenchResult r = serving_result(o, out);
    if (out.account.rows_read == before) {
      ++out.account.rows_read;
      ++out.account.kept;
    }
    out.results.push_back(std::move(r));
  }
}

}  // namespace medley
