// Laws of parameter draws (hwmodels/draw.h) on every shipped entry.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "hwmodels/catalog.h"
#include "hwmodels/draw.h"
#include "sim/core/rng.h"

using namespace medley;

namespace {
const Catalog& catalog() {
  static const Catalog shipped{{}};
  return shipped;
}
const DrawPriors& priors() {
  return catalog().priors().uncertainty;
}
bool near(double a, double b) {
  return std::abs(a - b) <= 1e-12 * std::max(std::abs(a), std::abs(b));
}

/// Every number of a device that draws may move.
std::vector<double> numbers(const DeviceSpec& d) {
  std::vector<double> all;
  const auto take = [&](const auto& s) {
    if (!s.known()) return;
    if constexpr (std::is_same_v<std::decay_t<decltype(*s)>, double>) {
      all.push_back(*s);
    } else {
      all.push_back((*s).value());
    }
  };
  const auto ramp = [&](const Sourced<Ramp>& r) {
    if (r.known()) all.insert(all.end(), {r.value->fraction, r.value->half});
  };
  for (const auto& v : d.peak) take(v);
  for (const auto& v : d.sustained) take(v);
  for (const auto& v : d.power.energy_per_flop) take(v);
  for (const OpEfficiency& e : d.efficiency) {
    for (const auto& r : e.compute) ramp(r);
    ramp(e.memory);
  }
  take(d.memory_capacity), take(d.memory_bandwidth), take(d.launch_stream), take(d.launch_graph);
  take(d.power.limit), take(d.power.deep_idle), take(d.power.context_idle);
  take(d.power.active_floor), take(d.power.energy_per_byte), take(d.power.clock_min);
  take(d.power.voltage_floor), take(d.capex), take(d.rent);
  return all;
}

Sourced<Ramp> ramp_of(double fraction, double half, Provenance p, double error = 0.0) {
  Sourced<Ramp> r;
  r.value = Ramp{fraction, half};
  r.provenance = p;
  r.source = "test";
  r.error = error;
  return r;
}
}  // namespace

TEST_CASE("draw 0 and scale 0 are the nominal to the bit") {
  const ParameterDraw nominal(priors(), 7, 0), certain(priors(), 7, 3, 0.0);
  for (const DeviceSpec* d : catalog().devices()) {
    CHECK(numbers(nominal.device(*d)) == numbers(*d));
    CHECK(numbers(certain.device(*d)) == numbers(*d));
  }
  for (const LinkSpec* l : catalog().links()) {
    const LinkSpec same = certain.link(*l);
    CHECK(same.achieved.value == l->achieved.value);
    CHECK(same.latency.value == l->latency.value);
  }
  for (const NodeSpec* n : catalog().nodes()) {
    const NodeSpec same = certain.node(*n, nullptr);
    CHECK(same.overhead.value == n->overhead.value);
    for (std::size_t t = 0; t < n->all_reduce.size(); ++t) {
      CHECK(same.all_reduce[t].points.back().time == n->all_reduce[t].points.back().time);
    }
  }
  for (const BackendSpec* b : catalog().backends()) {
    CHECK(certain.backend(*b).host_per_step.value == b->host_per_step.value);
  }
}

TEST_CASE("a factor is exp(sigma z - sigma^2 / 2) of its own stream, whatever was drawn before") {
  const ParameterDraw draw(priors(), 11, 4, 2.0);
  Rng stream(11, "draw/4/device:X/launch");
  const double z = stream.normal(0.0, 1.0);
  const double expected = std::exp(0.6 * z - 0.18);  // scale 2 x sigma .3
  CHECK(draw.factor("device:X/launch", 0.3) == expected);
  CHECK(draw.factor("device:Y/launch", 0.3) != expected);
  CHECK(draw.factor("device:X/launch", 0.3) == expected);
  CHECK(ParameterDraw(priors(), 11, 5, 2.0).factor("device:X/launch", 0.3) != expected);
  CHECK(ParameterDraw(priors(), 12, 4, 2.0).factor("device:X/launch", 0.3) != expected);
}

TEST_CASE("factors have mean 1 and median exp(-sigma^2 / 2), and widen with the error") {
  // 4,000 draws: the mean's standard error is sigma / 63, the median's about 1.25 times that.
  constexpr int kDraws = 4000;
  double last_width = 0.0;
  for (const double sigma : {0.05, 0.1, 0.2, 0.5}) {
    CAPTURE(sigma);
    std::vector<double> factors;
    double sum = 0.0;
    for (int i = 1; i <= kDraws; ++i) {
      factors.push_back(ParameterDraw(priors(), 1, i).factor("part/number", sigma));
      sum += factors.back();
    }
    std::sort(factors.begin(), factors.end());
    CHECK(std::abs(sum / kDraws - 1.0) < 4.0 * sigma / 60.0);
    CHECK(std::abs(factors[kDraws / 2] / std::exp(-0.5 * sigma * sigma) - 1.0) <
          4.0 * 1.25 * sigma / 60.0);
    const double width = factors[kDraws * 95 / 100] - factors[kDraws / 20];
    CHECK(width > last_width);
    last_width = width;
  }
}

