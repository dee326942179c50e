#include "workloads/readers/flat_json.h"

#include <charconv>

namespace medley {

namespace {
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool in_number(char c) {
  return is_digit(c) || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}
bool in_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '+';
}
}  // namespace

bool FlatJson::scan(std::string_view line) {
  members_.clear();
  ids_.clear();
  odd_ = false;
  at_ = line.data();
  end_ = line.data() + line.size();
  if (!take('{')) return false;
  blanks();
  if (at_ < end_ && *at_ == '}') {
    ++at_;
  } else {
    do {
      Member m;
      bool escaped = false;
      blanks();
      if (!string(m.key, escaped) || !take(':') || !value(m)) return false;
      odd_ = odd_ || escaped || m.kind == Kind::kEscaped || m.kind == Kind::kNested;
      members_.push_back(m);
    } while (take(','));
    if (!take('}')) return false;
  }
  blanks();
  return at_ == end_;
}

bool FlatJson::string(std::string_view& out, bool& escaped) {
  if (at_ == end_ || *at_ != '"') return false;
  const char* const first = ++at_;
  escaped = false;
  while (at_ < end_ && *at_ != '"') {
    if (*at_ == '\\') {
      escaped = true;
      ++at_;
      if (at_ == end_) return false;
    }
    ++at_;
  }
  if (at_ == end_) return false;
  out = std::string_view(first, static_cast<std::size_t>(at_ - first));
  ++at_;
  return true;
}

bool FlatJson::value(Member& m) {
  blanks();
  if (at_ == end_) return false;
  const char* const first = at_;
  if (*at_ == '"') {
    bool escaped = false;
    if (!string(m.text, escaped)) return false;
    m.kind = escaped ? Kind::kEscaped : Kind::kString;
    return true;
  }
  if (*at_ == '[' || *at_ == '{') {
    if (*at_ == '[' && id_array(m)) return true;
    at_ = first;
    ids_.resize(m.ids_begin);
    if (!skip_nested()) return false;
    m.kind = Kind::kNested;
    m.text = std::string_view(first, static_cast<std::size_t>(at_ - first));
    return true;
  }
  if (is_digit(*at_) || *at_ == '-') {
    while (at_ < end_ && in_number(*at_)) ++at_;
    m.kind = Kind::kNumber;
  }
  if (at_ < end_ && in_word(*at_)) {  // also -Infinity
    while (at_ < end_ && in_word(*at_)) ++at_;
    m.kind = Kind::kWord;
  }
  m.text = std::string_view(first, static_cast<std::size_t>(at_ - first));
  if (m.text == "null") m.kind = Kind::kNull;
  return at_ != first;
}

bool FlatJson::id_array(Member& m) {
  constexpr int kSafeDigits = 19;  // 10^19 - 1 < 2^64
  m.ids_begin = static_cast<std::uint32_t>(ids_.size());
  ++at_;
  if (!take(']')) {
    const char* at = at_;
    do {
      while (at < end_ && (*at == ' ' || *at == '\t')) ++at;
      const char* const first = at;
      std::uint64_t value = 0;
      while (at < end_ && is_digit(*at) && at - first < kSafeDigits) {
        value = value * 10 + static_cast<std::uint64_t>(*at++ - '0');
      }
      if (at == first || at == end_) return false;
      if (is_digit(*at)) {  // the 20th
        const auto [end, ec] = std::from_chars(first, end_, value);
        if (ec != std::errc()) return false;
        at = end;
      }
      ids_.push_back(value);
      while (at < end_ && (*at == ' ' || *at == '\t')) ++at;
    } while (at < end_ && *at == ',' && ++at);
    at_ = at;
    if (!take(']')) return false;
  }
  m.ids_end = static_cast<std::uint32_t>(ids_.size());
  m.kind = Kind::kIds;
  return true;
}

bool FlatJson::skip_nested() {
  int depth = 0;
  while (at_ < end_) {
    const char c = *at_;
    if (c == '"') {
      std::string_view ignored;
      bool escaped = false;
      if (!string(ignored, escaped)) return false;
      continue;
    }
    ++at_;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') {
      if (--depth == 0) return true;
    }
  }
  return false;
}

}  // namespace medley
