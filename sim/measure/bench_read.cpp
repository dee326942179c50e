#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "sim/core/text_file.h"
#include "sim/measure/bench_readers.h"

namespace medley {

namespace {
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct JsonFormat {
  const char* name;
  bool (*is)(const LooseObject&);
  void (*read)(const BenchObjects&, BenchFile&);
};

bool is_perf_json(const LooseObject& o) {
  const LooseObject records = o.has("records") ? o.object("records") : o;
  const Json* latency = records.find("request_latency");
  return latency != nullptr && latency->is_object() && latency->contains("avg");
}

/// In order of how sure they are.
constexpr JsonFormat kJson[] = {
    {"inference-perf",
     [](const LooseObject& o) { return o.has("load_summary") && o.has("successes"); },
     read_inference_perf},
    {"guidellm", [](const LooseObject& o) { return o.has("benchmarks"); }, read_guidellm},
    {"aiperf-records", [](const LooseObject& o) { return o.has("metadata") && o.has("metrics"); },
     read_aiperf_records},
    {"perf-json", is_perf_json, read_perf_json},
    {"llmperf-summary", [](const LooseObject& o) { return o.has("results_ttft_s_mean"); },
     read_llmperf_summary},
    {"llmperf-requests", [](const LooseObject& o) { return o.has("end_to_end_latency_s"); },
     read_llmperf_requests},
    {"engine-requests",
     [](const LooseObject& o) { return o.has("queued_ts") && o.has("first_token_ts"); },
     read_engine_requests},
    {"vllm-bench",
     [](const LooseObject& o) {
       return o.has("completed") && (o.has("duration") || o.has("request_throughput"));
     },
     read_bench_serving},
};

const JsonFormat* format_of(const LooseObject& o) {
  for (const JsonFormat& f : kJson) {
    if (f.is(o)) return &f;
  }
  return nullptr;
}

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const BenchFormat& f : bench_formats()) names.push_back(f.name);
  return names;
}

/// The objects of a JSON text: one value or several, lists of them taken apart.
class JsonText {
 public:
  JsonText(std::string_view text, const std::string& file, Problems& problems, BenchFile& out)
      : pieces_(split_json_values(text, file, problems)) {
    std::vector<std::string> repeated;
    for (const JsonPiece& piece : pieces_)
      values_.push_back(parse_piece(piece, file, problems, repeated));
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const std::string at = pieces_.size() > 1 ? fmt::format("line {} ", pieces_[i].line) : "";
      add(values_[i], file, at, problems);
    }
    if (!repeated.empty()) {
      out.account.notes.push_back(fmt::format("{} repeated key(s), the first of each kept: {}",
                                              repeated.size(), repeated.front()));
    }
  }
  const BenchObjects& objects() const { return objects_; }

 private:
  void add(const Json& value, const std::string& file, const std::string& at, Problems& problems) {
    if (value.is_object()) objects_.emplace_back(value, file, at, problems);
    for (std::size_t i = 0; value.is_array() && i < value.size(); ++i) {
      const std::string pointer = fmt::format("{}/{}", at, i);
      if (value[i].is_object()) {
        objects_.emplace_back(value[i], file, pointer, problems);
      } else {
        problems.add(file, pointer, "is no object");
      }
    }
  }
  std::vector<JsonPiece> pieces_;
  std::vector<Json> values_;
  BenchObjects objects_;
};

void read_json(std::string_view text, const std::string& wanted, BenchFile& out,
               Problems& problems) {
  const std::string& file = out.account.source;
  const JsonText json(text, file, problems, out);
  if (!problems.empty()) return;
  const JsonFormat* format = nullptr;
  for (const LooseObject& o : json.objects()) {
    const JsonFormat* f = format_of(o);
    if (wanted != "auto") {
      const auto* named = std::find_if(std::begin(kJson), std::end(kJson),
                                       [&](const JsonFormat& k) { return wanted == k.name; });
      f = named == std::end(kJson) ? nullptr : named;
    }
    if (f == nullptr) {
      problems.add(file, o.pointer(), "is the result of no load generator that is known here",
                   fmt::format("known: {}", fmt::join(format_names(), ", ")));
      return;
    }
    if (format != nullptr && f != format) {
      problems.add(
          file, o.pointer(),
          fmt::format("is of format {}, what stands before is of {}", f->name, format->name),
          "one format per file");
      return;
    }
    format = f;
  }
  if (format == nullptr) {
    problems.add(file, "", "holds no result");
    return;
  }
  out.format = format->name;
  format->read(json.objects(), out);
}

/// A CSV by its first line; false when it is of no known kind.
bool read_csv(std::string_view text, const std::string& wanted, BenchFile& out,
              Problems& problems) {
  const std::string_view first = text.substr(0, text.find('\n'));
  const auto is = [&](const char* name, bool fits) {
    return wanted == name || (wanted == "auto" && fits);
  };
  if (is("perf-csv", first.starts_with("Metric,"))) {
    out.format = "perf-csv";
    read_perf_csv(text, out, problems);
    return true;
  }
  if (is("multi-round-csv", first.find("generation_time") != std::string_view::npos &&
                                first.find("ttft") != std::string_view::npos)) {
    out.format = "multi-round-csv";
    read_multiround_csv(text, out, problems);
    return true;
  }
  return false;
}

