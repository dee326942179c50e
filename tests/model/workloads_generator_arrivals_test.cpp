// Arrival processes against their moments. Bounds are 4 standard deviations of the estimator;
// seeds are fixed, so a pass stays a pass.
#include <cmath>

#include "tests/support/traces.h"
#include "workloads/generator.h"
#include "workloads/trace_stats.h"

using namespace medley;

namespace {
std::vector<double> gaps_of(const ArrivalSpec& spec, int n, std::uint64_t seed = 7) {
  ArrivalTimes times(spec, seed, "test/arrivals");
  std::vector<double> gaps;
  double before = 0.0;
  for (int i = 0; i < n; ++i) {
    const double t = times.next();
    gaps.push_back(t - before);
    before = t;
  }
  return gaps;
}
struct Moments {
  double mean = 0.0, cv = 0.0, kurtosis = 0.0;
};
Moments moments(const std::vector<double>& x) {
  const double n = static_cast<double>(x.size());
  double sum = 0.0, m2 = 0.0, m4 = 0.0;
  for (const double v : x) sum += v;
  for (const double v : x) {
    const double d2 = (v - sum / n) * (v - sum / n);
    m2 += d2;
    m4 += d2 * d2;
  }
  return {sum / n, std::sqrt(m2 / n) / (sum / n), m4 / n / (m2 / n * m2 / n)};
}
}  // namespace

TEST_CASE("constant arrivals start at 0 and keep the gap exactly") {
  const Trace t = trace_of(R"({"generate": {"arrivals": {"process": "constant", "rate": "4 req/s"},
    "input_tokens": 10, "output_tokens": 5, "duration": "2 s"}})");
  REQUIRE(t.requests.size() == 8);
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(t.requests[i].arrival.ns() == static_cast<std::int64_t>(i) * 250'000'000);
  }
}

TEST_CASE("gaps have the asked mean and coefficient of variation") {
  struct Case {
    ArrivalSpec::Gap gap;
    double cv;
  };
  constexpr int kN = 100'000;
  for (const Case& c : {Case{ArrivalSpec::Gap::kPoisson, 1.0}, Case{ArrivalSpec::Gap::kGamma, 2.0},
                        Case{ArrivalSpec::Gap::kGamma, 0.5}, Case{ArrivalSpec::Gap::kWeibull, 1.5},
                        Case{ArrivalSpec::Gap::kWeibull, 0.3}}) {
    ArrivalSpec spec;
    spec.gap = c.gap;
    spec.cv = c.cv;
    spec.rate = RateCurve::constant(5.0);
    const Moments m = moments(gaps_of(spec, kN));
    CAPTURE(c.cv);
    // Mean of n gaps: sd = cv/(rate sqrt n). The cv's own sd is about
    // cv sqrt((kurtosis - 1)/(4 n) + cv^2/n) or less.
    const double root = std::sqrt(static_cast<double>(kN));
    CHECK(std::abs(m.mean - 0.2) < 4.0 * 0.2 * c.cv / root);
    CHECK(std::abs(m.cv - c.cv) <
          4.0 * c.cv * std::sqrt((m.kurtosis - 1.0) / 4.0 + c.cv * c.cv) / root);
  }
}

// cv 1 is the exponential law: shape 1 for both families. For Weibull shape 2 (Rayleigh)
// cv^2 = 4/pi - 1.
TEST_CASE("Weibull shapes known in closed form") {
  CHECK(weibull_shape(1.0) == doctest::Approx(1.0).epsilon(1e-9));
  CHECK(weibull_shape(std::sqrt(4.0 / 3.141592653589793 - 1.0)) ==
        doctest::Approx(2.0).epsilon(1e-9));
}

TEST_CASE("a Poisson process counts like one: variance of counts over mean is 1") {
  const Trace t = trace_of(R"({"generate": {"arrivals": {"process": "poisson", "rate": "20 req/s"},
    "input_tokens": 10, "output_tokens": 5, "duration": "2000 s"}})");
  const TraceStats s = trace_stats(t);
  // N ~ Poisson(40000): sd 200. Index of dispersion of 2000 counts: sd sqrt(2/2000).
  CHECK(std::abs(static_cast<double>(s.requests) - 40000.0) < 4.0 * 200.0);
  CHECK(std::abs(s.burstiness - 1.0) < 4.0 * std::sqrt(2.0 / 2000.0));
}

// Renewal theory: counts of a process with gap cv c have dispersion c^2 over long windows.
TEST_CASE("gamma gaps of cv 3 make counts 9 times as dispersed over long windows") {
  ArrivalSpec spec;
  spec.gap = ArrivalSpec::Gap::kGamma;
  spec.cv = 3.0;
  spec.rate = RateCurve::constant(1.0);
  ArrivalTimes times(spec, 3, "x");
  constexpr double kWindow = 1000.0;
  constexpr int kWindows = 400;
  std::vector<double> counts(kWindows, 0.0);
  for (double t = times.next(); t < kWindow * kWindows; t = times.next()) {
    counts[static_cast<std::size_t>(t / kWindow)] += 1.0;
  }
  const Moments m = moments(counts);
  const double dispersion = m.cv * m.cv * m.mean;
  CHECK(std::abs(dispersion - 9.0) < 4.0 * 9.0 * std::sqrt(2.0 / kWindows));
}

