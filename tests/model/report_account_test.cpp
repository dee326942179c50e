#include <doctest/doctest.h>

#include "sim/report/analysis.h"
#include "tests/support/report_run.h"

using namespace medley;
using namespace medley::testing;

// Energy of the run by hand:
//   replica 0: 4 s x 150 W + 6 s x 50 W = 900 J; replicas 1, 2: 10 s x 50 W = 500 J each
//   pool devices 1900 J; spare device 10 s x 10 W = 100 J; cluster devices 2000 J
//   node 0 (replicas 0, 1): (100 W x 10 s + 900 + 500) / 0.8 = 3000 J AC
//   node 1 (replica 2, spare): (1000 + 500 + 100) / 0.8 = 2000 J AC
//   IT 5000 J, site x 1.25 = 6250 J. The pool has all assigned devices, so its share is everything.
TEST_CASE("energy, cost and carbon of a run agree with hand arithmetic") {
  const HandRun run = hand_run();
  const Analysis a(run.scenario, run.result);
  const FleetAccount& account = a.account();
  CHECK(close(account.pool_devices_j(0, 0, 10).value, 1900));
  CHECK(close(account.cluster_devices_j(0, 10).value, 2000));
  CHECK(close(account.node_j(account.nodes()[0], 0, 10).value, 3000));
  CHECK(close(account.node_j(account.nodes()[1], 0, 10).value, 2000));
  CHECK(close(account.pool_it_j(0, 0, 10).value, 5000));
  CHECK(close(account.cluster_it_j(0, 10).value, 5000));
  CHECK(close(a.fleet().value("energy_site"), 6250));
  CHECK(close(a.pool(0).value("energy_per_output_token_devices"), 1900.0 / 8));
  CHECK(close(a.pool(0).value("energy_per_output_token"), 6250.0 / 8));
  // 0.001 USD/s per device, 2 devices per node, 2 nodes, 10 s; 8 output and 300 prompt tokens.
  CHECK(close(a.fleet().value("cost"), 0.04));
  CHECK(close(a.pool(0).value("cost"), 0.04));
  CHECK(close(a.pool(0).value("cost_per_million_output_tokens"), 0.04 / 8 * 1e6));
  CHECK(close(a.pool(0).value("cost_per_million_tokens"), 0.04 / 308 * 1e6));
  CHECK(close(a.fleet().value("carbon"), 6250 * 1e-4));
  CHECK(close(a.fleet().value("electricity_cost"), 6250 * 1e-7));
  // Requests share the pool's cost by energy: 400 and 200 of 600 J.
  CHECK(close(a.cost_usd(0), 0.04 * 2 / 3));
  CHECK(close(a.cost_usd(0) + a.cost_usd(1) + a.cost_usd(2), 0.04));
  CHECK(a.account().missing().empty());
}

TEST_CASE("owned hardware costs its amortised price plus electricity") {
  HandRun run = hand_run();
  run.scenario.price.prefer_capex = true;
  run.scenario.price.amortization = Seconds(1000);
  run.scenario.nodes[0].type.capex = known(Usd(500));
  const Analysis a(run.scenario, run.result);
  // 2 nodes x 500 USD x 10 s / 1000 s + 6250 J x 1e-7 USD/J
  CHECK(close(a.fleet().value("cost"), 10.0 + 6.25e-4));
}

TEST_CASE("utilisation and rates over the hand-made run") {
  const HandRun run = hand_run();
  const Analysis a(run.scenario, run.result);
  CHECK(close(a.pool(0).value("utilization"), 4.0 / 30));  // 3 devices, 10 s
  CHECK(close(a.fleet().value("utilization"), 4.0 / 40));  // the spare one counts
  CHECK(close(a.pool(0).value("mfu"), 0.25));
  CHECK(close(a.pool(0).value("bandwidth_utilization"), 0.5));
  CHECK(close(a.pool(0).value("peak_kv_cache_usage"), 0.4));
  // Half a second of 4 s, 60 J of 600 J: outside the range of their kernel model.
  CHECK(close(a.pool(0).value("extrapolated_time_share"), 0.125));
  CHECK(close(a.fleet().value("extrapolated_energy_share"), 0.1));
  CHECK(close(a.trust().time[0], 0.75));
  CHECK(close(a.trust().time[3], 0.25));
  CHECK(close(a.trust().energy[3], 1.0));
}

