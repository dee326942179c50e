#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/core/csv.h"
#include "sim/measure/bench_readers.h"

namespace medley {

namespace {
using Json = nlohmann::ordered_json;

/// Requests with absolute times become one result that starts with the first of them.
class RunBuilder {
 public:
  RunBuilder(BenchFile& out, std::string tool, std::string source) : out_(out) {
    result_.tool = std::move(tool);
    result_.source = std::move(source);
  }
  BenchResult& result() { return result_; }
  void read() { ++out_.account.rows_read; }
  void drop(const std::string& reason) {
    drop_row(out_.account, reason);
    ++result_.failed;
  }
  /// `start` absolute [s]; NaN unknown.
  void keep(double start, BenchRequest request) {
    ++out_.account.kept;
    request.start_s = start;
    ends_.push_back(start + request.e2e_s);
    result_.requests.push_back(std::move(request));
  }
  /// `epoch`: the clock counts Unix time.
  void finish(bool epoch) {
    std::vector<BenchRequest>& requests = result_.requests;
    double first = kNotTold, last = kNotTold;
    for (const BenchRequest& r : requests) first = std::fmin(first, r.start_s);
    for (const double end : ends_) last = std::fmax(last, end);
    if (epoch) result_.start_epoch_s = first;
    if (last > first) result_.duration_s = last - first;
    for (BenchRequest& r : requests) r.start_s -= first;
    std::stable_sort(
        requests.begin(), requests.end(),
        [](const BenchRequest& a, const BenchRequest& b) { return a.start_s < b.start_s; });
    out_.results.push_back(std::move(result_));
  }

