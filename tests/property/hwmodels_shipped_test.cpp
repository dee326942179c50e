#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <string>

#include "hwmodels/catalog.h"

using namespace medley;

namespace {
template <class T>
void check_sourced(const Sourced<T>& value, const std::string& field) {
  CAPTURE(field);
  CHECK(!value.source.empty());
}

void check_device_sources(const DeviceSpec& d) {
  for (int i = 0; i < kDTypes; ++i) {
    const auto t = static_cast<std::size_t>(i);
    if (d.peak[t].known()) check_sourced(d.peak[t], "peak");
    if (d.sustained[t].known()) check_sourced(d.sustained[t], "sustained");
    if (d.power.energy_per_flop[t].known()) check_sourced(d.power.energy_per_flop[t], "e_flop");
  }
  check_sourced(d.memory_capacity, "capacity");
  check_sourced(d.memory_bandwidth, "bandwidth");
  check_sourced(d.launch_stream, "launch_stream");
  check_sourced(d.launch_graph, "launch_graph");
  check_sourced(d.power.limit, "limit");
  check_sourced(d.power.deep_idle, "deep_idle");
  check_sourced(d.power.context_idle, "context_idle");
  check_sourced(d.power.active_floor, "active_floor");
  check_sourced(d.power.energy_per_byte, "e_byte");
  check_sourced(d.power.clock_min, "clock_min");
  check_sourced(d.capex, "capex");
  check_sourced(d.rent, "rent");
}

double peak(const DeviceSpec& d, DType t) {
  return d.peak[index(t)].known() ? d.peak[index(t)].value->value() : 0.0;
}
}  // namespace

TEST_CASE("every shipped number says where it is from, also why it is unknown") {
  const Catalog catalog({});
  for (const DeviceSpec* d : catalog.devices()) {
    CAPTURE(d->name);
    check_device_sources(*d);
  }
  for (const LinkSpec* l : catalog.links()) {
    CAPTURE(l->name);
    check_sourced(l->bandwidth, "bandwidth");
    check_sourced(l->achieved, "achieved");
    check_sourced(l->latency, "latency");
  }
  for (const BackendSpec* b : catalog.backends()) {
    CAPTURE(b->name);
    REQUIRE(b->host_per_step.known());
    REQUIRE(b->memory_utilization.known());
    check_sourced(b->host_per_step, "host_per_step");
    check_sourced(b->context_reserve, "context_reserve");
    CHECK(!b->device_kinds.empty());
  }
}

TEST_CASE("shipped devices obey the order of nature") {
  const Catalog catalog({});
  for (const DeviceSpec* d : catalog.devices()) {
    CAPTURE(d->name);
    CHECK(d->year >= 2017);
    // Narrower formats are never slower, but for int8 where the units were cut (B300, GB300) and
    // the vector fp32 of CDNA and Max, which are wider than their fp64.
    if (peak(*d, DType::kFp8) > 0) CHECK(peak(*d, DType::kFp8) >= peak(*d, DType::kBf16));
    if (peak(*d, DType::kFp4) > 0) CHECK(peak(*d, DType::kFp4) >= peak(*d, DType::kFp8));
    if (peak(*d, DType::kTf32) > 0 && peak(*d, DType::kBf16) > 0) {
      CHECK(peak(*d, DType::kTf32) <= peak(*d, DType::kBf16));
    }
    // Sparse peaks creep in as a factor of two: dense fp8 over bf16 is at most 2.1.
    if (peak(*d, DType::kFp8) > 0) CHECK(peak(*d, DType::kFp8) <= 2.1 * peak(*d, DType::kBf16));
    // Idle states are ordered where known, none above the limit.
    const PowerSpec& p = d->power;
    if (p.deep_idle.known() && p.context_idle.known()) CHECK(*p.deep_idle <= *p.context_idle);
    if (p.context_idle.known() && p.active_floor.known()) CHECK(*p.context_idle <= *p.active_floor);
    if (p.active_floor.known() && p.limit.known()) CHECK(*p.active_floor < *p.limit);
    // A device can run its memory at full rate within its limit.
    if (p.active_floor.known() && p.energy_per_byte.known() && p.limit.known() &&
        d->kind == "gpu") {
      const double watts = p.active_floor.value->value() +
                           p.energy_per_byte.value->value() * d->memory_bandwidth.value->value();
      CHECK(watts <= 1.35 * p.limit.value->value());
    }
    // Machine balance within what was ever built for external memory: 1 .. 1e4 flop per byte.
    if (d->memory_bandwidth.known() && peak(*d, DType::kBf16) > 0 && d->kind == "gpu") {
      const double balance = peak(*d, DType::kBf16) / d->memory_bandwidth.value->value();
      CHECK(balance > 10);
      CHECK(balance < 1000);
    }
  }
}

