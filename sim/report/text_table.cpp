#include "sim/report/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/core/csv.h"
#include "sim/core/error.h"

namespace medley {

namespace {
/// The code point at `i`, which moves behind it; invalid bytes count as themselves.
std::uint32_t next_code_point(std::string_view text, std::size_t& i) {
  const auto lead = static_cast<unsigned char>(text[i++]);
  const int more = lead >= 0xF8 ? 0 : lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
  std::uint32_t code = lead;
  if (more > 0) code &= (0x3FU >> more);
  for (int k = 0; k < more && i < text.size(); ++k, ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) break;
    code = (code << 6) | (static_cast<unsigned char>(text[i]) & 0x3FU);
  }
  return code;
}

bool combining(std::uint32_t c) {
  return (c >= 0x300 && c <= 0x36F) || (c >= 0x200B && c <= 0x200F) || c == 0xFEFF ||
         (c >= 0xFE00 && c <= 0xFE0F);
}

bool wide(std::uint32_t c) {
  return (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) ||
         (c >= 0xAC00 && c <= 0xD7A3) || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
         (c >= 0x1F300 && c <= 0x1FAFF) || (c >= 0x20000 && c <= 0x3FFFD);
}
}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size();) {
    const std::uint32_t c = next_code_point(text, i);
    if (!combining(c)) width += wide(c) ? 2 : 1;
  }
  return width;
}

void TextTable::add(std::vector<std::string> row) {
  MEDLEY_CHECK(row.size() == columns_.size(), "a row has as many cells as the table has columns");
  rows_.push_back(std::move(row));
}

void TextTable::rule() {
  rules_.push_back(rows_.size());
}

std::string TextTable::aligned() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = display_width(columns_[c].title);
    for (const auto& row : rows_) width = std::max(width, display_width(row[c]));
    widths.push_back(width);
  }
  std::string out;
  const auto line = [&](const auto& cell) {
    std::string text;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const std::string& value = cell(c);
      const std::string pad(widths[c] - display_width(value), ' ');
      if (c > 0) text += "  ";
      text += columns_[c].align == Align::kRight ? pad + value : value + pad;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  std::size_t total = widths.empty() ? 0 : 2 * (widths.size() - 1);
  for (const std::size_t w : widths) total += w;
  line([&](std::size_t c) -> const std::string& { return columns_[c].title; });
  out += std::string(total, '-') + "\n";
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    if (std::find(rules_.begin(), rules_.end(), r) != rules_.end()) {
      out += std::string(total, '-') + "\n";
    }
    line([&](std::size_t c) -> const std::string& { return rows_[r][c]; });
  }
  return out;
}

std::string TextTable::csv() const {
  std::vector<std::string_view> header;
  for (const Column& c : columns_) header.push_back(c.key.empty() ? c.title : c.key);
  CsvWriter out(header);
  for (const auto& row : rows_) {
    for (const std::string& cell : row) out.field(std::string_view(cell));
    out.end_row();
  }
  return out.take();
}

std::string TextTable::json() const {
  using Json = nlohmann::ordered_json;
  Json all = Json::array();
  for (const auto& row : rows_) {
    Json one = Json::object();
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const std::string& key = columns_[c].key.empty() ? columns_[c].title : columns_[c].key;
      const std::string& cell = row[c];
      double value = 0.0;
      const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
      if (cell.empty() || cell == "-") {
        one[key] = nullptr;
      } else if (columns_[c].align == Align::kRight && error == std::errc() &&
                 end == cell.data() + cell.size()) {
        one[key] = value;
      } else {
        one[key] = cell;
      }
    }
    all.push_back(std::move(one));
  }
  return all.dump(2) + "\n";
}

namespace {
/// Three significant digits, no exponent for 1e-3 <= |v| < 1e4.
std::string three_digits(double v) {
  const double size = std::abs(v);
  if (size == 0.0) return "0";
  if (size < 1e-3) return fmt::format("{:.2e}", v);
  // What would round up to the next power of ten belongs there.
  const int decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
  return fmt::format("{:.{}f}", v, decimals);
}

struct Scale {
  double factor;
  const char* unit;
};

template <std::size_t N>
std::string scaled(double v, const Scale (&scales)[N]) {
  if (std::isnan(v)) return "-";
  if (v == 0.0) return fmt::format("0{}", scales[0].unit);
  constexpr double kRoundsUp = 0.9995;
  const Scale* best = &scales[0];
  for (const Scale& s : scales) {
    if (std::abs(v) >= kRoundsUp * s.factor) best = &s;
  }
  return three_digits(v / best->factor) + best->unit;
}
}  // namespace

std::string short_number(double v) {
  constexpr Scale kScales[] = {{1.0, ""}, {1e6, " M"}, {1e9, " G"}, {1e12, " T"}};
  if (std::abs(v) >= 1e4 && std::abs(v) < 0.9995e6) return three_digits(v / 1e3) + " k";
  return scaled(v, kScales);
}

std::string short_seconds(double s) {
  constexpr Scale kScales[] = {{1e-9, " ns"}, {1e-6, " us"},  {1e-3, " ms"},
                               {1.0, " s"},   {60.0, " min"}, {3600.0, " h"}};
  if (s == 0.0) return "0 s";
  if (s >= 0.9995 && s < 600.0) return three_digits(s) + " s";
  return scaled(s, kScales);
}

std::string short_joules(double j) {
  constexpr Scale kScales[] = {{1.0, " J"}, {1e3, " kJ"}, {1e6, " MJ"}, {3.6e9, " MWh"}};
  return scaled(j, kScales);
}

std::string percent(double share) {
  if (std::isnan(share)) return "-";
  return fmt::format("{:.1f} %", 100.0 * share);
}

}  // namespace medley
