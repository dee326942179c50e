// Intervals over parameter draws and paired comparisons.
#include <doctest/doctest.h>

#include <cmath>

#include "sim/report/compare.h"
#include "sim/report/uncertainty.h"
#include "sim/report/writers.h"
#include "sim/runtime/simulation.h"
#include "tests/support/report_run.h"
#include "tests/support/scratch_directory.h"

using namespace medley;
using namespace medley::testing;

namespace {
/// Two replicas of the small model behind a real engine, 60 requests, power known.
Scenario busy_pool() {
  Scenario s = one_pool(2);
  s.pools[0].backend.name = "engine";
  s.pools[0].backend.host_per_step = known(Seconds(1e-3));
  s.pools[0].backend.host_per_sequence = known(Seconds(0));
  s.pools[0].backend.decode_skew = known(0.05);
  s.nodes[0].type.overhead = known(Watts(100));
  s.nodes[0].type.psu_efficiency = known(0.9);
  DeviceSpec& d = s.nodes[0].device;
  d.memory_bandwidth = {BytesPerSec(2e8), Provenance::kDatasheet, "test"};
  for (auto& p : d.peak) {
    if (p.known()) p = {FlopsPerSec(3e8), Provenance::kDatasheet, "test"};
  }
  for (OpEfficiency& e : d.efficiency) {
    for (auto& r : e.compute) r.value->fraction = 0.5;
    e.memory.value->fraction = 0.5;
  }
  s.slo["default"].ttft = Seconds(1.0);
  s.price.energy = UsdPerJoule(1e-7);
  for (int i = 0; i < 60; ++i) {
    Request r = request_at(0.1 * i, 20 + 7 * (i % 13), 5 + i % 11);
    r.row = static_cast<std::uint32_t>(i);
    s.trace.requests.push_back(r);
  }
  return s;
}

struct Ran {
  Scenario scenario;
  RunResult result;
  Analysis analysis;
  explicit Ran(Scenario s)
      : scenario(std::move(s)), result(run(test_catalog(), scenario)), analysis(scenario, result) {}
  Uncertainty draws(int n, int threads = 1, double scale = 1.0, std::uint64_t seed = 1) const {
    DrawOptions o;
    o.draws = n, o.threads = threads, o.scale = scale, o.seed = seed;
    return run_draws(test_catalog(), analysis, o);
  }
};

std::string bytes_of(const Uncertainty& u) {
  const ScratchDirectory dir;
  write_uncertainty_csv(u, dir.path() + "/u.csv");
  return slurp(dir.path() + "/u.csv");
}

const ComparedMetric& metric(std::string_view name) {
  for (const ComparedMetric& m : compared_metrics()) {
    if (m.name == name) return m;
  }
  throw std::logic_error("no such metric");
}
}  // namespace

TEST_CASE("draws give the same bytes on one thread and on three, and other seeds others") {
  const Ran ran(busy_pool());
  const std::string one = bytes_of(ran.draws(12, 1));
  CHECK(one == bytes_of(ran.draws(12, 3)));
  CHECK(one == bytes_of(ran.draws(12, 30)));
  CHECK(one != bytes_of(ran.draws(12, 1, 1.0, 2)));
  // More draws begin with the same ones.
  CHECK(bytes_of(ran.draws(14, 2)).starts_with(one));
}

TEST_CASE("without errors every draw is the nominal run") {
  const Ran ran(busy_pool());
  const Uncertainty u = ran.draws(4, 2, 0.0);
  for (std::size_t m = 0; m < u.metrics().size(); ++m) {
    CAPTURE(u.metrics()[m].metric);
    for (int i = 1; i <= 4; ++i) {
      for (std::size_t s = 0; s < kDrawStatistics; ++s) {
        const double a = u.outcomes()[0].values[m][s];
        const double b = u.outcomes()[static_cast<std::size_t>(i)].values[m][s];
        CHECK((a == b || (std::isnan(a) && std::isnan(b))));
      }
    }
  }
  CHECK(u.failed() == 0);
}

