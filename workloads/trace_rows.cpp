#include "workloads/trace_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <unordered_map>

#include "sim/core/error.h"
#include "workloads/name_table.h"
#include "workloads/trace_link.h"

namespace medley {

namespace {
constexpr std::size_t kMostProblems = 10;
constexpr std::int64_t kMostTokens = INT32_MAX;
constexpr std::int32_t kNativePrefixBlock = 16;  // of prefix_id columns: vLLM's default block

/// "1536 tokens need 3 ids of 512": the user's block size is wrong, or the row is.
std::string block_hint(std::int64_t input, std::size_t ids) {
  for (const std::int64_t block : {16, 32, 64, 128, 256, 512, 1024, 2048}) {
    if ((input + block - 1) / block == static_cast<std::int64_t>(ids)) {
      return fmt::format(R"(one id per {0} tokens would fit: set "hash_block_tokens": {0}, or )"
                         R"("prefix_ids": "ignore")",
                         block);
    }
  }
  return R"(set "hash_block_tokens", or "prefix_ids": "ignore" to read without them)";
}

struct Fault {
  std::string message;
  std::string hint;
};

std::string fault_text(TextFault fault) {
  switch (fault) {
    case TextFault::kSyntax:
      return "is not a number";
    case TextFault::kOverflow:
      return "is too large";
    case TextFault::kNegative:
      return "is negative";
    case TextFault::kFraction:
      return "is not a whole number";
    case TextFault::kNone:
      break;
  }
  return "";
}
}  // namespace

void count(std::vector<std::pair<std::string, std::int64_t>>& entries, std::string_view reason,
           std::int64_t n) {
  if (n == 0) return;
  for (auto& [name, rows] : entries) {
    if (name == reason) {
      rows += n;
      return;
    }
  }
  entries.emplace_back(reason, n);
}

void RawRow::clear() {
  cell.fill({});
  hash_ids = {};
  has_hash_ids = false;
}

struct RowSink::Impl {
  const TraceFileSpec& spec;
  std::int32_t block;
  std::vector<LinkRow> rows;
  std::vector<std::uint64_t> ids;
  NameTable models, classes, tenants, sessions;
  std::unordered_map<std::string, std::uint32_t> session_of_chat;
  ImportAccount account;
  std::vector<Problem> problems;
  std::int64_t bad = 0;
  bool any_ids = false;

  Impl(const TraceFileSpec& s, std::int32_t b) : spec(s), block(b) {
    account.source = s.file;
    // Address space for a guess; only what is used becomes memory. Growing by doubling would move
    // and fault in every page twice, a third of the time of reading a small trace.
    constexpr std::uintmax_t kMost = std::uintmax_t{1} << 26;
    std::error_code failed;
    const std::uintmax_t bytes = std::min(kMost, std::filesystem::file_size(s.path, failed));
    if (failed) return;
    rows.reserve(bytes / 32);
    ids.reserve(bytes / 8);
  }

  void reject(std::int64_t line, Fault fault, std::string_view reason) {
    ++bad;
    if (spec.on_bad_row == TraceFileSpec::BadRow::kDrop) {
      count(account.dropped, reason);
    } else if (problems.size() < kMostProblems) {
      problems.push_back({spec.file, fmt::format("line {}", line), std::move(fault.message),
                          std::move(fault.hint)});
    }
  }

  /// Tokens of one side, or nothing when the row went (and was counted).
  std::optional<std::int32_t> tokens(const RawRow& row, TraceField field,
                                     TraceFileSpec::Zero zero) {
    const std::string_view text = row[field];
    const std::string_view name = to_text(field);
    if (text.empty()) {
      reject(row.line, {fmt::format("no {}", name), ""}, fmt::format("no {}", name));
      return std::nullopt;
    }
    ParsedCount n = parse_count(text);
    if (n.fault == TextFault::kNone && n.value > kMostTokens) n.fault = TextFault::kOverflow;
    if (n.fault != TextFault::kNone) {
      const std::string what = fault_text(n.fault);
      const std::string hint = n.fault == TextFault::kNegative
                                   ? R"(rows of failed requests: set "on_bad_row": "drop")"
                                   : "";
      reject(row.line, {fmt::format("{} `{}` {}", name, text, what), hint},
             fmt::format("{} {}", name, what));
      return std::nullopt;
    }
    if (n.value > 0) return static_cast<std::int32_t>(n.value);
    return zero_tokens(row, name, zero);
  }

