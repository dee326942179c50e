#include "sim/core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace medley {

std::string to_text(const Problem& p) {
  std::string where = p.file;
  if (!p.pointer.empty()) where += (where.empty() ? "" : ":") + p.pointer;
  std::string text = where.empty() ? p.message : fmt::format("{}: {}", where, p.message);
  if (!p.hint.empty()) text += fmt::format(" ({})", p.hint);
  return text;
}

namespace {
std::string join(const std::vector<Problem>& problems) {
  std::string all;
  for (const Problem& p : problems) all += (all.empty() ? "" : "\n") + to_text(p);
  return all;
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

/// Insertions, deletions, changes and swaps of neighbours, each worth 1; letter case worth nothing.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);  // two rows ago
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  const auto same = [&](std::size_t i, std::size_t j) { return lower(a[i]) == lower(b[j]); };
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = above[j - 1] + (same(i - 1, j - 1) ? 0U : 1U);
      row[j] = std::min({change, above[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && same(i - 1, j - 2) && same(i - 2, j - 1)) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}
}  // namespace

InputError::InputError(std::vector<Problem> problems)
    : std::runtime_error(join(problems)), problems_(std::move(problems)) {}

void fail_check(const char* condition, const char* file, int line, std::string_view message) {
  const std::string_view path = file;
  const std::string_view base = path.substr(path.find_last_of('/') + 1);
  throw InternalError(fmt::format("{} [{} at {}:{}]", message, condition, base, line));
}

void Problems::throw_if_any() {
  if (!list_.empty()) throw InputError(std::exchange(list_, {}));
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::size_t best = std::max<std::size_t>(word.size() / 3, 1) + 1;
  std::string found;
  for (const std::string& c : candidates) {
    const std::size_t d = edit_distance(word, c);
    if (d < best) {
      best = d;
      found = c;
    }
  }
  return found;
}

std::string suggest(std::string_view word, const std::vector<std::string>& candidates) {
  if (const std::string near = nearest(word, candidates); !near.empty()) {
    return fmt::format("did you mean \"{}\"?", near);
  }
  constexpr std::size_t kShown = 12;
  std::string known;
  for (std::size_t i = 0; i < std::min(kShown, candidates.size()); ++i) {
    known += (i ? ", " : "") + candidates[i];
  }
  if (candidates.size() > kShown) known += fmt::format(", ... {} more", candidates.size() - kShown);
  return candidates.empty() ? "" : "known: " + known;
}

}  // namespace medley
