#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "sim/core/json_reader.h"
#include "sim/core/text_file.h"

namespace medley {

namespace {
using Json = nlohmann::ordered_json;
constexpr std::size_t kMaxDepth = 200;
constexpr std::size_t kIndexFrom = 32;  // members from which on a hash set looks for duplicates

/// Builds the document bottom-up and knows at any moment where it is, which the library's own
/// builder does not tell; that builder also lets the last of two equal keys win in silence.
class Builder {
 public:
  Builder(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  bool null() { return put(Json(nullptr)); }
  bool boolean(bool value) { return put(Json(value)); }
  bool number_integer(std::int64_t value) { return put(Json(value)); }
  bool number_unsigned(std::uint64_t value) { return put(Json(value)); }
  bool number_float(double value, const std::string&) { return put(Json(value)); }
  bool string(std::string& value) { return put(Json(std::move(value))); }
  bool binary(Json::binary_t&) { return false; }  // never called for text
  bool start_object(std::size_t) { return open(true); }
  bool start_array(std::size_t) { return open(false); }
  bool end_object() {
    Json value(std::move(frames_.back().object));
    frames_.pop_back();
    return put(std::move(value));
  }
  bool end_array() {
    Json value(std::move(frames_.back().array));
    frames_.pop_back();
    return put(std::move(value));
  }
  bool key(std::string& name) {
    Frame& frame = frames_.back();
    frame.key = std::move(name);
    frame.keyed = true;
    frame.skip = seen(frame);
    if (frame.skip) {
      problems_.add(name_, pointer(), "duplicate key", "keep one of them");
    }
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception& error) {
    problems_.add(name_, pointer(), fmt::format("{}: {}", place(position), clean(error.what())));
    return false;
  }

  Json take() {
    problems_.throw_if_any();
    return std::move(root_);
  }

 private:
  struct Frame {
    bool is_object = false;
    bool skip = false;   ///< the member being read is a duplicate
    bool keyed = false;  ///< `key` is set
    std::string key;
    Json::object_t object;
    Json::array_t array;
    std::unordered_set<std::string> index;
  };

  bool open(bool is_object) {
    if (frames_.size() >= kMaxDepth) {
      problems_.add(name_, pointer(), fmt::format("nested deeper than {} levels", kMaxDepth));
      return false;
    }
    frames_.emplace_back().is_object = is_object;
    return true;
  }

  bool put(Json value) {
    if (frames_.empty()) {
      root_ = std::move(value);
      return true;
    }
    Frame& frame = frames_.back();
    if (!frame.is_object) {
      frame.array.push_back(std::move(value));
    } else if (!frame.skip) {
      frame.object.emplace_back(frame.key, std::move(value));
    }
    return true;
  }

  static bool seen(Frame& frame) {
    if (frame.object.size() < kIndexFrom) {
      for (const auto& member : frame.object) {
        if (member.first == frame.key) return true;
      }
      return false;
    }
    if (frame.index.empty()) {
      for (const auto& member : frame.object) frame.index.insert(member.first);
    }
    return !frame.index.insert(frame.key).second;
  }

  std::string pointer() const {
    std::string out;
    for (const Frame& frame : frames_) {
      if (!frame.is_object)
        out += fmt::format("/{}", frame.array.size());
      else if (frame.keyed)
        out += "/" + escape_pointer(frame.key);
    }
    return out;
  }

  std::string place(std::size_t position) const {
    const std::string_view before = text_.substr(0, std::min(position, text_.size()));
    const auto lines = std::count(before.begin(), before.end(), '\n');
    const std::size_t start = before.find_last_of('\n') + 1;  // npos + 1 == 0
    return fmt::format("line {}, column {}", lines + 1, before.size() - start);
  }

  // "[json.exception.x.101] parse error at line 1, column 2: syntax error ..." -> "syntax error
  // ..."
  static std::string clean(std::string_view what) {
    if (const auto end = what.find("] "); what.starts_with('[') && end != what.npos) {
      what.remove_prefix(end + 2);
    }
    if (what.starts_with("parse error"))
      what.remove_prefix(std::min(what.find(": ") + 2, what.size()));
    if (what.starts_with("(/")) what.remove_prefix(std::min(what.find(") ") + 2, what.size()));
    constexpr std::size_t kLongest = 300;
    return what.size() <= kLongest ? std::string(what)
                                   : std::string(what.substr(0, kLongest)) + "...";
  }

  std::string_view text_;
  const std::string& name_;
  std::vector<Frame> frames_;
  Json root_;
  Problems problems_;
};
}  // namespace

Json parse_json(std::string_view text, const std::string& name) {
  Builder builder(text, name);
  constexpr bool kStrict = true;
  constexpr bool kComments = true;
  Json::sax_parse(text, &builder, Json::input_format_t::json, kStrict, kComments);
  return builder.take();
}

Json load_json(const std::string& path) {
  return parse_json(read_file(path), path);
}

}  // namespace medley
