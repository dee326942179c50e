#pragma once

#include <compare>

namespace medley {

/// The unevaluated sum of two doubles, about 106 bits: what is added to and subtracted from for the
/// whole of a run, or subtracted from something nearly as large.
/// Error of an addition: 2^-104 of the larger operand. Assumes rounding to nearest and no overflow.
/// Source: Knuth's two-sum, TAOCP vol. 2, 4.2.2, theorem C; Dekker's double length sum.
struct WideSum {
  double high = 0.0;
  double low = 0.0;

  constexpr WideSum() = default;
  constexpr explicit WideSum(double value) : high(value) {}
  constexpr WideSum(double h, double l) : high(h), low(l) {}
  constexpr double value() const { return high; }  ///< nearest double

  constexpr WideSum& operator+=(double x) { return *this += WideSum(x); }
  constexpr WideSum& operator-=(double x) { return *this += WideSum(-x); }
  constexpr WideSum& operator-=(const WideSum& x) { return *this += WideSum(-x.high, -x.low); }
  constexpr WideSum& operator+=(const WideSum& x) {
    const double sum = high + x.high;
    const double part = sum - high;
    const double error = ((high - (sum - part)) + (x.high - part)) + (low + x.low);
    high = sum + error;
    low = error - (high - sum);
    return *this;
  }
  friend constexpr WideSum operator+(WideSum a, const WideSum& b) { return a += b; }
  friend constexpr WideSum operator-(WideSum a, const WideSum& b) { return a -= b; }
  constexpr auto operator<=>(const WideSum&) const = default;
};

}  // namespace medley
