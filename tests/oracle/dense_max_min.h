#pragma once

#include <Eigen/Dense>
#include <limits>
#include <vector>

namespace medley::oracle {

/// Weighted max-min fair levels by dense progressive filling: slow, and right by inspection.
///
/// `weight(r, i)`: units of resource r per unit of level of activity i; `capacity(r)`; `cap(i)`:
/// the greatest level of i (may be infinite). All open levels are raised together from 0; each
/// round finds the least common level at which a resource is used up or a cap is reached and
/// freezes what it stops. Source: Bertsekas and Gallager, Data Networks, section 6.5.2.
inline Eigen::VectorXd dense_max_min(const Eigen::MatrixXd& weight, const Eigen::VectorXd& capacity,
                                     const Eigen::VectorXd& cap) {
  const Eigen::Index resources = weight.rows(), activities = weight.cols();
  Eigen::VectorXd level = Eigen::VectorXd::Zero(activities);
  Eigen::VectorXd open = Eigen::VectorXd::Ones(activities);
  constexpr double kTie = 1.0 + 1e-13;
  while (open.sum() > 0.0) {
    const Eigen::VectorXd spare = (capacity - weight * level).cwiseMax(0.0);
    const Eigen::VectorXd demand = weight * open;
    double least = std::numeric_limits<double>::infinity();
    for (Eigen::Index r = 0; r < resources; ++r) {
      if (demand(r) > 0.0) least = std::min(least, spare(r) / demand(r));
    }
    for (Eigen::Index i = 0; i < activities; ++i) {
      if (open(i) > 0.0) least = std::min(least, cap(i));
    }
    Eigen::VectorXd still = open;
    for (Eigen::Index i = 0; i < activities; ++i) {
      if (open(i) == 0.0) continue;
      bool stops = cap(i) <= least * kTie;
      for (Eigen::Index r = 0; r < resources; ++r) {
        stops = stops || (weight(r, i) > 0.0 && spare(r) <= demand(r) * least * kTie);
      }
      if (!stops) continue;
      level(i) = std::min(least, cap(i));
      still(i) = 0.0;
    }
    open = still;
  }
  return level;
}

}  // namespace medley::oracle
