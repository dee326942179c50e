// Tiers, cold starts and migrations on random fleets: conservation, and fast-forward against step
// by step.
#include <doctest/doctest.h>

#include "sim/core/rng.h"
#include "tests/support/tiered_pool.h"

using namespace medley;
using namespace medley::testing;

namespace {

KvTierSpec random_tier(Rng& rng, KvTierSpec::Where where) {
  KvTierSpec tier;
  tier.where = where;
  tier.capacity = Bytes(16.0 * 256.0 * static_cast<double>(2 + rng.below(120)));
  if (rng.uniform() < 0.3) tier.scope = KvTierSpec::Scope::kReplica;
  return tier;
}

Scenario random_fleet(std::uint64_t seed) {
  Rng rng(seed, "tiers");
  Scenario s = constant_pool(1 + static_cast<int>(rng.below(3)),
                             40 + static_cast<std::int64_t>(rng.below(60)));
  PoolSpec& pool = s.pools[0];
  pool.step_model.per_sequence = Seconds(1e-5);
  pool.batching.max_num_seqs = 2 + static_cast<std::int32_t>(rng.below(10));
  pool.batching.max_num_batched_tokens = 32 + static_cast<std::int32_t>(rng.below(256));
  pool.batching.scheduler = static_cast<SchedulerKind>(rng.below(3));
  if (rng.uniform() < 0.3) pool.batching.admission = AdmissionOrder::kPriority;
  if (rng.uniform() < 0.8) pool.tiering.tiers.push_back(random_tier(rng, KvTierSpec::Where::kHost));
  if (rng.uniform() < 0.5) pool.tiering.tiers.push_back(random_tier(rng, KvTierSpec::Where::kNvme));
  pool.tiering.write_through = rng.uniform() < 0.4;
  pool.tiering.swap = rng.uniform() < 0.6;
  pool.tiering.recall_if_faster = rng.uniform() < 0.3;
  if (rng.uniform() < 0.2) pool.tiering.staging = Bytes(16.0 * 256.0 * 6.0);
  if (rng.uniform() < 0.4) {
    pool.load_weights.from =
        rng.uniform() < 0.5 ? WeightLoadSpec::From::kNvme : WeightLoadSpec::From::kHost;
    pool.load_weights.engine_start = Seconds(rng.uniform());
  }
  if (pool.replicas > 1 && rng.uniform() < 0.7) {
    s.migration.policy = MigrationSpec::Policy::kBalance;
    s.migration.interval = Seconds(0.02 + 0.1 * rng.uniform());
    s.migration.threshold = 0.1 * rng.uniform();
    s.migration.queue = 1 + static_cast<std::int64_t>(rng.below(4));
  }
  s.nodes[0].type.network = known(BytesPerSec(1e9));
  double t = 0.0;
  for (int i = 0; i < 80; ++i) {
    t += rng.exponential(0.03);
    Request r = request_at(t, 1 + static_cast<std::int32_t>(rng.below(300)),
                           1 + static_cast<std::int32_t>(rng.below(150)));
    r.row = static_cast<std::uint32_t>(i);
    r.priority = static_cast<std::int16_t>(rng.below(3));
    r.hash_begin = static_cast<std::uint32_t>(s.trace.hash_ids.size());
    const std::uint64_t family = rng.below(5);
    const auto common = static_cast<std::int64_t>(rng.below(8));
    for (std::int64_t k = 0; k * kIdTokens < r.input_tokens; ++k) {
      s.trace.hash_ids.push_back(k < common ? family * 100 + static_cast<std::uint64_t>(k)
                                            : 10000 + static_cast<std::uint64_t>(i * 100 + k));
      ++r.hash_count;
    }
    s.trace.requests.push_back(r);
  }
  return s;
}

void check_conservation(const Scenario& s, const RunResult& r) {
  CHECK(r.finished == static_cast<std::int64_t>(r.requests.size()));
  double attributed = 0.0, active = 0.0, replicas = 0.0;
  std::int64_t produced = 0, wanted = 0, recalled = 0, from_tiers = 0;
  for (std::size_t i = 0; i < r.requests.size(); ++i) {
    const RequestRecord& q = r.requests[i];
    CHECK(q.tier_cached_tokens <= q.cached_tokens);
    CHECK(q.cached_tokens < s.trace.requests[i].input_tokens);
    CHECK(q.arrival <= q.scheduled);
    CHECK(q.scheduled < q.first_token);
    CHECK(q.first_token <= q.last_token);
    wanted += s.trace.requests[i].output_tokens;
    attributed += q.energy_j;
  }
  for (const ReplicaRecord& rep : r.replicas) {
    produced += rep.output_tokens;
    recalled += rep.recalled_tokens;
    active += rep.active_energy_j;
    replicas += rep.attributed_j;
    CHECK(rep.peak_blocks <= rep.blocks);
  }
  CHECK(produced == wanted);
  CHECK(close(attributed, active, 1e-9));
  CHECK(close(replicas, active, 1e-9));
  double down = 0.0, up = 0.0;
  for (const TierRecord& t : r.tiers) {
    CHECK(t.peak <= t.capacity);
    from_tiers += t.recalled_tokens;
    up += t.bytes_out;
    if (t.level == 1) down += t.bytes_in;
  }
  CHECK(from_tiers == recalled);
  CHECK(close(up, 256.0 * static_cast<double>(recalled) + down));
  for (const MigrationRecord& m : r.migrations) {
    CHECK(m.from != m.to);
    CHECK(m.began <= m.stopped);
    CHECK(m.stopped <= m.arrived);
  }
}

}  // namespace

