#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "sim/serving/min_index.h"
#include "sim/serving/routing.h"

using namespace medley;

namespace {

/// Four replicas in two pools; loads are set by the test.
class FakeFleet final : public RouterView {
 public:
  std::vector<double> requests{0, 0, 0, 0}, tokens{0, 0, 0, 0}, prompts{0, 0, 0, 0};
  std::vector<bool> room{true, true, true, true};
  std::vector<PoolProfile> profiles{2};
  Slo objective;
  std::size_t replicas() const override { return 4; }
  std::uint16_t pool_of(std::uint32_t r) const override { return r < 2 ? 0 : 1; }
  const PoolProfile& profile(std::uint16_t p) const override { return profiles[p]; }
  double outstanding_requests(std::uint32_t r) const override { return requests[r]; }
  double outstanding_tokens(std::uint32_t r) const override { return tokens[r]; }
  double outstanding_prompt_tokens(std::uint32_t r) const override { return prompts[r]; }
  bool has_room(std::uint32_t r, std::int64_t) const override { return room[r]; }
  Slo slo(std::uint16_t) const override { return objective; }
};

struct Bench {
  std::vector<std::vector<std::uint32_t>> groups{{0, 1, 2, 3}};
  std::map<std::string, double> params;
  FakeFleet fleet;
  std::unique_ptr<Router> router;
  Rng rng{1, "test"};
  explicit Bench(const std::string& name) {
    const auto* entry = routing_registry().find(name);
    REQUIRE(entry != nullptr);
    for (const ParamInfo& p : entry->params) params[p.name] = p.fallback;
    router = entry->make({4, &groups, &params});
    fleet.profiles[0] = {1000.0, 10000.0, {0.01, 0.01, 0.02}, 2.0, 1.0};
    fleet.profiles[1] = {500.0, 5000.0, {0.02, 0.02, 0.04}, 0.5, 3.0};
  }
  std::uint32_t route(PublicRequest r = {}) { return router->route(r, groups[0], fleet, rng); }
  void load(std::uint32_t replica, double requests) {
    fleet.requests[replica] = requests;
    fleet.tokens[replica] = requests * 100;
    router->load_changed(replica, fleet);
  }
};

}  // namespace

TEST_CASE("least outstanding requests: the least loaded; ties take turns") {
  Bench b("least_outstanding_requests");
  std::map<std::uint32_t, int> count;
  for (int i = 0; i < 8; ++i) ++count[b.route()];
  CHECK(count == std::map<std::uint32_t, int>{{0, 2}, {1, 2}, {2, 2}, {3, 2}});
  for (const std::uint32_t r : {0U, 1U, 3U}) b.load(r, 5);
  CHECK(b.route() == 2);
  b.load(2, 9);
  b.load(1, 1);
  CHECK(b.route() == 1);
}

TEST_CASE("round robin and random cover the candidates; power of two takes the less loaded") {
  Bench rr("round_robin");
  for (std::uint32_t i = 0; i < 8; ++i) CHECK(rr.route() == i % 4);
  Bench random("random");
  std::map<std::uint32_t, int> count;
  for (int i = 0; i < 4000; ++i) ++count[random.route()];
  for (const auto& [replica, n] : count)
    CHECK(std::abs(n - 1000) < 4 * 28);  // 4 sd of binomial(4000, 1/4)
  Bench two("power_of_two");
  two.load(3, 100);
  count.clear();
  for (int i = 0; i < 4000; ++i) ++count[two.route()];
  CHECK(count[3] == 0);  // loses against every other
}

TEST_CASE("weighted: shares follow decode capacity 1000 : 1000 : 500 : 500") {
  Bench b("weighted");
  std::map<std::uint32_t, int> count;
  for (int i = 0; i < 6000; ++i) ++count[b.route()];
  CHECK(std::abs(count[0] - 2000) <= 1);
  CHECK(std::abs(count[2] - 1000) <= 1);
}

TEST_CASE("central queue holds when nobody has room") {
  Bench b("central_queue");
  CHECK(b.route() != Router::kHold);
  b.fleet.room = {false, false, false, false};
  CHECK(b.route() == Router::kHold);
}

TEST_CASE("cheapest and greenest that meet the SLO") {
  Bench cheap("cheapest_slo"), green("greenest_slo");
  // $/token: pool 0 2/1000 = .002, pool 1 .5/500 = .001; J/token: 1 against 3.
  CHECK(cheap.route() == 2);
  CHECK(green.route() == 0);
  // TPOT of pool 1 is 20 ms: an objective of 15 ms leaves pool 0 only.
  cheap.fleet.objective.tpot_s = 0.015;
  CHECK(cheap.route() == 0);
  // Nobody meets 5 ms: the earliest first token wins.
  cheap.fleet.objective.tpot_s = 0.005;
  CHECK(cheap.route() == 0);
  // A long prompt queue on pool 1's replicas breaks a TTFT objective of 100 ms.
  cheap.fleet.objective = {};
  cheap.fleet.objective.ttft_s = 0.1;
  cheap.fleet.prompts = {0, 0, 5000, 5000};
  CHECK(cheap.route() == 0);
}

TEST_CASE("sessions stay where they are; prefixes go where they were, unless overloaded") {
  Bench s("session_affinity");
  PublicRequest turn;
  turn.session = 7;
  const std::uint32_t home = s.route(turn);
  s.load(home, 50);
  CHECK(s.route(turn) == home);
  turn.session = 8;
  CHECK(s.route(turn) != home);

  Bench p("prefix_affinity");
  const std::uint64_t ids[] = {11, 12, 13};
  PublicRequest r;
  r.hash_ids = ids;
  r.hash_count = 3;
  const std::uint32_t first = p.route(r);
  p.load(first, 3);
  CHECK(p.route(r) == first);
  p.load(first, 30);  // above slack 8 and factor 1.5
  CHECK(p.route(r) != first);
}

TEST_CASE("the winner tree agrees with a scan") {
  for (const std::size_t n : {1UL, 2UL, 3UL, 7UL, 64UL, 100UL}) {
    Rng rng(n, "tree");
    MinIndex index(n);
    std::vector<double> values(n, 0.0);
    for (int i = 0; i < 500; ++i) {
      const std::size_t k = rng.below(n);
      values[k] = static_cast<double>(rng.below(20));
      index.set(k, values[k]);
      CHECK(values[index.top()] == *std::min_element(values.begin(), values.end()));
    }
  }
}