TEST_CASE("twice the errors, wider intervals; the nominal lies inside") {
  const Ran ran(busy_pool());
  const Uncertainty narrow = ran.draws(60, 2, 0.5), wide = ran.draws(60, 2, 1.0);
  for (const char* name : {"ttft", "tpot", "e2el", "energy_site", "energy_per_output_token",
                           "mean_power_site", "cost", "utilization"}) {
    CAPTURE(name);
    const auto a = narrow.find("fleet", "fleet", name);
    const auto b = wide.find("fleet", "fleet", name);
    REQUIRE((a && b));
    const Interval i = narrow.interval(*a, DrawStatistic::kMean);
    const Interval j = wide.interval(*b, DrawStatistic::kMean);
    CHECK(i.p5 < i.p50);
    CHECK(i.p50 < i.p95);
    CHECK(j.p95 - j.p5 > 1.3 * (i.p95 - i.p5));
    const double nominal = wide.outcomes()[0].value(*b, DrawStatistic::kMean);
    CHECK(j.p5 < nominal);
    CHECK(nominal < j.p95);
  }
}

TEST_CASE("the interval of an idle node's power is that of its drawn numbers, by hand") {
  // Nothing but idle power, overhead and supply is drawn, and next to nothing runs: over the
  // 100 s the node draws (overhead + 1 device idle) / psu. Constant steps of 1 us keep work away.
  Scenario s = one_pool(1);
  textbook_server(s.pools[0], 1e-6);
  s.pools[0].backend.name = "engine";
  s.nodes[0].type.overhead = known(Watts(100));
  s.nodes[0].type.psu_efficiency = {0.8, Provenance::kDerived, "test"};
  s.trace.requests = {request_at(0, 10, 2), request_at(100, 10, 2)};
  s.trace.requests[1].row = 1;
  const Ran ran(s);
  const Uncertainty u = ran.draws(8);
  const auto at = u.find("fleet", "fleet", "mean_power_site");
  REQUIRE(at);
  for (int i = 0; i <= 8; ++i) {
    const ParameterDraw draw(test_catalog().priors().uncertainty, 1, i);
    const NodeSpec node = draw.node(s.nodes[0].type, nullptr);
    const DeviceSpec device = draw.device(s.nodes[0].device);
    const double watts =
        ((*node.overhead).value() + (*device.power.context_idle).value()) / *node.psu_efficiency;
    CHECK(close(u.outcomes()[static_cast<std::size_t>(i)].value(*at, DrawStatistic::kMean), watts,
                1e-5));
  }
}

TEST_CASE("draws that cannot run are counted and left out of the intervals") {
  // The small model's weights fill all but 10 kB of the memory; an assumed reserve of 5 kB is drawn
  // above what is left now and then.
  Scenario s = busy_pool();
  PoolSpec& pool = s.pools[0];
  pool.backend.context_reserve = {Bytes(5e6), Provenance::kAssumed, "test"};
  const MemoryAccount m = run(test_catalog(), s).pools[0].memory;
  s.nodes[0].device.memory_capacity = {
      Bytes(m.weights.value() + m.activations.value() + 5e6 + 1.5e6), Provenance::kDatasheet,
      "test"};
  const Ran ran(s);
  const Uncertainty u = ran.draws(60, 2);
  CHECK(u.failed() > 5);
  CHECK(u.failed() < 55);
  CHECK(u.interval(ran.analysis.fleet(), "ttft", DrawStatistic::kMean).known());
  std::size_t rows = 0;
  for (const std::string& line : lines_of(bytes_of(u)))
    rows += line.ends_with("infeasible") ? 1 : 0;
  CHECK(rows == static_cast<std::size_t>(u.failed()));
  CHECK(manifest_json(ran.analysis, {}, {&u, nullptr, nullptr}).find("\"failures\"") !=
        std::string::npos);
}

TEST_CASE("a candidate against itself is better in half of the draws, all of them ties") {
  const Ran a(busy_pool()), b(busy_pool());
  const Uncertainty u = a.draws(10), v = b.draws(10, 2);
  for (const ComparedMetric& m : compared_metrics()) {
    const PairedShare share = paired_share(u, v, m);
    CAPTURE(m.name);
    if (share.pairs == 0) continue;
    CHECK(share.pairs == 10);
    CHECK(share.ties == 10);
    CHECK(share.better == 0.5);
  }
  CHECK(paired_share(u, v, metric("e2e_p50_ms")).pairs == 10);
}