TEST_CASE("drawn numbers stay physical on every shipped device, however large the errors") {
  for (const DeviceSpec* d : catalog().devices()) {
    CAPTURE(d->name);
    for (int i = 1; i <= 40; ++i) {
      const DeviceSpec drawn = ParameterDraw(priors(), 5, i, 4.0).device(*d);
      const auto share = [](const Sourced<double>& s) { return !s.known() || (*s > 0 && *s <= 1); };
      for (const OpEfficiency& e : drawn.efficiency) {
        for (const auto& r : e.compute) {
          if (r.known()) CHECK((r.value->fraction > 0 && r.value->fraction <= 1));
        }
        if (e.memory.known())
          CHECK((e.memory.value->fraction > 0 && e.memory.value->fraction <= 1));
      }
      for (const auto& s : drawn.sustained) CHECK(share(s));
      CHECK(share(drawn.power.clock_min));
      const PowerSpec& p = drawn.power;
      const PowerSpec& was = d->power;
      if (was.deep_idle.known() && was.context_idle.known() &&
          *was.deep_idle <= *was.context_idle) {
        CHECK(*p.deep_idle <= *p.context_idle);
      }
      if (was.context_idle.known() && was.active_floor.known() &&
          *was.context_idle <= *was.active_floor) {
        CHECK(*p.context_idle <= *p.active_floor);
      }
      if (p.active_floor.known() && p.limit.known()) CHECK(*p.active_floor < *p.limit);
      for (const double v : numbers(drawn)) CHECK((std::isfinite(v) && v >= 0.0));
    }
  }
}

TEST_CASE("what a data sheet states and what the scenario sets is not drawn") {
  DeviceSpec d = catalog().device("H100-SXM5-80GB");
  d.launch_graph = {Seconds(1e-6), Provenance::kAssumed, std::string(kGivenInScenario)};
  const DeviceSpec drawn = ParameterDraw(priors(), 1, 1).device(d);
  CHECK(drawn.peak[index(DType::kBf16)].value == d.peak[index(DType::kBf16)].value);
  CHECK(drawn.memory_bandwidth.value == d.memory_bandwidth.value);
  CHECK(drawn.memory_capacity.value == d.memory_capacity.value);
  CHECK(drawn.power.limit.value == d.power.limit.value);
  CHECK(drawn.launch_graph.value == d.launch_graph.value);
  CHECK(drawn.launch_stream.value != d.launch_stream.value);
  CHECK(drawn.power.context_idle.value != d.power.context_idle.value);
}

TEST_CASE("formats of one op class share their z, each with its own error") {
  // measured .1 and assumed .2 by hand-set priors: ln f + s^2/2 = s z, so the ratio is 2.
  DrawPriors own;
  auto& sigma = own.sigma[static_cast<std::size_t>(DrawKind::kEfficiency)];
  sigma[static_cast<std::size_t>(Provenance::kMeasured)] = 0.1;
  sigma[static_cast<std::size_t>(Provenance::kAssumed)] = 0.2;
  DeviceSpec d;
  d.name = "card";
  auto& gemm = d.efficiency[index(OpClass::kGemm)];
  gemm.compute[index(DType::kBf16)] = ramp_of(0.4, 1e9, Provenance::kMeasured);
  gemm.compute[index(DType::kFp8)] = ramp_of(0.4, 1e9, Provenance::kAssumed);
  gemm.memory = ramp_of(0.4, 1e6, Provenance::kMeasured, 0.05);
  const DeviceSpec drawn = ParameterDraw(own, 1, 2).device(d);
  const auto& out = drawn.efficiency[index(OpClass::kGemm)];
  const auto scaled_z = [](const Sourced<Ramp>& r, double s) {
    return std::log(r.value->fraction / 0.4) + 0.5 * s * s;
  };
  const double z = scaled_z(out.compute[index(DType::kBf16)], 0.1) / 0.1;
  CHECK(near(scaled_z(out.compute[index(DType::kFp8)], 0.2) / 0.2, z));
  // Memory is another fit, and its stated error goes before the prior; half has no error here.
  CHECK_FALSE(near(scaled_z(out.memory, 0.05) / 0.05, z));
  CHECK(out.memory.value->half == 1e6);
  CHECK(out.compute[0].known() == false);
}

TEST_CASE("a measured all-reduce is drawn as a whole, also where it is left downwards") {
  for (const char* name : {"8xMI300X", "8xH100-SXM"}) {
    const NodeSpec& node = catalog().node(name);
    const LinkSpec* link = joining_link(catalog(), node);
    REQUIRE(link != nullptr);
    for (int i = 1; i <= 20; ++i) {
      const NodeSpec drawn = ParameterDraw(priors(), 3, i).node(node, link);
      const auto ratio = [&](double bytes) {
        return all_reduce_time(catalog(), drawn, 2, Bytes(bytes)).time /
               all_reduce_time(catalog(), node, 2, Bytes(bytes)).time;
      };
      const double factor = ratio(1e8);
      CHECK(factor != 1.0);
      for (const double bytes : {1e3, 1e5, 1e7, 1e10}) CHECK(near(ratio(bytes), factor));
    }
  }
}

TEST_CASE("a roofline is calibrated when what decides serving is measured") {
  DeviceSpec d;
  d.efficiency[index(OpClass::kGemm)].compute[index(DType::kBf16)] =
      ramp_of(0.8, 0, Provenance::kMeasured);
  d.efficiency[index(OpClass::kGemm)].memory = ramp_of(0.8, 0, Provenance::kMeasured);
  d.efficiency[index(OpClass::kAttentionPrefill)].compute[index(DType::kBf16)] =
      ramp_of(0.6, 0, Provenance::kMeasured);
  CHECK(roofline_basis(d, DType::kBf16) == ModelBasis::kRooflineCatalogue);  // decode unknown
  d.efficiency[index(OpClass::kAttentionDecode)].memory = ramp_of(0.8, 0, Provenance::kMeasured);
  CHECK(roofline_basis(d, DType::kBf16) == ModelBasis::kRooflineCalibrated);
  CHECK(roofline_basis(d, DType::kFp8) == ModelBasis::kRooflineCatalogue);
}
