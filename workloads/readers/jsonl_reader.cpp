#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/core/error.h"
#include "workloads/readers/flat_json.h"
#include "workloads/trace_reader.h"
#include "workloads/trace_rows.h"

namespace medley {

namespace {
using Json = nlohmann::ordered_json;

/// Any one JSON value as the text of a cell.
std::string cell_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? std::string() : value.dump();
}

std::string decode(std::string_view escaped) {
  const Json parsed = Json::parse('"' + std::string(escaped) + '"', nullptr, false);
  return parsed.is_string() ? parsed.get<std::string>() : std::string(escaped);
}

class JsonRows {
 public:
  JsonRows(const TraceFileSpec& spec, ColumnMap map)
      : map_(std::move(map)),
        sink_(spec, spec.hash_block_tokens != 0 ? spec.hash_block_tokens
                                                : map_.format->hash_block_tokens) {
    sink_.set_format(map_.format->name);
  }

  void take(std::string_view line, std::int64_t number) {
    number_ = number;
    if (!json_.scan(line) || (json_.odd() && !Json::accept(line))) {
      sink_.bad_row(number, "not a JSON object");
      return;
    }
    row_.clear();
    row_.line = number;
    nested_ = {};
    for (const FlatJson::Member& m : json_.members()) {
      if (!take_member(m)) return;
    }
    if (nested_.empty()) {
      sink_.take(row_);
    } else {
      expand();
    }
  }

  Trace finish() {
    sink_.note("columns: " + used_text());
    if (component_ids_) {
      sink_.note("hash_ids are lists by component, not a prefix chain: not used");
    }
    return sink_.finish();
  }

 private:
  const ColumnMap::Column* find(std::string_view key) {
    for (std::size_t i = 0; i < map_.columns.size(); ++i) {
      if (map_.columns[i].name != key) continue;
      if (used_.empty()) used_.assign(map_.columns.size(), false);
      used_[i] = true;
      return &map_.columns[i];
    }
    return nullptr;
  }

  bool take_member(const FlatJson::Member& m) {
    const ColumnMap::Column* column = find(m.key);
    if (column == nullptr || m.kind == FlatJson::Kind::kNull) return true;
    const TraceField field = column->field;
    if (!row_[field].empty() || (field == TraceField::kHashIds && row_.has_hash_ids)) {
      sink_.bad_row(number_,
                    fmt::format("two values for {}: second at `{}`", to_text(field), m.key));
      return false;
    }
    if (field == TraceField::kHashIds) return take_ids(m);
    if (field == TraceField::kNested) {
      nested_ = m.text;
      return true;
    }
    if (m.kind == FlatJson::Kind::kEscaped) {
      std::string& text = decoded_[index_of(field)];
      text = decode(m.text);
      row_.set(field, text, column->unit);
    } else {
      row_.set(field, trimmed(m.text), column->unit);
    }
    return true;
  }

  bool take_ids(const FlatJson::Member& m) {
    if (m.kind == FlatJson::Kind::kIds) {
      row_.hash_ids = std::span(json_.ids()).subspan(m.ids_begin, m.ids_end - m.ids_begin);
      row_.has_hash_ids = true;
      return true;
    }
    if (m.kind == FlatJson::Kind::kNested && m.text.starts_with('{')) {
      component_ids_ = true;
      return true;
    }
    sink_.bad_row(number_, "hash_ids are not a list of non-negative whole numbers");
    return false;
  }

  /// One request per element; what an element does not say comes from the line. In
  /// "sub_requests" each waits for the one before and for the tool call between them.
  void expand() {
    const Json list = Json::parse(nested_, nullptr, false);
    if (!list.is_array() || list.empty()) {
      sink_.bad_row(number_, "the list of requests is empty or no list");
      return;
    }
    const bool chain = map_.format->name == "llmservingsim";
    const RawRow outer = row_;
    std::string session(outer[TraceField::kSession]);
    if (chain && session.empty()) session = fmt::format("line {}", number_);
    std::string delay;
    for (std::size_t i = 0; i < list.size(); ++i) {
      row_ = outer;
      std::vector<std::string> texts;
      texts.reserve(list[i].size());
      std::string next_delay = "0";
      if (!list[i].is_object()) {
        sink_.bad_row(number_, "a request in the list is no object");
        continue;
      }
      for (const auto& [key, value] : list[i].items()) {
        const ColumnMap::Column* column = find(key);
        if (column == nullptr || column->field == TraceField::kNested) continue;
        texts.push_back(cell_text(value));
        if (chain && column->field == TraceField::kDelay) {
          next_delay = texts.back();
        } else {
          row_.set(column->field, texts.back(), column->unit);
        }
      }
      if (chain) {
        row_.set(TraceField::kSession, session);
        if (i > 0) {
          row_.set(TraceField::kArrival, "");
          row_.set(TraceField::kDelay, delay, TimeUnit::kNs);
        }
      }
      sink_.take(row_);
      delay = next_delay;
    }
  }

  std::string used_text() const {
    ColumnMap used;
    for (std::size_t i = 0; i < used_.size(); ++i) {
      if (used_[i]) used.columns.push_back(map_.columns[i]);
    }
    return used.to_text();
  }

  ColumnMap map_;
  RowSink sink_;
  FlatJson json_;
  RawRow row_;
  std::int64_t number_ = 0;
  std::string_view nested_;
  std::array<std::string, kTraceFields> decoded_;
  std::vector<bool> used_;
  bool component_ids_ = false;
};
}  // namespace

Trace read_json_lines_trace(const TraceFileSpec& spec, TraceLines& lines, std::string first) {
  const std::string where = fmt::format("line {}", lines.number());
  FlatJson json;
  if (!json.scan(first)) {
    throw InputError(spec.file, where, "not a JSON object",
                     "a request file holds one object a line");
  }
  std::vector<std::string> keys;
  bool component_ids = false;  // the only thing that tells RAGPulse from Mooncake
  for (const FlatJson::Member& m : json.members()) {
    keys.emplace_back(m.key);
    component_ids = component_ids || (m.key == "hash_ids" && m.text.starts_with('{'));
  }
  const std::string format = spec.format == "auto" && component_ids ? "ragpulse" : spec.format;
  JsonRows rows(spec, map_columns(keys, true, format, spec.columns, spec.file));
  rows.take(first, lines.number());
  std::string_view line;
  while (lines.next(line)) rows.take(line, lines.number());
  return rows.finish();
}

}  // namespace medley
