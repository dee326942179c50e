#pragma once

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include <doctest/doctest.h>
#include "sim/core/error.h"
#include "sim/core/json_reader.h"
#include "tests/support/scratch_directory.h"
#include "workloads/trace_reader.h"
#include "workloads/workload_spec.h"

namespace medley {

/// Reads `text` as a request file; `change` edits the spec first.
inline Trace read_text(
    const std::string& text, const std::function<void(TraceFileSpec&)>& change = [](auto&) {},
    const std::string& name = "trace.txt") {
  const ScratchDirectory dir;
  TraceFileSpec spec;
  spec.file = name;
  spec.path = dir.write(name, text);
  change(spec);
  return read_trace(spec);
}

/// The text of the InputError that `f` throws; "" when it throws none.
inline std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

inline std::string read_error(
    const std::string& text, const std::function<void(TraceFileSpec&)>& change = [](auto&) {}) {
  return error_of([&] { read_text(text, change); });
}

inline WorkloadSpec workload_of(const std::string& json, const std::string& dir = ".") {
  const nlohmann::ordered_json node = parse_json(json, "test.json");
  Problems problems;
  ObjectReader reader(node, "test.json", "", problems);
  WorkloadSpec spec = load_workload(reader, {dir});
  problems.throw_if_any();
  return spec;
}

inline Trace trace_of(const std::string& json, std::uint64_t seed = 1,
                      const std::string& dir = ".") {
  return build_trace(workload_of(json, dir), seed);
}

/// The promises of workloads/request.h.
inline void check_trace(const Trace& t) {
  std::vector<bool> is_next(t.requests.size(), false);
  for (std::size_t i = 0; i < t.follow_ups.size(); ++i) {
    const FollowUp& f = t.follow_ups[i];
    REQUIRE(f.previous < f.next);
    REQUIRE(f.next < t.requests.size());
    REQUIRE_FALSE(is_next[f.next]);
    REQUIRE(f.delay.value() >= 0.0);
    if (i > 0) REQUIRE(t.follow_ups[i - 1].previous <= f.previous);
    is_next[f.next] = true;
  }
  for (std::size_t i = 0; i < t.requests.size(); ++i) {
    const Request& r = t.requests[i];
    REQUIRE(r.input_tokens >= 1);
    REQUIRE(r.output_tokens >= 1);
    REQUIRE((r.arrival == SimTime::max()) == is_next[i]);
    REQUIRE(r.arrival.ns() >= 0);
    if (i > 0) {
      const Request& b = t.requests[i - 1];
      REQUIRE((b.arrival < r.arrival || (b.arrival == r.arrival && b.row < r.row)));
    }
    REQUIRE(r.model < t.models.size());
    REQUIRE(r.slo_class < t.classes.size());
    REQUIRE(r.tenant < t.tenants.size());
    if (r.session != Request::kNone) REQUIRE(r.session < t.sessions.size());
    REQUIRE(std::size_t{r.hash_begin} + r.hash_count <= t.hash_ids.size());
    if (r.hash_count > 0) {
      REQUIRE(t.hash_block_tokens > 0);
      REQUIRE(std::int64_t{r.hash_count} <=
              (std::int64_t{r.input_tokens} + t.hash_block_tokens - 1) / t.hash_block_tokens);
    }
  }
  for (const ImportAccount& a : t.accounts) {
    std::int64_t dropped = 0;
    for (const auto& [reason, rows] : a.dropped) dropped += rows;
    REQUIRE(a.rows_read == a.kept + dropped);
  }
}

/// Folder of the shared data, or "" (with a message) where it is not at hand.
inline std::string shared_traces() {
  const char* given = std::getenv("MEDLEY_SHARED_DATA");
  const std::filesystem::path root =
      given != nullptr ? given
                       : std::filesystem::path(MEDLEY_SOURCE_DIR) / ".." / "shared" / "data";
  std::error_code ignored;
  if (std::filesystem::is_directory(root / "traces", ignored)) return (root / "traces").string();
  MESSAGE("skipped: no shared data (set MEDLEY_SHARED_DATA)");
  return "";
}

}  // namespace medley
