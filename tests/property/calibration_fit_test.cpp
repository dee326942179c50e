#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "hwmodels/calibration.h"
#include "sim/calibration/calibrate.h"
#include "sim/calibration/kernel_fit.h"
#include "sim/calibration/power_fit.h"
#include "sim/core/rng.h"

using namespace medley;

namespace {
constexpr double kPeak = 400e12, kBandwidth = 2e12;

template <class T>
Sourced<T> known(T value) {
  Sourced<T> s;
  s.value = value;
  s.provenance = Provenance::kDatasheet;
  s.source = "by hand";
  return s;
}

DeviceSpec device() {
  DeviceSpec d;
  d.name = "Test card";
  d.kind = "gpu";
  d.peak[index(DType::kBf16)] = d.peak[index(DType::kFp16)] = known(FlopsPerSec(kPeak));
  d.memory_bandwidth = known(BytesPerSec(kBandwidth));
  d.launch_graph = known(Seconds(0.3e-6));
  d.power.limit = known(Watts(500.0));
  return d;
}

RampPair truth() {
  RampPair pair;
  pair.compute = Ramp{0.7, 2e9};
  pair.compute.serial = 0.3;
  pair.memory = Ramp{0.85, 6e6};
  return pair;
}

/// GEMMs of 1 to 8192 rows over six matrices, times from `truth`, with 4 % noise and one row in
/// twelve three times too slow.
std::vector<KernelSample> gemms(std::uint64_t seed, double noise = 0.04, int outlier = 12) {
  Rng rng(seed, "calibration/gemms");
  const RampRates rates{kPeak, kBandwidth};
  std::vector<KernelSample> samples;
  int count = 0;
  for (const double n : {2048.0, 4096.0, 8192.0, 14336.0, 28672.0, 65536.0}) {
    for (const double k : {4096.0, 8192.0, 16384.0}) {
      for (double m = 1; m <= 8192; m *= 2) {
        KernelSample s;
        s.flops = 2 * m * n * k;
        s.bytes = 2 * (n * k + m * (n + k));
        s.time_s = 0.3e-6 + truth().time_s(rates, s.flops, s.bytes);
        s.time_s *= std::exp(noise * (2.0 * rng.uniform() - 1.0) * 1.73);
        if (outlier > 0 && ++count % outlier == 0) s.time_s *= 3.0;
        s.curve = "n=" + std::to_string(int(n)) + ",k=" + std::to_string(int(k));
        s.position = m;
        s.op = "gemm";
        samples.push_back(s);
      }
    }
  }
  return samples;
}
}  // namespace

TEST_CASE("known ramps come back through noise and outliers, whatever the seed") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    const KernelFit fit = fit_kernels(gemms(seed), device());
    REQUIRE(fit.rows.size() == 1);
    const KernelFitRow& row = fit.rows.front();
    const RampPair want = truth();
    CHECK(row.ramps.compute.fraction == doctest::Approx(want.compute.fraction).epsilon(0.04));
    CHECK(row.ramps.memory.fraction == doctest::Approx(want.memory.fraction).epsilon(0.04));
    CHECK(row.ramps.memory.half == doctest::Approx(want.memory.half).epsilon(0.3));
    CHECK(std::fabs(row.ramps.compute.serial - want.compute.serial) < 0.1);
    CHECK(row.held_out.median < 0.06);  // the noise itself
    CHECK(std::fabs(row.held_out.bias) < 0.02);
    CHECK(row.held_out.n > 80);
  }
}

TEST_CASE("exact times are met exactly, and ends of the range are those of the rows") {
  const auto samples = gemms(1, 0.0, 0);
  const KernelFit fit = fit_kernels(samples, device());
  const KernelFitRow& row = fit.rows.front();
  CHECK(row.held_out.p90 < 2e-3);
  CHECK(row.low_flops == doctest::Approx(2.0 * 2048 * 4096));
  CHECK(row.high_flops == doctest::Approx(2.0 * 8192 * 65536 * 16384));
  const Sourced<Ramp>& leaf = fit.efficiency[index(OpClass::kGemm)].compute[index(DType::kBf16)];
  CHECK(leaf.provenance == Provenance::kMeasured);
  CHECK(leaf.value->high == doctest::Approx(row.high_flops).epsilon(1e-3));
  CHECK(fit.efficiency[index(OpClass::kGemm)].compute[index(DType::kFp16)].provenance ==
        Provenance::kDerived);
}

TEST_CASE("the order of the rows does not matter, nor do rows of the other half with --holdout") {
  KernelFitOptions holdout;
  holdout.holdout = true;
  auto samples = gemms(3);
  const RampPair first = fit_kernels(samples, device(), holdout).rows.front().ramps;
  std::reverse(samples.begin(), samples.end());
  for (KernelSample& s : samples) {
    if (held_out(s)) s.time_s *= 10.0;
  }
  const RampPair second = fit_kernels(samples, device(), holdout).rows.front().ramps;
  CHECK(second.compute.fraction == first.compute.fraction);
  CHECK(second.memory.half == first.memory.half);
}

