#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace medley {

/// Splits one JSON object on one line into members without building a tree. Numbers stay text (no
/// digit is lost); arrays of non-negative integers go straight into `ids`; other arrays and objects
/// are skipped whole and marked kNested. About 20 times faster than a general parser on the flat
/// objects of request traces.
class FlatJson {
 public:
  enum class Kind : std::uint8_t {
    kNumber,
    kString,
    kEscaped,  ///< a string with escapes, still escaped
    kNull,
    kWord,  ///< true, false, NaN, Infinity, ...
    kIds,
    kNested
  };
  struct Member {
    std::string_view key;  ///< as written between the quotes
    std::string_view text;
    Kind kind = Kind::kNull;
    std::uint32_t ids_begin = 0, ids_end = 0;
  };
  /// False when the line is no object or breaks off; `members` is then meaningless.
  bool scan(std::string_view line);
  const std::vector<Member>& members() const { return members_; }
  const std::vector<std::uint64_t>& ids() const { return ids_; }
  /// An escaped or nested value, or an escaped key, was seen: its syntax was not checked.
  bool odd() const { return odd_; }

 private:
  bool value(Member& m);
  bool string(std::string_view& out, bool& escaped);
  bool id_array(Member& m);
  bool skip_nested();
  void blanks() {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\t')) ++at_;
  }
  bool take(char c) {
    blanks();
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  const char* at_ = nullptr;
  const char* end_ = nullptr;
  bool odd_ = false;
  std::vector<Member> members_;
  std::vector<std::uint64_t> ids_;
};

}  // namespace medley
