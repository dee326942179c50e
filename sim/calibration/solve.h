#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace medley {

/// Non-negative least squares: the x >= 0 that minimises |A x - b|^2. `a` holds the rows of A one
/// after the other, `columns` numbers each. Lawson and Hanson's active-set method; columns are
/// scaled to unit length first, so that parameters of very different size are treated alike.
/// A column of zeros gets 0. Law: x = 0 where the gradient pushes below it (KKT).
std::vector<double> non_negative_least_squares(std::span<const double> a, std::size_t columns,
                                               std::span<const double> b);

/// Minimum of `cost` by the simplex of Nelder and Mead, restarted once from its own answer; no
/// derivatives, so that kinks do no harm. `step` is the edge of the first simplex. Deterministic.
std::vector<double> minimise(const std::function<double(std::span<const double>)>& cost,
                             std::vector<double> start, double step, int most_iterations = 600);

/// Median (the upper of the two middle ones); 0 of none.
double median(std::vector<double> values);
/// The value below which `share` of the values lie (nearest rank); 0 of none.
double quantile(std::vector<double> values, double share);
/// To `digits` significant decimal digits.
double rounded(double value, int digits = 4);

}  // namespace medley
