#include "workloads/trace_stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "workloads/trace_link.h"
#include "workloads/trace_transform.h"

namespace medley {

namespace {
LengthStats length_stats(std::vector<std::int32_t> values) {
  LengthStats s;
  std::sort(values.begin(), values.end());
  const auto rank = [&](std::size_t percent) {
    const std::size_t n = values.size();
    return std::int64_t{values[(n * percent + 99) / 100 - 1]};
  };
  std::int64_t sum = 0;
  for (const std::int32_t v : values) sum += v;
  s.mean = static_cast<double>(sum) / static_cast<double>(values.size());
  s.min = values.front();
  s.p50 = rank(50);
  s.p90 = rank(90);
  s.p99 = rank(99);
  s.max = values.back();
  return s;
}

void arrival_stats(const Trace& trace, TraceStats& s) {
  if (s.open == 0) return;
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t first = trace.requests.front().arrival.ns();
  const std::int64_t last = trace.requests[static_cast<std::size_t>(s.open) - 1].arrival.ns();
  s.span_s = static_cast<double>(last - first) * 1e-9;
  s.rate_per_s = mean_rate(trace);
  const std::int64_t seconds = (last - first) / kSecond;  // the broken last one is left out
  double squares = 0.0;
  std::int64_t counted = 0;
  std::int64_t second = 0;
  std::int64_t in_second = 0;
  std::int64_t at_once = 0;
  std::int64_t before = first;
  const auto close_second = [&] {
    s.busiest_second = std::max(s.busiest_second, in_second);
    if (second >= seconds) return;
    counted += in_second;
    squares += static_cast<double>(in_second) * static_cast<double>(in_second);
  };
  for (std::int64_t i = 0; i < s.open; ++i) {
    const std::int64_t t = trace.requests[static_cast<std::size_t>(i)].arrival.ns();
    if ((t - first) / kSecond != second) {
      close_second();
      second = (t - first) / kSecond;
      in_second = 0;
    }
    ++in_second;
    at_once = t == before ? at_once + 1 : 1;
    s.most_at_once = std::max(s.most_at_once, at_once);
    s.longest_gap_s = std::max(s.longest_gap_s, static_cast<double>(t - before) * 1e-9);
    before = t;
  }
  close_second();
  if (seconds < 2 || counted == 0) return;
  const double n = static_cast<double>(seconds);
  const double mean = static_cast<double>(counted) / n;
  s.burstiness = (squares / n - mean * mean) / mean;
}

double prefix_reuse(const Trace& trace, std::int64_t input_tokens) {
  if (trace.hash_block_tokens == 0) return 0.0;
  std::unordered_set<std::uint64_t> seen;
  seen.reserve(trace.hash_ids.size());
  std::int64_t found = 0;
  for (const Request& r : trace.requests) {
    std::uint64_t chain = 0;  // an id counts only after the same ids
    bool hit = true;
    std::int64_t covered = 0;
    for (std::uint32_t i = 0; i < r.hash_count; ++i) {
      chain = mix64(chain ^ mix64(trace.hash_ids[r.hash_begin + i]));
      hit = !seen.insert(chain).second && hit;
      if (hit) covered += trace.hash_block_tokens;
    }
    found += std::min<std::int64_t>(covered, r.input_tokens);
  }
  return static_cast<double>(found) / static_cast<double>(input_tokens);
}

std::vector<TraceStats::Share> shares(const Trace& trace, const std::vector<std::string>& names,
                                      std::uint16_t Request::*field) {
  std::vector<TraceStats::Share> out;
  for (const std::string& name : names) out.push_back({name, 0});
  for (const Request& r : trace.requests) ++out[r.*field].requests;
  return out;
}

std::string grouped(std::int64_t n) {
  std::string digits = fmt::format("{}", n);
  for (int at = static_cast<int>(digits.size()) - 3; at > (n < 0 ? 1 : 0); at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return digits;
}
}  // namespace

TraceStats trace_stats(const Trace& trace) {
  TraceStats s;
  s.requests = static_cast<std::int64_t>(trace.requests.size());
  if (s.requests == 0) return s;
  std::vector<std::int32_t> inputs, outputs;
  for (const Request& r : trace.requests) {
    s.open += r.arrival != SimTime::max() ? 1 : 0;
    s.input_tokens += r.input_tokens;
    s.output_tokens += r.output_tokens;
    inputs.push_back(r.input_tokens);
    outputs.push_back(r.output_tokens);
  }
  s.closed = s.requests - s.open;
  s.sessions = static_cast<std::int64_t>(trace.sessions.size());
  s.input = length_stats(std::move(inputs));
  s.output = length_stats(std::move(outputs));
  s.hash_block_tokens = trace.hash_block_tokens;
  arrival_stats(trace, s);
  s.ideal_prefix_reuse = prefix_reuse(trace, s.input_tokens);
  s.models = shares(trace, trace.models, &Request::model);
  s.classes = shares(trace, trace.classes, &Request::slo_class);
  s.tenants = shares(trace, trace.tenants, &Request::tenant);
  return s;
}

std::string account_text(const ImportAccount& account) {
  std::string out = fmt::format("{} ({}): {} rows read = {} kept", account.source, account.format,
                                grouped(account.rows_read), grouped(account.kept));
  for (const auto& [reason, rows] : account.dropped) {
    out += fmt::format(" + {} dropped ({})", grouped(rows), reason);
  }
  for (const auto& [what, rows] : account.adjusted) {
    out += fmt::format("\n  changed: {} in {} rows", what, grouped(rows));
  }
  for (const std::string& note : account.notes) out += "\n  note: " + note;
  return out;
}

}  // namespace medley
