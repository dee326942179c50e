#include "sim/core/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "sim/core/csv.h"

namespace medley {

namespace {
using Json = nlohmann::ordered_json;

const Json& empty_object() {
  static const Json empty = Json::object();
  return empty;
}

/// What was found, short enough for a message.
std::string found(const Json& value) {
  constexpr std::size_t kLongest = 60;
  std::string text = value.is_object() ? "an object"
                     : value.is_array()
                         ? "an array"
                         : value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return "found " + text;
}

template <class Show>
std::string range_text(Range range, const Show& show) {
  constexpr Range kAll;
  const bool low = range.min > kAll.min;
  const bool high = range.max < kAll.max;
  const bool above_zero = range.min == Range::positive().min;
  if (above_zero && high)
    return fmt::format("must be greater than 0 and at most {}", show(range.max));
  if (low && high)
    return fmt::format("must be between {} and {}", show(range.min), show(range.max));
  if (above_zero) return "must be greater than 0";
  if (range.min == 0.0) return "must not be negative";
  return low ? fmt::format("must be at least {}", show(range.min))
             : fmt::format("must be at most {}", show(range.max));
}

bool within(double value, Range range) {
  return value >= range.min && value <= range.max;
}

std::optional<std::int64_t> exact_integer(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto n = value.get<std::uint64_t>();
    if (n > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
    return static_cast<std::int64_t>(n);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double x = value.get<double>();
  if (x != std::floor(x) || std::abs(x) > 0x1p62) return std::nullopt;
  return static_cast<std::int64_t>(x);
}
}  // namespace

ObjectReader::ObjectReader(const Json& node, std::string file, std::string pointer,
                           Problems& problems)
    : node_(&node), file_(std::move(file)), pointer_(std::move(pointer)), problems_(&problems) {
  if (node.is_object()) return;
  problem("", "expected an object", found(node));
  node_ = nullptr;  // reported once; getters stay silent
}

bool ObjectReader::has(std::string_view key) const {
  if (!node_) return false;
  const auto it = node_->find(std::string(key));
  return it != node_->end() && !it->is_null();
}

std::vector<std::string> ObjectReader::keys() const {
  std::vector<std::string> all;
  if (!node_) return all;
  for (const auto& item : node_->items()) all.push_back(item.key());
  return all;
}

std::string escape_pointer(std::string_view key) {
  std::string out;
  for (const char c : key) {
    if (c == '~')
      out += "~0";
    else if (c == '/')
      out += "~1";
    else
      out += c;
  }
  return out;
}

std::string ObjectReader::pointer_to(std::string_view key) const {
  return pointer_ + "/" + escape_pointer(key);
}

void ObjectReader::problem(std::string_view key, std::string message, std::string hint) {
  problems_->add(file_, key.empty() ? pointer_ : pointer_to(key), std::move(message),
                 std::move(hint));
}

const Json* ObjectReader::find(std::string_view key, bool required) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
  if (!node_) return nullptr;
  const auto it = node_->find(std::string(key));
  if (it != node_->end() && !it->is_null()) return &*it;
  if (required) problem(key, "missing required key");
  return nullptr;
}

const Json* ObjectReader::raw(std::string_view key) {
  return find(key, false);
}

// --- text
// -----------------------------------------------------------------------------------------

std::optional<std::string> ObjectReader::maybe_text(std::string_view key) {
  const Json* value = find(key, false);
  if (!value) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  problem(key, "expected a string", found(*value));
  return std::nullopt;
}

std::string ObjectReader::text(std::string_view key) {
  if (!find(key, true)) return "";
  return maybe_text(key).value_or("");
}

std::string ObjectReader::text_or(std::string_view key, std::string fallback) {
  return maybe_text(key).value_or(std::move(fallback));
}

std::vector<std::string> ObjectReader::texts_or_empty(std::string_view key) {
  std::vector<std::string> all;
  const Json* value = find(key, false);
  if (!value) return all;
  if (!value->is_array()) {
    problem(key, "expected an array of strings", found(*value));
    return all;
  }
  for (std::size_t i = 0; i < value->size(); ++i) {
    const Json& element = (*value)[i];
    if (element.is_string()) {
      all.push_back(element.get<std::string>());
    } else {
      problems_->add(file_, fmt::format("{}/{}", pointer_to(key), i), "expected a string",
                     found(element));
    }
  }
  return all;
}

std::string ObjectReader::choice_or(std::string_view key, const std::vector<std::string>& allowed,
                                    std::string fallback) {
  const std::optional<std::string> value = maybe_text(key);
  if (!value) return fallback;
  if (std::find(allowed.begin(), allowed.end(), *value) != allowed.end()) return *value;
  problem(key, fmt::format("unknown value \"{}\"", *value), suggest(*value, allowed));
  return fallback;
}

std::string ObjectReader::choice(std::string_view key, const std::vector<std::string>& allowed) {
  std::string first = allowed.empty() ? "" : allowed.front();
  if (!find(key, true)) return first;
  return choice_or(key, allowed, first);
}

// --- numbers
// --------------------------------------------------------------------------------------

std::optional<bool> ObjectReader::maybe_boolean(std::string_view key) {
  const Json* value = find(key, false);
  if (!value) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  problem(key, "expected true or false", found(*value));
  return std::nullopt;
}

bool ObjectReader::boolean_or(std::string_view key, bool fallback) {
  return maybe_boolean(key).value_or(fallback);
}

std::optional<double> ObjectReader::maybe_number(std::string_view key, Range range) {
  const Json* value = find(key, false);
  if (!value) return std::nullopt;
  if (!value->is_number()) {
    problem(key, "expected a number", found(*value));
    return std::nullopt;
  }
  const double x = value->get<double>();
  if (within(x, range)) return x;
  problem(key, range_text(range, number_text), found(*value));
  return std::nullopt;
}

double ObjectReader::number(std::string_view key, Range range) {
  if (!find(key, true)) return 0.0;
  return maybe_number(key, range).value_or(0.0);
}

double ObjectReader::number_or(std::string_view key, double fallback, Range range) {
  return maybe_number(key, range).value_or(fallback);
}

std::vector<double> ObjectReader::numbers_or_empty(std::string_view key, Range range) {
  std::vector<double> all;
  const Json* value = find(key, false);
  if (!value) return all;
  if (!value->is_array()) {
    problem(key, "expected an array of numbers", found(*value));
    return all;
  }
  for (std::size_t i = 0; i < value->size(); ++i) {
    const Json& element = (*value)[i];
    const std::string where = fmt::format("{}/{}", pointer_to(key), i);
    if (!element.is_number()) {
      problems_->add(file_, where, "expected a number", found(element));
    } else if (const double x = element.get<double>(); within(x, range)) {
      all.push_back(x);
    } else {
      problems_->add(file_, where, range_text(range, number_text), found(element));
    }
  }
  return all;
}

std::optional<std::int64_t> ObjectReader::maybe_integer(std::string_view key, std::int64_t min,
                                                        std::int64_t max) {
  const Json* value = find(key, false);
  if (!value) return std::nullopt;
  const std::optional<std::int64_t> n = exact_integer(*value);
  if (n && *n >= min && *n <= max) return n;
  const bool integral =
      n || (value->is_number() && value->get<double>() == std::floor(value->get<double>()));
  if (!integral) {
    problem(key, "expected an integer", found(*value));
  } else if (max == INT64_MAX && n) {
    problem(key, fmt::format("must be at least {}", min), found(*value));
  } else {
    problem(key, fmt::format("must be between {} and {}", min, max), found(*value));
  }
  return std::nullopt;
}

std::int64_t ObjectReader::integer(std::string_view key, std::int64_t min, std::int64_t max) {
  if (!find(key, true)) return min;
  return maybe_integer(key, min, max).value_or(min);
}

std::int64_t ObjectReader::integer_or(std::string_view key, std::int64_t fallback, std::int64_t min,
                                      std::int64_t max) {
  return maybe_integer(key, min, max).value_or(fallback);
}

// --- quantities
// -----------------------------------------------------------------------------------

template <class Q>
std::optional<Q> ObjectReader::maybe_quantity(std::string_view key, Range range) {
  const Json* value = find(key, false);
  if (!value) return std::nullopt;
  Q quantity;
  try {
    if (value->is_string()) {
      quantity = parse_quantity<Q>(value->get_ref<const std::string&>());
    } else if (value->is_number()) {
      quantity = parse_quantity<Q>(value->dump());
    } else {
      problem(key, "expected a string with a number and a unit", found(*value));
      return std::nullopt;
    }
  } catch (const std::invalid_argument& e) {
    problem(key, e.what());
    return std::nullopt;
  }
  if (within(quantity.value(), range)) return quantity;
  problem(key, range_text(range, [](double x) { return format_quantity<Q>(Q(x)); }), found(*value));
  return std::nullopt;
}

template <class Q>
Q ObjectReader::quantity(std::string_view key, Range range) {
  if (!find(key, true)) return Q();
  return maybe_quantity<Q>(key, range).value_or(Q());
}

template <class Q>
Q ObjectReader::quantity_or(std::string_view key, Q fallback, Range range) {
  return maybe_quantity<Q>(key, range).value_or(fallback);
}

#define MEDLEY_INSTANTIATE(Q)                                          \
  template Q ObjectReader::quantity<Q>(std::string_view, Range);       \
  template Q ObjectReader::quantity_or<Q>(std::string_view, Q, Range); \
  template std::optional<Q> ObjectReader::maybe_quantity<Q>(std::string_view, Range);
MEDLEY_QUANTITIES(MEDLEY_INSTANTIATE)
#undef MEDLEY_INSTANTIATE

// --- structure
// ------------------------------------------------------------------------------------

ObjectReader ObjectReader::object(std::string_view key) {
  if (const Json* value = find(key, true)) {
    return ObjectReader(*value, file_, pointer_to(key), *problems_);
  }
  ObjectReader nothing(empty_object(), file_, pointer_to(key), *problems_);
  nothing.node_ = nullptr;
  return nothing;
}

std::optional<ObjectReader> ObjectReader::maybe_object(std::string_view key) {
  const Json* value = find(key, false);
  if (!value) return std::nullopt;
  return ObjectReader(*value, file_, pointer_to(key), *problems_);
}

void ObjectReader::each_member(std::string_view key,
                               const std::function<void(const std::string&, ObjectReader)>& visit) {
  const std::optional<ObjectReader> map = maybe_object(key);
  if (!map || !map->node_) return;
  for (const auto& item : map->node_->items()) {
    if (item.key().starts_with('$') || item.key() == "comment") continue;
    visit(item.key(), ObjectReader(item.value(), file_, map->pointer_to(item.key()), *problems_));
  }
}

void ObjectReader::each_element(std::string_view key,
                                const std::function<void(std::size_t, ObjectReader)>& visit) {
  const Json* value = find(key, false);
  if (!value) return;
  if (!value->is_array()) {
    problem(key, "expected an array of objects", found(*value));
    return;
  }
  for (std::size_t i = 0; i < value->size(); ++i) {
    visit(i,
          ObjectReader((*value)[i], file_, fmt::format("{}/{}", pointer_to(key), i), *problems_));
  }
}

void ObjectReader::finish() {
  if (!node_) return;
  for (const auto& item : node_->items()) {
    const std::string& key = item.key();
    if (key.starts_with('$') || key == "comment") continue;
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    problem(key, "unknown key", suggest(key, known_));
  }
}

}  // namespace medley
