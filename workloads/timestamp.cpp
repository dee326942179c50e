#include "workloads/timestamp.h"

#include <array>
#include <charconv>
#include <string>

namespace medley {

namespace {
__extension__ using Wide = unsigned __int128;
constexpr std::int64_t kNsPerSecond = 1'000'000'000;
constexpr int kMostDigits = 36;  // of a Wide, with room for the rounding

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

int unit_power(TimeUnit unit) {
  switch (unit) {
    case TimeUnit::kS:
      return 9;
    case TimeUnit::kMs:
      return 6;
    case TimeUnit::kUs:
      return 3;
    default:
      return 0;
  }
}

/// mantissa * 10^power, sign apart; `cut` when non-zero digits were left out below.
struct Decimal {
  Wide mantissa = 0;
  int power = 0;
  bool negative = false;
  bool cut = false;
  bool valid = false;
};

/// Takes commas only where thousands separators stand: "1,146.31" but not "1,2".
bool strip_thousands(std::string_view text, std::string& out) {
  const std::size_t dot = std::min(text.find('.'), text.size());
  std::size_t since = 0;
  bool seen = false;
  for (std::size_t i = 0; i < dot; ++i) {
    if (text[i] == ',') {
      const bool first_group = !seen && since >= 1 && since <= 3;
      if (!first_group && !(seen && since == 3)) return false;
      seen = true;
      since = 0;
    } else {
      if (is_digit(text[i])) ++since;
      out += text[i];
    }
  }
  if (seen && since != 3) return false;
  out += text.substr(dot);
  return out.find(',') == std::string::npos;
}

Decimal parse_decimal(std::string_view text) {
  Decimal d;
  std::string plain;
  if (text.find(',') != std::string_view::npos) {
    if (!strip_thousands(text, plain)) return d;
    text = plain;
  }
  std::size_t i = 0;
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) d.negative = text[i++] == '-';
  int digits = 0;
  bool any = false;
  bool fraction = false;
  for (; i < text.size() && (is_digit(text[i]) || (text[i] == '.' && !fraction)); ++i) {
    if (text[i] == '.') {
      fraction = true;
      continue;
    }
    any = true;
    if (digits < kMostDigits) {
      d.mantissa = d.mantissa * 10 + static_cast<unsigned>(text[i] - '0');
      if (d.mantissa != 0) ++digits;
      if (fraction) --d.power;
    } else {
      d.cut = d.cut || text[i] != '0';
      if (!fraction) ++d.power;
    }
  }
  if (any && i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && text[i] == '+') ++i;
    int exponent = 0;
    const auto [end, ec] = std::from_chars(text.data() + i, text.data() + text.size(), exponent);
    if (ec != std::errc() || exponent > 400 || exponent < -400) return d;
    d.power += exponent;
    i = static_cast<std::size_t>(end - text.data());
  }
  d.valid = any && i == text.size();
  return d;
}

/// To nearest, ties to even; kOverflow when it does not fit an int64.
TextFault scale(const Decimal& d, int extra_power, std::int64_t& out) {
  constexpr Wide kMost = static_cast<Wide>(INT64_MAX);
  Wide value = d.mantissa;
  int power = d.power + extra_power;
  for (; power > 0 && value != 0; --power) {
    if (value > kMost / 10) return TextFault::kOverflow;
    value *= 10;
  }
  if (power < 0) {
    Wide divisor = 1;
    for (; power < 0 && divisor <= value; ++power) divisor *= 10;
    if (power < 0) {
      value = 0;  // below a tenth of the last digit
    } else {
      const Wide rest = value % divisor;
      value /= divisor;
      const bool above = rest * 2 > divisor || (rest * 2 == divisor && (d.cut || value % 2 == 1));
      if (above) ++value;
    }
  }
  if (value > kMost) return TextFault::kOverflow;
  out = static_cast<std::int64_t>(value);
  if (d.negative) out = -out;
  return TextFault::kNone;
}

/// Days from 1970-01-01 of a proleptic Gregorian date (Hinnant, "chrono-compatible low-level date
/// algorithms").
std::int64_t days_from_civil(std::int64_t y, int m, int d) {
  y -= m <= 2 ? 1 : 0;
  const std::int64_t era = (y >= 0 ? y : y - 399) / 400;
  const std::int64_t year_of_era = y - era * 400;
  const std::int64_t day_of_year = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
  const std::int64_t day_of_era =
      year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + day_of_era - 719468;
}

int days_in_month(int year, int month) {
  constexpr std::array<int, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return month == 2 && leap ? 29 : kDays[static_cast<std::size_t>(month - 1)];
}

class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}
  bool number(int digits, int& out) {
    out = 0;
    for (int i = 0; i < digits; ++i) {
      if (at_ >= text_.size() || !is_digit(text_[at_])) return false;
      out = out * 10 + (text_[at_++] - '0');
    }
    return true;
  }
  bool one_of(std::string_view chars, char* which = nullptr) {
    if (at_ >= text_.size() || chars.find(text_[at_]) == std::string_view::npos) return false;
    if (which != nullptr) *which = text_[at_];
    ++at_;
    return true;
  }
  std::string_view rest() const { return text_.substr(at_); }
  void skip(std::size_t n) { at_ += n; }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