  std::optional<std::int32_t> zero_tokens(const RawRow& row, std::string_view name,
                                          TraceFileSpec::Zero zero) {
    const std::string reason = fmt::format("{} is 0", name);
    if (zero == TraceFileSpec::Zero::kClamp) {
      count(account.adjusted, fmt::format("{} 0 -> 1", name));
      return 1;
    }
    if (zero == TraceFileSpec::Zero::kDrop) {
      count(account.dropped, reason);
      return std::nullopt;
    }
    reject(row.line,
           {reason,
            fmt::format(R"(set "zero_{}": "drop" or "clamp")", name.substr(0, name.find('_')))},
           reason);
    return std::nullopt;
  }

  bool time_of(const RawRow& row, LinkRow& out) {
    const std::string_view text = row[TraceField::kArrival];
    if (text.empty() || spec.times_not_needed) return true;
    const TimeUnit unit = row.unit[index_of(TraceField::kArrival)];
    const ParsedNs t = parse_time(text, unit);
    out.has_time = true;
    out.time_ns = t.ns;
    if (t.fault == TextFault::kNone) return true;
    Fault fault{fmt::format("arrival `{}` {}", text, fault_text(t.fault)), ""};
    if (t.fault == TextFault::kSyntax && unit == TimeUnit::kUnknown &&
        parse_decimal_ns(text, TimeUnit::kS).fault == TextFault::kNone) {
      throw InputError(spec.file, fmt::format("line {}", row.line),
                       fmt::format("arrival `{}` has no unit that we know", text),
                       R"(say it: "columns": {"arrival": {"unit": "s"}} (ns, us, ms, s, wall))");
    }
    if (t.fault == TextFault::kSyntax && unit == TimeUnit::kWallClock) {
      fault.message = fmt::format("arrival `{}` is not a date and time", text);
      fault.hint = "like 2024-05-12 00:00:00.001163+00:00";
    } else if (t.fault == TextFault::kSyntax && text.find(':') != std::string_view::npos) {
      fault.hint = R"(a date? "columns": {"arrival": {"unit": "wall"}})";
    }
    reject(row.line, std::move(fault), fmt::format("arrival {}", fault_text(t.fault)));
    return false;
  }

  bool delay_of(const RawRow& row, LinkRow& out) {
    const std::string_view text = row[TraceField::kDelay];
    if (text.empty()) return true;
    ParsedNs t = parse_decimal_ns(text, row.unit[index_of(TraceField::kDelay)]);
    if (t.fault == TextFault::kNone && t.ns < 0) t.fault = TextFault::kNegative;
    out.has_delay = true;
    out.delay_ns = t.ns;
    if (t.fault == TextFault::kNone) return true;
    reject(row.line, {fmt::format("delay `{}` {}", text, fault_text(t.fault)), ""},
           fmt::format("delay {}", fault_text(t.fault)));
    return false;
  }

  std::uint16_t name_of(const RawRow& row, TraceField field, NameTable& names) {
    const std::string_view text = row[field];
    if (const auto id = names.id(text.empty() ? "default" : text, UINT16_MAX)) {
      return static_cast<std::uint16_t>(*id);
    }
    throw InputError(spec.file, fmt::format("line {}", row.line),
                     fmt::format("more than 65,536 different values for {}", to_text(field)),
                     "is this the right column?");
  }

