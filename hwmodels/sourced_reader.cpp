#include "hwmodels/sourced_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "hwmodels/node.h"

namespace medley {

namespace {
constexpr const char* kNotGiven = "not in the catalogue";
constexpr std::int64_t kMostSamples = 1000000000000;
const std::vector<std::string>& class_names() {
  static const std::vector<std::string> names = {"measured", "datasheet", "derived", "assumed"};
  return names;
}

/// "range": ["1 MFLOP", "3 TFLOP"], the work of the kernels that a ramp was fitted to.
template <class Q>
void read_range(ObjectReader& object, Ramp& ramp) {
  const auto texts = object.texts_or_empty("range");
  if (texts.empty()) return;
  if (texts.size() != 2) {
    object.problem("range", "a range has two ends", "write [\"1 MFLOP\", \"3 TFLOP\"]");
    return;
  }
  try {
    ramp.low = parse_quantity<Q>(texts[0]).value();
    ramp.high = parse_quantity<Q>(texts[1]).value();
  } catch (const std::invalid_argument& error) {
    object.problem("range", error.what());
    return;
  }
  if (!(ramp.low >= 0.0 && ramp.low < ramp.high)) {
    object.problem("range", "the lower end must be below the upper one");
  }
}
}  // namespace

SourcedReader::SourcedReader(ObjectReader& entry, Problems& problems) : problems_(&problems) {
  auto map = entry.maybe_object("sources");
  if (!map) return;
  for (const std::string& key : map->keys()) {
    const std::string text = map->text(key);
    if (text.empty()) map->problem(key, "a source needs a citation");
    sources_[key] = text;
  }
}

ObjectReader SourcedReader::section(ObjectReader& parent, std::string_view key) {
  static const nlohmann::ordered_json empty = nlohmann::ordered_json::object();
  if (auto found = parent.maybe_object(key)) return *found;
  return ObjectReader(empty, parent.file(), parent.pointer_to(key), *problems_);
}

std::optional<ObjectReader> SourcedReader::open(ObjectReader& parent, std::string_view key) {
  const auto* node = parent.raw(key);
  if (!node || node->is_null()) return std::nullopt;
  if (!node->is_object()) {
    parent.problem(key, "a value needs its class and source",
                   fmt::format("write {{\"value\": {}, \"class\": \"datasheet\", \"source\": "
                               "\"<key of sources>\"}}",
                               node->is_structured() ? "..." : node->dump()));
    return std::nullopt;
  }
  return ObjectReader(*node, parent.file(), parent.pointer_to(key), *problems_);
}

template <class T>
void SourcedReader::cite(ObjectReader& object, Sourced<T>& into) {
  into.provenance = *parse_provenance(object.choice("class", class_names()));
  into.error = object.number_or("error", 0.0, Range::non_negative());
  into.n = object.integer_or("n", 0, 0, kMostSamples);
  const std::string key = object.text("source");
  if (key.empty()) return;
  const auto it = sources_.find(key);
  if (it != sources_.end()) {
    into.source = it->second;
    return;
  }
  std::vector<std::string> known;
  for (const auto& [name, text] : sources_) known.push_back(name);
  object.problem("source", fmt::format("\"{}\" is not a key of this entry's sources", key),
                 known.empty() ? "add a map \"sources\": {key: citation}" : suggest(key, known));
}

template <class T, class Read>
Sourced<T> SourcedReader::value(ObjectReader& parent, std::string_view key, const Read& read) {
  Sourced<T> out;
  out.source = kNotGiven;
  auto object = open(parent, key);
  if (!object) return out;
  const auto keys = object->keys();
  const bool listed = std::find(keys.begin(), keys.end(), "value") != keys.end();
  if (listed && !object->has("value")) {  // null: unknown, and why
    object->raw("value");
    out.source = object->text("source");
  } else {
    out.value = read(*object);
    cite(*object, out);
  }
  object->finish();
  return out;
}

template <class Q>
Sourced<Q> SourcedReader::quantity(ObjectReader& parent, std::string_view key, Range range) {
  return value<Q>(parent, key,
                  [&](ObjectReader& object) { return object.quantity<Q>("value", range); });
}

Sourced<double> SourcedReader::number(ObjectReader& parent, std::string_view key, Range range) {
  return value<double>(parent, key,
                       [&](ObjectReader& object) { return object.number("value", range); });
}

template <class Q>
Sourced<Ramp> SourcedReader::ramp(ObjectReader& parent, std::string_view key) {
  Sourced<Ramp> out;
  out.source = kNotGiven;
  auto object = open(parent, key);
  if (!object) return out;
  Ramp ramp;
  ramp.fraction = object->number("fraction", Range{Range::positive().min, 1.0});
  ramp.half = object->quantity_or<Q>("half", Q(0.0)).value();
  if constexpr (std::is_same_v<Q, Flops>) {
    ramp.serial = object->number_or("serial", 0.0, Range::fraction());
  }
  read_range<Q>(*object, ramp);
  out.value = ramp;
  cite(*object, out);
  object->finish();
  return out;
}

#define MEDLEY_INSTANTIATE(Q) \
  template Sourced<Q> SourcedReader::quantity<Q>(ObjectReader&, std::string_view, Range);
MEDLEY_INSTANTIATE(Seconds)
MEDLEY_INSTANTIATE(Bytes)
MEDLEY_INSTANTIATE(Usd)
MEDLEY_INSTANTIATE(BytesPerSec)
MEDLEY_INSTANTIATE(FlopsPerSec)
MEDLEY_INSTANTIATE(Watts)
MEDLEY_INSTANTIATE(JoulesPerByte)
MEDLEY_INSTANTIATE(JoulesPerFlop)
MEDLEY_INSTANTIATE(UsdPerSec)
#undef MEDLEY_INSTANTIATE
template Sourced<Ramp> SourcedReader::ramp<Flops>(ObjectReader&, std::string_view);
template Sourced<Ramp> SourcedReader::ramp<Bytes>(ObjectReader&, std::string_view);
template void SourcedReader::cite<int>(ObjectReader&, Sourced<int>&);

}  // namespace medley
