#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "sim/core/csv.h"
#include "sim/core/error.h"
#include "sim/core/text_file.h"
#include "workloads/generator_load.h"
#include "workloads/timestamp.h"

namespace medley {

namespace {
class ColumnsReader {
 public:
  explicit ColumnsReader(const CsvRequest& request) : request_(request) {
    out_.values.resize(request.names.size());
  }

  CsvColumns run() {
    LineReader lines(request_.path);
    std::string_view line;
    bool first = true;
    while (lines.next(line)) {
      if (trimmed(line).empty() || trimmed(line).starts_with('#')) continue;
      where_ = fmt::format("line {}", lines.line_number());
      if (!split_csv(line, fields_)) fail("a quote is left open");
      if (first) take_header();
      if (!first || !request_.header) take_row();
      first = false;
    }
    if (out_.values.empty() || out_.values.front().empty()) {
      throw InputError(request_.file, "", "has no row to use");
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(std::string message, std::string hint = "") const {
    throw InputError(request_.file, where_, std::move(message), std::move(hint));
  }

  void take_header() {
    header_ = fields_;
    for (std::size_t i = 0; i < header_.size(); ++i) {
      header_[i] = request_.header ? std::string(trimmed(header_[i])) : std::to_string(i + 1);
    }
    for (const std::string& name : request_.names) wanted_.push_back(column(name));
    for (const auto& [name, value] : request_.where) filter_.push_back(column(name));
  }

  std::size_t column(const std::string& name) const {
    const auto it = std::find(header_.begin(), header_.end(), name);
    if (it == header_.end()) fail(fmt::format("has no column `{}`", name), suggest(name, header_));
    return static_cast<std::size_t>(it - header_.begin());
  }

  void take_row() {
    if (fields_.size() != header_.size()) {
      fail(fmt::format("{} fields where the header has {}", fields_.size(), header_.size()));
    }
    for (std::size_t i = 0; i < filter_.size(); ++i) {
      if (trimmed(fields_[filter_[i]]) != request_.where[i].second) return;
    }
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      const std::string_view text = trimmed(fields_[wanted_[i]]);
      double value = 0.0;
      const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (ec != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
        fail(fmt::format("{} `{}` is not a finite number", request_.names[i], text));
      }
      out_.values[i].push_back(value);
    }
  }

  const CsvRequest& request_;
  CsvColumns out_;
  std::string where_;
  std::vector<std::string> fields_, header_;
  std::vector<std::size_t> wanted_, filter_;
};
}  // namespace

CsvColumns read_csv_columns(const CsvRequest& request) {
  return ColumnsReader(request).run();
}

}  // namespace medley