  bool small_of(const RawRow& row, TraceField field, std::int64_t low, std::int64_t high,
                std::int64_t& out) {
    const std::string_view text = row[field];
    if (text.empty()) return true;
    const ParsedCount n = parse_count(text);
    const bool fine = n.fault == TextFault::kNone || n.fault == TextFault::kNegative;
    out = n.value;
    if (fine && n.value >= low && n.value <= high) return true;
    reject(row.line,
           {fmt::format("{} `{}` is not a whole number from {} to {}", to_text(field), text, low,
                        high),
            ""},
           fmt::format("bad {}", to_text(field)));
    return false;
  }

  std::uint32_t session_named(std::string_view name) {
    const auto id = sessions.id(name, UINT32_MAX - 1);
    MEDLEY_CHECK(id.has_value(), "more sessions than rows");
    return *id;
  }

  void session_of(const RawRow& row, Request& out) {
    if (!row[TraceField::kSession].empty()) {
      out.session = session_named(row[TraceField::kSession]);
      return;
    }
    const std::string_view chat = row[TraceField::kChat];
    if (chat.empty()) return;
    const std::string_view parent = row[TraceField::kParentChat];
    const auto known = session_of_chat.find(std::string(parent));
    out.session = known != session_of_chat.end() ? known->second : session_named(chat);
    session_of_chat[std::string(chat)] = out.session;
  }

  void ids_of(const RawRow& row, Request& out) {
    if (!spec.use_prefix_ids || !row.has_hash_ids) return;
    if (block == 0) {
      throw InputError(spec.file, fmt::format("line {}", row.line),
                       "has hash_ids, but tokens per id are not known",
                       block_hint(out.input_tokens, row.hash_ids.size()));
    }
    const std::size_t full = static_cast<std::size_t>(out.input_tokens / block);
    const std::size_t all = full + (out.input_tokens % block != 0 ? 1 : 0);
    // Our own files state their block size and may cover a part of the prompt; in others a wrong
    // block size would silently change what is shared.
    const bool partial_allowed =
        account.format.starts_with("native-") && row.hash_ids.size() <= all;
    if (row.hash_ids.size() != all && row.hash_ids.size() != full && !partial_allowed) {
      throw InputError(spec.file, fmt::format("line {}", row.line),
                       fmt::format("{} hash_ids for {} input tokens: {} tokens per id would be {}",
                                   row.hash_ids.size(), out.input_tokens, block, all),
                       block_hint(out.input_tokens, row.hash_ids.size()));
    }
    append_ids(row.hash_ids, out);
  }

  void append_ids(std::span<const std::uint64_t> from, Request& out) {
    if (ids.size() + from.size() > UINT32_MAX) {
      throw InputError(spec.file, "", "holds more than 4,294,967,295 prefix ids",
                       R"(set "prefix_ids": "ignore" or take a slice)");
    }
    out.hash_begin = static_cast<std::uint32_t>(ids.size());
    out.hash_count = static_cast<std::uint32_t>(from.size());
    ids.insert(ids.end(), from.begin(), from.end());
    any_ids = any_ids || !from.empty();
  }

  /// prefix_id names a group; ids of its blocks are made from the name, whole blocks only.
  bool prefix_of(const RawRow& row, Request& out) {
    const std::string_view group = row[TraceField::kPrefixId];
    if (group.empty() || !spec.use_prefix_ids || row.has_hash_ids) return true;
    if (block == 0) block = kNativePrefixBlock;
    std::int64_t shared = 0;
    if (!small_of(row, TraceField::kPrefixTokens, 0, out.input_tokens, shared)) return false;
    std::vector<std::uint64_t> made(static_cast<std::size_t>(shared / block));
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = prefix_group_id(group, i);
    append_ids(made, out);
    return true;
  }

