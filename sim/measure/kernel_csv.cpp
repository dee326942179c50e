#include "sim/measure/kernel_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "sim/core/csv.h"

namespace medley {

std::string_view trimmed_text(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::optional<double> number_in(std::string_view text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

KernelCsv::KernelCsv(const std::string& path, KernelConstants constants)
    : path_(path), lines_(path), constants_(std::move(constants)) {
  std::string_view line;
  do {
    if (!lines_.next(line)) throw InputError(path_, "", "is empty: no header");
  } while (trimmed_text(line).empty() || trimmed_text(line).starts_with('#'));
  const std::string where = fmt::format("line {}", lines_.line_number());
  if (!split_csv(line, header_)) throw InputError(path_, where, "a quote is left open");
  for (std::string& name : header_) name = std::string(trimmed_text(name));
  for (std::size_t i = 0; i < header_.size(); ++i) {
    if (header_[i].empty()) continue;
    if (std::count(header_.begin(), header_.end(), header_[i]) > 1) {
      throw InputError(path_, where, fmt::format("names the column `{}` twice", header_[i]),
                       "rename or drop one");
    }
  }
  claimed_.assign(header_.size(), 0);
}

bool KernelCsv::has(std::string_view name) const {
  return std::find(header_.begin(), header_.end(), name) != header_.end() ||
         constants_.find(name) != constants_.end();
}

KernelCsv::Column KernelCsv::find(std::string_view name) {
  const auto at = std::find(header_.begin(), header_.end(), name);
  if (at != header_.end()) {
    const auto index = static_cast<std::size_t>(at - header_.begin());
    claimed_[index] = 1;
    return static_cast<Column>(index);
  }
  const auto constant = constants_.find(name);
  if (constant == constants_.end()) return kAbsent;
  constant_values_.push_back(constant->second);
  return -1 - static_cast<Column>(constant_values_.size());
}

KernelCsv::Column KernelCsv::find_any(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const Column column = find(name);
    if (column != kAbsent) return column;
  }
  return kAbsent;
}

KernelCsv::Column KernelCsv::need(std::string_view name) {
  const Column column = find(name);
  if (column == kAbsent) missing_.emplace_back(name);
  return column;
}

void KernelCsv::ignore(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const auto at = std::find(header_.begin(), header_.end(), name);
    if (at != header_.end()) claimed_[static_cast<std::size_t>(at - header_.begin())] = 1;
  }
}

void KernelCsv::ignore_prefix(std::string_view prefix) {
  for (std::size_t i = 0; i < header_.size(); ++i) {
    if (std::string_view(header_[i]).starts_with(prefix)) claimed_[i] = 1;
  }
}

void KernelCsv::ignore_rest() {
  std::fill(claimed_.begin(), claimed_.end(), char{1});
}

void KernelCsv::start(std::string_view format) {
  Problems problems;
  for (const std::string& name : missing_) {
    problems.add(path_, fmt::format("line {}", lines_.line_number()),
                 fmt::format("has no column `{}`, which {} needs", name, format),
                 suggest(name, header_));
  }
  problems.throw_if_any();
  for (std::size_t i = 0; i < header_.size(); ++i) {
    if (claimed_[i] == 0 && !header_[i].empty()) strangers_.push_back({i, {}});
  }
}

void KernelCsv::split(std::string_view line) {
  fields_.clear();
  if (line.find('"') != std::string_view::npos) {
    broken_ = !split_csv(line, quoted_);
    fields_.assign(quoted_.begin(), quoted_.end());
  } else {
    for (std::size_t at = 0;;) {
      const std::size_t comma = line.find(',', at);
      fields_.push_back(line.substr(at, comma - at));
      if (comma == std::string_view::npos) break;
      at = comma + 1;
    }
  }
  for (std::string_view& field : fields_) field = trimmed_text(field);
}

void KernelCsv::check_strangers() {
  for (Stranger& s : strangers_) {
    const std::string_view value = fields_[s.column];
    if (!strangers_seen_) {
      s.value = std::string(value);
    } else if (value != s.value) {
      throw InputError(path_, fmt::format("line {}", line()),
                       fmt::format("unknown column `{}`, whose values differ (`{}`, `{}`)",
                                   header_[s.column], s.value, value),
                       "rows would be mixed that are not alike; drop the column or split the file");
    }
  }
  strangers_seen_ = true;
}

bool KernelCsv::next() {
  std::string_view line;
  do {
    if (!lines_.next(line)) return false;
  } while (trimmed_text(line).empty());
  broken_ = false;
  split(line);
  broken_ = broken_ || fields_.size() != header_.size();
  if (!broken_ && !strangers_.empty()) check_strangers();
  return true;
}

std::string_view KernelCsv::text(Column column) const {
  if (column >= 0) return fields_[static_cast<std::size_t>(column)];
  if (column == kAbsent) return {};
  return constant_values_[static_cast<std::size_t>(-2 - column)];
}

std::optional<double> KernelCsv::number(Column column) const {
  return number_in(text(column));
}

}  // namespace medley
