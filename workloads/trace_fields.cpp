#include "workloads/trace_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "sim/core/error.h"

namespace medley {

namespace {
using F = TraceField;
using U = TimeUnit;

constexpr std::array<std::string_view, kTraceFields> kFieldNames = {
    "arrival",  "input_tokens", "output_tokens", "delay", "model",  "class",
    "tenant",   "priority",     "session",       "chat",  "parent", "follows",
    "hash_ids", "prefix_id",    "prefix_tokens", "nested"};

// More specific formats first: the first whose signature is complete wins.
constexpr TraceFormat kFormats[] = {
    {"azure-llm", "Azure LLM inference traces 2023, 2024, 2025", false, 0},
    {"burstgpt", "BurstGPT v1 to v3", false, 0},
    {"vidur", "Vidur processed traces", false, 0},
    {"splitwise-sim", "Splitwise-sim request traces", false, 0},
    {"bailian", "Qwen-Bailian usage traces (16-token prefix blocks)", true, 16},
    {"mooncake", "Mooncake / AIPerf / Dynamo JSON lines (512-token prefix blocks)", true, 512},
    {"ragpulse", "RAGPulse JSON lines (component ids, no prefix chain)", true, 0},
    {"apex", "APEX JSON lines (ns offsets)", true, 0},
    {"llmservingsim", "LLMServingSim JSON lines, flat or sessions with sub_requests", true, 16},
    {"aibrix", "AIBrix workload JSON lines: lists of requests per time", true, 0},
    {"native-csv", "medley's own CSV, and any other whose column names say field and unit", false,
     0},
    {"native-jsonl", "the same names as keys, one object a line", true, 0},
};

constexpr TraceAlias kAliases[] = {
    {"azure-llm", "TIMESTAMP", F::kArrival, U::kWallClock, true},
    {"azure-llm", "ContextTokens", F::kInput, U::kUnknown, true},
    {"azure-llm", "GeneratedTokens", F::kOutput, U::kUnknown, true},

    {"burstgpt", "Timestamp", F::kArrival, U::kS, true},
    {"burstgpt", "Request tokens", F::kInput, U::kUnknown, true},
    {"burstgpt", "Response tokens", F::kOutput, U::kUnknown, true},
    {"burstgpt", "Model", F::kModel},
    {"burstgpt", "Session ID", F::kSession},

    {"vidur", "arrived_at", F::kArrival, U::kS},
    {"vidur", "num_prefill_tokens", F::kInput, U::kUnknown, true},
    {"vidur", "num_decode_tokens", F::kOutput, U::kUnknown, true},

    {"splitwise-sim", "arrival_timestamp", F::kArrival, U::kS, true},
    {"splitwise-sim", "prompt_size", F::kInput, U::kUnknown, true},
    {"splitwise-sim", "token_size", F::kOutput, U::kUnknown, true},

    {"bailian", "timestamp", F::kArrival, U::kS},
    {"bailian", "chat_id", F::kChat, U::kUnknown, true},
    {"bailian", "parent_chat_id", F::kParentChat, U::kUnknown, true},
    {"bailian", "input_length", F::kInput, U::kUnknown, true},
    {"bailian", "output_length", F::kOutput, U::kUnknown, true},
    {"bailian", "hash_ids", F::kHashIds},

    {"mooncake", "timestamp", F::kArrival, U::kMs},
    {"mooncake", "input_length", F::kInput, U::kUnknown, true},
    {"mooncake", "output_length", F::kOutput},
    {"mooncake", "hash_ids", F::kHashIds},
    {"mooncake", "session_id", F::kSession},
    {"mooncake", "delay", F::kDelay, U::kMs},

    {"ragpulse", "timestamp", F::kArrival, U::kS},
    {"ragpulse", "input_length", F::kInput, U::kUnknown, true},
    {"ragpulse", "output_length", F::kOutput, U::kUnknown, true},
    {"ragpulse", "hash_ids", F::kHashIds},
    {"ragpulse", "session_id", F::kSession},

    {"apex", "StartTimeOffset", F::kArrival, U::kNs, true},
    {"apex", "ContextTokens", F::kInput, U::kUnknown, true},
    {"apex", "GeneratedTokens", F::kOutput, U::kUnknown, true},

    {"llmservingsim", "arrival_time_ns", F::kArrival, U::kNs, true},
    {"llmservingsim", "input_toks", F::kInput},
    {"llmservingsim", "output_toks", F::kOutput},
    {"llmservingsim", "session_id", F::kSession},
    {"llmservingsim", "sub_requests", F::kNested},
    {"llmservingsim", "tool_duration_ns", F::kDelay, U::kNs},

    {"aibrix", "timestamp", F::kArrival, U::kMs, true},
    {"aibrix", "requests", F::kNested, U::kUnknown, true},
    {"aibrix", "Prompt Length", F::kInput},
    {"aibrix", "prompt_length", F::kInput},
    {"aibrix", "Output Length", F::kOutput},
    {"aibrix", "output_length", F::kOutput},
    {"aibrix", "session_id", F::kSession},
};

// Names that say what they hold, in the words of many tools; the first one present wins.
constexpr TraceAlias kNative[] = {
    {"", "arrival_s", F::kArrival, U::kS},
    {"", "arrival_ms", F::kArrival, U::kMs},
    {"", "arrival_us", F::kArrival, U::kUs},
    {"", "arrival_ns", F::kArrival, U::kNs},
    {"", "arrival_time_s", F::kArrival, U::kS},
    {"", "arrival_time_ms", F::kArrival, U::kMs},
    {"", "arrival_time_us", F::kArrival, U::kUs},
    {"", "arrival_time_ns", F::kArrival, U::kNs},
    {"", "arrival_offset_ns", F::kArrival, U::kNs},
    {"", "timestamp_s", F::kArrival, U::kS},
    {"", "timestamp_ms", F::kArrival, U::kMs},
    {"", "timestamp_us", F::kArrival, U::kUs},
    {"", "timestamp_ns", F::kArrival, U::kNs},
    {"", "launch_time", F::kArrival, U::kS},
    {"", "timestamp", F::kArrival, U::kUnknown},
    {"", "arrival_time", F::kArrival, U::kUnknown},
    {"", "arrival", F::kArrival, U::kUnknown},
    {"", "input_tokens", F::kInput},
    {"", "prompt_tokens", F::kInput},
    {"", "context_tokens", F::kInput},
    {"", "input_length", F::kInput},
    {"", "input_len", F::kInput},
    {"", "input_toks", F::kInput},
    {"", "prompt_len", F::kInput},
    {"", "prompt_length", F::kInput},
    {"", "output_tokens", F::kOutput},
    {"", "completion_tokens", F::kOutput},
    {"", "generated_tokens", F::kOutput},
    {"", "generation_tokens", F::kOutput},
    {"", "output_length", F::kOutput},
    {"", "output_len", F::kOutput},
    {"", "output_toks", F::kOutput},
    {"", "delay_s", F::kDelay, U::kS},
    {"", "delay_ms", F::kDelay, U::kMs},
    {"", "model", F::kModel},
    {"", "class", F::kClass},
    {"", "slo_class", F::kClass},
    {"", "tenant", F::kTenant},
    {"", "priority", F::kPriority},
    {"", "session_id", F::kSession},
    {"", "follows", F::kFollows},
    {"", "hash_ids", F::kHashIds},
    {"", "prefix_id", F::kPrefixId},
    {"", "prefix_tokens", F::kPrefixTokens},
};

bool is_native(std::string_view format) {
  return format.starts_with("native-");
}

bool same_loosely(std::string_view a, std::string_view b) {
  a = trimmed(a);
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return std::tolower(static_cast<unsigned char>(x)) ==
                  std::tolower(static_cast<unsigned char>(y));
         });
}