  void take(const RawRow& row) {
    LinkRow out;
    out.request.row = static_cast<std::uint32_t>(account.rows_read);
    if (++account.rows_read > UINT32_MAX) {
      throw InputError(spec.file, "", "has more than 4,294,967,295 rows");
    }
    const auto input = tokens(row, TraceField::kInput, spec.zero_input);
    if (!input) return;
    const auto output = tokens(row, TraceField::kOutput, spec.zero_output);
    if (!output) return;
    out.request.input_tokens = *input;
    out.request.output_tokens = *output;
    out.line = row.line;
    std::int64_t priority = 0;
    std::int64_t follows = -1;
    if (!time_of(row, out) || !delay_of(row, out) ||
        !small_of(row, TraceField::kPriority, INT16_MIN, INT16_MAX, priority) ||
        !small_of(row, TraceField::kFollows, 0, out.request.row - std::int64_t{1}, follows)) {
      return;
    }
    out.request.priority = static_cast<std::int16_t>(priority);
    out.follows = follows;
    if (!check_timing(row, out) || !prefix_of(row, out.request)) return;
    out.request.model = name_of(row, TraceField::kModel, models);
    out.request.slo_class = name_of(row, TraceField::kClass, classes);
    out.request.tenant = name_of(row, TraceField::kTenant, tenants);
    session_of(row, out.request);
    ids_of(row, out.request);
    rows.push_back(out);
  }

  bool check_timing(const RawRow& row, LinkRow& out) {
    if (spec.times_not_needed) {
      out.has_time = true;
      out.time_ns = 0;
      out.has_delay = false;
      return true;
    }
    const bool in_session = !row[TraceField::kSession].empty() || !row[TraceField::kChat].empty();
    const bool chained = out.follows >= 0 || (in_session && out.has_delay);
    if (out.has_time || (chained && spec.sessions != TraceFileSpec::Sessions::kOpen) ||
        (in_session && spec.sessions == TraceFileSpec::Sessions::kClosed)) {
      return true;
    }
    reject(row.line, {"no arrival time", std::string(kOwnArrivals)}, "no arrival time");
    return false;
  }
};

RowSink::RowSink(const TraceFileSpec& spec, std::int32_t hash_block_tokens)
    : impl_(std::make_unique<Impl>(spec, hash_block_tokens)) {}
RowSink::~RowSink() = default;
RowSink::RowSink(RowSink&&) noexcept = default;
RowSink& RowSink::operator=(RowSink&&) noexcept = default;

void RowSink::take(const RawRow& row) {
  impl_->take(row);
}

void RowSink::bad_row(std::int64_t line, std::string message, std::string hint) {
  ++impl_->account.rows_read;
  const std::string reason = message.substr(0, message.find(':'));
  impl_->reject(line, {std::move(message), std::move(hint)}, reason);
}

void RowSink::note(std::string text) {
  impl_->account.notes.push_back(std::move(text));
}

void RowSink::set_format(std::string_view name) {
  impl_->account.format = name;
}

Trace RowSink::finish() {
  Impl& s = *impl_;
  if (!s.problems.empty()) {
    if (s.bad > static_cast<std::int64_t>(s.problems.size())) {
      s.problems.push_back({s.spec.file, "", fmt::format("{} bad rows in all", s.bad),
                            R"(set "on_bad_row": "drop" to go on without them)"});
    }
    throw InputError(std::move(s.problems));
  }
  Trace trace;
  trace.hash_ids = std::move(s.ids);
  trace.hash_block_tokens = s.any_ids ? s.block : 0;
  trace.sessions = s.sessions.take();
  trace.models = s.models.take();
  trace.classes = s.classes.take();
  trace.tenants = s.tenants.take();
  link_rows(std::move(s.rows), s.spec, trace, s.account);
  if (trace.requests.empty()) {
    std::string why = fmt::format("no usable request in {} rows", s.account.rows_read);
    for (const auto& [reason, rows] : s.account.dropped) {
      why += fmt::format("; {} dropped: {}", rows, reason);
    }
    throw InputError(s.spec.file, "", why);
  }
  s.account.kept = static_cast<std::int64_t>(trace.requests.size());
  trace.accounts.push_back(std::move(s.account));
  return trace;
}

}  // namespace medley
