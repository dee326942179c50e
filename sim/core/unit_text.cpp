#include "sim/core/unit_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "sim/core/error.h"

namespace medley {

namespace {
/// value = number * 10^exp10 * times / over. Decimal units have times = over = 1, and are read by
/// moving the decimal point of the text, so "3.35 TB/s" is exactly the double 3.35e12.
struct Unit {
  std::string name;
  int exp10 = 0;
  double times = 1.0;
  double over = 1.0;
  bool shown = false;  ///< format_quantity may choose it
};
using Units = std::vector<Unit>;

constexpr double kMinute = 60.0;
constexpr double kHour = 3600.0;
constexpr double kDay = 86400.0;
constexpr double kYear = 365.0 * kDay;
constexpr double kBitsPerByte = 8.0;

struct Prefix {
  const char* text;
  int exp10;
};
constexpr Prefix kSmall[] = {{"m", -3}, {"u", -6},  {"\u00b5", -6},
                             {"n", -9}, {"p", -12}, {"f", -15}};
constexpr Prefix kLarge[] = {{"k", 3}, {"M", 6}, {"G", 9}, {"T", 12}, {"P", 15}, {"E", 18}};

void add_large(Units& units, const std::string& base, bool shown, double over = 1.0) {
  units.push_back({base, 0, 1.0, over, shown});
  for (const Prefix& p : kLarge) units.push_back({p.text + base, p.exp10, 1.0, over, shown});
}
void add_small(Units& units, const std::string& base, bool shown, double over = 1.0) {
  for (const Prefix& p : kSmall) {
    units.push_back({p.text + base, p.exp10, 1.0, over, shown && p.text[0] != '\xc2'});
  }
}
void add_binary(Units& units, const std::string& base) {
  const char* prefixes[] = {"Ki", "Mi", "Gi", "Ti", "Pi"};
  double times = 1.0;
  for (const char* p : prefixes) units.push_back({p + base, 0, times *= 1024.0, 1.0, true});
}

template <class Q>
struct Kind;  // units(), and an example for messages
#define MEDLEY_KIND(Q, sample)                      \
  template <>                                       \
  struct Kind<Q> {                                  \
    static constexpr const char* kExample = sample; \
    static Units units();                           \
  };
MEDLEY_KIND(Seconds, "500 ms")
MEDLEY_KIND(Bytes, "80 GiB")
MEDLEY_KIND(Flops, "2.5 TFLOP")
MEDLEY_KIND(Joules, "12 kJ")
MEDLEY_KIND(Usd, "30000 USD")
MEDLEY_KIND(PerSec, "2.5 1/s")
MEDLEY_KIND(BytesPerSec, "3.35 TB/s")
MEDLEY_KIND(FlopsPerSec, "989 TFLOP/s")
MEDLEY_KIND(Watts, "700 W")
MEDLEY_KIND(JoulesPerByte, "30 pJ/B")
MEDLEY_KIND(JoulesPerFlop, "0.87 pJ/flop")
MEDLEY_KIND(UsdPerSec, "2.95 USD/h")
MEDLEY_KIND(UsdPerJoule, "0.12 USD/kWh")
#undef MEDLEY_KIND

Units Kind<Seconds>::units() {
  Units u = {{"s", 0, 1.0, 1.0, true}, {"sec", 0},         {"min", 0, kMinute},
             {"h", 0, kHour},          {"d", 0, kDay},     {"day", 0, kDay},
             {"days", 0, kDay},        {"year", 0, kYear}, {"years", 0, kYear}};
  add_small(u, "s", true);
  return u;
}
Units Kind<Bytes>::units() {
  Units u;
  add_large(u, "B", true);
  add_binary(u, "B");
  add_large(u, "b", false, kBitsPerByte);
  add_large(u, "bit", false, kBitsPerByte);
  return u;
}
Units Kind<Flops>::units() {
  Units u;
  add_large(u, "FLOP", true);
  add_large(u, "flop", false);
  add_large(u, "OP", false);
  return u;
}
Units Kind<Joules>::units() {
  Units u;
  add_large(u, "J", true);
  add_small(u, "J", true);
  add_large(u, "Wh", false);
  for (Unit& unit : u) {
    if (unit.name.ends_with("Wh")) unit.times = kHour;
  }
  return u;
}
Units Kind<Usd>::units() {
  return {{"USD", 0, 1.0, 1.0, true}, {"kUSD", 3}, {"MUSD", 6}};
}
Units Kind<PerSec>::units() {
  Units u = {{"1/s", 0, 1.0, 1.0, true}, {"/s", 0},    {"req/s", 0},
             {"requests/s", 0},          {"tok/s", 0}, {"tokens/s", 0}};
  for (const char* what : {"1", "", "req", "requests", "tok", "tokens"}) {
    u.push_back({fmt::format("{}/min", what), 0, 1.0, kMinute});
    u.push_back({fmt::format("{}/h", what), 0, 1.0, kHour});
    u.push_back({fmt::format("{}/day", what), 0, 1.0, kDay});
  }
  u.push_back({"1/ms", 3});
  add_large(u, "Hz", false);
  return u;
}
Units Kind<BytesPerSec>::units() {
  Units u;
  add_large(u, "B/s", true);
  add_binary(u, "B/s");
  for (const char* bit : {"b/s", "bit/s", "bps"}) add_large(u, bit, false, kBitsPerByte);
  return u;
}
Units Kind<FlopsPerSec>::units() {
  Units u;
  add_large(u, "FLOP/s", true);
  for (const char* name : {"flop/s", "FLOPS", "OPS", "OP/s", "op/s"}) add_large(u, name, false);
  return u;
}
Units Kind<Watts>::units() {
  Units u = {{"mW", -3, 1.0, 1.0, true}, {"uW", -6, 1.0, 1.0, true}};
  add_large(u, "W", true);
  return u;
}
Units Kind<JoulesPerByte>::units() {
  Units u = {{"J/B", 0, 1.0, 1.0, true}};
  add_small(u, "J/B", true);
  for (const char* bit : {"J/b", "J/bit"}) {
    add_small(u, bit, false);
    u.push_back({bit});
  }
  for (Unit& unit : u) {
    if (!unit.name.ends_with("J/B")) unit.times = kBitsPerByte;
  }
  return u;
}
Units Kind<JoulesPerFlop>::units() {
  Units u = {{"J/flop", 0, 1.0, 1.0, true}};
  add_small(u, "J/flop", true);
  for (const char* name : {"J/FLOP", "J/op", "J/OP"}) {
    u.push_back({name});
    add_small(u, name, false);
  }
  return u;
}
Units Kind<UsdPerSec>::units() {
  return {{"USD/h", 0, 1.0, kHour, true},
          {"USD/s", 0, 1.0, 1.0, true},
          {"USD/hour", 0, 1.0, kHour},
          {"USD/day", 0, 1.0, kDay},
          {"USD/year", 0, 1.0, kYear}};
}
Units Kind<UsdPerJoule>::units() {
  return {{"USD/kWh", -3, 1.0, kHour, true},
          {"USD/J", 0, 1.0, 1.0, true},
          {"USD/MWh", -6, 1.0, kHour},
          {"USD/Wh", 0, 1.0, kHour}};
}

template <class Q>
const Units& units_of() {
  static const Units units = Kind<Q>::units();
  return units;
}

/// A decimal number as text, split so that its exponent can be moved without rounding.
struct Decimal {
  std::string mantissa;  ///< "-3.35"
  int exp10 = 0;
  std::size_t length = 0;  ///< characters of the source it took; 0 = there is no number
};

Decimal read_decimal(std::string_view text) {
  const auto digit = [&](std::size_t i) {
    return i < text.size() && text[i] >= '0' && text[i] <= '9';
  };
  Decimal d;
  std::size_t i = 0;
  if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
  const std::size_t start = i;
  while (digit(i)) ++i;
  const bool whole = i > start;
  if (i < text.size() && text[i] == '.' && (whole || digit(i + 1))) {
    ++i;
    while (digit(i)) ++i;
  } else if (!whole) {
    return d;
  }
  d.mantissa = std::string(text.substr(text[0] == '+' ? 1 : 0, i - (text[0] == '+' ? 1 : 0)));
  d.length = i;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    const std::size_t sign =
        i + 1 < text.size() && (text[i + 1] == '+' || text[i + 1] == '-') ? 1 : 0;
    if (!digit(i + 1 + sign)) return d;  // "3EB": the E belongs to the unit
    std::size_t j = i + 1 + sign;
    int exponent = 0;
    for (; digit(j); ++j) exponent = std::min(exponent * 10 + (text[j] - '0'), 100000);
    d.exp10 = text[i + 1] == '-' ? -exponent : exponent;
    d.length = j;
  }
  return d;
}

/// NaN when out of range.
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
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

const Unit* find_unit(const Units& units, std::string_view name) {
  for (const Unit& unit : units) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

[[noreturn]] void fail_unit(std::string_view text, std::string_view name, const Units& units,
                            const char* example) {
  std::vector<std::string> names;
  for (const Unit& unit : units) names.push_back(unit.name);
  const std::string near = nearest(name, names);
  throw std::invalid_argument(
      fmt::format("\"{}\": unknown unit \"{}\" here{}; write for example \"{}\"", text, name,
                  near.empty() ? "" : fmt::format(", did you mean \"{}\"?", near), example));
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
    const double bare = scaled(number, Unit{});
    if (bare == 0.0) return 0.0;
    throw std::invalid_argument(
        fmt::format("\"{}\" has no unit; write for example \"{}\"", text, example));
  }
  const Unit* unit = find_unit(units, name);
  if (!unit) fail_unit(text, name, units, example);
  const double value = scaled(number, *unit);
  if (!std::isfinite(value)) {
    throw std::invalid_argument(fmt::format("\"{}\" is out of range for a double", text));
  }
  return value;
}

/// Shortest text of `value` in `unit` that reads back exactly; empty when there is none.
std::string text_in(double value, const Unit& unit) {
  if (unit.times == 1.0 && unit.over == 1.0) {
    Decimal d = read_decimal(fmt::format("{:e}", value));  // only for its exponent
    const std::string shortest = fmt::format("{}", value);
    d = read_decimal(shortest);
    std::string digits;
    int point = 0;
    bool negative = false;
    for (const char c : d.mantissa) {
      if (c == '-')
        negative = true;
      else if (c == '.')
        point = static_cast<int>(digits.size());
      else
        digits += c;
    }
    if (d.mantissa.find('.') == std::string::npos) point = static_cast<int>(digits.size());
    point += d.exp10 - unit.exp10;
    const std::size_t lead = std::min(digits.find_first_not_of('0'), digits.size());
    digits.erase(0, lead);
    point -= static_cast<int>(lead);
    while (!digits.empty() && digits.back() == '0' && static_cast<int>(digits.size()) > point) {
      digits.pop_back();
    }
    constexpr int kPlainDigits = 21;
    std::string out = negative ? "-" : "";
    if (point > kPlainDigits || point < -6) {
      out += fmt::format("{}{}{}e{}", digits.substr(0, 1), digits.size() > 1 ? "." : "",
                         digits.substr(1), point - 1);
    } else if (point <= 0) {
      out += "0." + std::string(static_cast<std::size_t>(-point), '0') + digits;
    } else if (static_cast<std::size_t>(point) >= digits.size()) {
      out += digits + std::string(static_cast<std::size_t>(point) - digits.size(), '0');
    } else {
      out += digits.substr(0, static_cast<std::size_t>(point)) + "." +
             digits.substr(static_cast<std::size_t>(point));
    }
    return out;
  }
  const double in_unit = value * unit.over / unit.times * std::pow(10.0, -unit.exp10);
  for (int precision = 1; precision <= 17; ++precision) {
    const std::string text = fmt::format("{:.{}g}", in_unit, precision);
    if (scaled(read_decimal(text), unit) == value) return text;
  }
  return "";
}

std::string format(double value, const Units& units) {
  MEDLEY_CHECK(std::isfinite(value), "format_quantity: not a finite number");
  if (value == 0.0) return "0 " + units.front().name;
  const auto factor = [](const Unit& u) { return std::pow(10.0, u.exp10) * u.times / u.over; };
  // Per family (decimal, binary, other) the largest unit that leaves at least 1, or the smallest.
  std::string best;
  for (const bool decimal : {true, false}) {
    const Unit* chosen = nullptr;
    for (const Unit& u : units) {
      if (!u.shown || decimal != (u.times == 1.0 && u.over == 1.0)) continue;
      const bool fits = std::abs(value) >= factor(u) * (1 - 1e-15);
      if (!chosen) {
        chosen = &u;
      } else {
        const bool chosen_fits = std::abs(value) >= factor(*chosen) * (1 - 1e-15);
        const bool larger = factor(u) > factor(*chosen);
        if (fits ? (!chosen_fits || larger) : (!chosen_fits && !larger)) chosen = &u;
      }
    }
    if (!chosen) continue;
    const std::string number = text_in(value, *chosen);
    if (number.empty()) continue;
    const std::string text = number + " " + chosen->name;
    if (best.empty() || text.size() < best.size()) best = text;
  }
  return best;
}
}  // namespace

#define MEDLEY_DEFINE(Q)                                     \
  template <>                                                \
  Q parse_quantity<Q>(std::string_view text) {               \
    return Q(parse(text, units_of<Q>(), Kind<Q>::kExample)); \
  }                                                          \
  template <>                                                \
  std::string format_quantity<Q>(Q quantity) {               \
    return format(quantity.value(), units_of<Q>());          \
  }
MEDLEY_QUANTITIES(MEDLEY_DEFINE)
#undef MEDLEY_DEFINE

}  // namespace medley
