#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/measure/bench_readers.h"

namespace medley {

namespace {
using Json = nlohmann::ordered_json;

void count_result(BenchFile& out) {
  ++out.account.rows_read;
  ++out.account.kept;
}

std::string source_of(const LooseObject& o) {
  return o.file() + (o.pointer().empty() ? "" : ":" + o.pointer());
}

/// inference-perf counts pieces of the answer; where an engine sends two for a token, its time per
/// token is half of what (latency - ttft) / (output - 1) says.
void check_token_times(BenchResult& r) {
  const double out = r.output_length.mean;
  const double derived = (r.e2e.mean - r.ttft.mean) / (out - 1.0);
  const double ratio = derived / r.tpot.mean;
  if (!(out > 2.0) || !(ratio > 1.25 || ratio < 0.8)) return;
  r.tpot.scale(ratio);
  r.itl = BenchQuantiles{};
  r.notes.push_back(
      fmt::format("time per output token is {:.2g} times what the file prints: (latency - ttft) / "
                  "(output - 1); gaps between tokens are left out",
                  ratio));
}

BenchResult stage_of(const LooseObject& o) {
  BenchResult r;
  r.tool = "inference-perf";
  r.source = source_of(o);
  const LooseObject load = o.object("load_summary");
  const LooseObject good = o.object("successes");
  const LooseObject latency = good.object("latency");
  const LooseObject rates = good.object("throughput");
  const double rate = load.number({"requested_rate", "achieved_rate"});
  if (rate > 0.0) r.request_rate = rate;
  const double count = good.number({"count"});
  if (!good.has("count")) good.problem("count", "is missing");
  if (count >= 1.0) r.completed = std::llrint(count);
  const double failed = o.object("failures").number({"count"});
  if (failed >= 1.0) r.failed = std::llrint(failed);
  r.e2e = quantiles_from(latency.object("request_latency"), 1.0);
  r.ttft = quantiles_from(latency.object("time_to_first_token"), 1.0);
  r.tpot = quantiles_from(latency.object("time_per_output_token"), 1.0);
  r.itl = quantiles_from(latency.object("inter_token_latency"), 1.0);
  r.input_length = quantiles_from(good.object("prompt_len"), 1.0);
  r.output_length = quantiles_from(good.object("output_len"), 1.0);
  r.input_tokens = r.input_length.mean * count;
  r.output_tokens = r.output_length.mean * count;
  r.requests_per_s = rates.number({"requests_per_sec"});
  r.output_tokens_per_s = rates.number({"output_tokens_per_sec"});
  r.tokens_per_s = rates.number({"total_tokens_per_sec"});
  if (r.requests_per_s > 0.0) r.duration_s = count / r.requests_per_s;
  r.even_spacing = true;
  const double achieved = load.number({"achieved_rate"});
  if (achieved > 0.0) r.sent_rate = achieved;
  if (rate > 0.0 && achieved < 0.95 * rate) {
    r.notes.push_back(fmt::format(
        "the generator sent {:.4g} of the {:.4g} requests per second asked for", achieved, rate));
  }
  check_token_times(r);
  return r;
}

/// {"successful": {"mean", "percentiles": {"p50"}}} of guidellm.
BenchQuantiles guidellm_quantiles(const LooseObject& metrics, const char* name, double unit) {
  const LooseObject good = metrics.object(name).object("successful");
  BenchQuantiles q = quantiles_from(good.object("percentiles"), unit);
  q.mean = good.number({"mean"}) * unit;
  if (std::isnan(q.p50)) q.p50 = good.number({"median"}) * unit;
  q.std = good.number({"std_dev"}) * unit;
  q.min = good.number({"min"}) * unit;
  q.max = good.number({"max"}) * unit;
  return q;
}

void guidellm_load(const LooseObject& strategy, BenchResult& r) {
  const std::string type = strategy.text({"type_", "type"});
  const double rate = strategy.number({"rate"});
  const double streams = strategy.number({"streams"});
  const double limit = strategy.number({"max_concurrency"});
  if (type == "constant" || type == "poisson" || type == "async") {
    if (rate > 0.0) r.request_rate = rate;
    r.even_spacing = type != "poisson";
  } else {
    r.request_rate = std::numeric_limits<double>::infinity();
    if (type == "synchronous") r.concurrency = 1;
    if (type == "concurrent" && streams >= 1.0) r.concurrency = std::llrint(streams);
    if (type == "throughput" && limit >= 1.0) r.concurrency = std::llrint(limit);
  }
  r.label = type;
}

BenchResult guidellm_benchmark(const LooseObject& o, const LooseObject& spec) {
  BenchResult r;
  r.tool = "guidellm";
  r.source = source_of(o);
  LooseObject config = o.object("config");
  r.model = spec.object("backend").text({"model"});
  if (r.model.empty()) r.model = config.object("backend").text({"model"});
  guidellm_load(config.object("strategy"), r);
  const LooseObject m = o.object("metrics");
  const LooseObject totals = m.object("request_totals");
  const double good = totals.number({"successful"});
  if (!totals.has("successful")) totals.problem("successful", "is missing");
  if (good >= 1.0) r.completed = std::llrint(good);
  const double failed = totals.number({"errored"});
  if (failed >= 1.0) r.failed = std::llrint(failed);
  r.e2e = guidellm_quantiles(m, "request_latency", 1.0);
  r.ttft = guidellm_quantiles(m, "time_to_first_token_ms", 1e-3);
  r.tpot = guidellm_quantiles(m, "inter_token_latency_ms", 1e-3);
  r.input_length = guidellm_quantiles(m, "prompt_token_count", 1.0);
  r.output_length = guidellm_quantiles(m, "output_token_count", 1.0);
  r.input_tokens = r.input_length.mean * good;
  r.output_tokens = r.output_length.mean * good;
  r.duration_s = o.number({"duration"});
  r.start_epoch_s = o.number({"start_time"});
  r.notes.push_back(
      "its inter-token latency is read as TPOT; its time per output token is latency / output");
  return r;
}
}  // namespace

BenchQuantiles quantiles_from(const LooseObject& o, double unit) {
  BenchQuantiles q;
  q.mean = o.number({"mean", "avg"}) * unit;
  q.p50 = o.number({"median", "p50"}) * unit;
  q.p90 = o.number({"p90"}) * unit;
  q.p95 = o.number({"p95"}) * unit;
  q.p99 = o.number({"p99"}) * unit;
  q.min = o.number({"min"}) * unit;
  q.max = o.number({"max"}) * unit;
  q.std = o.number({"std", "stddev", "std_dev"}) * unit;
  return q;
}

void read_inference_perf(const BenchObjects& objects, BenchFile& out) {
  for (const LooseObject& o : objects) {
    out.results.push_back(stage_of(o));
    count_result(out);
  }
}

void read_guidellm(const BenchObjects& objects, BenchFile& out) {
  for (const LooseObject& o : objects) {
    const Json* list = o.find("benchmarks");
    if (list == nullptr || !list->is_array() || list->empty()) {
      o.problem("benchmarks", "holds no benchmark");
      continue;
    }
    const LooseObject spec = o.object("config").object("spec");
    const std::string version = o.object("metadata").text({"guidellm_version"});
    for (std::size_t i = 0; i < list->size(); ++i) {
      const std::string at = fmt::format("{}/{}", o.pointer_to("benchmarks"), i);
      out.results.push_back(
          guidellm_benchmark(LooseObject((*list)[i], o.file(), at, o.problems()), spec));
      out.results.back().version = version;
      count_result(out);
    }
  }
}

void read_perf_json(const BenchObjects& objects, BenchFile& out) {
  for (const LooseObject& top : objects) {
    const LooseObject o = top.has("records") ? top.object("records") : top;
    BenchResult r;
    const LooseObject config = top.object("input_config");
    r.tool = top.has("aiperf_version") || config.has("loadgen") ? "aiperf" : "genai-perf";
    r.version = top.text({"aiperf_version", "version"});
    r.source = source_of(top);
    const auto times = [&](const char* name, BenchQuantiles& q) {
      const LooseObject metric = o.object(name);
      if (metric.node().empty()) return;
      const double unit = seconds_in(metric.text({"unit"}));
      if (unit == 0.0) return metric.problem("unit", "is no unit of time", "ms, us, ns or sec");
      q = quantiles_from(metric, unit);
    };
    times("time_to_first_token", r.ttft);
    times("inter_token_latency", r.tpot);
    times("inter_chunk_latency", r.itl);
    times("request_latency", r.e2e);
    r.input_length = quantiles_from(o.object("input_sequence_length"), 1.0);
    r.output_length = quantiles_from(o.object("output_sequence_length"), 1.0);
    r.output_tokens_per_s = o.object("output_token_throughput").number({"avg"});
    r.requests_per_s = o.object("request_throughput").number({"avg"});
    const double count = o.object("request_count").number({"avg"});
    if (count >= 1.0) r.completed = std::llrint(count);
    const double errors = o.object("error_request_count").number({"avg"});
    if (errors >= 1.0) r.failed = std::llrint(errors);
    const LooseObject load = config.object("loadgen");
    const LooseObject stimulus = config.object("perf_analyzer").object("stimulus");
    const double rate = load.has("request_rate") ? load.number({"request_rate"})
                                                 : stimulus.number({"request_rate"});
    const double limit =
        load.has("concurrency") ? load.number({"concurrency"}) : stimulus.number({"concurrency"});
    if (rate > 0.0) r.request_rate = rate;
    if (limit >= 1.0) r.concurrency = std::llrint(limit);
    out.results.push_back(std::move(r));
    count_result(out);
  }
}

void read_llmperf_summary(const BenchObjects& objects, BenchFile& out) {
  for (const LooseObject& o : objects) {
    BenchResult r;
    r.tool = "llmperf";
    r.version = o.text({"version"});
    r.engine = o.text({"framework"});
    r.model = o.text({"model"});
    r.source = source_of(o);
    const auto quantiles = [&](const std::string& name) {
      BenchQuantiles q;
      const auto read = [&](const char* what) {
        return o.number({fmt::format("results_{}_{}", name, what)});
      };
      q.mean = read("mean");
      q.p50 = read("quantiles_p50");
      q.p90 = read("quantiles_p90");
      q.p95 = read("quantiles_p95");
      q.p99 = read("quantiles_p99");
      q.min = read("min");
      q.max = read("max");
      q.std = read("stddev");
      return q;
    };
    r.ttft = quantiles("ttft_s");
    r.e2e = quantiles("end_to_end_latency_s");
    r.input_length = quantiles("number_input_tokens");
    r.output_length = quantiles("number_output_tokens");
    const double done = o.number({"results_num_completed_requests"});
    if (done >= 1.0) r.completed = std::llrint(done);
    const double errors = o.number({"results_number_errors"});
    if (errors >= 1.0) r.failed = std::llrint(errors);
    const double limit = o.number({"num_concurrent_requests"});
    if (limit >= 1.0) r.concurrency = std::llrint(limit);
    r.output_tokens_per_s = o.number({"results_mean_output_throughput_token_per_s"});
    const double per_minute = o.number({"results_num_completed_requests_per_min"});
    r.requests_per_s = per_minute / 60.0;
    r.duration_s = done / r.requests_per_s;
    r.notes.push_back("its inter-token latency counts the first token too and is not read");
    out.results.push_back(std::move(r));
    count_result(out);
  }
}

}  // namespace medley