// TTFT: A 1 s, B 1 s; both objectives of 1 s are met, C was rejected: 2 of 3.
TEST_CASE("latencies, attainment and goodput of the whole run") {
  HandRun run = hand_run();
  const Analysis a(run.scenario, run.result);
  CHECK(a.window().whole_run);
  CHECK(close(a.fleet().value("duration"), 10));
  const RequestTimes t = a.times(0);
  CHECK(close(t.queue, 0.5));
  CHECK(close(t.prefill, 0.5));
  CHECK(close(t.ttft, 1.0));
  CHECK(close(t.tpot, 0.5));  // (3 - 1) / 4
  CHECK(close(t.e2e, 3.0));
  CHECK(close(a.times(1).tpot, 4.0));
  CHECK(std::isnan(a.times(2).ttft));
  CHECK(close(a.fleet().value("slo_attainment"), 2.0 / 3));
  CHECK(close(a.fleet().value("request_throughput"), 0.2));
  CHECK(close(a.fleet().value("request_goodput"), 0.2));
  CHECK(close(a.fleet().value("output_throughput"), 0.8));
  CHECK(close(a.fleet().value("total_token_throughput"), 30.8));
  run.scenario.slo["default"].tpot = Seconds(1.0);  // B takes 4 s per token
  const Analysis strict(run.scenario, run.result);
  CHECK(close(strict.fleet().value("slo_attainment"), 1.0 / 3));
  CHECK(close(strict.fleet().value("request_goodput"), 0.1));
  CHECK(close(strict.fleet().value("slo_attainment_tpot"), 0.5));
}

// Window [2, 6): only C arrives in it. A makes 2 of its 4 later tokens in [2, 3]; B its first at 2
// and half of the other two in [2, 6] of [2, 10]: 4 tokens in 4 s. A completes at 3: 1 in 4 s.
// Energy: replica 0 draws 150 W in [2, 4) and 50 W in [4, 6): 400 J; the others 200 J each.
TEST_CASE("a window counts requests by arrival and rates by what happens in it") {
  HandRun run = hand_run();
  run.scenario.measure.warmup = at_s(2);
  run.scenario.measure.window = Seconds(4);
  const Analysis a(run.scenario, run.result);
  CHECK_FALSE(a.window().whole_run);
  CHECK(close(a.fleet().value("num_requests"), 1));
  CHECK(close(a.fleet().value("rejected"), 1));
  CHECK(close(a.fleet().value("request_throughput"), 0.25));
  CHECK(close(a.fleet().value("output_throughput"), 1.0));
  CHECK(close(a.pool(0).value("energy_devices"), 800));
  CHECK(close(a.pool(0).value("energy_per_output_token_devices"), 200));
  CHECK(a.fleet().find("ttft")->status == "empty");
}

TEST_CASE("a window that cuts a bin takes its share") {
  const HandRun run = hand_run();
  const Analysis a(run.scenario, run.result);
  // [3.5, 4.5]: half a second at 150 W, half at 50 W.
  CHECK(close(a.account().replica_j(0, 3.5, 4.5).value, 100));
}

