#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace medley {

/// One thing that is wrong with what the user gave: where, what, and what would be right.
struct Problem {
  std::string file;     ///< path as the user wrote it, or empty
  std::string pointer;  ///< JSON pointer ("/pools/chat/model"), "line 12", or empty
  std::string message;  ///< what is wrong
  std::string hint;     ///< what would be right; may be empty
};

/// "file:pointer: message (hint)", one line.
std::string to_text(const Problem& problem);

/// The user's input is wrong. Carries every problem found, not only the first. Exit code 2.
class InputError : public std::runtime_error {
 public:
  explicit InputError(std::vector<Problem> problems);
  explicit InputError(Problem problem) : InputError(std::vector<Problem>{std::move(problem)}) {}
  InputError(std::string file, std::string pointer, std::string message, std::string hint = "")
      : InputError(
            Problem{std::move(file), std::move(pointer), std::move(message), std::move(hint)}) {}
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  std::vector<Problem> problems_;
};

/// The input is well formed but nothing can run (a model that fits on no device). Exit code 1.
class InfeasibleError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A bug of ours. Exit code 3.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void fail_check(const char* condition, const char* file, int line,
                             std::string_view message);

/// Collects problems so that all of a file's are reported at once.
class Problems {
 public:
  void add(Problem problem) { list_.push_back(std::move(problem)); }
  void add(std::string file, std::string pointer, std::string message, std::string hint = "") {
    add(Problem{std::move(file), std::move(pointer), std::move(message), std::move(hint)});
  }
  bool empty() const { return list_.empty(); }
  std::size_t size() const { return list_.size(); }
  const std::vector<Problem>& list() const { return list_; }
  /// Throws InputError with everything collected, if anything was.
  void throw_if_any();

 private:
  std::vector<Problem> list_;
};

/// The candidate nearest to `word` when near enough to be a likely typing error, else empty.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);
/// `did you mean "x"?` or, when nothing is near, `known: a, b, c, ...`; for Problem::hint.
std::string suggest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace medley

/// Kept in release builds: a wrong number is worse than no number.
#define MEDLEY_CHECK(cond, message)                             \
  do {                                                          \
    if (!(cond)) [[unlikely]]                                   \
      ::medley::fail_check(#cond, __FILE__, __LINE__, message); \
  } while (false)