/// Index of the column called `wanted`: exactly, else without case and outer blanks.
std::optional<std::size_t> find_column(const std::vector<std::string>& names,
                                       std::string_view wanted) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == wanted) return i;
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (same_loosely(names[i], wanted)) return i;
  }
  return std::nullopt;
}

std::vector<TraceAlias> aliases_of(std::string_view format) {
  std::vector<TraceAlias> out;
  if (is_native(format)) {
    out.assign(std::begin(kNative), std::end(kNative));
  } else {
    for (const TraceAlias& alias : kAliases) {
      if (alias.format == format) out.push_back(alias);
    }
  }
  return out;
}

bool signature_complete(std::string_view format, const std::vector<std::string>& names) {
  bool any = false;
  for (const TraceAlias& alias : aliases_of(format)) {
    if (!alias.sign) continue;
    any = true;
    if (!find_column(names, alias.column)) return false;
  }
  return any;
}

const TraceFormat* detect(const std::vector<std::string>& names, bool json_lines) {
  const TraceFormat* native = nullptr;
  for (const TraceFormat& format : kFormats) {
    if (format.json_lines != json_lines) continue;
    if (is_native(format.name)) native = &format;
    if (signature_complete(format.name, names)) return &format;
  }
  return native;
}
}  // namespace

std::string_view to_text(TraceField field) {
  return kFieldNames[index_of(field)];
}

std::optional<TraceField> parse_trace_field(std::string_view text) {
  for (const std::string& name : user_field_names()) {
    if (name != text) continue;
    for (std::size_t i = 0; i < kTraceFields; ++i) {
      if (kFieldNames[i] == text) return static_cast<TraceField>(i);
    }
  }
  return std::nullopt;
}

std::vector<std::string> user_field_names() {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kTraceFields; ++i) {
    if (static_cast<TraceField>(i) != TraceField::kNested) names.emplace_back(kFieldNames[i]);
  }
  return names;
}

std::span<const TraceAlias> trace_aliases() {
  return kAliases;
}

std::span<const TraceFormat> trace_formats() {
  return kFormats;
}