/// Offset east of UTC in seconds; false for a zone we do not know.
bool parse_zone(std::string_view text, std::int64_t& offset, bool& has_zone) {
  text = trimmed(text);
  offset = 0;
  has_zone = !text.empty();
  if (text.empty() || text == "Z" || text == "z" || text == "UTC" || text == "GMT") return true;
  if (text == "PST" || text == "PDT") {
    offset = text == "PST" ? -8 * 3600 : -7 * 3600;
    return true;
  }
  Cursor c(text);
  char sign = '+';
  int hours = 0;
  int minutes = 0;
  if (!c.one_of("+-", &sign) || !c.number(2, hours)) return false;
  if (!c.rest().empty()) {
    c.one_of(":");
    if (!c.number(2, minutes) || !c.rest().empty()) return false;
  }
  if (hours > 18 || minutes > 59) return false;
  offset = (hours * 3600 + minutes * 60) * (sign == '-' ? -1 : 1);
  return true;
}
}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

TimeUnit parse_time_unit(std::string_view text) {
  for (const TimeUnit unit :
       {TimeUnit::kNs, TimeUnit::kUs, TimeUnit::kMs, TimeUnit::kS, TimeUnit::kWallClock}) {
    if (text == to_text(unit)) return unit;
  }
  return TimeUnit::kUnknown;
}

std::string_view to_text(TimeUnit unit) {
  switch (unit) {
    case TimeUnit::kNs:
      return "ns";
    case TimeUnit::kUs:
      return "us";
    case TimeUnit::kMs:
      return "ms";
    case TimeUnit::kS:
      return "s";
    case TimeUnit::kWallClock:
      return "wall";
    case TimeUnit::kUnknown:
      break;
  }
  return "unknown";
}

ParsedNs parse_decimal_ns(std::string_view text, TimeUnit unit) {
  ParsedNs out;
  const Decimal d = parse_decimal(trimmed(text));
  out.fault = d.valid ? scale(d, unit_power(unit), out.ns) : TextFault::kSyntax;
  return out;
}

ParsedNs parse_wall_clock(std::string_view text) {
  ParsedNs out;
  out.fault = TextFault::kSyntax;
  Cursor c(trimmed(text));
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  char separator = '-';
  if (!c.number(4, year) || !c.one_of("-/", &separator) || !c.number(2, month) ||
      !c.one_of({&separator, 1}) || !c.number(2, day) || !c.one_of(" Tt") || !c.number(2, hour) ||
      !c.one_of(":") || !c.number(2, minute) || !c.one_of(":") || !c.number(2, second)) {
    return out;
  }
  if (month < 1 || month > 12 || day < 1 || day > days_in_month(year, month) || hour > 23 ||
      minute > 59 || second > 59) {
    return out;
  }
  Decimal fraction;
  if (c.rest().starts_with('.')) {
    std::size_t digits = 1;
    while (digits < c.rest().size() && is_digit(c.rest()[digits])) ++digits;
    fraction = parse_decimal(c.rest().substr(0, digits));
    if (!fraction.valid) return out;
    c.skip(digits);
  }
  std::int64_t sub_second = 0;
  std::int64_t offset = 0;
  scale(fraction, 9, sub_second);
  if (!parse_zone(c.rest(), offset, out.has_zone)) return out;
  const std::int64_t seconds =
      days_from_civil(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset;
  std::int64_t whole = 0;
  if (__builtin_mul_overflow(seconds, kNsPerSecond, &whole) ||
      __builtin_add_overflow(whole, sub_second, &out.ns)) {
    out.fault = TextFault::kOverflow;
    return out;
  }
  out.fault = TextFault::kNone;
  return out;
}

ParsedNs parse_time(std::string_view text, TimeUnit unit) {
  if (unit == TimeUnit::kWallClock || unit == TimeUnit::kUnknown) return parse_wall_clock(text);
  return parse_decimal_ns(text, unit);
}

ParsedCount parse_count(std::string_view text) {
  ParsedCount out;
  text = trimmed(text);
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), out.value);
  if (ec == std::errc() && end == text.data() + text.size()) {
    if (out.value < 0) out.fault = TextFault::kNegative;
    return out;
  }
  const Decimal d = parse_decimal(text);
  out.value = 0;
  if (!d.valid) {
    out.fault = TextFault::kSyntax;
    return out;
  }
  out.fault = scale(d, 0, out.value);
  Wide digits = d.mantissa;
  int power = d.power;
  for (; power < 0 && digits % 10 == 0 && digits != 0; ++power) digits /= 10;
  if (out.fault == TextFault::kNone && digits != 0 && (power < 0 || d.cut)) {
    out.fault = TextFault::kFraction;
  } else if (out.fault == TextFault::kNone && d.negative && d.mantissa != 0) {
    out.fault = TextFault::kNegative;
  }
  return out;
}

}  // namespace medley
