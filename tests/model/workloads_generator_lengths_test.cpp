// Length distributions against their moments (4 standard deviations) and closed forms.
#include <cmath>

#include "tests/support/traces.h"
#include "workloads/generator.h"

using namespace medley;

namespace {
constexpr int kN = 200'000;

struct Sample {
  double mean = 0.0, sd = 0.0;
  std::vector<double> sorted;
  double quantile(double q) const { return sorted[static_cast<std::size_t>(q * (kN - 1))]; }
};
Sample sample(const Distribution& d, std::uint64_t seed = 5) {
  Rng rng(seed, "lengths");
  Sample s;
  for (int i = 0; i < kN; ++i) s.sorted.push_back(static_cast<double>(d.sample_count(rng, 1)));
  for (const double x : s.sorted) s.mean += x / kN;
  for (const double x : s.sorted) s.sd += (x - s.mean) * (x - s.mean) / kN;
  s.sd = std::sqrt(s.sd);
  std::sort(s.sorted.begin(), s.sorted.end());
  return s;
}
void check_mean(const Sample& s, double mean) {
  CHECK(std::abs(s.mean - mean) < 4.0 * s.sd / std::sqrt(static_cast<double>(kN)));
}
Distribution lognormal(const Distribution::LognormalFacts& facts) {
  std::string why;
  const auto d = Distribution::lognormal_from(facts, why);
  REQUIRE_MESSAGE(d.has_value(), why);
  return *d;
}
}  // namespace

TEST_CASE("fixed and uniform lengths") {
  const Sample f = sample(Distribution::fixed(512));
  CHECK(f.sorted.front() == 512.0);
  CHECK(f.sorted.back() == 512.0);
  const Sample s = sample(Distribution::uniform(10, 20));
  check_mean(s, 15.0);
  CHECK(s.sorted.front() == 10.0);
  CHECK(s.sorted.back() == 20.0);
  // Each of the 11 whole numbers alike: variance (11^2 - 1)/12 = 10.
  CHECK(std::abs(s.sd * s.sd - 10.0) < 0.1);
}

TEST_CASE("exponential and gamma lengths keep mean and spread") {
  const Sample e = sample(Distribution::exponential(500.0));
  check_mean(e, 500.0);
  CHECK(std::abs(e.sd - 500.0) < 4.0 * 500.0 * std::sqrt(2.0 / kN));
  const Sample g = sample(Distribution::gamma(800.0, 0.5));
  check_mean(g, 800.0);
  CHECK(std::abs(g.sd / g.mean - 0.5) < 0.005);
}

TEST_CASE("a lognormal from any two facts is the same lognormal") {
  // mu = ln 1000, sigma = 0.8: mean 1000 e^0.32, p90 = 1000 e^(0.8 z90), p99 = 1000 e^(0.8 z99),
  // cv = sqrt(e^0.64 - 1).
  const double mean = 1000.0 * std::exp(0.32);
  const double p90 = 1000.0 * std::exp(0.8 * 1.2815515655446004);
  const double p99 = 1000.0 * std::exp(0.8 * 2.3263478740408408);
  const double cv = std::sqrt(std::exp(0.64) - 1.0);
  std::vector<Distribution::LognormalFacts> facts(9);
  facts[0].mu = std::log(1000.0), facts[0].sigma = 0.8;
  facts[1].mean = mean, facts[1].p50 = 1000.0;
  facts[2].p50 = 1000.0, facts[2].p99 = p99;
  facts[3].p50 = 1000.0, facts[3].p90 = p90;
  facts[4].p90 = p90, facts[4].p99 = p99;
  facts[5].mean = mean, facts[5].p99 = p99;
  facts[6].mean = mean, facts[6].cv = cv;
  facts[7].p99 = p99, facts[7].cv = cv;
  facts[8].mean = mean, facts[8].p90 = p90;
  for (const auto& f : facts) {
    const Distribution d = lognormal(f);
    CHECK(d.a == doctest::Approx(std::log(1000.0)).epsilon(1e-9));
    CHECK(d.b == doctest::Approx(0.8).epsilon(1e-9));
  }
  const Sample s = sample(lognormal(facts[0]));
  check_mean(s, mean);
  // Quantile sd = sqrt(q(1-q)/n)/f(x), f the density: x sigma f(x) = phi(z).
  CHECK(std::abs(s.quantile(0.5) - 1000.0) <
        4.0 * std::sqrt(0.25 / kN) * 1000.0 * 0.8 / 0.3989422804);
  CHECK(std::abs(s.quantile(0.99) - p99) < 4.0 * std::sqrt(0.0099 / kN) * p99 * 0.8 / 0.0266521422);
}

