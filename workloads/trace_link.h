#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "workloads/request.h"
#include "workloads/workload_spec.h"

namespace medley {

/// A kept record with its timing as the file gave it.
struct LinkRow {
  Request request;
  std::int64_t line = 0;
  bool has_time = false;
  bool has_delay = false;
  std::int64_t time_ns = 0;
  std::int64_t delay_ns = 0;
  std::int64_t follows = -1;  ///< row number of the predecessor, -1: none named
};

/// Fills `trace.requests` and `trace.follow_ups` from rows in file order: decides what arrives on
/// the clock and what follows what (session order or `follows`), sorts stably by (time, row), moves
/// the first arrival to time 0, numbers the turns and, where asked, accumulates prompts.
void link_rows(std::vector<LinkRow> rows, const TraceFileSpec& spec, Trace& trace,
               ImportAccount& account);

/// Identity of block `index` of the prefix that a trace calls `group`.
std::uint64_t prefix_group_id(std::string_view group, std::size_t index);

/// A bijective mix of 64 bits (splitmix64's finaliser) and ids derived with it.
std::uint64_t mix64(std::uint64_t x);
std::uint64_t derived_id(std::uint64_t id, std::uint64_t salt);

/// Gives every session one stream of ids that all its turns share: turn t covers the first
/// ceil(input_t / block) of them, so each prompt starts with the one before and its output.
/// `requests` must hold the turns of a session in order, and the trace no ids yet.
void make_session_ids(Trace& trace, std::int32_t block);

}  // namespace medley
