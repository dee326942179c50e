#include "workloads/distribution.h"

#include <algorithm>
#include <cmath>

#include "sim/core/error.h"

namespace medley {

namespace {
constexpr double kZ90 = 1.2815515655446004;  // standard normal quantiles
constexpr double kZ99 = 2.3263478740408408;
constexpr double kMostTokens = 2147483647.0;
}  // namespace

Distribution Distribution::fixed(double value) {
  Distribution d;
  d.a = value;
  return d;
}

Distribution Distribution::uniform(double low, double high) {
  MEDLEY_CHECK(low <= high, "uniform: empty interval");
  Distribution d;
  d.kind = Kind::kUniform;
  d.a = low;
  d.b = high;
  return d;
}

Distribution Distribution::exponential(double mean) {
  Distribution d;
  d.kind = Kind::kExponential;
  d.a = mean;
  return d;
}

Distribution Distribution::lognormal(double mu, double sigma) {
  MEDLEY_CHECK(sigma >= 0.0, "lognormal: negative sigma");
  Distribution d;
  d.kind = Kind::kLognormal;
  d.a = mu;
  d.b = sigma;
  return d;
}

Distribution Distribution::gamma(double mean, double cv) {
  if (cv <= 0.0) return fixed(mean);
  Distribution d;
  d.kind = Kind::kGamma;
  d.a = 1.0 / (cv * cv);
  d.b = mean / d.a;
  return d;
}

Distribution Distribution::histogram(const std::vector<WeightedBin>& bins) {
  Distribution d;
  d.kind = Kind::kHistogram;
  double sum = 0.0;
  for (const WeightedBin& bin : bins) {
    MEDLEY_CHECK(bin.weight >= 0.0 && bin.low <= bin.high, "histogram: bad bin");
    if (bin.weight == 0.0) continue;
    sum += bin.weight;
    d.bins.push_back({bin.low, bin.high, sum});
  }
  MEDLEY_CHECK(!d.bins.empty(), "histogram: no weight");
  for (Bin& bin : d.bins) bin.upto /= sum;
  d.bins.back().upto = 1.0;
  return d;
}

namespace {
struct Quantile {
  double z;
  double value;
};

std::optional<Distribution> from_mean_and_quantile(double mean, Quantile q, std::string& why) {
  if (q.z == 0.0) {
    if (mean < q.value) {
      why = "a lognormal's mean is not below its median";
      return std::nullopt;
    }
    return Distribution::lognormal(std::log(q.value), std::sqrt(2.0 * std::log(mean / q.value)));
  }
  const double discriminant = q.z * q.z - 2.0 * std::log(q.value / mean);
  if (discriminant < 0.0) {
    why = "no lognormal has this quantile so far above its mean";
    return std::nullopt;
  }
  const double sigma = q.z - std::sqrt(discriminant);
  if (sigma < 0.0) {
    why = "a quantile below the mean leaves two answers: give p50 instead";
    return std::nullopt;
  }
  return Distribution::lognormal(std::log(mean) - sigma * sigma / 2.0, sigma);
}
}  // namespace

std::optional<Distribution> Distribution::lognormal_from(const LognormalFacts& f,
                                                         std::string& why) {
  int given = 0;
  for (const auto* fact : {&f.mu, &f.sigma, &f.mean, &f.cv, &f.p50, &f.p90, &f.p99}) {
    given += fact->has_value() ? 1 : 0;
  }
  why = "give exactly two of mean, cv, p50, p90, p99, or mu and sigma";
  if (given != 2 || f.mu.has_value() != f.sigma.has_value()) return std::nullopt;
  if (f.mu) return lognormal(*f.mu, *f.sigma);
  std::vector<Quantile> quantiles;
  if (f.p50) quantiles.push_back({0.0, *f.p50});
  if (f.p90) quantiles.push_back({kZ90, *f.p90});
  if (f.p99) quantiles.push_back({kZ99, *f.p99});
  if (f.cv) {
    const double sigma2 = std::log1p(*f.cv * *f.cv);
    const double sigma = std::sqrt(sigma2);
    if (f.mean) return lognormal(std::log(*f.mean) - sigma2 / 2.0, sigma);
    return lognormal(std::log(quantiles[0].value) - quantiles[0].z * sigma, sigma);
  }
  if (f.mean) return from_mean_and_quantile(*f.mean, quantiles[0], why);
  if (quantiles[1].value < quantiles[0].value) {
    why = "the higher quantile is the smaller value";
    return std::nullopt;
  }
  const double sigma =
      std::log(quantiles[1].value / quantiles[0].value) / (quantiles[1].z - quantiles[0].z);
  return lognormal(std::log(quantiles[0].value) - quantiles[0].z * sigma, sigma);
}

namespace {
const Distribution::Bin& pick(const std::vector<Distribution::Bin>& bins, double u) {
  const auto it = std::upper_bound(bins.begin(), bins.end(), u,
                                   [](double x, const Distribution::Bin& b) { return x < b.upto; });
  return it == bins.end() ? bins.back() : *it;
}

double whole_between(double low, double high, Rng& rng) {
  const double first = std::ceil(low);
  const double span = std::floor(high) - first;
  if (span < 0.0) return std::nearbyint((low + high) / 2.0);
  return first + static_cast<double>(rng.below(static_cast<std::uint64_t>(span) + 1));
}
}  // namespace

double Distribution::sample(Rng& rng) const {
  double x = a;
  switch (kind) {
    case Kind::kFixed:
      break;
    case Kind::kUniform:
      x = rng.uniform(a, b);
      break;
    case Kind::kExponential:
      x = rng.exponential(a);
      break;
    case Kind::kLognormal:
      x = rng.lognormal(a, b);
      break;
    case Kind::kGamma:
      x = rng.gamma(a, b);
      break;
    case Kind::kHistogram: {
      const Bin& bin = pick(bins, rng.uniform());
      x = bin.low < bin.high ? rng.uniform(bin.low, bin.high) : bin.low;
      break;
    }
  }
  return std::clamp(x, min, max);
}

std::int64_t Distribution::sample_count(Rng& rng, std::int64_t at_least) const {
  double x = 0.0;
  if (kind == Kind::kUniform) {
    x = std::clamp(whole_between(a, b, rng), min, max);
  } else if (kind == Kind::kHistogram) {
    const Bin& bin = pick(bins, rng.uniform());
    x = std::clamp(bin.low < bin.high ? whole_between(bin.low, bin.high, rng) : bin.low, min, max);
  } else {
    x = sample(rng);
  }
  return std::max(at_least, static_cast<std::int64_t>(std::nearbyint(std::min(x, kMostTokens))));
}

double Distribution::mean() const {
  switch (kind) {
    case Kind::kFixed:
      return a;
    case Kind::kUniform:
      return (a + b) / 2.0;
    case Kind::kExponential:
      return a;
    case Kind::kLognormal:
      return std::exp(a + b * b / 2.0);
    case Kind::kGamma:
      return a * b;
    case Kind::kHistogram:
      break;
  }
  double sum = 0.0;
  double before = 0.0;
  for (const Bin& bin : bins) {
    sum += (bin.upto - before) * (bin.low + bin.high) / 2.0;
    before = bin.upto;
  }
  return sum;
}

}  // namespace medley
