#pragma once

#include <compare>

namespace medley {

/// A physical quantity over double, in SI base units (s, B, flop, J, USD), with its dimension in
/// the type: `Bytes / BytesPerSec` *is* `Seconds`, `Seconds + Bytes` does not compile.
/// Construction is explicit; `.value()` leaves the type system and belongs in solvers and writers.
template <int Time, int Byte, int Flop, int Joule, int Usd>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double base) : base_(base) {}
  constexpr double value() const { return base_; }

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity operator-() const { return Quantity(-base_); }
  constexpr Quantity& operator+=(Quantity o) { return base_ += o.base_, *this; }
  constexpr Quantity& operator-=(Quantity o) { return base_ -= o.base_, *this; }
  constexpr Quantity& operator*=(double k) { return base_ *= k, *this; }
  constexpr Quantity& operator/=(double k) { return base_ /= k, *this; }
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.base_ + b.base_);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.base_ - b.base_);
  }
  friend constexpr Quantity operator*(double k, Quantity q) { return Quantity(k * q.base_); }
  friend constexpr Quantity operator*(Quantity q, double k) { return Quantity(q.base_ * k); }
  friend constexpr Quantity operator/(Quantity q, double k) { return Quantity(q.base_ / k); }

 private:
  double base_ = 0.0;
};

/// Dimensionless results decay to double.
namespace detail {
template <int T, int B, int F, int J, int U>
constexpr auto make_quantity(double v) {
  if constexpr (T == 0 && B == 0 && F == 0 && J == 0 && U == 0) {
    return v;
  } else {
    return Quantity<T, B, F, J, U>(v);
  }
}
}  // namespace detail

template <int T1, int B1, int F1, int J1, int U1, int T2, int B2, int F2, int J2, int U2>
constexpr auto operator*(Quantity<T1, B1, F1, J1, U1> a, Quantity<T2, B2, F2, J2, U2> b) {
  return detail::make_quantity<T1 + T2, B1 + B2, F1 + F2, J1 + J2, U1 + U2>(a.value() * b.value());
}
template <int T1, int B1, int F1, int J1, int U1, int T2, int B2, int F2, int J2, int U2>
constexpr auto operator/(Quantity<T1, B1, F1, J1, U1> a, Quantity<T2, B2, F2, J2, U2> b) {
  return detail::make_quantity<T1 - T2, B1 - B2, F1 - F2, J1 - J2, U1 - U2>(a.value() / b.value());
}

// clang-format off
//                              time byte flop joule usd
using Seconds =        Quantity<   1,   0,   0,    0,  0>;
using Bytes =          Quantity<   0,   1,   0,    0,  0>;
using Flops =          Quantity<   0,   0,   1,    0,  0>;
using Joules =         Quantity<   0,   0,   0,    1,  0>;
using Usd =            Quantity<   0,   0,   0,    0,  1>;
using PerSec =         Quantity<  -1,   0,   0,    0,  0>;
using BytesPerSec =    Quantity<  -1,   1,   0,    0,  0>;
using FlopsPerSec =    Quantity<  -1,   0,   1,    0,  0>;
using Watts =          Quantity<  -1,   0,   0,    1,  0>;
using JoulesPerByte =  Quantity<   0,  -1,   0,    1,  0>;
using JoulesPerFlop =  Quantity<   0,   0,  -1,    1,  0>;
using UsdPerSec =      Quantity<  -1,   0,   0,    0,  1>;
using UsdPerJoule =    Quantity<   0,   0,   0,   -1,  1>;
// clang-format on

}  // namespace medley
