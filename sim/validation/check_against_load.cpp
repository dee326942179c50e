#include "sim/validation/check_against_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/core/error.h"
#include "sim/measure/bench_json.h"

namespace medley {

namespace {
using Json = nlohmann::ordered_json;

/// "uniform:1:1024" as the JSON of a distribution.
std::string distribution_json(const std::string& option, const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ':') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  std::vector<double> numbers;
  bool fine = true;
  for (std::size_t i = parts.size() > 1 ? 1 : 0; i < parts.size(); ++i) {
    numbers.push_back(0.0);
    fine = fine && parse_bench_number(parts[i], numbers.back()) && numbers.back() > 0.0 &&
           std::isfinite(numbers.back());
  }
  const std::string& kind = parts[0];
  Json json;
  if (fine && parts.size() == 1) json = numbers[0];
  if (fine && kind == "uniform" && numbers.size() == 2 && numbers[0] <= numbers[1]) {
    json = {{"dist", "uniform"}, {"min", numbers[0]}, {"max", numbers[1]}};
  } else if (fine && kind == "exponential" && numbers.size() == 1 && parts.size() == 2) {
    json = {{"dist", "exponential"}, {"mean", numbers[0]}};
  } else if (fine && kind == "lognormal" && numbers.size() == 2) {
    json = {{"dist", "lognormal"}, {"mean", numbers[0]}, {"cv", numbers[1]}};
  }
  if (json.is_null()) {
    throw InputError(option, "", fmt::format("`{}` is no length", text),
                     "512, uniform:1:1024, exponential:300 or lognormal:<mean>:<cv>");
  }
  return json.dump();
}

std::string uniform_json(double low, double high) {
  const double a = std::max(1.0, std::floor(low)), b = std::max(1.0, std::floor(high));
  return Json{{"dist", "uniform"}, {"min", a}, {"max", b}}.dump();
}

struct Lengths {
  std::string json;
  bool drawn = false;
  std::string words;
};

/// Lengths of prompts or answers that the file does not list.
Lengths lengths_of(const char* option, const std::string& wanted, const BenchResult& r,
                   const CheckLoad& load, double mean, const std::optional<double>& nominal) {
  if (!wanted.empty()) {
    const std::string json = distribution_json(option, wanted);
    return {json, json.front() == '{', wanted};
  }
  if (!(mean >= 1.0)) {
    throw InputError(r.source, "", fmt::format("does not say how long {} were", option + 2),
                     fmt::format("{} 512", option));
  }
  const std::optional<double> ratio = load.range_ratio ? load.range_ratio : r.range_ratio;
  if (!ratio) {
    return {Json(std::llrint(mean)).dump(), false, fmt::format("{}, all alike", std::llrint(mean))};
  }
  const bool below = r.tool.starts_with("sglang");  // SGLang: from N x ratio to N; vLLM: N +- ratio
  const double n = nominal ? *nominal : below ? 2.0 * mean / (1.0 + *ratio) : mean;
  const double low = below ? n * *ratio : n * (1.0 - *ratio);
  const double high = below ? n : n * (1.0 + *ratio);
  if (low >= high) return {Json(std::llrint(n)).dump(), false, fmt::format("{:g}, all alike", n)};
  return {uniform_json(low, high), true,
          fmt::format("uniform from {:g} to {:g}", std::max(1.0, std::floor(low)), high)};
}

/// Whether the limit on requests in flight, not the rate, was what let requests start.
bool limit_binds(const BenchResult& r, double rate, std::int64_t limit) {
  if (r.sent_rate && *r.sent_rate < 0.97 * rate) return true;
  return r.requests_per_s * r.e2e.mean >= 0.9 * static_cast<double>(limit);
}

void set_closed(RebuiltLoad& out, std::int64_t users) {
  out.arrivals_json =
      Json{{"process", "closed_loop"}, {"concurrency", users}, {"queue", "shared"}}.dump();
  out.concurrency = std::min(users, out.requests);
  out.words = users >= out.requests ? "all at once" : fmt::format("{} in flight", users);
}

void set_open(RebuiltLoad& out, const BenchResult& r, double rate) {
  Json arrivals = {{"process", "poisson"}, {"rate", fmt::format("{} req/s", rate)}};
  std::string law = "Poisson";
  if (r.even_spacing) {
    arrivals["process"] = "constant";
    law = "evenly spaced";
  } else if (r.burstiness && *r.burstiness != 1.0) {
    arrivals["process"] = "gamma";
    arrivals["cv"] = std::clamp(1.0 / std::sqrt(*r.burstiness), 0.01, 30.0);
    law = fmt::format("gamma, burstiness {:g}", *r.burstiness);
  }
  out.arrivals_json = arrivals.dump();
  out.rate = rate;
  out.words = fmt::format("{:g} req/s {}", rate, law);
}

void choose_arrivals(RebuiltLoad& out, const BenchResult& r, const CheckLoad& load) {
  // What the user says of one of the two replaces both of the file.
  const bool user = load.rate || load.concurrency;
  const std::optional<double> rate = user ? load.rate : r.request_rate;
  const std::optional<std::int64_t> limit = user ? load.concurrency : r.concurrency;
  const bool times = out.listed && !r.requests.empty() && !std::isnan(r.requests.front().start_s);
  if (times && !user) {
    out.words = fmt::format("{} request(s) at their own times", out.requests);
    if (r.requests_per_s > 0.0) out.rate = r.requests_per_s;
    return;
  }
  if (!rate && !limit) {
    throw InputError(r.source, "", "does not say at which load it was measured",
                     "--rate 10, --rate inf or --concurrency 16");
  }
  if (rate && std::isfinite(*rate) && limit && !limit_binds(r, *rate, *limit)) {
    out.notes.push_back(fmt::format("the limit of {} in flight does not bind", *limit));
    return set_open(out, r, *rate);
  }
  if (rate && std::isfinite(*rate) && limit) {
    out.notes.push_back(fmt::format("the limit of {} in flight binds, not the rate", *limit));
  }
  if (limit) return set_closed(out, *limit);
  if (!std::isfinite(*rate)) return set_closed(out, out.requests);
  set_open(out, r, *rate);
}
}  // namespace