TEST_CASE("tiers, cold starts and migrations lose nothing, step by step and fast-forward alike") {
  std::int64_t recalls = 0, preempted = 0, migrations = 0, dropped = 0, evicted = 0, swapped = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    Scenario s = random_fleet(seed);
    const RunResult fast = run(test_catalog(), s);
    s.fast_forward = false;
    const RunResult slow = run(test_catalog(), s);
    check_conservation(s, fast);
    check_conservation(s, slow);
    for (std::size_t i = 0; i < fast.requests.size(); ++i) {
      const RequestRecord& a = fast.requests[i];
      const RequestRecord& b = slow.requests[i];
      CHECK(std::abs((a.last_token - b.last_token).value()) <= 1e-8);
      CHECK(a.tier_cached_tokens == b.tier_cached_tokens);
      CHECK(a.migrations == b.migrations);
      CHECK(close(a.energy_j, b.energy_j, 1e-9));
      preempted += a.preemptions;
      migrations += a.migrations;
      swapped += a.recall_s > 0.0 && a.tier_cached_tokens == 0 ? 1 : 0;
    }
    for (const TierRecord& t : fast.tiers) {
      recalls += t.recalls;
      dropped += t.dropped_entries;
      evicted += t.evicted_entries;
    }
  }
  MESSAGE(recalls << " recalls, " << swapped << " requests swapped, " << preempted
                  << " preemptions, " << migrations << " moves, " << evicted << " evicted, "
                  << dropped << " dropped entries");
  CHECK(recalls > 200);
  CHECK(swapped > 10);
  CHECK(preempted > 50);
  CHECK(migrations > 50);
  CHECK(evicted > 100);
  CHECK(dropped > 0);
}

TEST_CASE("what tiers and weights account for is what the devices' wires carried") {
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    Scenario s = random_fleet(seed);
    s.migration = {};
    const RunResult r = run(test_catalog(), s);
    double in = 0.0, out = 0.0, fetched = 0.0, stored = 0.0;
    for (const LinkRecord& link : r.links) {
      const std::size_t middle = link.name.find(" > ");
      const std::size_t device = link.name.find("/device");
      if (link.kind != LinkRecord::Kind::kWire || device == std::string::npos) continue;
      (device < middle ? out : in) += link.bytes;
    }
    for (const ReplicaRecord& rep : r.replicas) {
      fetched += 256.0 * static_cast<double>(rep.recalled_tokens) + rep.load_bytes;
    }
    for (const TierRecord& t : r.tiers) stored += t.level == 0 ? t.bytes_in : 0.0;
    CHECK(close(in, fetched));
    CHECK(close(out, stored));
    compared += fetched > 0.0 && stored > 0.0 ? 1 : 0;
  }
  CHECK(compared > 20);
}

TEST_CASE("the same fleet runs the same way; a tier too small for a block changes nothing") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    Scenario s = random_fleet(seed);
    CHECK(run(test_catalog(), s).fingerprint == run(test_catalog(), s).fingerprint);
    s.pools[0].tiering.swap = false;
    s.pools[0].tiering.tiers.clear();
    const RunResult without = run(test_catalog(), s);
    KvTierSpec tiny;
    tiny.capacity = Bytes(100.0);
    s.pools[0].tiering.tiers = {tiny};
    const RunResult with = run(test_catalog(), s);
    CHECK(with.fingerprint == without.fingerprint);
    for (std::size_t i = 0; i < with.requests.size(); ++i) {
      CHECK(with.requests[i].last_token == without.requests[i].last_token);
      CHECK(with.requests[i].energy_j == without.requests[i].energy_j);
    }
  }
}

TEST_CASE("replicas that fail take nothing of the tiers, the moves or the account with them") {
  std::int64_t hit = 0, retried = 0, loads = 0, recalls = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    Scenario s = random_fleet(seed);
    Rng rng(seed, "failures");
    s.failures.given = true;
    s.failures.restart = Seconds(0.05);
    s.failures.max_retries = 1000;
    s.failures.keep_output = rng.uniform() < 0.5;
    const int events = 1 + static_cast<int>(rng.below(6));
    for (int i = 0; i < events; ++i) {
      FailureSpec::Event event;
      const auto replica =
          static_cast<std::uint32_t>(rng.below(static_cast<std::uint64_t>(s.pools[0].replicas)));
      event.part = {FailingKind::kReplica, "p/" + std::to_string(replica), 0, replica, 0, {}};
      if (rng.uniform() < 0.3) event.part = {FailingKind::kNode, "n/0", 0, 0, 0, {}};
      event.at = SimTime::from_seconds(Seconds(4.0 * rng.uniform()));
      event.lasts = Seconds(0.3 * rng.uniform());
      s.failures.events.push_back(event);
    }
    const RunResult r = run(test_catalog(), s);
    CHECK(r.finished == static_cast<std::int64_t>(r.requests.size()));
    double attributed = 0.0, active = 0.0;
    for (const RequestRecord& q : r.requests) attributed += q.energy_j;
    for (const ReplicaRecord& rep : r.replicas) {
      active += rep.active_energy_j;
      loads += rep.loads;
      CHECK(close(rep.attributed_j, rep.active_energy_j, 1e-9));
      CHECK(rep.peak_blocks <= rep.blocks);
    }
    CHECK(close(attributed, active, 1e-9));
    for (const TierRecord& t : r.tiers) {
      CHECK(t.peak <= t.capacity);
      recalls += t.recalls;
    }
    for (const FailureRecord& f : r.failures) {
      hit += f.requests_hit;
      retried += f.retried;
    }
    CHECK(run(test_catalog(), s).fingerprint == r.fingerprint);
  }
  MESSAGE(hit << " requests hit, " << retried << " retried, " << loads << " loads, " << recalls
              << " recalls");
  CHECK(hit > 100);
  CHECK(loads > 30);
  CHECK(recalls > 100);
}
