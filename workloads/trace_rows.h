#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/request.h"
#include "workloads/trace_fields.h"
#include "workloads/workload_spec.h"

namespace medley {

/// One record as text, before anything is believed about it.
struct RawRow {
  std::array<std::string_view, kTraceFields> cell{};  ///< blank: absent
  std::array<TimeUnit, kTraceFields> unit{};          ///< of kArrival and kDelay
  std::span<const std::uint64_t> hash_ids;
  bool has_hash_ids = false;
  std::int64_t line = 0;

  std::string_view operator[](TraceField f) const { return cell[index_of(f)]; }
  void set(TraceField f, std::string_view text, TimeUnit u = TimeUnit::kUnknown) {
    cell[index_of(f)] = text;
    unit[index_of(f)] = u;
  }
  void clear();
};

/// Turns records into a Trace under the policies of a TraceFileSpec and keeps the account:
/// rows read = kept + dropped by reason. Bad rows are collected (the first 10 are told) and thrown
/// together at the end, or dropped, as `on_bad_row` says.
class RowSink {
 public:
  RowSink(const TraceFileSpec& spec, std::int32_t hash_block_tokens);
  ~RowSink();
  RowSink(RowSink&&) noexcept;
  RowSink& operator=(RowSink&&) noexcept;

  void take(const RawRow& row);
  /// A record that could not even be split into fields.
  void bad_row(std::int64_t line, std::string message, std::string hint = "");
  void note(std::string text);
  void set_format(std::string_view name);
  /// Sorts, rebases and links. Throws InputError for collected problems or an empty trace.
  Trace finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// What to do about a file without times.
constexpr std::string_view kOwnArrivals =
    R"(a source can bring its own: "arrivals": {"process": "poisson", "rate": "5 req/s"})";

/// Adds `n` to the entry called `reason`, which is made when missing.
void count(std::vector<std::pair<std::string, std::int64_t>>& entries, std::string_view reason,
           std::int64_t n = 1);

}  // namespace medley
