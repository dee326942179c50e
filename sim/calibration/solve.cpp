#include "sim/calibration/solve.h"

#include <Eigen/Dense>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "sim/core/error.h"

namespace medley {

namespace {
using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Least squares over the columns in `passive`, zero elsewhere.
Eigen::VectorXd solve_passive(const Eigen::MatrixXd& a, const Eigen::VectorXd& b,
                              const std::vector<bool>& passive) {
  std::vector<Eigen::Index> columns;
  for (std::size_t j = 0; j < passive.size(); ++j) {
    if (passive[j]) columns.push_back(static_cast<Eigen::Index>(j));
  }
  Eigen::VectorXd x = Eigen::VectorXd::Zero(a.cols());
  if (columns.empty()) return x;
  const Eigen::VectorXd part = a(Eigen::all, columns).colPivHouseholderQr().solve(b);
  for (std::size_t j = 0; j < columns.size(); ++j) x(columns[j]) = part(Eigen::Index(j));
  return x;
}

/// Walks from x towards `wanted` until a passive variable hits zero; it leaves the passive set.
void step_to_bound(Eigen::VectorXd& x, const Eigen::VectorXd& wanted, std::vector<bool>& passive) {
  double alpha = 1.0;
  for (std::size_t j = 0; j < passive.size(); ++j) {
    const auto i = static_cast<Eigen::Index>(j);
    if (passive[j] && wanted(i) <= 0.0) alpha = std::min(alpha, x(i) / (x(i) - wanted(i)));
  }
  x += alpha * (wanted - x);
  for (std::size_t j = 0; j < passive.size(); ++j) {
    const auto i = static_cast<Eigen::Index>(j);
    if (passive[j] && x(i) <= 1e-14) {
      passive[j] = false;
      x(i) = 0.0;
    }
  }
}
}  // namespace

std::vector<double> non_negative_least_squares(std::span<const double> rows, std::size_t columns,
                                               std::span<const double> rhs) {
  MEDLEY_CHECK(columns > 0 && rows.size() == columns * rhs.size(), "rows of another length");
  const auto n = static_cast<Eigen::Index>(columns);
  const auto m = static_cast<Eigen::Index>(rhs.size());
  Eigen::MatrixXd a = Eigen::Map<const RowMajor>(rows.data(), m, n);
  const Eigen::VectorXd b = Eigen::Map<const Eigen::VectorXd>(rhs.data(), m);
  Eigen::VectorXd scale(n);
  for (Eigen::Index j = 0; j < n; ++j) {
    const double length = a.col(j).norm();
    scale(j) = length > 0.0 ? 1.0 / length : 0.0;
    a.col(j) *= scale(j);
  }
  const double tolerance = 1e-12 * std::max(b.norm(), 1e-300);
  Eigen::VectorXd x = Eigen::VectorXd::Zero(n);
  std::vector<bool> passive(columns, false);
  for (std::size_t round = 0; round < 3 * columns + 10; ++round) {
    const Eigen::VectorXd gradient = a.transpose() * (b - a * x);
    Eigen::Index enter = -1;
    for (Eigen::Index j = 0; j < n; ++j) {
      if (passive[static_cast<std::size_t>(j)] || gradient(j) <= tolerance) continue;
      if (enter < 0 || gradient(j) > gradient(enter)) enter = j;
    }
    if (enter < 0) break;
    passive[static_cast<std::size_t>(enter)] = true;
    for (std::size_t inner = 0; inner <= columns; ++inner) {
      const Eigen::VectorXd wanted = solve_passive(a, b, passive);
      bool inside = true;
      for (std::size_t j = 0; j < columns; ++j) {
        inside = inside && (!passive[j] || wanted(static_cast<Eigen::Index>(j)) > 0.0);
      }
      if (inside) {
        x = wanted;
        break;
      }
      step_to_bound(x, wanted, passive);
    }
  }
  std::vector<double> out(columns);
  for (Eigen::Index j = 0; j < n; ++j) out[static_cast<std::size_t>(j)] = x(j) * scale(j);
  return out;
}

namespace {
using Point = std::vector<double>;

class Simplex {
 public:
  Simplex(const std::function<double(std::span<const double>)>& cost, const Point& start,
          double step)
      : cost_(cost), corners_(start.size() + 1, start) {
    for (std::size_t i = 0; i < start.size(); ++i) corners_[i + 1][i] += step;
    for (const Point& p : corners_) values_.push_back(cost_(p));
    sort();
  }

  Point run(int most_iterations) {
    for (int i = 0; i < most_iterations; ++i) {
      if (values_.back() - values_.front() <= 1e-9 * std::fabs(values_.front()) + 1e-12) break;
      move();
      sort();
    }
    return corners_.front();
  }

 private:
  void move() {
    const Point out = towards(-1.0);
    const double at_out = cost_(out);
    if (at_out < values_.front()) {
      const Point far = towards(-2.0);
      const double at_far = cost_(far);
      replace_worst(at_far < at_out ? far : out, std::min(at_far, at_out));
    } else if (at_out < values_[values_.size() - 2]) {
      replace_worst(out, at_out);
    } else {
      const Point in = towards(at_out < values_.back() ? -0.5 : 0.5);
      const double at_in = cost_(in);
      if (at_in < std::min(at_out, values_.back())) {
        replace_worst(in, at_in);
      } else {
        shrink();
      }
    }
  }

  /// centre + k (worst - centre), centre of all corners but the worst.
  Point towards(double k) const {
    const std::size_t n = corners_.front().size();
    Point p(n, 0.0);
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t i = 0; i < n; ++i) p[j] += corners_[i][j];
      p[j] /= static_cast<double>(n);
      p[j] += k * (corners_.back()[j] - p[j]);
    }
    return p;
  }

  void replace_worst(const Point& p, double value) {
    corners_.back() = p;
    values_.back() = value;
  }

  void shrink() {
    for (std::size_t i = 1; i < corners_.size(); ++i) {
      for (std::size_t j = 0; j < corners_[i].size(); ++j) {
        corners_[i][j] = 0.5 * (corners_[i][j] + corners_[0][j]);
      }
      values_[i] = cost_(corners_[i]);
    }
  }

  void sort() {
    std::vector<std::size_t> order(values_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return values_[a] < values_[b]; });
    std::vector<Point> corners;
    std::vector<double> values;
    for (const std::size_t i : order) {
      corners.push_back(std::move(corners_[i]));
      values.push_back(values_[i]);
    }
    corners_ = std::move(corners);
    values_ = std::move(values);
  }

  const std::function<double(std::span<const double>)>& cost_;
  std::vector<Point> corners_;
  std::vector<double> values_;
};
}  // namespace

std::vector<double> minimise(const std::function<double(std::span<const double>)>& cost,
                             std::vector<double> start, double step, int most_iterations) {
  const Point once = Simplex(cost, start, step).run(most_iterations);
  return Simplex(cost, once, 0.3 * step).run(most_iterations);
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0.0;
  const auto n = static_cast<double>(values.size());
  const auto rank = static_cast<std::size_t>(std::clamp(std::floor(share * n), 0.0, n - 1.0));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(rank),
                   values.end());
  return values[rank];
}

double median(std::vector<double> values) {
  return quantile(std::move(values), 0.5);
}

double rounded(double value, int digits) {
  if (value == 0.0 || !std::isfinite(value)) return value;
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value,
                                 std::chars_format::scientific, digits - 1);
  double out = value;
  std::from_chars(buffer, end.ptr, out);
  return out;
}

}  // namespace medley