TEST_CASE("facts that contradict give a reason") {
  const auto why_of = [](auto set) {
    Distribution::LognormalFacts f;
    set(f);
    std::string why;
    CHECK_FALSE(Distribution::lognormal_from(f, why).has_value());
    return why;
  };
  CHECK(why_of([](auto& f) { f.p50 = 5.0; }).find("exactly two") != std::string::npos);
  CHECK(why_of([](auto& f) { f.mu = 5.0, f.p50 = 3.0; }).find("exactly two") != std::string::npos);
  CHECK(why_of([](auto& f) { f.mean = 5.0, f.p50 = 9.0; }).find("median") != std::string::npos);
  CHECK(why_of([](auto& f) { f.p50 = 9.0, f.p99 = 5.0; }).find("smaller") != std::string::npos);
  CHECK(why_of([](auto& f) { f.mean = 1.0, f.p99 = 1e9; }).find("no lognormal") !=
        std::string::npos);
}

TEST_CASE("bounds clamp: the mass beyond them piles up there") {
  Distribution d = Distribution::exponential(100.0);
  d.max = 100.0;
  const Sample s = sample(d);
  CHECK(s.sorted.back() == 100.0);
  const auto at_cap = std::count(s.sorted.begin(), s.sorted.end(), 100.0);
  // P(X > 99.5) = e^-0.995.
  const double p = std::exp(-0.995);
  CHECK(std::abs(static_cast<double>(at_cap) / kN - p) < 4.0 * std::sqrt(p * (1.0 - p) / kN));
}

TEST_CASE("histograms, inline and from CSV") {
  const ScratchDirectory dir;
  dir.write("h.csv", "# lengths\nlow,high,share\n1,10,1\n100,100,3\n");
  const Trace t = trace_of(R"({"generate": {"arrivals": {"process": "poisson", "rate": "10 req/s"},
    "input_tokens": {"dist": "histogram", "bins": [[7, 1], [20, 29, 1], [1000, 0]]},
    "output_tokens": {"dist": "histogram", "csv": "h.csv", "low": "low", "high": "high", "weight": "share"},
    "requests": 40000}})",
                           1, dir.path());
  double sevens = 0, hundreds = 0, in_sum = 0, out_sum = 0;
  for (const Request& r : t.requests) {
    sevens += r.input_tokens == 7;
    hundreds += r.output_tokens == 100;
    in_sum += r.input_tokens;
    out_sum += r.output_tokens;
    REQUIRE((r.input_tokens == 7 || (r.input_tokens >= 20 && r.input_tokens <= 29)));
    REQUIRE((r.output_tokens == 100 || r.output_tokens <= 10));
  }
  const double n = 40000.0;
  CHECK(std::abs(sevens / n - 0.5) < 4.0 * std::sqrt(0.25 / n));
  CHECK(std::abs(hundreds / n - 0.75) < 4.0 * std::sqrt(0.1875 / n));
  // Means 0.5 (7 + 24.5) and 0.25 5.5 + 0.75 100; sds 8.98 and 40.96.
  CHECK(std::abs(in_sum / n - 15.75) < 4.0 * 9.0 / std::sqrt(n));
  CHECK(std::abs(out_sum / n - 76.375) < 4.0 * 41.0 / std::sqrt(n));
}

TEST_CASE("Zipf popularity") {
  const Zipf zipf(4, 1.0);  // weights 12 : 6 : 4 : 3 of 25
  Rng rng(1, "zipf");
  double count[4] = {0, 0, 0, 0};
  for (int i = 0; i < kN; ++i) count[zipf.sample(rng)] += 1.0;
  const double p[4] = {0.48, 0.24, 0.16, 0.12};
  for (int k = 0; k < 4; ++k) {
    CHECK(std::abs(count[k] / kN - p[k]) < 4.0 * std::sqrt(p[k] * (1.0 - p[k]) / kN));
  }
}