TEST_CASE("what candidates share cancels: a tenth less rent is cheaper in every draw") {
  // Rent is drawn by a quarter either way, alike for both: the ratio is .9 in each draw, and the
  // intervals of the two overlap almost wholly all the same.
  Scenario dear = busy_pool(), cheap = busy_pool();
  cheap.nodes[0].device.rent = known(0.9 * *cheap.nodes[0].device.rent);
  const Ran a(dear), b(cheap);
  const Uncertainty u = a.draws(40), v = b.draws(40);
  const PairedShare share = paired_share(u, v, metric("usd_per_mtok"));
  CHECK(share.better == 1.0);
  CHECK(close(share.difference.p5, -0.1));
  CHECK(close(share.difference.p95, -0.1));
  const Interval i = u.interval(a.analysis.fleet(), "cost", DrawStatistic::kMean);
  const Interval j = v.interval(b.analysis.fleet(), "cost", DrawStatistic::kMean);
  CHECK(j.p95 > i.p5);
  // The other way round the odds turn.
  CHECK(paired_share(v, u, metric("usd_per_mtok")).better == 0.0);
  CHECK(paired_share(v, u, metric("e2e_p50_ms")).better == 0.5);
}

TEST_CASE("a part is drawn alike whatever else the scenario holds") {
  Scenario two = busy_pool();
  two.nodes.push_back(two.nodes[0]);
  two.nodes[1].name = "other";
  two.nodes[1].device.name = "another";
  const Scenario one = busy_pool();
  for (int i = 1; i <= 5; ++i) {
    Scenario a = one, b = two;
    DrawnScenario(test_catalog(), one, 1).apply(i, a);
    DrawnScenario(test_catalog(), two, 1).apply(i, b);
    const auto& x = a.nodes[0].device;
    CHECK(x.power.energy_per_byte.value == b.nodes[0].device.power.energy_per_byte.value);
    CHECK(x.power.energy_per_byte.value != b.nodes[1].device.power.energy_per_byte.value);
    CHECK(a.pools[0].step_model.time_factor == b.pools[0].step_model.time_factor);
    CHECK(a.pools[0].step_model.time_factor != 1.0);
  }
}

TEST_CASE("comparisons tell values, differences and odds, and mark what is no answer") {
  Scenario slow = busy_pool();
  slow.pools[0].backend.host_per_step = known(Seconds(5e-3));
  slow.trace.requests.pop_back();
  const Ran a(busy_pool()), b(slow);
  const Uncertainty u = a.draws(20), v = b.draws(20);
  const std::vector<Candidate> both = {{"A", "a.json", &a.analysis, &u},
                                       {"B", "b.json", &b.analysis, &v}};
  const std::string table = compare_table(both);
  CHECK(table.find("B against A, 20 paired draws") != std::string::npos);
  CHECK(table.find("faster in 0 % of draws") != std::string::npos);
  CHECK(workload_differences(both).size() == 1);
  const auto lines = lines_of(compare_csv(both));
  CHECK(lines.size() == 1 + 2 * compared_metrics().size());
  CHECK(lines[1].starts_with("A,test,"));
  const std::vector<Candidate> bare = {{"A", "a.json", &a.analysis, nullptr},
                                       {"B", "b.json", &b.analysis, nullptr}};
  CHECK(compare_table(bare).find("draws") == std::string::npos);
  RunResult saturated = a.result;
  saturated.stability = Stability::kSaturated;
  const Analysis c(a.scenario, saturated);
  const std::vector<Candidate> marked = {{"A", "a.json", &a.analysis, nullptr},
                                         {"B", "a.json", &c, nullptr}};
  CHECK(compare_table(marked).find("B (saturated)") != std::string::npos);
  CHECK(compare_csv(marked).find(",saturated\n") != std::string::npos);
}
