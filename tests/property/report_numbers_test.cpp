#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "sim/core/rng.h"
#include "sim/report/statistics.h"
#include "sim/report/writers.h"
#include "tests/support/report_run.h"

using namespace medley;
using namespace medley::testing;

TEST_CASE("quantiles are numpy's: linear between order statistics") {
  std::vector<double> v = {4, 1, 3, 2};
  const Moments m = moments_of(v);
  CHECK(m.p50 == 2.5);        // rank 1.5
  CHECK(close(m.p90, 3.7));   // rank 2.7
  CHECK(close(m.p99, 3.97));  // rank 2.97
  CHECK(m.mean == 2.5);
  CHECK(close(m.std, std::sqrt(1.25)));  // population
  std::vector<double> one = {7};
  CHECK(moments_of(one).p99 == 7);
  std::vector<double> none;
  CHECK(std::isnan(moments_of(none).mean));
}

TEST_CASE("selected quantiles equal those of sorted data") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    Rng rng(seed, "test");
    std::vector<double> v(1 + rng.below(500));
    for (double& x : v) x = rng.below(3) == 0 ? 1.0 : rng.lognormal(0, 2);
    std::vector<double> sorted = v;
    std::sort(sorted.begin(), sorted.end());
    const Moments m = moments_of(v);
    CHECK(m.p50 == sorted_quantile(sorted, 0.50));
    CHECK(m.p90 == sorted_quantile(sorted, 0.90));
    CHECK(m.p95 == sorted_quantile(sorted, 0.95));
    CHECK(m.p99 == sorted_quantile(sorted, 0.99));
    CHECK(m.max == sorted.back());
  }
}

// Independent values: the interval must hold the true mean in about 90 % of the runs. 400 runs:
// standard deviation of the share 1.5 %; 84 % to 96 % is four of them.
TEST_CASE("the 90 % interval of the mean covers it nine times in ten") {
  int covered = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Rng rng(seed, "cover");
    std::vector<double> v(1000);
    for (double& x : v) x = rng.exponential(2.0);
    const Moments m = moments_of(v);
    if (m.lo90 <= 2.0 && 2.0 <= m.hi90) ++covered;
  }
  CHECK(covered >= 336);
  CHECK(covered <= 384);
}

TEST_CASE("a line of gaps is the same as its values one by one") {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    Rng rng(seed, "line");
    LogHistogram line, single;
    std::vector<double> all;
    for (int k = 0; k < 5; ++k) {
      const double first = std::pow(10.0, rng.uniform(-6, 1));
      const double slope = rng.below(3) == 0 ? 0.0 : first * std::pow(10.0, rng.uniform(-5, 1));
      const auto count = static_cast<std::int64_t>(1 + rng.below(400));
      const auto weight = static_cast<std::int64_t>(1 + rng.below(3));
      line.add_line(first, slope, count, weight);
      for (std::int64_t i = 0; i < count; ++i) {
        const double value = first + slope * static_cast<double>(i);
        single.add(value, weight);
        for (std::int64_t w = 0; w < weight; ++w) all.push_back(value);
      }
    }
    std::sort(all.begin(), all.end());
    CHECK(line.count() == single.count());
    CHECK(close(line.mean(), single.mean(), 1e-12));
    CHECK(close(line.stddev(), single.stddev(), 1e-6));
    CHECK(line.min() == single.min());
    CHECK(close(line.max(), single.max(), 1e-12));
    for (const double p : {0.0, 0.01, 0.5, 0.9, 0.99, 1.0}) {
      CAPTURE(p);
      CHECK(close(line.quantile(p), single.quantile(p), 1e-3));
      // Within a bin of the order statistics around the rank.
      const double rank = p * static_cast<double>(all.size() - 1);
      const double low = all[static_cast<std::size_t>(std::floor(rank))];
      const double high = all[static_cast<std::size_t>(std::ceil(rank))];
      CHECK(line.quantile(p) >= low * (1 - 0.0042));
      CHECK(line.quantile(p) <= high * (1 + 0.0042));
    }
  }
}

TEST_CASE("merged histograms are the histogram of everything") {
  Rng rng(3, "merge");
  LogHistogram a, b, both;
  for (int i = 0; i < 1000; ++i) {
    const double x = rng.exponential(0.02);
    (i % 3 == 0 ? a : b).add(x, 1);
    both.add(x, 1);
  }
  a.merge(b);
  a.merge(LogHistogram());
  CHECK(a.count() == both.count());
  CHECK(close(a.mean(), both.mean(), 1e-12));
  for (const double p : {0.1, 0.5, 0.99}) CHECK(a.quantile(p) == both.quantile(p));
  CHECK(std::isnan(LogHistogram().quantile(0.5)));
}

TEST_CASE("values outside the bins keep count, mean and extremes") {
  LogHistogram h;
  h.add(0.0, 2);
  h.add(1e9, 1);
  CHECK(h.count() == 3);
  CHECK(h.min() == 0.0);
  CHECK(h.max() == 1e9);
  CHECK(close(h.mean(), 1e9 / 3));
}

// INV-5 on reports: energy over any two adjacent windows adds up, whatever bins they cut.
TEST_CASE("energy is additive over time and over nodes") {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    Rng rng(seed, "energy");
    HandRun run = hand_run();
    double sum = 0.0;
    for (double& e : run.result.replicas[0].extra_energy_j) sum += e = rng.uniform(-20, 300);
    run.result.replicas[0].active_energy_j = run.result.replicas[0].attributed_j = sum + 200;
    run.result.requests[0].energy_j = sum + 200 - run.result.requests[1].energy_j;
    const Analysis a(run.scenario, run.result);
    const FleetAccount& account = a.account();
    const double from = rng.uniform(0, 10), to = rng.uniform(from, 10);
    const double cut = rng.uniform(from, to);
    CHECK(close(account.cluster_it_j(from, to).value,
                account.cluster_it_j(from, cut).value + account.cluster_it_j(cut, to).value));
    double nodes = 0.0;
    for (const NodeAccount& n : account.nodes()) nodes += account.node_j(n, from, to).value;
    CHECK(close(nodes, account.cluster_it_j(from, to).value));
    CHECK(close(account.pool_it_j(0, from, to).value, nodes));
    CHECK(close(account.pool_devices_j(0, 0, 10).value, 1300 + sum + 200));
  }
}

TEST_CASE("a power course agrees with its own sums and peaks") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    Rng rng(seed, "course");
    const double bin = 0.5;
    const double run = 7.3;
    std::vector<double> joules(15);
    for (double& j : joules) j = rng.uniform(0, 100);
    PowerCourse course(bin, run);
    course.add(joules);
    course.add_constant(10.0);
    course.finish();
    REQUIRE(course.bins() == 15);
    double sum = 10.0 * run;
    for (const double j : joules) sum += j;
    CHECK(close(course.joules(0, run), sum));
    CHECK(close(course.joules(0, 3.1) + course.joules(3.1, run), sum));
    double peak = 0.0;
    for (std::size_t b = 0; b + 1 < 14; ++b) {
      peak = std::max(peak, (joules[b] + joules[b + 1]) / 1.0 + 10.0);
    }
    CHECK(close(course.peak_w(1.0, 0, 14), peak));
    CHECK(course.peak_w(1.0, 0, 15) >= course.joules(0, run) / run - 1e-9);
    CHECK(std::isnan(course.peak_w(60.0, 0, 15)));  // 60 s never passed
    CHECK(std::isnan(course.peak_w(0.1, 0, 15)));   // finer than the bins
  }
}
