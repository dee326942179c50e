#include "sim/core/rng.h"

#include <bit>
#include <boost/random/gamma_distribution.hpp>
#include <boost/random/normal_distribution.hpp>
#include <cmath>

#include "sim/core/error.h"
#include "sim/core/text_file.h"

namespace medley {

namespace {
__extension__ using Wide = unsigned __int128;

// Steele, Lea, Flood 2014; the seeding that the authors of xoshiro recommend.
std::uint64_t splitmix64(std::uint64_t& x) {
  x += 0x9e3779b97f4a7c15ULL;
  std::uint64_t z = x;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}
}  // namespace

Rng::Rng(std::uint64_t seed, std::string_view stream) {
  // The seed passes the mixer before it meets the name, so that seeds 1, 2, 3 share no bits
  // pattern.
  std::uint64_t x = seed;
  x = splitmix64(x) ^ fnv1a(stream);
  for (std::uint64_t& word : state_) word = splitmix64(x);
}

Rng::result_type Rng::operator()() {  // xoshiro256**, Blackman and Vigna 2018
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double Rng::uniform() {
  return static_cast<double>((*this)() >> 11) * 0x1p-53;
}

double Rng::uniform(double low, double high) {
  MEDLEY_CHECK(low <= high, "uniform: empty interval");
  const double x = low + (high - low) * uniform();
  return x < high ? x : low;  // the product may round up to `high`
}

std::uint64_t Rng::below(
    std::uint64_t n) {  // Lemire 2019: multiply, reject the short first interval
  MEDLEY_CHECK(n > 0, "below: n must be positive");
  Wide product = static_cast<Wide>((*this)()) * n;
  if (static_cast<std::uint64_t>(product) < n) {
    const std::uint64_t threshold = (0 - n) % n;
    while (static_cast<std::uint64_t>(product) < threshold) {
      product = static_cast<Wide>((*this)()) * n;
    }
  }
  return static_cast<std::uint64_t>(product >> 64);
}

double Rng::exponential(double mean) {
  MEDLEY_CHECK(mean >= 0.0, "exponential: negative mean");
  return -mean * std::log1p(-uniform());
}

double Rng::normal(double mean, double sigma) {
  MEDLEY_CHECK(sigma >= 0.0, "normal: negative sigma");
  boost::random::normal_distribution<double> unit;
  return mean + sigma * unit(*this);
}

double Rng::lognormal(double mu, double sigma) {
  return std::exp(normal(mu, sigma));
}

double Rng::gamma(double shape, double scale) {
  MEDLEY_CHECK(shape > 0.0 && scale >= 0.0, "gamma: shape must be positive, scale not negative");
  boost::random::gamma_distribution<double> unit(shape);
  return scale * unit(*this);
}

double Rng::weibull(double shape, double scale) {
  MEDLEY_CHECK(shape > 0.0 && scale >= 0.0, "weibull: shape must be positive, scale not negative");
  return scale * std::pow(-std::log1p(-uniform()), 1.0 / shape);
}

}  // namespace medley