/// What the inference-perf config beside a stage file says, of `key: value` lines: the served
/// model, and how many requests its workers keep in flight at most.
struct PerfConfig {
  std::string model;
  double workers = kNotTold, each = kNotTold;
};

PerfConfig config_beside(const fs::path& folder) {
  PerfConfig config;
  for (const fs::path& at : {folder / "config.yaml", folder.parent_path() / "config.yaml"}) {
    std::error_code ignored;
    if (!fs::is_regular_file(at, ignored)) continue;
    LineReader reader(at.string());
    std::string_view line;
    while (reader.next(line)) {
      const std::size_t colon = line.find(':');
      if (colon == std::string_view::npos) continue;
      std::string key(line.substr(0, colon)), value(line.substr(colon + 1));
      const auto idle = [](char c) { return c == ' ' || c == '"' || c == '\'' || c == '\r'; };
      std::erase_if(key, idle);
      std::erase_if(value, idle);
      if (key == "model_name") config.model = value;
      if (key == "num_workers") parse_bench_number(value, config.workers);
      if (key == "worker_max_concurrency") parse_bench_number(value, config.each);
    }
    return config;
  }
  return config;
}

void read_text(const std::string& path, const std::string& format, BenchFile& out) {
  Problems problems;
  const std::string text = read_file(path);
  std::string_view view = text;
  if (view.starts_with("\xef\xbb\xbf")) view.remove_prefix(3);
  const std::size_t start = view.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) throw InputError(path, "", "is empty");
  const std::size_t before = out.results.size();
  if (view[start] == '{' || view[start] == '[') {
    read_json(view, format, out, problems);
  } else if (!read_csv(view, format, out, problems)) {
    const bool yaml = path.ends_with(".yaml") || path.ends_with(".yml");
    problems.add(path, "",
                 yaml ? "is YAML, which is not read"
                      : "is the result of no load generator that is known here",
                 yaml ? "give the JSON that the load generator itself wrote"
                      : fmt::format("known: {}", fmt::join(format_names(), ", ")));
  }
  if (problems.empty()) {
    for (std::size_t i = before; i < out.results.size(); ++i)
      finish_result(out.results[i], problems);
  }
  problems.throw_if_any();
  if (out.format == "inference-perf") {
    const PerfConfig config = config_beside(fs::absolute(path).parent_path());
    const double slots = config.workers * config.each;
    for (std::size_t i = before; i < out.results.size(); ++i) {
      out.results[i].model = config.model;
      if (slots >= 1.0) out.results[i].concurrency = static_cast<std::int64_t>(slots);
    }
  }
}

/// stage_<n>_lifecycle_metrics.json, in order of n.
std::vector<std::pair<int, std::string>> stages_in(const std::string& folder) {
  std::vector<std::pair<int, std::string>> stages;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    int n = 0, end = 0;
    if (std::sscanf(name.c_str(), "stage_%d_lifecycle_metrics.json%n", &n, &end) == 1 &&
        static_cast<std::size_t>(end) == name.size()) {
      stages.emplace_back(n, (fs::path(folder) / name).string());
    }
  }
  std::sort(stages.begin(), stages.end());
  return stages;
}

BenchFile read_folder(const std::string& folder, const std::string& format) {
  const auto stages = stages_in(folder);
  if (stages.empty()) {
    throw InputError(folder, "", "holds no stage_<n>_lifecycle_metrics.json",
                     "a folder means the stages of inference-perf; name the file otherwise");
  }
  BenchFile all;
  Problems problems;
  for (const auto& [n, path] : stages) {
    all.account.source = path;
    try {
      read_text(path, format, all);
      all.results.back().label = fmt::format("stage {}", n);
    } catch (const InputError& error) {
      for (const Problem& p : error.problems()) problems.add(p);
    }
  }
  problems.throw_if_any();
  all.account.source = folder;
  return all;
}
}  // namespace

const std::vector<BenchFormat>& bench_formats() {
  static const std::vector<BenchFormat> formats = {
      {"vllm-bench", "vllm bench serve and SGLang bench_serving, JSON objects (details too)"},
      {"perf-csv", "genai-perf and AIPerf, CSV of several tables"},
      {"perf-json", "genai-perf and AIPerf, JSON aggregate"},
      {"aiperf-records", "AIPerf profile_export.jsonl, one request a line"},
      {"inference-perf", "stage_<n>_lifecycle_metrics.json, or the folder of them"},
      {"guidellm", "guidellm JSON report of version 2"},
      {"llmperf-summary", "llmperf summary JSON"},
      {"llmperf-requests", "llmperf individual responses JSON"},
      {"multi-round-csv", "AIBrix and production-stack multi-round QA, one request a row"},
      {"engine-requests",
       "requests.jsonl of the engine: queued_ts, first_token_ts, last_token_ts"}};
  return formats;
}

BenchFile read_bench(const std::string& path, const std::string& format) {
  const std::vector<std::string> names = format_names();
  if (format != "auto" && std::find(names.begin(), names.end(), format) == names.end()) {
    throw InputError("--as", "", fmt::format("unknown format \"{}\"", format),
                     suggest(format, names));
  }
  std::error_code ignored;
  BenchFile out;
  if (fs::is_directory(path, ignored)) {
    out = read_folder(path, format);
  } else {
    out.account.source = path;
    read_text(path, format, out);
  }
  out.account.format = out.format;
  return out;
}

}  // namespace medley
