#include "sim/core/unit_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "sim/core/error.h"
#include "sim/core/unit_tables.h"

namespace medley {

namespace {
using detail::Unit;
using Units = std::vector<Unit>;

bool is_digit(std::string_view text, std::size_t i) {
  return i < text.size() && text[i] >= '0' && text[i] <= '9';
}
bool is_sign(std::string_view text, std::size_t i) {
  return i < text.size() && (text[i] == '+' || text[i] == '-');
}

/// A decimal number as text, split so that its exponent can be moved without rounding.
struct Decimal {
  std::string mantissa;  ///< "-3.35"
  int exp10 = 0;
  std::size_t length = 0;  ///< characters of the source it took; 0 = there is no number
};

Decimal read_decimal(std::string_view text) {
  constexpr int kHugeExponent = 100000;
  Decimal d;
  std::size_t i = is_sign(text, 0) ? 1 : 0;
  const std::size_t first = i;
  while (is_digit(text, i)) ++i;
  const bool whole = i > first;
  if (i < text.size() && text[i] == '.' && (whole || is_digit(text, i + 1))) {
    ++i;
    while (is_digit(text, i)) ++i;
  } else if (!whole) {
    return d;
  }
  const std::size_t begin = text[0] == '+' ? 1 : 0;
  d.mantissa = text.substr(begin, i - begin);
  d.length = i;
  const std::size_t digits = i + (is_sign(text, i + 1) ? 2 : 1);
  // An E without digits belongs to the unit ("3EB").
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E') && is_digit(text, digits)) {
    for (std::size_t j = digits; is_digit(text, j); d.length = ++j) {
      d.exp10 = std::min(d.exp10 * 10 + (text[j] - '0'), kHugeExponent);
    }
    if (text[i + 1] == '-') d.exp10 = -d.exp10;
  }
  return d;
}

/// NaN when no double is near.
double scaled(const Decimal& number, const Unit& unit) {
  const std::string text = fmt::format("{}e{}", number.mantissa, number.exp10 + unit.exp10);
  double value = 0.0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec == std::errc::result_out_of_range) {
    const bool zero = number.mantissa.find_first_of("123456789") == std::string::npos;
    return zero ? 0.0 : std::nan("");
  }
  return value * unit.times / unit.over;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t";
  const std::size_t begin = std::min(text.find_first_not_of(kBlank), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(kBlank) + 1);  // npos + 1 == 0
}

[[noreturn]] void fail_unit(std::string_view text, std::string_view name, const Units& units,
                            const char* example) {
  std::vector<std::string> names;
  for (const Unit& unit : units) names.push_back(unit.name);
  const std::string near = nearest(name, names);
  const std::string guess = near.empty() ? "" : fmt::format(", did you mean \"{}\"?", near);
  throw std::invalid_argument(fmt::format(
      "\"{}\": unknown unit \"{}\" here{}; write for example \"{}\"", text, name, guess, example));
}

double parse(std::string_view text, const Units& units, const char* example) {
  const std::string_view body = trim(text);
  const Decimal number = read_decimal(body);
  if (number.length == 0) {
    throw std::invalid_argument(
        fmt::format("\"{}\" is not a number with a unit; write for example \"{}\"", text, example));
  }
  const std::string_view name = trim(body.substr(number.length));
  if (name.empty()) {
    if (scaled(number, Unit{}) == 0.0) return 0.0;
    throw std::invalid_argument(
        fmt::format("\"{}\" has no unit; write for example \"{}\"", text, example));
  }
  const auto unit =
      std::find_if(units.begin(), units.end(), [&](const Unit& u) { return u.name == name; });
  if (unit == units.end()) fail_unit(text, name, units, example);
  const double value = scaled(number, *unit);
  if (!std::isfinite(value)) {
    throw std::invalid_argument(fmt::format("\"{}\" is out of range for a double", text));
  }
  return value;
}

/// `scientific` ("-3.35e+12") times 10^-shift, by moving the decimal point.
std::string shifted(std::string_view scientific, int shift) {
  const Decimal d = read_decimal(scientific);
  std::string digits = d.mantissa;
  const std::string sign = digits.starts_with('-') ? "-" : "";
  std::erase_if(digits, [](char c) { return c == '.' || c == '-'; });
  digits.erase(std::max<std::size_t>(digits.find_last_not_of('0') + 1, 1));
  const int point = 1 + d.exp10 - shift;  // digits before the decimal point
  const int count = static_cast<int>(digits.size());
  constexpr int kMostZeros = 6;
  if (point < -kMostZeros || point > count + kMostZeros) {
    return fmt::format("{}{}{}{}e{}", sign, digits.substr(0, 1), count > 1 ? "." : "",
                       digits.substr(1), point - 1);
  }
  const auto zeros = [](int n) { return std::string(static_cast<std::size_t>(n), '0'); };
  if (point <= 0) return sign + "0." + zeros(-point) + digits;
  if (point >= count) return sign + digits + zeros(point - count);
  return sign + digits.insert(static_cast<std::size_t>(point), ".");
}

/// Shortest text of `value` in `unit` that reads back exactly; empty when there is none.
std::string text_in(double value, const Unit& unit) {
  if (unit.decimal()) {
    char buffer[40];
    const auto end =
        std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
    return shifted(std::string_view(buffer, end.ptr), unit.exp10);
  }
  constexpr int kDigits = 17;
  const double in_unit = value * unit.over / unit.times * std::pow(10.0, -unit.exp10);
  for (int precision = 0; precision < kDigits; ++precision) {
    const std::string text = fmt::format("{:.{}e}", in_unit, precision);
    if (scaled(read_decimal(text), unit) == value) return shifted(text, 0);
  }
  return "";
}

/// The largest shown unit of the family that leaves at least 1, else the smallest one.
const Unit* choose(double value, const Units& units, bool decimal) {
  constexpr double kSlack = 1.0 - 1e-15;  // 10^n of the table is rounded
  const auto size = [](const Unit& u) { return std::pow(10.0, u.exp10) * u.times / u.over; };
  const Unit* chosen = nullptr;
  const Unit* smallest = nullptr;
  for (const Unit& u : units) {
    if (!u.shown || u.decimal() != decimal) continue;
    if (!smallest || size(u) < size(*smallest)) smallest = &u;
    if (std::abs(value) < size(u) * kSlack) continue;
    if (!chosen || size(u) > size(*chosen)) chosen = &u;
  }
  return chosen ? chosen : smallest;
}

std::string format(double value, const Units& units) {
  MEDLEY_CHECK(std::isfinite(value), "format_quantity: not a finite number");
  if (value == 0.0) return "0 " + units.front().name;
  std::string best;
  for (const bool decimal : {units.front().decimal(), !units.front().decimal()}) {
    const Unit* unit = choose(value, units, decimal);
    const std::string number = unit ? text_in(value, *unit) : "";
    if (number.empty()) continue;
    const std::string text = number + " " + unit->name;
    if (best.empty() || text.size() < best.size()) best = text;
  }
  return best;
}
}  // namespace

#define MEDLEY_DEFINE(Q)                                                     \
  template <>                                                                \
  Q parse_quantity<Q>(std::string_view text) {                               \
    return Q(parse(text, detail::units_of<Q>(), detail::unit_example<Q>())); \
  }                                                                          \
  template <>                                                                \
  std::string format_quantity<Q>(Q quantity) {                               \
    return format(quantity.value(), detail::units_of<Q>());                  \
  }
MEDLEY_QUANTITIES(MEDLEY_DEFINE)
#undef MEDLEY_DEFINE

}  // namespace medley
