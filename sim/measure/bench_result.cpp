#include "sim/measure/bench_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/core/error.h"
#include "sim/measure/bench_readers.h"

namespace medley {

namespace {
/// numpy's linear quantile of sorted values.
double quantile(const std::vector<double>& sorted, double p) {
  const double at = p * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

template <class Value>
void fill(BenchQuantiles& into, const std::vector<BenchRequest>& requests, Value value) {
  if (into.known()) return;
  std::vector<double> values;
  for (const BenchRequest& r : requests) value(r, values);
  std::erase_if(values, [](double v) { return std::isnan(v); });
  into = quantiles_of(std::move(values));
}

void fill_from_requests(BenchResult& r) {
  using Values = std::vector<double>;
  const auto& all = r.requests;
  fill(r.ttft, all, [](const BenchRequest& q, Values& v) { v.push_back(q.ttft_s); });
  fill(r.tpot, all, [](const BenchRequest& q, Values& v) { v.push_back(q.tpot_s()); });
  fill(r.itl, all,
       [](const BenchRequest& q, Values& v) { v.insert(v.end(), q.itls.begin(), q.itls.end()); });
  fill(r.e2e, all, [](const BenchRequest& q, Values& v) { v.push_back(q.e2e_s); });
  fill(r.input_length, all,
       [](const BenchRequest& q, Values& v) { v.push_back(static_cast<double>(q.input)); });
  fill(r.output_length, all,
       [](const BenchRequest& q, Values& v) { v.push_back(static_cast<double>(q.output)); });
}

void default_to(double& value, double fallback) {
  if (std::isnan(value) && std::isfinite(fallback)) value = fallback;
}
}  // namespace

bool BenchQuantiles::known() const {
  return !std::isnan(mean) || !std::isnan(p50) || !std::isnan(p90) || !std::isnan(p99);
}

void BenchQuantiles::scale(double factor) {
  for (double* v : {&mean, &p50, &p90, &p95, &p99, &min, &max, &std}) *v *= factor;
}

BenchQuantiles quantiles_of(std::vector<double> values) {
  BenchQuantiles q;
  if (values.empty()) return q;
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  double sum = 0.0, squares = 0.0;
  for (const double v : values) sum += v;
  q.mean = sum / n;
  for (const double v : values) squares += (v - q.mean) * (v - q.mean);
  q.std = std::sqrt(squares / n);
  q.min = values.front();
  q.max = values.back();
  q.p50 = quantile(values, 0.5);
  q.p90 = quantile(values, 0.9);
  q.p95 = quantile(values, 0.95);
  q.p99 = quantile(values, 0.99);
  return q;
}

double BenchRequest::tpot_s() const {
  return output > 1 ? (e2e_s - ttft_s) / static_cast<double>(output - 1) : kNotTold;
}

double BenchResult::mean_input() const {
  const double mean = input_tokens / static_cast<double>(completed);
  return std::isfinite(mean) ? mean : input_length.mean;
}

double BenchResult::mean_output() const {
  const double mean = output_tokens / static_cast<double>(completed);
  return std::isfinite(mean) ? mean : output_length.mean;
}

void drop_row(ImportAccount& account, const std::string& reason) {
  for (auto& [name, count] : account.dropped) {
    if (name != reason) continue;
    ++count;
    return;
  }
  account.dropped.emplace_back(reason, 1);
}

void finish_result(BenchResult& r, Problems& problems) {
  fill_from_requests(r);
  if (r.completed == 0) r.completed = static_cast<std::int64_t>(r.requests.size());
  if (r.completed == 0) {
    problems.add(r.source, "", "no request was completed: there is nothing to compare with");
    return;
  }
  const auto n = static_cast<double>(r.completed);
  default_to(r.input_tokens, r.input_length.mean * n);
  default_to(r.output_tokens, r.output_length.mean * n);
  default_to(r.input_length.mean, r.mean_input());
  default_to(r.output_length.mean, r.mean_output());
  if (r.requests_per_s > 0.0) default_to(r.duration_s, n / r.requests_per_s);
  if (r.duration_s > 0.0) {
    default_to(r.requests_per_s, n / r.duration_s);
    default_to(r.output_tokens_per_s, r.output_tokens / r.duration_s);
    default_to(r.tokens_per_s, (r.input_tokens + r.output_tokens) / r.duration_s);
  }
  const double gaps = r.mean_output() - 1.0;
  const bool median = std::isnan(r.ttft.mean) && r.ttft.p50 < 0.1 * r.e2e.mean;
  const double first = median ? r.ttft.p50 : r.ttft.mean;
  if (!r.tpot.known() && gaps > 0.5 && std::isfinite(r.e2e.mean - first)) {
    r.tpot.mean = (r.e2e.mean - first) / gaps;
    r.notes.push_back(fmt::format("mean TPOT derived from the means: (E2E - {}TTFT) / (output - 1)",
                                  median ? "median " : ""));
  }
}

}  // namespace medley
