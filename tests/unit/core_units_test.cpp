#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "sim/core/rng.h"
#include "sim/core/unit_text.h"
#include "sim/core/units.h"

using namespace medley;

namespace {
template <class Q>
double base(const char* text) {
  return parse_quantity<Q>(text).value();
}
template <class Q>
std::string error_of(const char* text) {
  try {
    parse_quantity<Q>(text);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "no error";
}
}  // namespace

TEST_CASE("dimensions follow the arithmetic") {
  static_assert(std::is_same_v<decltype(Bytes(1) / BytesPerSec(1)), Seconds>);
  static_assert(std::is_same_v<decltype(Watts(1) * Seconds(1)), Joules>);
  static_assert(std::is_same_v<decltype(Joules(1) * UsdPerJoule(1)), Usd>);
  static_assert(std::is_same_v<decltype(FlopsPerSec(1) * JoulesPerFlop(1)), Watts>);
  static_assert(std::is_same_v<decltype(Bytes(1) / Bytes(1)), double>);
  static_assert(!std::is_convertible_v<double, Watts>);
  static_assert(!std::is_convertible_v<Watts, double>);
  // 140 GB over 3.5 TB/s = 40 ms.
  CHECK((Bytes(140e9) / BytesPerSec(3.5e12)).value() == 0.04);
  CHECK(Seconds(2) > Seconds(1));
  Joules sum(1.0);
  sum += 2.0 * Joules(3.0);
  sum -= Joules(4.0) / 2.0;
  CHECK(sum.value() == 5.0);
}

TEST_CASE("units are read exactly") {
  CHECK(base<BytesPerSec>("3.35 TB/s") == 3.35e12);
  CHECK(base<BytesPerSec>("3.35TB/s") == 3.35e12);
  CHECK(base<BytesPerSec>("  400 Gb/s ") == 50e9);
  CHECK(base<BytesPerSec>("400 Gbit/s") == 50e9);
  CHECK(base<BytesPerSec>("400 Gbps") == 50e9);
  CHECK(base<BytesPerSec>("1.5 MiB/s") == 1572864.0);
  CHECK(base<Bytes>("80 GB") == 80e9);
  CHECK(base<Bytes>("80 GiB") == 85899345920.0);  // 80 * 2^30
  CHECK(base<Bytes>("1 TiB") == 1099511627776.0);
  CHECK(base<Bytes>("8 b") == 1.0);
  CHECK(base<Bytes>("8 Mb") == 1e6);
  CHECK(base<Bytes>("3EB") == 3e18);
  CHECK(base<Bytes>("3e3 B") == 3000.0);
  CHECK(base<Seconds>("500 ms") == 0.5);
  CHECK(base<Seconds>("7.3 us") == 7.3e-6);
  CHECK(base<Seconds>("7.3 \u00b5s") == 7.3e-6);
  CHECK(base<Seconds>("2 min") == 120.0);
  CHECK(base<Seconds>("1.5 h") == 5400.0);
  CHECK(base<Seconds>("2 days") == 172800.0);
  CHECK(base<Seconds>("-3 s") == -3.0);
  CHECK(base<Seconds>("+.5 s") == 0.5);
  CHECK(base<FlopsPerSec>("989.4 TFLOP/s") == 989.4e12);
  CHECK(base<FlopsPerSec>("1979 TOPS") == 1979e12);
  CHECK(base<FlopsPerSec>("40 Tflop/s") == 40e12);
  CHECK(base<Flops>("2.5 GFLOP") == 2.5e9);
  CHECK(base<Watts>("30 kW") == 30e3);
  CHECK(base<Watts>("700 W") == 700.0);
  CHECK(base<Watts>("15 mW") == 0.015);
  CHECK(base<Joules>("2 kWh") == 7.2e6);
  CHECK(base<Joules>("3 MJ") == 3e6);
  CHECK(base<JoulesPerFlop>("0.87 pJ/flop") == 0.87e-12);
  CHECK(base<JoulesPerByte>("3.9 pJ/b") == 8 * 3.9e-12);
  CHECK(base<JoulesPerByte>("30 pJ/B") == 30e-12);
  CHECK(base<UsdPerSec>("3.6 USD/h") == 0.001);
  CHECK(base<UsdPerSec>("86400 USD/day") == 1.0);
  CHECK(base<UsdPerJoule>("0.36 USD/kWh") == doctest::Approx(1e-7).epsilon(1e-15));
  CHECK(base<Usd>("25 kUSD") == 25000.0);
  CHECK(base<PerSec>("2.5 req/s") == 2.5);
  CHECK(base<PerSec>("90 req/min") == 1.5);
  CHECK(base<PerSec>("1.2 GHz") == 1.2e9);
  CHECK(base<Bytes>("0") == 0.0);
  CHECK(base<Bytes>("0.0") == 0.0);
}

TEST_CASE("a wrong unit says what is wrong and shows a right spelling") {
  CHECK(error_of<BytesPerSec>("3.35") == "\"3.35\" has no unit; write for example \"3.35 TB/s\"");
  CHECK(error_of<Bytes>("80 gb") ==
        "\"80 gb\": unknown unit \"gb\" here, did you mean \"GB\"?; write for example \"80 GiB\"");
  CHECK(error_of<Watts>("300 J") ==
        "\"300 J\": unknown unit \"J\" here, did you mean \"W\"?; write for example \"700 W\"");
  CHECK(error_of<Seconds>("3.35 TB/s") ==
        "\"3.35 TB/s\": unknown unit \"TB/s\" here; write for example \"500 ms\"");
  CHECK(error_of<Seconds>("soon") ==
        "\"soon\" is not a number with a unit; write for example \"500 ms\"");
  CHECK(error_of<Seconds>("") == "\"\" is not a number with a unit; write for example \"500 ms\"");
  CHECK(error_of<Seconds>("1e400 s") == "\"1e400 s\" is out of range for a double");
  CHECK(error_of<Bytes>("1e306 TB") == "\"1e306 TB\" is out of range for a double");
  CHECK(error_of<Bytes>("1e306 TiB") == "\"1e306 TiB\" is out of range for a double");
  for (const char* text : {"inf s", "nan s", "0x10 s", "1,000 s", "1 s s", "- s", ". s", "1 S"}) {
    CAPTURE(text);
    CHECK(error_of<Seconds>(text) != "no error");
  }
}

TEST_CASE("quantities are written in a readable unit") {
  CHECK(format_quantity(BytesPerSec(3.35e12)) == "3.35 TB/s");
  CHECK(format_quantity(Bytes(80e9)) == "80 GB");
  CHECK(format_quantity(Bytes(85899345920.0)) == "80 GiB");
  CHECK(format_quantity(Bytes(131072)) == "128 KiB");
  CHECK(format_quantity(Bytes(1)) == "1 B");
  CHECK(format_quantity(Seconds(0.0073)) == "7.3 ms");
  CHECK(format_quantity(Seconds(1e-9)) == "1 ns");
  CHECK(format_quantity(Seconds(90)) == "90 s");
  CHECK(format_quantity(Seconds(0)) == "0 s");
  CHECK(format_quantity(Seconds(-0.5)) == "-500 ms");
  CHECK(format_quantity(Watts(30e3)) == "30 kW");
  CHECK(format_quantity(FlopsPerSec(989.4e12)) == "989.4 TFLOP/s");
  CHECK(format_quantity(JoulesPerFlop(0.87e-12)) == "870 fJ/flop");
  CHECK(format_quantity(UsdPerSec(2.95 / 3600)) == "2.95 USD/h");
  CHECK(format_quantity(parse_quantity<UsdPerJoule>("0.12 USD/kWh")) == "0.12 USD/kWh");
  CHECK(format_quantity(Usd(1234.5)) == "1234.5 USD");
  CHECK(format_quantity(PerSec(0.25)) == "0.25 1/s");
  CHECK(format_quantity(Bytes(1e30)) == "1e12 EB");
}

namespace {
template <class Q>
void check_round_trip(double value) {
  const std::string text = format_quantity(Q(value));
  CAPTURE(text);
  CHECK(parse_quantity<Q>(text).value() == value);
}
}  // namespace

TEST_CASE("every finite quantity survives writing and reading") {
  Rng rng(7, "units");
  for (int i = 0; i < 300; ++i) {
    const double magnitude = rng.uniform(-290.0, 290.0);
    const double value =
        rng.uniform(-1.0, 1.0) * std::pow(10.0, i % 2 ? magnitude : magnitude / 20);
#define MEDLEY_ROUND_TRIP(Q) check_round_trip<Q>(value);
    MEDLEY_QUANTITIES(MEDLEY_ROUND_TRIP)
#undef MEDLEY_ROUND_TRIP
  }
  check_round_trip<Bytes>(5e-324);
  check_round_trip<Bytes>(1.7976931348623157e308);
}
