#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/core/json_reader.h"
#include "sim/scenario/document.h"

namespace medley {

using Json = nlohmann::ordered_json;

namespace {
std::vector<std::string> split_dots(const std::string& path) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (;;) {
    const std::size_t dot = path.find('.', begin);
    parts.push_back(path.substr(begin, dot - begin));
    if (dot == std::string::npos) return parts;
    begin = dot + 1;
  }
}

/// The longest run parts[begin, end) that, joined by dots, names a member; one part if none does.
std::size_t longest_member(const Json& object, const std::vector<std::string>& parts,
                           std::size_t begin, std::string& name) {
  std::string joined;
  std::size_t best = begin + 1;
  name = parts[begin];
  for (std::size_t end = begin + 1; end <= parts.size(); ++end) {
    joined += (end > begin + 1 ? "." : "") + parts[end - 1];
    if (object.contains(joined)) {
      best = end;
      name = joined;
    }
  }
  return best;
}

/// The value of an override: JSON when it is JSON, else the text itself.
std::optional<Json> read_value(const std::string& text, std::string& why) {
  try {
    return parse_json(text, "value");
  } catch (const InputError& e) {
    why = e.problems().front().message;
  }
  if (!text.empty() && (text[0] == '{' || text[0] == '[' || text[0] == '"')) return std::nullopt;
  const Json value = text;
  try {
    (void)value.dump();
  } catch (const Json::exception&) {
    why = "the text is not UTF-8";
    return std::nullopt;
  }
  return value;
}

bool is_map_by_name(const std::string& pointer) {
  return pointer == "/pools" || pointer == "/cluster/nodes" || pointer == "/workload/sources";
}

std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& item : object.items()) keys.push_back(item.key());
  return keys;
}

const char* kind_of(const Json& value) {
  return value.is_string()    ? "a text"
         : value.is_number()  ? "a number"
         : value.is_boolean() ? "true or false"
                              : "a single value";
}

/// Walks and makes the path of one override.
class Setter {
 public:
  Setter(std::string label, std::vector<std::string> parts, Problems& problems)
      : label_(std::move(label)), parts_(std::move(parts)), problems_(&problems) {}

  /// Where the value goes, or nullptr after reporting why there is no such place.
  Json* find(Json& root) {
    Json* at = &root;
    for (std::size_t i = 0; i < parts_.size();) {
      at = at->is_array() ? element(*at, i) : member(*at, i);
      if (!at) return nullptr;
    }
    return at;
  }
  const std::string& pointer() const { return pointer_; }
  /// The topmost member that had to be made; empty when all were there.
  const std::string& made() const { return made_; }

 private:
  Json* element(Json& array, std::size_t& i) {
    const std::string& part = parts_[i];
    std::size_t n = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), n);
    if (error != std::errc() || end != part.data() + part.size() || n >= array.size()) {
      return fail(fmt::format("\"{}\" is no element of this list", part),
                  array.empty() ? "the list is empty" : fmt::format("0 to {}", array.size() - 1));
    }
    pointer_ = pointer_join(pointer_, part);
    ++i;
    return &array[n];
  }

  Json* member(Json& value, std::size_t& i) {
    if (value.is_null()) value = Json::object();
    if (!value.is_object()) {
      return fail(fmt::format("is {}, it has no member \"{}\"", kind_of(value), parts_[i]),
                  "shorten the path");
    }
    std::string name;
    const std::size_t next = longest_member(value, parts_, i, name);
    if (!value.contains(name)) {
      if (is_map_by_name(pointer_) && next < parts_.size()) {
        return fail(fmt::format("there is no \"{}\" here", name), suggest(name, keys_of(value)));
      }
      value[name] = nullptr;
      if (made_.empty()) made_ = pointer_join(pointer_, name);
    }
    pointer_ = pointer_join(pointer_, name);
    i = next;
    return &value[name];
  }

  Json* fail(std::string message, std::string hint) {
    problems_->add(label_, pointer_, std::move(message), std::move(hint));
    return nullptr;
  }

  std::string label_;
  std::vector<std::string> parts_;
  Problems* problems_;
  std::string pointer_;
  std::string made_;
};
}  // namespace

void apply_override(const std::string& text, Document& document, Problems& problems) {
  const std::string label = "--set " + text;
  const std::size_t equals = text.find('=');
  const std::string path = text.substr(0, equals);
  const std::vector<std::string> parts = split_dots(path);
  const bool blank = std::any_of(parts.begin(), parts.end(), [](auto& p) { return p.empty(); });
  if (equals == std::string::npos || blank) {
    problems.add(label, "", "expected path=value", "for example pools.chat.replicas=6");
    return;
  }
  if (parts.front() == "include") {
    problems.add(label, "", "includes cannot be set from outside", "write them in the file");
    return;
  }
  std::string why;
  std::optional<Json> value = read_value(text.substr(equals + 1), why);
  if (!value) {
    problems.add(label, "", "the value looks like JSON but is not: " + why);
    return;
  }
  Setter setter(label, parts, problems);
  Json* target = setter.find(*document.root);
  if (!target) return;
  *target = std::move(*value);
  const std::string& pointer = setter.pointer();
  std::erase_if(document.origins,
                [&](const auto& o) { return o.first.starts_with(pointer + "/"); });
  document.origins[pointer] = label;
  if (!setter.made().empty()) document.origins[setter.made()] = label;
}

}  // namespace medley