TEST_CASE("a loop over cached operands and times above the data sheet are left out, by reason") {
  DeviceSpec d = device();
  d.last_level_cache = known(Bytes(64e6));
  KernelSample cached;  // 40 MB: 20 us of bandwidth, fits; memory decides by data-sheet rates
  cached.flops = 1e6;
  cached.bytes = 40e6;
  cached.time_s = 10e-6;
  KernelSample fast = cached;  // 400 MB in 100 us are 4 TB/s
  fast.bytes = 400e6;
  fast.time_s = 100e-6;
  const KernelFit fit = fit_kernels({cached, fast}, d);
  CHECK(fit.rows.front().dropped.at("cache resident") == 1);
  CHECK(fit.rows.front().dropped.at("faster than the data sheet") == 1);
  CHECK(fit.rows.front().fitted == 0);
}

TEST_CASE("a slower format in memory gets a ramp of its own beside the shared compute ramp") {
  auto samples = gemms(2, 0.0, 0);
  const std::size_t n = samples.size();
  const RampRates rates{kPeak, kBandwidth};
  for (std::size_t i = 0; i < n; ++i) {
    KernelSample s = samples[i];
    s.weights = DType::kInt4;
    s.bytes *= 0.3;
    RampPair slow = truth();
    slow.memory = Ramp{0.5, 6e6};
    s.time_s = 0.3e-6 + slow.time_s(rates, s.flops, s.bytes);
    samples.push_back(s);
  }
  const KernelFit fit = fit_kernels(samples, device());
  const OpEfficiency& e = fit.efficiency[index(OpClass::kGemm)];
  CHECK(e.memory.value->fraction == doctest::Approx(0.85).epsilon(0.02));
  CHECK(e.memory_of(DType::kInt4).value->fraction == doctest::Approx(0.5).epsilon(0.02));
  CHECK(&e.memory_of(DType::kBf16) == &e.memory);
}

TEST_CASE("power: floor and energies come back from medians; rows at the limit give the share") {
  // P = 90 + 0.6 pJ/flop F/t + 100 pJ/B B/t.
  std::vector<KernelSample> samples;
  Rng rng(7, "calibration/power");
  for (int i = 0; i < 4000; ++i) {
    KernelSample s;
    s.time_s = 1e-3;
    const double f = kPeak * std::pow(10.0, -2.0 * rng.uniform());
    const double b = kBandwidth * std::pow(10.0, -2.0 * rng.uniform());
    s.flops = f * s.time_s;
    s.bytes = b * s.time_s;
    const double watts = 90 + 0.6e-12 * f + 100e-12 * b;
    s.watts = std::min(500.0, watts) * (1.0 + 0.1 * (2.0 * rng.uniform() - 1.0));
    if (watts > 500.0) s.watts = 500.0;
    s.curve = "i=" + std::to_string(i);
    samples.push_back(s);
  }
  for (int i = 0; i < 40; ++i) {  // at the limit at half the peak
    KernelSample s;
    s.time_s = 1e-3;
    s.flops = 0.5 * kPeak * s.time_s;
    s.bytes = 1e6;
    s.watts = 499.0;
    s.curve = "limit=" + std::to_string(i);
    samples.push_back(s);
  }
  const PowerFit fit = fit_power(samples, device());
  REQUIRE(fit.known());
  CHECK((*fit.active_floor).value() == doctest::Approx(90.0).epsilon(0.06));
  CHECK((*fit.energy_per_flop[index(DType::kBf16)]).value() ==
        doctest::Approx(0.6e-12).epsilon(0.06));
  CHECK((*fit.energy_per_byte).value() == doctest::Approx(100e-12).epsilon(0.06));
  CHECK(fit.median_error < 0.05);
  CHECK(*fit.sustained[index(DType::kBf16)] == doctest::Approx(0.5).epsilon(0.02));
}

TEST_CASE("same samples, same bytes; numbers have four significant digits at most") {
  const auto overlay = [] {
    const DeviceSpec d = device();
    return to_json_text(make_calibration(d, fit_kernels(gemms(5), d), PowerFit{},
                                         {"2026-11-30", "a table", "medley calibrate", ""}));
  };
  const std::string text = overlay();
  CHECK(text == overlay());
  CHECK(text.find("\"date\": \"2026-11-30\"") != std::string::npos);
  int digits = 0, most = 0;
  bool inside = false;  // of "fraction": 0.xxxx
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 12, "\"fraction\": ") == 0) {
      inside = true;
      digits = 0;
      i += 12;
    }
    if (inside && text[i] == ',') inside = false;
    if (inside && text[i] >= '0' && text[i] <= '9' && (digits > 0 || text[i] != '0')) ++digits;
    most = std::max(most, digits);
  }
  CHECK(most >= 1);
  CHECK(most <= 4);
}
