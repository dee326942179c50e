#include "workloads/trace_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "sim/core/error.h"
#include "sim/core/text_file.h"
#include "workloads/trace_rows.h"

namespace medley {

namespace {
constexpr std::uint32_t kNone = Request::kNone;
constexpr std::int32_t kSessionBlock = 16;

class Linker {
 public:
  Linker(std::vector<LinkRow> rows, const TraceFileSpec& spec, Trace& trace, ImportAccount& account)
      : rows_(std::move(rows)), spec_(spec), trace_(trace), account_(account) {}

  void run() {
    choose_predecessors();
    order();
    rebase();
    emit();
    number_turns();
    if (spec_.session_input_is_new) accumulate();
  }

 private:
  bool chained(const LinkRow& row, bool has_earlier_turn) const {
    if (spec_.times_not_needed) return false;
    if (spec_.sessions == TraceFileSpec::Sessions::kClosed) {
      return row.follows >= 0 || has_earlier_turn || !row.has_time;
    }
    return !row.has_time;
  }

  void choose_predecessors() {
    previous_.assign(rows_.size(), kNone);
    keep_.assign(rows_.size(), true);
    std::vector<std::uint32_t> last_of_session(trace_.sessions.size(), kNone);
    for (std::uint32_t i = 0; i < rows_.size(); ++i) {
      LinkRow& row = rows_[i];
      std::uint32_t* last =
          row.request.session == kNone ? nullptr : &last_of_session[row.request.session];
      if (chained(row, last != nullptr && *last != kNone)) {
        previous_[i] = row.follows >= 0 ? find_row(row.follows) : last != nullptr ? *last : kNone;
        if (previous_[i] == kNone && !row.has_time) {
          keep_[i] = false;
          count(account_.dropped, "follows a request that is not there");
          continue;
        }
        if (previous_[i] != kNone && !row.has_delay) count(account_.adjusted, "no delay: 0");
      }
      if (last != nullptr) *last = i;
    }
  }

  /// Rows are in file order, so their numbers ascend.
  std::uint32_t find_row(std::int64_t number) const {
    const auto it = std::lower_bound(
        rows_.begin(), rows_.end(), number,
        [](const LinkRow& r, std::int64_t n) { return std::int64_t{r.request.row} < n; });
    if (it == rows_.end() || it->request.row != number) return kNone;
    const auto at = static_cast<std::uint32_t>(it - rows_.begin());
    return keep_[at] ? at : kNone;
  }

  void order() {
    for (std::uint32_t i = 0; i < rows_.size(); ++i) {
      if (keep_[i]) (previous_[i] == kNone ? open_ : closed_).push_back(i);
    }
    const auto earlier = [&](std::uint32_t a, std::uint32_t b) {
      return rows_[a].time_ns < rows_[b].time_ns;
    };
    if (std::is_sorted(open_.begin(), open_.end(), earlier)) return;
    std::stable_sort(open_.begin(), open_.end(), earlier);
    account_.notes.push_back("rows were not in order of time: sorted by (time, row)");
  }

  void rebase() {
    if (open_.empty()) return;
    const std::int64_t first = rows_[open_.front()].time_ns;
    if (spec_.origin == TraceFileSpec::Origin::kZero) {
      if (first >= 0) return;
      throw InputError(spec_.file, fmt::format("line {}", rows_[open_.front()].line),
                       "has a time before 0", R"(set "time_origin": "first")");
    }
    for (const std::uint32_t i : open_) {
      std::int64_t& t = rows_[i].time_ns;
      if (__builtin_sub_overflow(t, first, &t)) {
        throw InputError(spec_.file, fmt::format("line {}", rows_[i].line),
                         "is more than 292 years after the first request");
      }
    }
    if (first != 0) {
      account_.notes.push_back(fmt::format("time 0 is the first request's, {}.{:09} s in the file",
                                           first / kSecond, std::abs(first % kSecond)));
    }
  }

