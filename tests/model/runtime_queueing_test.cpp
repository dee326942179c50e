// Closed forms of queueing theory through the shipped runtime: the ideal backend, one request at a
// time, service = output tokens x a constant. Seeds are fixed; gates stand at 4 standard
// deviations.
#include <doctest/doctest.h>

#include <cmath>

#include "sim/core/rng.h"
#include "tests/support/builders.h"

using namespace medley;
using namespace medley::testing;

namespace {

enum class Law { kFixed, kExponential, kTwoPoint };

/// n requests, Poisson at `rate`, service of mean 1 s in units of 1 ms per token.
Scenario queue(int servers, double rate, Law law, int n, std::uint64_t seed) {
  Scenario s = one_pool(servers);
  textbook_server(s.pools[0], 1e-3);
  s.pools[0].num_blocks_override = 1 << 20;
  s.routing = {"central_queue", {}};
  s.report.interval = Seconds(0);
  Rng arrivals(seed, "arrivals"), services(seed, "services");
  double t = 0.0;
  for (int i = 0; i < n; ++i) {
    t += arrivals.exponential(1.0 / rate);
    double service = 1.0;
    if (law == Law::kExponential) service = services.exponential(1.0);
    if (law == Law::kTwoPoint) service = services.uniform() < 0.75 ? 1.0 / 3.0 : 3.0;
    s.trace.requests.push_back(
        request_at(t, 1, std::max(1, static_cast<int>(std::lround(service * 1000.0)))));
    s.trace.requests.back().row = static_cast<std::uint32_t>(i);
  }
  return s;
}

struct Measured {
  double wait_s = 0.0;
  double sojourn_s = 0.0;
  double horizon_s = 0.0;
  double count = 0.0;
};
Measured measure(const RunResult& r) {
  Measured m;
  for (const RequestRecord& q : r.requests) {
    m.wait_s += (q.scheduled - q.arrival).value();
    m.sojourn_s += (q.last_token - q.arrival).value();
  }
  m.count = static_cast<double>(r.requests.size());
  m.horizon_s = r.end.seconds().value();
  return m;
}

/// Batch means: the mean wait and its standard error over 50 consecutive batches, robust against
/// the correlation between neighbours.
std::pair<double, double> wait_with_error(const RunResult& r) {
  constexpr std::size_t kBatches = 50;
  const std::size_t size = r.requests.size() / kBatches;
  double sum = 0.0, squares = 0.0;
  for (std::size_t b = 0; b < kBatches; ++b) {
    double w = 0.0;
    for (std::size_t i = b * size; i < (b + 1) * size; ++i) {
      w += (r.requests[i].scheduled - r.requests[i].arrival).value();
    }
    w /= static_cast<double>(size);
    sum += w;
    squares += w * w;
  }
  const double mean = sum / kBatches;
  const double variance = (squares - kBatches * mean * mean) / (kBatches - 1);
  return {mean, std::sqrt(variance / kBatches)};
}

void check_wait(int servers, double rate, Law law, double expected) {
  const RunResult r = run(test_catalog(), queue(servers, rate, law, 200000, 7));
  const auto [mean, error] = wait_with_error(r);
  CAPTURE(mean);
  CAPTURE(error);
  CAPTURE(expected);
  CHECK(std::abs(mean - expected) < 4.0 * error);
  CHECK(error < 0.1 * expected);  // the gate means something
  CHECK(r.finished == 200000);
}

}  // namespace

TEST_CASE("M/D/1 at rho .8: Wq = rho / (2 mu (1 - rho)) = 2") {
  check_wait(1, 0.8, Law::kFixed, 2.0);
}

TEST_CASE("M/M/1 at rho .8: Wq = rho / (mu - lambda) = 4") {
  check_wait(1, 0.8, Law::kExponential, 4.0);
}

TEST_CASE("M/M/4 at lambda 3.2: Erlang C .596432, Wq .745541") {
  check_wait(4, 3.2, Law::kExponential, 0.745541);
}

TEST_CASE("M/M/2 at lambda 1.5: Wq 1.285714") {
  check_wait(2, 1.5, Law::kExponential, 1.285714);
}

TEST_CASE("M/G/1, two-point service (1/3 with .75, 3 with .25): Pollaczek-Khinchine") {
  // E[S] = .25 + .75 = 1; E[S^2] = .75/9 + .25 * 9 = 2.333333; Wq = .7 * 2.333333 / (2 * .3)
  check_wait(1, 0.7, Law::kTwoPoint, 0.7 * (0.75 / 9.0 + 2.25) / 0.6);
}

TEST_CASE("Little's law holds exactly on the sample path, and work is conserved") {
  const RunResult r = run(test_catalog(), queue(3, 2.4, Law::kExponential, 20000, 11));
  const Measured m = measure(r);
  // The integral of N(t) over a run that starts and ends empty, by sweeping arrivals and
  // departures.
  std::vector<std::pair<std::int64_t, int>> changes;
  for (const RequestRecord& q : r.requests) {
    changes.emplace_back(q.arrival.ns(), 1);
    changes.emplace_back(q.last_token.ns(), -1);
  }
  std::sort(changes.begin(), changes.end());
  double integral = 0.0;
  std::int64_t before = 0, present = 0;
  for (const auto& [t, delta] : changes) {
    integral += static_cast<double>(present) * static_cast<double>(t - before) * 1e-9;
    present += delta;
    before = t;
  }
  CHECK(close(integral, m.sojourn_s, 1e-9));
  double work = 0.0, busy = 0.0;
  for (const Request& q : queue(3, 2.4, Law::kExponential, 20000, 11).trace.requests)
    work += q.output_tokens * 1e-3;
  for (const ReplicaRecord& rep : r.replicas) busy += rep.busy_s;
  CHECK(close(work, busy, 1e-9));
}

TEST_CASE("three-state energy identity: active, context idle, nothing else") {
  Scenario s = queue(1, 0.5, Law::kFixed, 500, 3);
  // A constant step does no flops or bytes worth mentioning; what there is the meter adds exactly.
  const RunResult r = run(test_catalog(), s);
  const ReplicaRecord& rep = r.replicas[0];
  const double end = r.end.seconds().value();
  CHECK(close(rep.busy_s, 500.0, 1e-9));
  CHECK(close(rep.idle_energy_j, 50.0 * (end - 500.0), 1e-9));
  double requests_j = 0.0, extra = 0.0;
  for (const RequestRecord& q : r.requests) requests_j += q.energy_j;
  for (const double e : rep.extra_energy_j) extra += e;
  CHECK(close(requests_j, rep.active_energy_j, 1e-9));
  // The course over time integrates to the total above context idle.
  CHECK(close(extra, rep.active_energy_j - 50.0 * rep.busy_s, 1e-9));
}