TEST_CASE("every device with a rate has an efficiency for every kind of work") {
  const Catalog catalog({});
  for (const DeviceSpec* d : catalog.devices()) {
    CAPTURE(d->name);
    CHECK(d->launch_stream.known());
    CHECK(d->launch_graph.known());
    CHECK(d->power.clock_min.known());
    CHECK(d->power.voltage_floor.known());
    for (int c = 0; c < kOpClasses; ++c) {
      const auto op = static_cast<OpClass>(c);
      if (op == OpClass::kCollective || op == OpClass::kHost) continue;
      CAPTURE(to_string(op));
      const OpEfficiency& e = d->efficiency[index(op)];
      CHECK(e.memory.known() == d->memory_bandwidth.known());
      for (std::size_t t = 0; t < kDTypes; ++t) {
        CHECK(e.compute[t].known() == d->peak[t].known());
        if (!e.compute[t].known()) continue;
        CHECK(e.compute[t].value->fraction > 0.0);
        CHECK(e.compute[t].value->fraction <= 1.0);
        CHECK(e.compute[t].value->half >= 0.0);
        const auto& gemm = d->efficiency[index(OpClass::kGemm)].compute[t];
        if (e.compute[t].provenance == Provenance::kAssumed) {
          CHECK(e.compute[t].value->fraction <= gemm.value->fraction);
        }
      }
    }
  }
}

TEST_CASE("power, price and rates are never filled silently, only on request") {
  const Catalog catalog({});
  const DeviceSpec& plain = catalog.device("TPU v5e");
  CHECK(!plain.power.limit.known());
  CHECK(!plain.power.energy_per_byte.known());
  const DeviceSpec full = with_assumed(plain, catalog.priors());
  CHECK(full.power.limit.known());
  CHECK(full.power.limit.provenance == Provenance::kAssumed);
  CHECK(full.power.limit.source.find("class prior") == 0);
  CHECK(full.power.energy_per_flop[index(DType::kBf16)].known());
  CHECK(full.capex.known());
  CHECK(full.rent.value->value() == plain.rent.value->value());  // known values stay
  CHECK(full.rent.source == plain.rent.source);
  const DeviceSpec none = with_assumed(catalog.device("Cerebras WSE-3"), catalog.priors());
  CHECK(!none.peak[index(DType::kFp16)].known());  // rates never
  for (const DeviceSpec* d : catalog.devices()) {
    CAPTURE(d->name);
    const DeviceSpec a = with_assumed(*d, catalog.priors());
    if (a.power.limit.known()) {
      CHECK(*a.power.deep_idle <= *a.power.context_idle);
      CHECK(*a.power.context_idle <= *a.power.limit);
      CHECK(a.capex.known());
      CHECK(a.rent.known());
    }
  }
  const NodeSpec& box = catalog.node("8xMI355X");
  CHECK(!box.overhead.known());
  const NodeSpec filled = with_assumed(
      box, with_assumed(catalog.device(box.device), catalog.priors()), catalog.priors());
  CHECK(filled.overhead.provenance == Provenance::kAssumed);
  CHECK(filled.overhead.value->value() > 1000.0);
}

TEST_CASE("collectives of every node grow with the payload and with nothing else oddly") {
  const Catalog catalog({});
  for (const NodeSpec* n : catalog.nodes()) {
    if (n->fabric == FabricKind::kNone) continue;
    const LinkSpec& link = catalog.link(n->fabric_link);
    if (!link.bandwidth.known()) continue;
    CAPTURE(n->name);
    for (int ranks = 1; ranks <= n->devices; ++ranks) {
      CAPTURE(ranks);
      double reduce = -1.0;
      double exchange = -1.0;
      double send = -1.0;
      for (double bytes = 0.0; bytes < 0x1p35; bytes = bytes * 1.37 + 256.0) {
        CAPTURE(bytes);
        const double r = all_reduce_time(catalog, *n, ranks, Bytes(bytes)).time.value();
        const double x = all_to_all_time(catalog, *n, ranks, Bytes(bytes)).time.value();
        const double s = send_time(catalog, *n, Bytes(bytes)).time.value();
        REQUIRE(r >= reduce);
        REQUIRE(x >= exchange);
        REQUIRE(s > send);
        reduce = r;
        exchange = x;
        send = s;
      }
      // Never faster than twice the nominal fabric allows (NVLS reduces in the switch: 2 - 2/n).
      if (ranks > 1 && n->fabric_bandwidth.known()) {
        const double busbw = 2.0 * (ranks - 1) / ranks * 0x1p34 /
                             all_reduce_time(catalog, *n, ranks, Bytes(0x1p34)).time.value();
        CHECK(busbw <= 1.1 * n->fabric_bandwidth.value->value());
      }
    }
  }
}
