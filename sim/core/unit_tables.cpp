#include "sim/core/unit_tables.h"

#include <utility>

#include "sim/core/units.h"

namespace medley::detail {

namespace {
using Units = std::vector<Unit>;

constexpr double kMinute = 60.0;
constexpr double kHour = 3600.0;
constexpr double kDay = 24.0 * kHour;
constexpr double kYear = 365.0 * kDay;
constexpr double kBitsPerByte = 8.0;

struct Prefix {
  const char* text;
  int exp10;
  bool ascii;
};
constexpr Prefix kSmall[] = {{"m", -3, true}, {"u", -6, true},  {"\u00b5", -6, false},
                             {"n", -9, true}, {"p", -12, true}, {"f", -15, true}};
constexpr Prefix kLarge[] = {{"k", 3, true},  {"M", 6, true},  {"G", 9, true},
                             {"T", 12, true}, {"P", 15, true}, {"E", 18, true}};
constexpr const char* kBinary[] = {"Ki", "Mi", "Gi", "Ti", "Pi"};

enum Scale : unsigned { kBase = 1, kDown = 2, kUp = 4 };

/// Adds `base` with the prefixes of `scales`.
void add(Units& units, const std::string& base, unsigned scales, bool shown, double times = 1.0,
         double over = 1.0) {
  if (scales & kBase) units.push_back({base, 0, times, over, shown});
  if (scales & kUp) {
    for (const Prefix& p : kLarge) units.push_back({p.text + base, p.exp10, times, over, shown});
  }
  if (scales & kDown) {
    for (const Prefix& p : kSmall) {
      units.push_back({p.text + base, p.exp10, times, over, shown && p.ascii});
    }
  }
}

void add_binary(Units& units, const std::string& base) {
  double times = 1.0;
  for (const char* prefix : kBinary)
    units.push_back({prefix + base, 0, times *= 1024.0, 1.0, true});
}

Units seconds() {
  Units u;
  add(u, "s", kBase | kDown, true);
  add(u, "sec", kBase, false);
  add(u, "min", kBase, false, kMinute);
  for (const char* name : {"h", "hour", "hours"}) add(u, name, kBase, false, kHour);
  for (const char* name : {"d", "day", "days"}) add(u, name, kBase, false, kDay);
  for (const char* name : {"year", "years"}) add(u, name, kBase, false, kYear);
  return u;
}

Units bytes() {
  Units u;
  add(u, "B", kBase | kUp, true);
  add_binary(u, "B");
  for (const char* bit : {"b", "bit"}) add(u, bit, kBase | kUp, false, 1.0, kBitsPerByte);
  return u;
}

Units bytes_per_sec() {
  Units u;
  add(u, "B/s", kBase | kUp, true);
  add_binary(u, "B/s");
  for (const char* bit : {"b/s", "bit/s", "bps"}) {
    add(u, bit, kBase | kUp, false, 1.0, kBitsPerByte);
  }
  return u;
}

Units flops() {
  Units u;
  add(u, "FLOP", kBase | kUp, true);
  for (const char* name : {"flop", "OP", "op"}) add(u, name, kBase | kUp, false);
  return u;
}

Units flops_per_sec() {
  Units u;
  add(u, "FLOP/s", kBase | kUp, true);
  for (const char* name : {"flop/s", "FLOPS", "OPS", "OP/s", "op/s"}) {
    add(u, name, kBase | kUp, false);
  }
  return u;
}

Units joules() {
  Units u;
  add(u, "J", kBase | kUp | kDown, true);
  add(u, "Wh", kBase | kUp, false, kHour);
  return u;
}

Units joules_per_byte() {
  Units u;
  add(u, "J/B", kBase | kDown, true);
  for (const char* bit : {"J/b", "J/bit"}) add(u, bit, kBase | kDown, false, kBitsPerByte);
  return u;
}

Units joules_per_flop() {
  Units u;
  add(u, "J/flop", kBase | kDown, true);
  for (const char* name : {"J/FLOP", "J/op", "J/OP"}) add(u, name, kBase | kDown, false);
  return u;
}

Units per_sec() {
  Units u;
  add(u, "1/s", kBase, true);
  for (const std::string what : {"", "1", "req", "requests", "tok", "tokens"}) {
    if (what != "1") add(u, what + "/s", kBase, false);
    add(u, what + "/min", kBase, false, 1.0, kMinute);
    add(u, what + "/h", kBase, false, 1.0, kHour);
    add(u, what + "/day", kBase, false, 1.0, kDay);
  }
  add(u, "Hz", kBase | kUp, false);
  return u;
}

Units watts() {
  Units u;
  add(u, "W", kBase | kUp | kDown, true);
  return u;
}

Units usd() {
  Units u;
  add(u, "USD", kBase, true);
  u.push_back({"kUSD", 3});
  u.push_back({"MUSD", 6});
  return u;
}

Units usd_per_sec() {
  Units u;
  add(u, "USD/h", kBase, true, 1.0, kHour);
  add(u, "USD/s", kBase, true);
  add(u, "USD/hour", kBase, false, 1.0, kHour);
  add(u, "USD/day", kBase, false, 1.0, kDay);
  add(u, "USD/year", kBase, false, 1.0, kYear);
  return u;
}

Units usd_per_joule() {
  return {{"USD/kWh", -3, 1.0, kHour, true},
          {"USD/J", 0, 1.0, 1.0, true},
          {"USD/MWh", -6, 1.0, kHour},
          {"USD/Wh", 0, 1.0, kHour}};
}
}  // namespace

#define MEDLEY_UNITS(Q, table, example) \
  template <>                           \
  const Units& units_of<Q>() {          \
    static const Units units = table(); \
    return units;                       \
  }                                     \
  template <>                           \
  const char* unit_example<Q>() {       \
    return example;                     \
  }
MEDLEY_UNITS(Seconds, seconds, "500 ms")
MEDLEY_UNITS(Bytes, bytes, "80 GiB")
MEDLEY_UNITS(Flops, flops, "2.5 TFLOP")
MEDLEY_UNITS(Joules, joules, "12 kJ")
MEDLEY_UNITS(Usd, usd, "30000 USD")
MEDLEY_UNITS(PerSec, per_sec, "2.5 req/s")
MEDLEY_UNITS(BytesPerSec, bytes_per_sec, "3.35 TB/s")
MEDLEY_UNITS(FlopsPerSec, flops_per_sec, "989 TFLOP/s")
MEDLEY_UNITS(Watts, watts, "700 W")
MEDLEY_UNITS(JoulesPerByte, joules_per_byte, "30 pJ/B")
MEDLEY_UNITS(JoulesPerFlop, joules_per_flop, "0.87 pJ/flop")
MEDLEY_UNITS(UsdPerSec, usd_per_sec, "2.95 USD/h")
MEDLEY_UNITS(UsdPerJoule, usd_per_joule, "0.12 USD/kWh")
#undef MEDLEY_UNITS

}  // namespace medley::detail
