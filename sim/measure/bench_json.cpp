#include "sim/measure/bench_json.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/core/json_reader.h"

namespace medley {

namespace {
using Json = nlohmann::ordered_json;

bool blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/// Walks a text value by value.
class Splitter {
 public:
  Splitter(std::string_view text, const std::string& file, Problems& problems)
      : text_(text), file_(file), problems_(problems) {}

  std::vector<JsonPiece> run() {
    std::vector<JsonPiece> pieces;
    while (true) {
      while (at_ < text_.size() && (blank(text_[at_]) || text_[at_] == ',')) step();
      if (at_ == text_.size()) return pieces;
      if (text_[at_] != '{' && text_[at_] != '[') {
        problems_.add(file_, fmt::format("line {}", line_), "is no JSON object or list",
                      "one object after another");
        return pieces;
      }
      JsonPiece piece;
      piece.line = line_;
      if (!value(piece.text)) {
        problems_.add(file_, fmt::format("line {}", piece.line),
                      "the JSON value that starts here breaks off", "is the file complete?");
        return pieces;
      }
      pieces.push_back(std::move(piece));
    }
  }

 private:
  void step() {
    if (text_[at_] == '\n') ++line_;
    ++at_;
  }

  bool value(std::string& out) {
    int depth = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        if (!string(out)) return false;
        continue;
      }
      if (word("-Infinity", "\"-inf\"", out) || word("Infinity", "\"inf\"", out) ||
          word("NaN", "null", out)) {
        continue;
      }
      depth += c == '{' || c == '[' ? 1 : 0;
      depth -= c == '}' || c == ']' ? 1 : 0;
      out += c;
      step();
      if (depth == 0) return true;
    }
    return false;
  }

  bool word(std::string_view from, std::string_view to, std::string& out) {
    if (!text_.substr(at_).starts_with(from)) return false;
    out += to;
    at_ += from.size();
    return true;
  }

  bool string(std::string& out) {
    const std::size_t begin = at_;
    step();
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\') step();
      if (at_ < text_.size()) step();
    }
    if (at_ >= text_.size()) return false;
    step();
    out += text_.substr(begin, at_ - begin);
    return true;
  }

  std::string_view text_;
  const std::string& file_;
  Problems& problems_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
};

}  // namespace

std::vector<JsonPiece> split_json_values(std::string_view text, const std::string& file,
                                         Problems& problems) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return Splitter(text, file, problems).run();
}

Json parse_piece(const JsonPiece& piece, const std::string& file, Problems& problems,
                 std::vector<std::string>& repeated) {
  std::vector<std::set<std::string>>
      seen;  // keys by depth; the end of a dropped object is not told
  const auto callback = [&](int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    const auto at = static_cast<std::size_t>(depth);
    if (event == Event::object_start) {
      seen.resize(at + 2);
      seen[at + 1].clear();
    }
    if (event != Event::key) return true;
    const auto key = parsed.get<std::string>();
    if (seen.at(at).insert(key).second) return true;
    repeated.push_back(key);
    return false;
  };
  try {
    return Json::parse(piece.text, callback);
  } catch (const Json::parse_error& error) {
    std::int64_t line = piece.line;
    for (std::size_t i = 0; i + 1 < error.byte && i < piece.text.size(); ++i) {
      line += piece.text[i] == '\n' ? 1 : 0;
    }
    problems.add(file, fmt::format("line {}", line), "is not valid JSON");
  } catch (const Json::exception& error) {
    problems.add(file, fmt::format("line {}", piece.line),
                 fmt::format("cannot be read as JSON: {}", error.what()));
  }
  return {};
}

bool LooseObject::has(std::string_view key) const {
  return find(key) != nullptr;
}

const Json* LooseObject::find(std::string_view key) const {
  if (!node_->is_object()) return nullptr;
  const auto it = node_->find(std::string(key));
  return it == node_->end() || it->is_null() ? nullptr : &*it;
}

std::string LooseObject::pointer_to(std::string_view key) const {
  return key.empty() ? pointer_ : pointer_ + "/" + escape_pointer(key);
}

void LooseObject::problem(std::string_view key, std::string message, std::string hint) const {
  problems_->add(file_, pointer_to(key), std::move(message), std::move(hint));
}

double LooseObject::number(std::initializer_list<std::string_view> keys) const {
  for (const std::string_view key : keys) {
    const Json* value = find(key);
    if (value == nullptr) continue;
    if (value->is_number()) return value->get<double>();
    double parsed = 0.0;
    if (value->is_string() && parse_bench_number(value->get<std::string>(), parsed)) return parsed;
    problem(key, fmt::format("is {}, not a number", value->type_name()));
    return kNotTold;
  }
  return kNotTold;
}

std::string LooseObject::text(std::initializer_list<std::string_view> keys) const {
  for (const std::string_view key : keys) {
    const Json* value = find(key);
    if (value == nullptr) continue;
    if (value->is_string()) return value->get<std::string>();
    problem(key, fmt::format("is {}, not text", value->type_name()));
    return {};
  }
  return {};
}

std::vector<double> LooseObject::numbers(std::string_view key) const {
  std::vector<double> out;
  const Json* value = find(key);
  if (value == nullptr) return out;
  if (!value->is_array()) {
    problem(key, fmt::format("is {}, not a list", value->type_name()));
    return out;
  }
  for (std::size_t i = 0; i < value->size(); ++i) {
    const Json& v = (*value)[i];
    if (!v.is_number() && !v.is_null()) {
      problem(key, fmt::format("element {} is {}, not a number", i, v.type_name()));
      return {};
    }
    out.push_back(v.is_null() ? kNotTold : v.get<double>());
  }
  return out;
}

LooseObject LooseObject::object(std::string_view key) const {
  static const Json kEmpty = Json::object();
  const Json* value = find(key);
  if (value != nullptr && !value->is_object()) {
    problem(key, fmt::format("is {}, not an object", value->type_name()));
  }
  const bool usable = value != nullptr && value->is_object();
  return LooseObject(usable ? *value : kEmpty, file_, pointer_to(key), *problems_);
}

bool parse_bench_number(std::string_view text, double& value) {
  std::string plain;
  for (const char c : text) {
    if (c != ',' && !blank(c)) plain += c;
  }
  if (plain == "inf" || plain == "Infinity") {
    value = std::numeric_limits<double>::infinity();
    return true;
  }
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  return error == std::errc() && end == plain.data() + plain.size() && std::isfinite(value);
}

double seconds_in(std::string_view unit) {
  if (unit == "s" || unit == "sec" || unit == "seconds" || unit == "second") return 1.0;
  if (unit == "ms" || unit == "milliseconds") return 1e-3;
  if (unit == "us" || unit == "microseconds") return 1e-6;
  if (unit == "ns" || unit == "nanoseconds") return 1e-9;
  return 0.0;
}

}  // namespace medley
