#include "sim/runtime/stability.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace medley {

StabilityVerdict judge_stability(const std::vector<RequestRecord>& requests, std::uint16_t pool,
                                 SimTime from, SimTime to, double batch) {
  constexpr int kInstants = 60;
  StabilityVerdict verdict;
  const double window = (to - from).value();
  if (window <= 0.0) {
    verdict.reason = "all requests arrive at one instant";
    return verdict;
  }
  // Instant i covers (t_{i-1}, t_i]; counts become running sums.
  std::vector<double> backlog(kInstants + 1, 0.0);
  const auto instant = [&](SimTime t) -> std::size_t {
    const double share = (t - from).value() / window * kInstants;
    return share <= 0.0 ? 0 : static_cast<std::size_t>(std::min(std::ceil(share), kInstants + 0.0));
  };
  double arrivals = 0.0, sojourn = 0.0, ended = 0.0;
  for (const RequestRecord& r : requests) {
    const bool ran = r.status == RequestStatus::kFinished || r.status == RequestStatus::kUnfinished;
    if (!ran || (pool != 0xffff && r.pool != pool) || r.arrival > to) continue;
    backlog[instant(r.arrival)] += 1.0;
    if (r.arrival >= from) arrivals += 1.0;
    const bool scheduled = r.scheduled > r.arrival || r.first_token > SimTime();
    if (scheduled && r.scheduled <= to) backlog[instant(r.scheduled)] -= 1.0;
    if (r.status == RequestStatus::kFinished && r.arrival >= from) {
      sojourn += (r.last_token - r.arrival).value();
      ended += 1.0;
    }
  }
  for (int i = 1; i <= kInstants; ++i)
    backlog[static_cast<std::size_t>(i)] += backlog[static_cast<std::size_t>(i - 1)];
  const auto mean = [&](int begin, int end) {
    double sum = 0.0;
    for (int i = begin; i < end; ++i) sum += backlog[static_cast<std::size_t>(i)];
    return sum / (end - begin);
  };
  const double growth = mean(2 * kInstants / 3 + 1, kInstants + 1) - mean(1, kInstants / 3 + 1);
  verdict.slope_per_s = growth / (window * 2.0 / 3.0);
  const double share = arrivals > 0.0 ? growth / arrivals : 0.0;
  const std::string figures =
      fmt::format("the backlog grew by {:.1f} requests, {:.1f} % of {:.0f} arrivals", growth,
                  100.0 * share, arrivals);
  if (share > 0.05 && growth > batch) {
    verdict.stability = Stability::kSaturated;
    verdict.reason = figures;
  } else if (arrivals < 50.0) {
    verdict.reason = fmt::format("only {:.0f} arrivals in the window", arrivals);
  } else if (ended > 0.0 && window < 2.0 * sojourn / ended) {
    verdict.reason =
        fmt::format("the window of {:.3g} s is short against a mean time of {:.3g} s per request",
                    window, sojourn / ended);
  } else if (share < 0.02 || growth < 0.1 * batch) {
    verdict.stability = Stability::kStable;
    verdict.reason = figures;
  } else {
    verdict.reason = figures;
  }
  return verdict;
}

}  // namespace medley
