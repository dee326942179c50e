#include <doctest/doctest.h>
#include "workloads/timestamp.h"

using namespace medley;

namespace {
std::int64_t ns(std::string_view text, TimeUnit unit) {
  const ParsedNs t = parse_time(text, unit);
  REQUIRE(t.fault == TextFault::kNone);
  return t.ns;
}
TextFault fault(std::string_view text, TimeUnit unit) {
  return parse_time(text, unit).fault;
}
}  // namespace

TEST_CASE("decimal times are exact in every unit") {
  CHECK(ns("19440110.0", TimeUnit::kS) == 19'440'110'000'000'000);
  CHECK(ns("0.1", TimeUnit::kS) == 100'000'000);
  CHECK(ns("61.114", TimeUnit::kS) == 61'114'000'000);
  CHECK(ns("3052", TimeUnit::kMs) == 3'052'000'000);
  CHECK(ns("1e-05", TimeUnit::kS) == 10'000);
  CHECK(ns("1.5E3", TimeUnit::kUs) == 1'500'000);
  CHECK(ns("-2.5", TimeUnit::kUs) == -2500);
  CHECK(ns("1,146.31", TimeUnit::kMs) == 1'146'310'000);
  CHECK(ns(" 7 ", TimeUnit::kNs) == 7);
  CHECK(ns(".5", TimeUnit::kS) == 500'000'000);
}

TEST_CASE("epoch nanoseconds keep every digit, which a double would not") {
  CHECK(ns("1700158623979960001", TimeUnit::kNs) == 1'700'158'623'979'960'001);
  CHECK(ns("1700158623.979960001", TimeUnit::kS) == 1'700'158'623'979'960'001);
  CHECK(ns("9223372036854775807", TimeUnit::kNs) == INT64_MAX);
}

TEST_CASE("what is finer than a nanosecond rounds to nearest, ties to even") {
  CHECK(ns("0.4999", TimeUnit::kNs) == 0);
  CHECK(ns("0.5", TimeUnit::kNs) == 0);
  CHECK(ns("1.5", TimeUnit::kNs) == 2);
  CHECK(ns("2.5", TimeUnit::kNs) == 2);
  CHECK(ns("2.50000000000000000000000000000000000000000001", TimeUnit::kNs) == 3);
  CHECK(ns("1e-300", TimeUnit::kS) == 0);
}

TEST_CASE("bad numbers and overflow are told apart") {
  for (const char* text :
       {"", "abc", "1,2", "12,34", "1.2.3", "--1", "1e", "0x10", "nan", "inf", "1 2", "1e999"}) {
    CAPTURE(text);
    CHECK(fault(text, TimeUnit::kS) == TextFault::kSyntax);
  }
  CHECK(fault("9223372036854775808", TimeUnit::kNs) == TextFault::kOverflow);
  CHECK(fault("1e18", TimeUnit::kS) == TextFault::kOverflow);
  CHECK(fault("99999999999999999999999999999999999999999999", TimeUnit::kS) ==
        TextFault::kOverflow);
}

// 2023-11-16 is day 19677 of the epoch: 53 years x 365 + 13 leap days = 19358 to 2023-01-01,
// + 304 to 1 November + 15. 18:17:03 is 65823 s into the day.
TEST_CASE("the three Azure time formats") {
  constexpr std::int64_t kDay = 86'400'000'000'000;
  CHECK(ns("2023-11-16 18:17:03.9799600", TimeUnit::kWallClock) ==
        19677 * kDay + 65'823'979'960'000);
  CHECK(ns("2024-05-12 00:00:00.001163+00:00", TimeUnit::kWallClock) ==
        ns("2024-05-12 00:00:00+00:00", TimeUnit::kWallClock) + 1'163'000);
  CHECK(ns("2024-10-15T12:00:00.269Z", TimeUnit::kWallClock) ==
        ns("2024-10-15 12:00:00", TimeUnit::kWallClock) + 269'000'000);
}

TEST_CASE("zones move the clock to UTC") {
  const std::int64_t utc = ns("2024-03-01 00:30:00", TimeUnit::kWallClock);
  CHECK(ns("2024-03-01 08:30:00+08:00", TimeUnit::kWallClock) == utc);
  CHECK(ns("2024-03-01 08:30:00+0800", TimeUnit::kWallClock) == utc);
  CHECK(ns("2024-02-29 16:30:00 PST", TimeUnit::kWallClock) == utc);
  CHECK(ns("2024-02-29 17:30:00 PDT", TimeUnit::kWallClock) == utc);
  CHECK(ns("2024/03/01 00:30:00", TimeUnit::kWallClock) == utc);
  CHECK(parse_wall_clock("2024-03-01 00:30:00Z").has_zone);
  CHECK_FALSE(parse_wall_clock("2024-03-01 00:30:00").has_zone);
}

TEST_CASE("impossible dates are refused") {
  for (const char* text : {"2023-02-29 00:00:00", "2024-13-01 00:00:00", "2024-01-01 24:00:00",
                           "2024-01-01", "2024-01/01 00:00:00", "2024-01-01 00:00:00.",
                           "2024-01-01 00:00:00 XYZ", "12:00:00", "2024-01-01 00:00:00+99:00"}) {
    CAPTURE(text);
    CHECK(fault(text, TimeUnit::kWallClock) == TextFault::kSyntax);
  }
  CHECK(fault("9999-01-01 00:00:00", TimeUnit::kWallClock) == TextFault::kOverflow);
  CHECK(ns("2000-02-29 00:00:00", TimeUnit::kWallClock) > 0);
}

TEST_CASE("counts") {
  CHECK(parse_count("27").value == 27);
  CHECK(parse_count("21073.0").value == 21073);
  CHECK(parse_count("1,146").value == 1146);
  CHECK(parse_count("2e3").value == 2000);
  CHECK(parse_count("-1").fault == TextFault::kNegative);
  CHECK(parse_count("3.5").fault == TextFault::kFraction);
  CHECK(parse_count("0.0001").fault == TextFault::kFraction);
  CHECK(parse_count("1e300").fault == TextFault::kOverflow);
  for (const char* text : {"", "NaN", "Infinity", "None", "N/A", "12 tokens"}) {
    CAPTURE(text);
    CHECK(parse_count(text).fault == TextFault::kSyntax);
  }
}