const TraceFormat* find_trace_format(std::string_view name) {
  for (const TraceFormat& format : kFormats) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

std::vector<std::string> trace_format_names() {
  std::vector<std::string> names = {"auto"};
  for (const TraceFormat& format : kFormats) names.emplace_back(format.name);
  return names;
}

bool ColumnMap::has(TraceField field) const {
  return std::any_of(columns.begin(), columns.end(),
                     [&](const Column& c) { return c.field == field; });
}

std::string ColumnMap::to_text() const {
  std::string out;
  for (const Column& column : columns) {
    if (!out.empty()) out += ", ";
    out += fmt::format("{} = `{}`", medley::to_text(column.field), column.name);
    if (column.field == TraceField::kArrival || column.field == TraceField::kDelay) {
      out += fmt::format(" [{}]", medley::to_text(column.unit));
    }
  }
  return out;
}

namespace {
class Mapper {
 public:
  Mapper(const std::vector<std::string>& names, bool json_lines, const std::string& file)
      : names_(names), json_lines_(json_lines), file_(file) {}

  ColumnMap map(std::string_view format, const std::vector<ColumnChoice>& choices) {
    out_.format = format == "auto" ? detect(names_, json_lines_) : find_trace_format(format);
    if (out_.format == nullptr) {
      throw InputError(file_, "", fmt::format("unknown trace format `{}`", format),
                       suggest(format, trace_format_names()));
    }
    if (out_.format->json_lines != json_lines_) {
      throw InputError(file_, "",
                       fmt::format("format {} is {}, but the file holds {}", out_.format->name,
                                   out_.format->json_lines ? "JSON lines" : "CSV",
                                   json_lines_ ? "JSON lines" : "CSV"));
    }
    for (const ColumnChoice& choice : choices) choose(choice);
    const std::vector<TraceAlias> aliases = aliases_of(out_.format->name);
    for (const TraceAlias& alias : aliases) {
      if (const auto at = find_column(names_, alias.column)) offer(alias, names_[*at]);
    }
    // A JSON key may first appear on a later line.
    std::array<bool, kTraceFields> open{};
    for (std::size_t f = 0; f < kTraceFields; ++f) open[f] = json_lines_ && !mapped_[f];
    for (const TraceAlias& alias : aliases) {
      if (open[index_of(alias.field)]) add(alias.column, alias.field, alias.unit);
    }
    for (const ColumnChoice& choice : choices) {
      for (ColumnMap::Column& column : out_.columns) {
        if (choice.unit && column.field == choice.field) column.unit = *choice.unit;
      }
    }
    return std::move(out_);
  }

 private:
  void choose(const ColumnChoice& choice) {
    if (choice.name.empty()) return;
    const auto at = find_column(names_, choice.name);
    if (!at && !json_lines_) {
      throw InputError(file_, "line 1", fmt::format("has no column `{}`", choice.name),
                       suggest(choice.name, names_));
    }
    TimeUnit unit = TimeUnit::kUnknown;
    for (const TraceAlias& alias : aliases_of(out_.format->name)) {
      const bool known = same_loosely(choice.name, alias.column) && alias.field == choice.field;
      if (known) unit = alias.unit;
    }
    mapped_[index_of(choice.field)] = true;
    add(at ? names_[*at] : choice.name, choice.field, unit);
  }

  void offer(const TraceAlias& alias, const std::string& name) {
    if (mapped_[index_of(alias.field)]) return;
    mapped_[index_of(alias.field)] = add(name, alias.field, alias.unit);
  }

  /// A column means one thing: what it was first taken for.
  bool add(std::string_view name, TraceField field, TimeUnit unit) {
    const auto same = [&](const ColumnMap::Column& c) { return c.name == name; };
    if (std::any_of(out_.columns.begin(), out_.columns.end(), same)) return false;
    out_.columns.push_back({std::string(name), field, unit});
    return true;
  }

  const std::vector<std::string>& names_;
  bool json_lines_;
  const std::string& file_;
  ColumnMap out_;
  std::array<bool, kTraceFields> mapped_{};
};

void require(const ColumnMap& map, TraceField field, const std::vector<std::string>& names,
             const std::string& file) {
  if (map.has(field)) return;
  std::vector<std::string> known;
  for (const TraceAlias& alias : kNative) {
    if (alias.field == field) known.emplace_back(alias.column);
  }
  std::string best;
  for (const std::string& name : names) {
    const bool used = std::any_of(map.columns.begin(), map.columns.end(),
                                  [&](const ColumnMap::Column& c) { return c.name == name; });
    if (!used && best.empty() && !nearest(name, known).empty()) best = name;
  }
  std::string hint = fmt::format(R"(say which: "columns": {{"{}": "<name>"}}; the file has: {})",
                                 to_text(field), fmt::join(names, ", "));
  if (!best.empty()) hint = fmt::format("did you mean `{}`? {}", best, hint);
  throw InputError(file, "line 1", fmt::format("has no column for {}", to_text(field)), hint);
}
}  // namespace

ColumnMap map_columns(const std::vector<std::string>& names, bool json_lines,
                      std::string_view format, const std::vector<ColumnChoice>& choices,
                      const std::string& file) {
  ColumnMap map = Mapper(names, json_lines, file).map(format, choices);
  require(map, TraceField::kInput, names, file);
  require(map, TraceField::kOutput, names, file);
  return map;
}

}  // namespace medley