// Ramp 0 -> 10/s over 100 s: L(t) = t^2/20, so half of the 500 arrivals come before
// sqrt(250 * 20) = 70.71 s.
TEST_CASE("a ramp places arrivals where its integral says") {
  const RateCurve ramp = RateCurve::linear({{0.0, 0.0}, {100.0, 10.0}});
  CHECK(ramp.integral(100.0) == doctest::Approx(500.0));
  CHECK(ramp.invert(250.0) == doctest::Approx(70.710678).epsilon(1e-8));
  CHECK(std::isinf(ramp.invert(500.1)));
  const Trace t = trace_of(R"({"generate": {"arrivals": {"process": "constant",
    "ramp": {"from": "0 req/s", "to": "10 req/s", "over": "100 s", "hold": "10 s"}},
    "input_tokens": 1, "output_tokens": 1}})");
  // k-th of the constant law at sqrt(20 k); 500 on the ramp, then one each 0.1 s, last at 110 s.
  REQUIRE(t.requests.size() == 601);
  CHECK(t.requests[250].arrival.seconds().value() == doctest::Approx(70.710678).epsilon(1e-8));
  CHECK(t.requests[600].arrival.seconds().value() == doctest::Approx(110.0));
}

// mean 2/s, amplitude 0.5, period 100, peak at 25 (r = 2 + sin): L(50) = 100 + 100/pi.
TEST_CASE("a diurnal sinusoid: integral, inverse, rate") {
  const RateCurve day = RateCurve::sinusoid(2.0, 0.5, 100.0, 25.0);
  CHECK(day.rate(25.0) == doctest::Approx(3.0));
  CHECK(day.rate(75.0) == doctest::Approx(1.0));
  CHECK(day.integral(50.0) == doctest::Approx(100.0 + 100.0 / 3.141592653589793));
  CHECK(day.integral(100.0) == doctest::Approx(200.0));
  for (const double t : {0.0, 1e-3, 12.5, 49.0, 99.0, 123456.789}) {
    CHECK(day.invert(day.integral(t)) == doctest::Approx(t).epsilon(1e-9));
  }
}

TEST_CASE("an hourly table repeats and its ratios hold") {
  const Trace t = trace_of(R"({"generate": {"arrivals": {"process": "poisson",
    "hourly": {"mean": "2 req/s", "levels": [1, 3, 0, 4], "period": "400 s"}},
    "input_tokens": 1, "output_tokens": 1, "duration": "40000 s"}})");
  double count[4] = {0, 0, 0, 0};
  for (const Request& r : t.requests) {
    const double in_period = std::fmod(r.arrival.seconds().value(), 400.0);
    count[static_cast<int>(in_period / 100.0)] += 1.0;
  }
  // 40000 s x 2/s = 80000, split 1:3:0:4 -> 10000, 30000, 0, 40000, each Poisson.
  const double expected[4] = {10000, 30000, 0, 40000};
  for (int i = 0; i < 4; ++i) {
    CHECK(std::abs(count[i] - expected[i]) <= 4.0 * std::sqrt(expected[i]));
  }
}

TEST_CASE("rates from a CSV series, filtered, stepped or linear") {
  const ScratchDirectory dir;
  dir.write("rates.csv",
            "kind,t_s,total\nchat,600,1\nchat,700,3\nagent,600,100\nagent,800,100\nchat,800,0\n");
  const auto make = [&](const std::string& how) {
    return trace_of(
        R"({"generate": {"arrivals": {"process": "constant", "series": {"file": "rates.csv",
      "rate": "total", "where": {"kind": "chat"}, "interpolate": ")" +
            how + R"("}}, "input_tokens": 1, "output_tokens": 1}})",
        1, dir.path());
  };
  const Trace steps = make("step");  // 100 + 300 + 0, the last step as wide as the one before
  CHECK(steps.requests.size() == 401);
  CHECK(steps.requests[100].arrival.seconds().value() == doctest::Approx(100.0));
  CHECK(steps.requests[103].arrival.seconds().value() == doctest::Approx(101.0));
  const Trace linear = make("linear");  // (1+3)/2 100 + (3+0)/2 100 = 350
  CHECK(linear.requests.size() == 351);
  CHECK(linear.requests[200].arrival.seconds().value() == doctest::Approx(100.0));
}

TEST_CASE("property: any curve's inverse undoes its integral and ascends") {
  Rng rng(11, "curves");
  for (int round = 0; round < 50; ++round) {
    std::vector<RateCurve::Knot> knots;
    double t = 0.0;
    for (int i = 0; i < 6; ++i) {
      knots.push_back({t, rng.uniform() < 0.2 ? 0.0 : rng.uniform(0.0, 9.0)});
      t += rng.uniform(0.1, 50.0);
    }
    knots.push_back({t, 4.0});
    const RateCurve curves[] = {RateCurve::linear(knots), RateCurve::steps(knots, t + 5.0, true),
                                RateCurve::sinusoid(rng.uniform(0.1, 5.0), 1.0, 60.0, 7.0)};
    for (const RateCurve& c : curves) {
      double before = 0.0;
      for (int i = 0; i < 20; ++i) {
        const double x = rng.uniform(0.0, c.integral(t) * 0.999);
        const double at = c.invert(x);
        CAPTURE(round);
        REQUIRE(std::abs(c.integral(at) - x) <= 1e-8 * std::max(1.0, x));
        before = at;
        REQUIRE(c.invert(x + 1e-3) >= before);
      }
    }
  }
}
