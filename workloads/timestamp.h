#pragma once

#include <cstdint>
#include <string_view>

namespace medley {

/// What a number in a time column counts. kWallClock: a date and time of day. kUnknown: not said
/// (a date is still read; a plain number is refused, because guessing is off by powers of 1000).
enum class TimeUnit : std::uint8_t { kUnknown, kNs, kUs, kMs, kS, kWallClock };

/// "ns", "us", "ms", "s", "wall"; kUnknown for anything else.
TimeUnit parse_time_unit(std::string_view text);
std::string_view to_text(TimeUnit unit);

enum class TextFault : std::uint8_t { kNone, kSyntax, kOverflow, kNegative, kFraction };

struct ParsedNs {
  std::int64_t ns = 0;
  TextFault fault = TextFault::kNone;
  bool has_zone = false;  ///< wall clock with an explicit zone
};

/// A decimal number ("19440110.0", "1e-05", "1700000000123456789", "1,146.31") counted in `unit`,
/// as nanoseconds. Integer arithmetic throughout (a double holds no epoch nanoseconds); what is
/// finer than 1 ns rounds to nearest, ties to even.
ParsedNs parse_decimal_ns(std::string_view text, TimeUnit unit);

/// "2023-11-16 18:17:03.9799600", "2024-05-12T00:00:00+00:00", "2025/01/31 12:00:00.123 PST",
/// as nanoseconds since 1970-01-01 UTC. Any number of fractional digits; none is fine. Without a
/// zone the clock is taken as UTC. Valid from 1678 to 2261.
ParsedNs parse_wall_clock(std::string_view text);

/// Either of the two by `unit`; kUnknown takes a wall clock only.
ParsedNs parse_time(std::string_view text, TimeUnit unit);

struct ParsedCount {
  std::int64_t value = 0;
  TextFault fault = TextFault::kNone;
};
/// A whole number as traces write it: "27", "21073.0", "1,146", "2e3". kFraction for "3.5".
ParsedCount parse_count(std::string_view text);

/// Without blanks at both ends.
std::string_view trimmed(std::string_view text);

}  // namespace medley
