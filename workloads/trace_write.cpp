#include "workloads/trace_write.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "sim/core/csv.h"
#include "sim/core/text_file.h"
#include "workloads/trace_reader.h"

namespace medley {

namespace {
/// Nanoseconds as seconds: "12.5", no trailing zeros.
std::string seconds_text(std::int64_t ns) {
  std::string text = fmt::format("{}.{:09}", ns / 1'000'000'000, ns % 1'000'000'000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

class Writer {
 public:
  explicit Writer(const Trace& trace) : trace_(trace) {
    const auto varied = [](const std::vector<std::string>& names) {
      return names.size() > 1 || (names.size() == 1 && names[0] != "default");
    };
    models_ = varied(trace.models);
    classes_ = varied(trace.classes);
    tenants_ = varied(trace.tenants);
    for (const Request& r : trace.requests) {
      priorities_ = priorities_ || r.priority != 0;
      sessions_ = sessions_ || r.session != Request::kNone;
      ids_ = ids_ || r.hash_count > 0;
    }
    closed_ = !trace.follow_ups.empty();
    previous_.assign(trace.requests.size(), nullptr);
    for (const FollowUp& f : trace.follow_ups) previous_[f.next] = &f;
  }

  std::string run() {
    std::vector<std::string_view> header = {"arrival_s", "input_tokens", "output_tokens"};
    if (models_) header.push_back("model");
    if (classes_) header.push_back("class");
    if (tenants_) header.push_back("tenant");
    if (priorities_) header.push_back("priority");
    if (sessions_) header.push_back("session_id");
    if (closed_) header.insert(header.end(), {"follows", "delay_s"});
    if (ids_) header.push_back("hash_ids");
    std::string text;
    if (ids_) text = fmt::format("# hash_block_tokens = {}\n", trace_.hash_block_tokens);
    CsvWriter csv(header);
    for (std::size_t i = 0; i < trace_.requests.size(); ++i) row(csv, i);
    return text + csv.take();
  }

 private:
  void row(CsvWriter& csv, std::size_t i) {
    const Request& r = trace_.requests[i];
    if (previous_[i] == nullptr) {
      csv.field(seconds_text(r.arrival.ns()));
    } else {
      csv.blank();
    }
    csv.field(r.input_tokens).field(r.output_tokens);
    if (models_) csv.field(trace_.models[r.model]);
    if (classes_) csv.field(trace_.classes[r.slo_class]);
    if (tenants_) csv.field(trace_.tenants[r.tenant]);
    if (priorities_) csv.field(r.priority);
    if (sessions_) {
      csv.field(r.session == Request::kNone ? std::string_view() : trace_.sessions[r.session]);
    }
    if (closed_ && previous_[i] != nullptr) {
      csv.field(previous_[i]->previous);
      csv.field(seconds_text(std::llrint(previous_[i]->delay.value() * 1e9)));
    } else if (closed_) {
      csv.blank().blank();
    }
    if (ids_) {
      range_.clear();
      append_id_ranges(range_, trace_.hash_ids.data() + r.hash_begin, r.hash_count);
      csv.field(range_);
    }
    csv.end_row();
  }

  const Trace& trace_;
  bool models_ = false, classes_ = false, tenants_ = false, priorities_ = false;
  bool sessions_ = false, ids_ = false, closed_ = false;
  std::vector<const FollowUp*> previous_;
  std::string range_;
};
}  // namespace

std::string native_csv(const Trace& trace) {
  return Writer(trace).run();
}

void write_native_csv(const Trace& trace, const std::string& path) {
  const std::string text = native_csv(trace);
  if (path.ends_with(".gz")) {
    write_file_gzip(path, text);
  } else {
    write_file(path, text);
  }
}

}  // namespace medley