TEST_CASE("unknown power leaves blanks, never zeros, and names the field and how to supply it") {
  HandRun run = hand_run();
  SUBCASE("of the device") {
    run.scenario.nodes[0].device.power.energy_per_byte.value.reset();
    run.result.pools[0].power =
        replica_power(step_model_input(run.scenario, run.scenario.pools[0]));
    const Analysis a(run.scenario, run.result);
    CHECK(std::isnan(a.energy_j(0)));
    const MetricRow* row = a.pool(0).find("energy_per_output_token");
    CHECK(std::isnan(row->moments.mean));
    CHECK(row->status == "missing:power.energy_per_byte");
    REQUIRE(a.account().missing().size() == 1);
    CHECK(a.account().missing()[0].set_line ==
          "--set 'cluster.nodes.n.overrides.power.energy_per_byte=... pJ/B'");
    // Cost does not need power: requests share it by tokens then.
    CHECK(close(a.cost_usd(0) + a.cost_usd(1), 0.04));
    CHECK(close(a.cost_usd(0), 0.04 * 105 / 308));
  }
  SUBCASE("of a spare device") {
    run.scenario.nodes[0].device.power.deep_idle.value.reset();
    const Analysis a(run.scenario, run.result);
    CHECK(close(a.account().pool_devices_j(0, 0, 10).value, 1900));
    CHECK(a.account().node_j(a.account().nodes()[0], 0, 10).known());
    CHECK(a.account().node_j(a.account().nodes()[1], 0, 10).missing == "power.deep_idle");
    CHECK(a.fleet().find("energy_site")->status == "missing:power.deep_idle");
  }
  SUBCASE("of the node") {
    run.scenario.nodes[0].type.psu_efficiency.value.reset();
    const Analysis a(run.scenario, run.result);
    CHECK(a.fleet().find("energy_it")->status == "missing:node.power.psu_efficiency");
    CHECK(close(a.fleet().value("energy_devices"), 2000));
  }
  SUBCASE("price") {
    run.scenario.nodes[0].device.rent.value.reset();
    const Analysis a(run.scenario, run.result);
    CHECK(a.pool(0).find("cost")->status == "missing:node.price.rent");
    CHECK(std::isnan(a.cost_usd(0)));
  }
}

TEST_CASE("records that lose requests or energy are refused") {
  HandRun run = hand_run();
  SUBCASE("a request") {
    run.result.finished = 1;
  }
  SUBCASE("attributed energy") {
    run.result.replicas[0].attributed_j += 1e-5;
  }
  SUBCASE("energy of a request") {
    run.result.requests[0].energy_j -= 1e-5;
  }
  SUBCASE("a bin") {
    run.result.replicas[0].extra_energy_j[2] += 1e-4;
  }
  CHECK_THROWS_AS(Analysis(run.scenario, run.result), InternalError);
}

TEST_CASE("saturation marks every row and keeps the numbers") {
  HandRun run = hand_run();
  run.result.stability = Stability::kSaturated;
  const Analysis a(run.scenario, run.result);
  for (const ScopeSummary& scope : a.scopes()) {
    for (const MetricRow& row : scope.rows) {
      CHECK((row.status == "saturated" || row.status == "empty"));
    }
  }
  CHECK(close(a.fleet().value("output_throughput"), 0.8));
}

// At the horizon an unfinished request has missed only what the clock has already passed.
TEST_CASE("unfinished requests are judged by what is certain") {
  HandRun run = hand_run();
  RequestRecord& b = run.result.requests[1];
  b.status = RequestStatus::kUnfinished;
  b.last_token = SimTime();
  run.result.finished = 1, run.result.unfinished = 1;
  CHECK(Analysis(run.scenario, run.result).slo(1) == SloVerdict::kUnknown);  // TTFT was met
  run.scenario.slo["default"].e2e = Seconds(5);                              // 9 s have passed
  CHECK(Analysis(run.scenario, run.result).slo(1) == SloVerdict::kMissed);
  run.scenario.slo["default"].e2e.reset();
  b.output_tokens = 0;  // no first token after 9 s, 1 s was allowed
  CHECK(Analysis(run.scenario, run.result).slo(1) == SloVerdict::kMissed);
}

TEST_CASE("requests that had not arrived by the horizon are nobody's failure") {
  HandRun run = hand_run();
  run.result.requests[2].arrival = at_s(11);
  run.result.requests[2].status = RequestStatus::kUnfinished;
  run.result.arrived = 2, run.result.rejected = 0;
  const Analysis a(run.scenario, run.result);
  CHECK(close(a.fleet().value("num_requests"), 2));
  CHECK(close(a.fleet().value("slo_attainment"), 1.0));
}