 private:
  BenchFile& out_;
  BenchResult result_;
  std::vector<double> ends_;
};

/// metrics.<name> = {"value", "unit"} of an AIPerf record.
double aiperf_metric(const LooseObject& metrics, const char* name, bool time) {
  if (!metrics.has(name)) return kNotTold;
  const LooseObject metric = metrics.object(name);
  const double value = metric.number({"value"});
  if (!time) return value;
  const double unit = seconds_in(metric.text({"unit"}));
  if (unit == 0.0) metric.problem("unit", "is no unit of time", "ms, us, ns or sec");
  return value * unit;
}

std::vector<double> aiperf_gaps(const LooseObject& metrics) {
  const LooseObject metric = metrics.object("inter_chunk_latency");
  const Json* value = metric.find("value");
  if (value == nullptr || !value->is_array()) return {};
  std::vector<double> gaps = metric.numbers("value");
  for (double& g : gaps) g *= seconds_in(metric.text({"unit"}));
  return gaps;
}
}  // namespace

void read_aiperf_records(const BenchObjects& objects, BenchFile& out) {
  RunBuilder run(out, "aiperf", objects.front().file());
  for (const LooseObject& o : objects) {
    run.read();
    const LooseObject about = o.object("metadata");
    const LooseObject metrics = o.object("metrics");
    const Json* cancelled = about.find("was_cancelled");
    if (about.text({"benchmark_phase"}) == "warmup") {
      drop_row(out.account, "warm-up requests");
      continue;
    }
    if (o.has("error") || (cancelled != nullptr && *cancelled == true)) {
      run.drop("failed requests");
      continue;
    }
    BenchRequest r;
    const double in = aiperf_metric(metrics, "input_sequence_length", false);
    const double output = aiperf_metric(metrics, "output_sequence_length", false);
    r.ttft_s = aiperf_metric(metrics, "time_to_first_token", true);
    r.e2e_s = aiperf_metric(metrics, "request_latency", true);
    r.itls = aiperf_gaps(metrics);
    if (!(in >= 1.0) || !(output >= 1.0)) {
      run.drop("requests without lengths");
      continue;
    }
    r.input = std::llrint(in);
    r.output = std::llrint(output);
    run.keep(about.number({"request_start_ns"}) * 1e-9, std::move(r));
  }
  run.finish(true);
}

void read_llmperf_requests(const BenchObjects& objects, BenchFile& out) {
  RunBuilder run(out, "llmperf", objects.front().file());
  for (const LooseObject& o : objects) {
    run.read();
    const double in = o.number({"number_input_tokens"});
    const double output = o.number({"number_output_tokens"});
    if (o.has("error_code") || !(in >= 1.0) || !(output >= 1.0)) {
      run.drop("failed requests");
      continue;
    }
    BenchRequest r;
    r.input = std::llrint(in);
    r.output = std::llrint(output);
    r.ttft_s = o.number({"ttft_s"});
    r.e2e_s = o.number({"end_to_end_latency_s"});
    run.keep(kNotTold, std::move(r));
  }
  run.result().notes.push_back(
      "llmperf keeps no start times and no load: give --concurrency or --rate");
  run.finish(false);
}

void read_engine_requests(const BenchObjects& objects, BenchFile& out) {
  RunBuilder run(out, "engine request log", objects.front().file());
  run.result().server_side = true;
  run.result().engine = "vllm";
  double epoch = kNotTold;
  for (const LooseObject& o : objects) {
    run.read();
    const double in = o.number({"input_toks", "input_tokens"});
    const double output = o.number({"output_toks", "output_tokens"});
    const double queued = o.number({"queued_ts"});
    const double first = o.number({"first_token_ts"});
    const double last = o.number({"last_token_ts"});
    if (!(in >= 1.0) || !(output >= 1.0) || std::isnan(queued) || !(first >= queued) ||
        !(last >= first)) {
      run.drop("unfinished requests");
      continue;
    }
    BenchRequest r;
    r.input = std::llrint(in);
    r.output = std::llrint(output);
    r.ttft_s = first - queued;
    r.e2e_s = last - queued;
    epoch = std::fmin(epoch, o.number({"arrival_time"}));
    run.keep(queued, std::move(r));
  }
  run.result().start_epoch_s = epoch;
  run.finish(false);
}

namespace {
/// Lines of a CSV with "\r\n" or "\n".
std::vector<std::string_view> lines_of(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string at_line(std::size_t index) {
  return fmt::format("line {}", index + 1);
}

/// "Request Latency (ms)" -> name and unit.
void split_metric(const std::string& text, std::string& name, std::string& unit) {
  const std::size_t open = text.rfind(" (");
  name = text.substr(0, open);
  unit.clear();
  if (open != std::string::npos && text.ends_with(')')) {
    unit = text.substr(open + 2, text.size() - open - 3);
  }
}

/// The tables of genai-perf and AIPerf: statistics by metric, then single values, then GPUs.
class PerfTables {
 public:
  PerfTables(std::string_view text, BenchFile& out, Problems& problems)
      : lines_(lines_of(text)), out_(out), problems_(problems), file_(out.account.source) {}

  void run() {
    result_.tool = "genai-perf";
    result_.source = file_;
    for (index_ = 0; index_ < lines_.size(); ++index_) {
      if (lines_[index_].find_first_not_of(" ,") == std::string_view::npos) {
        header_.clear();
        continue;
      }
      std::vector<std::string> cells;
      if (!split_csv(lines_[index_], cells)) {
        problems_.add(file_, at_line(index_), "has an open quote");
        continue;
      }
      if (header_.empty() || cells[0] == "Metric") {
        header_ = cells;
        if (std::find(cells.begin(), cells.end(), "p1") != cells.end()) result_.tool = "aiperf";
        continue;
      }
      row(cells);
    }
    ++out_.account.rows_read;
    ++out_.account.kept;
    result_.notes.push_back("the file does not say at which load: give --concurrency or --rate");
    out_.results.push_back(std::move(result_));
  }

 private:
  double cell(const std::vector<std::string>& cells, std::string_view column) {
    for (std::size_t i = 1; i < header_.size(); ++i) {
      if (header_[i] != column) continue;
      double value = 0.0;
      if (i >= cells.size()) {
        problems_.add(file_, at_line(index_), fmt::format("has no cell for column {}", column));
        return kNotTold;
      }
      if (cells[i].empty() || cells[i] == "N/A") return kNotTold;
      if (parse_bench_number(cells[i], value)) return value;
      problems_.add(file_, at_line(index_),
                    fmt::format("column {}: `{}` is not a number", column, cells[i]));
    }
    return kNotTold;
  }

  BenchQuantiles quantiles(const std::vector<std::string>& cells, double unit) {
    BenchQuantiles q;
    q.mean = cell(cells, "avg");
    q.p50 = cell(cells, "p50");
    q.p90 = cell(cells, "p90");
    q.p95 = cell(cells, "p95");
    q.p99 = cell(cells, "p99");
    q.min = cell(cells, "min");
    q.max = cell(cells, "max");
    q.std = cell(cells, "std");
    q.scale(unit);
    return q;
  }

  void row(const std::vector<std::string>& cells) {
    std::string name, unit;
    split_metric(cells[0], name, unit);
    const bool single = header_.size() > 1 && header_[1] == "Value";
    const auto is = [&](std::string_view what) { return name == what; };
    BenchQuantiles* times = is("Time To First Token")   ? &result_.ttft
                            : is("Inter Token Latency") ? &result_.tpot
                            : is("Inter Chunk Latency") ? &result_.itl
                            : is("Request Latency")     ? &result_.e2e
                                                        : nullptr;
    if (times != nullptr && !single) {
      const double factor = seconds_in(unit);
      if (factor == 0.0) {
        problems_.add(file_, at_line(index_), fmt::format("`{}` names no unit of time", cells[0]),
                      "(ms), (us), (ns)");
        return;
      }
      *times = quantiles(cells, factor);
    } else if (is("Input Sequence Length") && !single) {
      result_.input_length = quantiles(cells, 1.0);
    } else if (is("Output Sequence Length") && !single) {
      result_.output_length = quantiles(cells, 1.0);
    } else if (single || header_.size() == 2) {
      single_value(name, cells);
    } else if (name.starts_with("Output Token Throughput") && name.find("Per User") == name.npos) {
      result_.output_tokens_per_s = cell(cells, "avg");
    } else if (is("Request Throughput")) {
      result_.requests_per_s = cell(cells, "avg");
    }
  }

  void single_value(const std::string& name, const std::vector<std::string>& cells) {
    const double value = cell(cells, header_[1]);
    if (name == "Output Token Throughput") result_.output_tokens_per_s = value;
    if (name == "Total Token Throughput") result_.tokens_per_s = value;
    if (name == "Request Throughput") result_.requests_per_s = value;
    if (name == "Request Count" && value >= 1.0) result_.completed = std::llrint(value);
    if (name == "Error Request Count" && value >= 1.0) result_.failed = std::llrint(value);
    if (name == "Benchmark Duration") result_.duration_s = value;
  }

  std::vector<std::string_view> lines_;
  BenchFile& out_;
  Problems& problems_;
  const std::string& file_;
  std::vector<std::string> header_;
  std::size_t index_ = 0;
  BenchResult result_;
};
}  // namespace

void read_perf_csv(std::string_view text, BenchFile& out, Problems& problems) {
  PerfTables(text, out, problems).run();
}

void read_multiround_csv(std::string_view text, BenchFile& out, Problems& problems) {
  const std::string& file = out.account.source;
  const std::vector<std::string_view> lines = lines_of(text);
  std::vector<std::string> header, cells;
  split_csv(lines.front(), header);
  RunBuilder run(out, "multi-round QA", file);
  const auto value = [&](std::size_t line, const char* column, double& into) {
    const auto at = std::find(header.begin(), header.end(), column);
    const auto i = static_cast<std::size_t>(at - header.begin());
    if (at == header.end()) return true;
    if (i < cells.size() && parse_bench_number(cells[i], into)) return true;
    problems.add(file, at_line(line), fmt::format("column {} holds no number", column));
    return false;
  };
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    run.read();
    split_csv(lines[i], cells);
    double in = 0.0, output = 0.0, ttft = kNotTold, decode = kNotTold, start = kNotTold;
    if (!value(i, "prompt_tokens", in) || !value(i, "generation_tokens", output) ||
        !value(i, "ttft", ttft) || !value(i, "generation_time", decode) ||
        !value(i, "launch_time", start)) {
      drop_row(out.account, "unreadable rows");
      continue;
    }
    if (!(in >= 1.0) || !(output >= 1.0)) {
      run.drop("failed requests");
      continue;
    }
    BenchRequest r;
    r.input = std::llrint(in);
    r.output = std::llrint(output);
    r.ttft_s = ttft;
    r.e2e_s = ttft + decode;
    run.keep(start, std::move(r));
  }
  run.result().notes.push_back(
      "rounds of one user share their prompts; lengths and times are kept, shared prefixes are "
      "not");
  run.finish(true);
}

}  // namespace medley