  void emit() {
    std::vector<std::uint32_t> place(rows_.size(), kNone);
    trace_.requests.reserve(open_.size() + closed_.size());
    for (const auto* list : {&open_, &closed_}) {
      for (const std::uint32_t i : *list) {
        place[i] = static_cast<std::uint32_t>(trace_.requests.size());
        Request r = rows_[i].request;
        r.arrival = list == &open_ ? SimTime::from_ns(rows_[i].time_ns) : SimTime::max();
        trace_.requests.push_back(r);
      }
    }
    for (const std::uint32_t i : closed_) {
      const Seconds delay(static_cast<double>(rows_[i].delay_ns) * 1e-9);
      trace_.follow_ups.push_back({place[previous_[i]], place[i], delay});
    }
    std::stable_sort(trace_.follow_ups.begin(), trace_.follow_ups.end(),
                     [](const FollowUp& a, const FollowUp& b) { return a.previous < b.previous; });
  }

  void number_turns() {
    std::vector<std::uint32_t> turns(trace_.sessions.size(), 0);
    for (Request& r : trace_.requests) {
      if (r.session == kNone) continue;
      r.turn = static_cast<std::uint16_t>(std::min<std::uint32_t>(turns[r.session]++, UINT16_MAX));
    }
  }

  void accumulate() {
    if (trace_.hash_block_tokens != 0) {
      throw InputError(spec_.file, "",
                       R"("session_input": "new" and hash_ids contradict each other)",
                       R"(set "prefix_ids": "ignore" or "session_input": "full")");
    }
    std::vector<std::int64_t> context(trace_.sessions.size(), 0);
    for (Request& r : trace_.requests) {
      if (r.session == kNone) continue;
      std::int64_t& before = context[r.session];
      const std::int64_t whole = before + r.input_tokens;
      before = whole + r.output_tokens;
      if (before > INT32_MAX) {
        throw InputError(
            spec_.file, "",
            fmt::format("session `{}` grows past 2^31 tokens", trace_.sessions[r.session]));
      }
      r.input_tokens = static_cast<std::int32_t>(whole);
    }
    const std::int32_t block =
        spec_.hash_block_tokens != 0 ? spec_.hash_block_tokens : kSessionBlock;
    if (spec_.use_prefix_ids) make_session_ids(trace_, block);
  }

  static constexpr std::int64_t kSecond = 1'000'000'000;
  std::vector<LinkRow> rows_;
  const TraceFileSpec& spec_;
  Trace& trace_;
  ImportAccount& account_;
  std::vector<std::uint32_t> previous_;
  std::vector<bool> keep_;
  std::vector<std::uint32_t> open_, closed_;
};
}  // namespace

void link_rows(std::vector<LinkRow> rows, const TraceFileSpec& spec, Trace& trace,
               ImportAccount& account) {
  Linker(std::move(rows), spec, trace, account).run();
}

std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

std::uint64_t derived_id(std::uint64_t id, std::uint64_t salt) {
  return mix64(id ^ mix64(salt));
}

std::uint64_t prefix_group_id(std::string_view group, std::size_t index) {
  return derived_id(index, fnv1a(group));
}

void make_session_ids(Trace& trace, std::int32_t block) {
  const auto blocks = [&](std::int64_t tokens) {
    return static_cast<std::uint32_t>((tokens + block - 1) / block);
  };
  std::vector<std::uint32_t> longest(trace.sessions.size(), 0);
  for (const Request& r : trace.requests) {
    if (r.session == kNone) continue;
    longest[r.session] = std::max(longest[r.session], blocks(r.input_tokens));
  }
  std::vector<std::uint32_t> begin(trace.sessions.size(), 0);
  for (std::size_t s = 0; s < longest.size(); ++s) {
    if (trace.hash_ids.size() + longest[s] > UINT32_MAX) {
      throw InputError("", "", "prefix ids of all sessions exceed 4,294,967,295",
                       R"(set a larger "hash_block_tokens")");
    }
    begin[s] = static_cast<std::uint32_t>(trace.hash_ids.size());
    for (std::uint32_t i = 0; i < longest[s]; ++i) {
      trace.hash_ids.push_back(trace.hash_ids.size());
    }
  }
  for (Request& r : trace.requests) {
    if (r.session == kNone) continue;
    r.hash_begin = begin[r.session];
    r.hash_count = blocks(r.input_tokens);
  }
  trace.hash_block_tokens = block;
}

}  // namespace medley