RebuiltLoad rebuild_load(const BenchResult& r, const CheckLoad& load) {
  RebuiltLoad out;
  out.listed = !r.requests.empty() && load.input.empty() && load.output.empty();
  out.requests = out.listed ? static_cast<std::int64_t>(r.requests.size()) : r.completed;
  if (load.requests && (!out.listed || *load.requests < out.requests)) {
    out.requests = *load.requests;
  }
  if (out.listed) {
    out.notes.push_back("lengths: those of the measured requests");
  } else {
    const Lengths in = lengths_of("--input", load.input, r, load, r.mean_input(), r.random_input);
    const Lengths output =
        lengths_of("--output", load.output, r, load, r.mean_output(), r.random_output);
    out.input_json = in.json;
    out.output_json = output.json;
    out.drawn = in.drawn || output.drawn;
    out.notes.push_back(fmt::format("lengths: input {}; output {}", in.words, output.words));
  }
  choose_arrivals(out, r, load);
  return out;
}

Trace listed_trace(const BenchResult& r, std::size_t most, const std::string& model) {
  Trace trace;
  trace.models = {model};
  trace.classes = trace.tenants = {"default"};
  for (std::size_t i = 0; i < std::min(most, r.requests.size()); ++i) {
    const BenchRequest& q = r.requests[i];
    Request request;
    request.arrival = SimTime::from_seconds(Seconds(std::isnan(q.start_s) ? 0.0 : q.start_s));
    request.input_tokens = static_cast<std::int32_t>(std::min<std::int64_t>(q.input, INT32_MAX));
    request.output_tokens = static_cast<std::int32_t>(std::min<std::int64_t>(q.output, INT32_MAX));
    request.row = static_cast<std::uint32_t>(i);
    trace.requests.push_back(request);
  }
  return trace;
}

}  // namespace medley
