#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/core/csv.h"
#include "sim/report/output_directory.h"
#include "sim/report/writers.h"

namespace medley {

namespace {
void append_us(std::string& out, std::int64_t ns) {
  constexpr std::int64_t kPerUs = 1000;
  append_number(out, ns / kPerUs);
  if (ns % kPerUs != 0) fmt::format_to(std::back_inserter(out), ".{:03}", ns % kPerUs);
}

std::string quoted(const std::string& text) {
  return nlohmann::ordered_json(text).dump();
}
}  // namespace

/// Chrome trace event format: one process per pool, one thread per replica, a slice per step (or
/// run of equal decode steps), counters per sample. ts and dur in microseconds.
void write_chrome_trace(const Analysis& a, const std::string& path) {
  FileSink sink(path, false);
  std::string& out = sink.buffer();
  out += "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  for (std::size_t p = 0; p < a.scenario().pools.size(); ++p) {
    if (p > 0) out += ",\n";
    fmt::format_to(std::back_inserter(out),
                   R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":{}}}}})", p,
                   quoted("pool " + a.scenario().pools[p].name));
    sink.flush_if_full();
  }
  for (const TraceSpan& s : a.result().spans) {
    const char* name = s.prompt_tokens == 0 ? "decode" : "prefill";
    fmt::format_to(std::back_inserter(out),
                   ",\n{{\"ph\":\"X\",\"name\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":", name, s.pool,
                   s.replica);
    append_us(out, s.start.ns());
    out += ",\"dur\":";
    append_us(out, s.end.ns() - s.start.ns());
    fmt::format_to(std::back_inserter(out),
                   R"(,"args":{{"sequences":{},"prompt_tokens":{},"steps":{}}}}})", s.sequences,
                   s.prompt_tokens, s.steps);
    sink.flush_if_full();
  }
  for (const PoolSample& s : a.result().samples) {
    fmt::format_to(std::back_inserter(out),
                   ",\n{{\"ph\":\"C\",\"name\":\"requests\",\"pid\":{},\"ts\":", s.pool);
    append_us(out, s.time.ns());
    fmt::format_to(std::back_inserter(out), R"(,"args":{{"running":{},"waiting":{}}}}})", s.running,
                   s.waiting);
    sink.flush_if_full();
  }
  out += "\n]}\n";
  sink.close();
}

}  // namespace medley
