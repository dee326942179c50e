#pragma once

#include <string>
#include <vector>

namespace medley::detail {

/// One spelling of a unit: value = number * 10^exp10 * times / over. Decimal units have
/// times = over = 1 and are read by moving the decimal point of the text, so that "3.35 TB/s" is
/// exactly the double nearest to 3.35e12.
struct Unit {
  std::string name;
  int exp10 = 0;
  double times = 1.0;
  double over = 1.0;
  bool shown = false;  ///< format_quantity may choose it
  bool decimal() const { return times == 1.0 && over == 1.0; }
};

/// What may be written for a Q, its base unit (or customary unit) first.
template <class Q>
const std::vector<Unit>& units_of();
/// One right spelling, for messages.
template <class Q>
const char* unit_example();

}  // namespace medley::detail
