#include "sim/scenario/resolving_reader.h"

#include <nlohmann/json.hpp>

namespace medley {

namespace {
/// Built by hand: GCC 12 warns of overflows in the library's converting constructor that are not
/// there.
nlohmann::json text_value(const std::string& text) {
  nlohmann::json value(nlohmann::json::value_t::string);
  value.get_ref<std::string&>() = text;
  return value;
}

void put(nlohmann::json& out, std::string_view key, const std::string& value) {
  out[std::string(key)] = text_value(value);
}
template <class T>
void put(nlohmann::json& out, std::string_view key, T value) {
  out[std::string(key)] = value;
}

template <class T>
T note(nlohmann::json& out, std::string_view key, T value) {
  put(out, key, value);
  return value;
}

template <class T>
std::optional<T> note(nlohmann::json& out, std::string_view key, std::optional<T> value) {
  if (value) put(out, key, *value);
  return value;
}

const nlohmann::ordered_json& empty_object() {
  static const nlohmann::ordered_json empty = nlohmann::ordered_json::object();
  return empty;
}
}  // namespace

ResolvingReader::ResolvingReader(ObjectReader reader, nlohmann::json& out, Problems& problems)
    : in_(std::move(reader)), out_(&out), problems_(&problems) {
  if (!out.is_object()) out = nlohmann::json::object();
}

std::string ResolvingReader::text(std::string_view key) {
  return note(*out_, key, in_.text(key));
}
std::string ResolvingReader::text_or(std::string_view key, std::string fallback) {
  return note(*out_, key, in_.text_or(key, std::move(fallback)));
}
std::optional<std::string> ResolvingReader::maybe_text(std::string_view key) {
  return note(*out_, key, in_.maybe_text(key));
}
std::vector<std::string> ResolvingReader::texts_or_empty(std::string_view key) {
  std::vector<std::string> all = in_.texts_or_empty(key);
  for (const std::string& text : all) (*out_)[std::string(key)].push_back(text_value(text));
  return all;
}
std::string ResolvingReader::choice_or(std::string_view key,
                                       const std::vector<std::string>& allowed,
                                       std::string fallback) {
  return note(*out_, key, in_.choice_or(key, allowed, std::move(fallback)));
}
bool ResolvingReader::boolean_or(std::string_view key, bool fallback) {
  return note(*out_, key, in_.boolean_or(key, fallback));
}
std::optional<bool> ResolvingReader::maybe_boolean(std::string_view key) {
  return note(*out_, key, in_.maybe_boolean(key));
}
double ResolvingReader::number_or(std::string_view key, double fallback, Range range) {
  return note(*out_, key, in_.number_or(key, fallback, range));
}
std::optional<double> ResolvingReader::maybe_number(std::string_view key, Range range) {
  return note(*out_, key, in_.maybe_number(key, range));
}
std::int64_t ResolvingReader::integer_or(std::string_view key, std::int64_t fallback,
                                         std::int64_t min, std::int64_t max) {
  return note(*out_, key, in_.integer_or(key, fallback, min, max));
}
std::optional<std::int64_t> ResolvingReader::maybe_integer(std::string_view key, std::int64_t min,
                                                           std::int64_t max) {
  return note(*out_, key, in_.maybe_integer(key, min, max));
}

template <class Q>
Q ResolvingReader::quantity_or(std::string_view key, Q fallback, Range range) {
  const Q value = in_.quantity_or<Q>(key, fallback, range);
  put(*out_, key, format_quantity(value));
  return value;
}
template <class Q>
std::optional<Q> ResolvingReader::maybe_quantity(std::string_view key, Range range) {
  const std::optional<Q> value = in_.maybe_quantity<Q>(key, range);
  if (value) put(*out_, key, format_quantity(*value));
  return value;
}
#define MEDLEY_INSTANTIATE(Q)                                             \
  template Q ResolvingReader::quantity_or<Q>(std::string_view, Q, Range); \
  template std::optional<Q> ResolvingReader::maybe_quantity<Q>(std::string_view, Range);
MEDLEY_QUANTITIES(MEDLEY_INSTANTIATE)
#undef MEDLEY_INSTANTIATE

void ResolvingReader::set(std::string_view key, const std::string& value) {
  put(*out_, key, value);
}
void ResolvingReader::set(std::string_view key, std::int64_t value) {
  put(*out_, key, value);
}

std::optional<ResolvingReader> ResolvingReader::maybe_object(std::string_view key) {
  std::optional<ObjectReader> below = in_.maybe_object(key);
  if (!below) return std::nullopt;
  return ResolvingReader(std::move(*below), (*out_)[std::string(key)], *problems_);
}

ResolvingReader ResolvingReader::object_or_empty(std::string_view key) {
  if (std::optional<ResolvingReader> below = maybe_object(key)) return std::move(*below);
  ObjectReader empty(empty_object(), in_.file(), in_.pointer_to(key), *problems_);
  return ResolvingReader(std::move(empty), (*out_)[std::string(key)], *problems_);
}

void ResolvingReader::each_member(
    std::string_view key, const std::function<void(const std::string&, ResolvingReader)>& visit) {
  nlohmann::json& map = (*out_)[std::string(key)];
  if (!map.is_object()) map = nlohmann::json::object();
  in_.each_member(key, [&](const std::string& name, ObjectReader reader) {
    visit(name, ResolvingReader(std::move(reader), map[name], *problems_));
  });
}

}  // namespace medley
