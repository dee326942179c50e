// Conservation over random fleets of prefill and decode replicas.
#include <doctest/doctest.h>

#include <cmath>

#include "sim/core/rng.h"
#include "tests/support/split_fleet.h"

using namespace medley;
using namespace medley::testing;

namespace {
Scenario random_split(std::uint64_t seed) {
  Rng rng(seed, "split");
  Scenario s = split_fleet(std::pow(10.0, 5.0 + 3.0 * rng.uniform()));
  const int p = 1 + static_cast<int>(rng.below(3)), d = 1 + static_cast<int>(rng.below(3));
  s.nodes[0].type.devices = p + d;
  s.pools[0].replicas = p;
  s.pools[1].replicas = d;
  s.pools[0].step_model.per_prompt_token = Seconds(1e-4);
  s.pools[1].step_model.per_prompt_token = Seconds(1e-4);
  for (PoolSpec& pool : s.pools) {
    pool.batching.max_num_seqs = 1 + static_cast<std::int32_t>(rng.below(8));
    pool.batching.max_num_batched_tokens = 64 + static_cast<std::int32_t>(rng.below(512));
    pool.num_blocks_override = 40 + static_cast<std::int64_t>(rng.below(60));
  }
  s.kv_transfer.overlap = static_cast<KvTransferSpec::Overlap>(rng.below(3));
  s.kv_transfer.first_token = rng.uniform() < 0.5 ? Handoff::kDecodeToken : Handoff::kPrefillToken;
  const char* const pairings[] = {"least_outstanding_tokens", "round_robin", "random"};
  s.kv_transfer.pairing = {pairings[rng.below(3)], {}};
  double t = 0.0;
  for (int i = 0; i < 60; ++i) {
    t += rng.exponential(0.05);
    s.trace.requests.push_back(request_at(t, 1 + static_cast<std::int32_t>(rng.below(400)),
                                          1 + static_cast<std::int32_t>(rng.below(120))));
    s.trace.requests.back().row = static_cast<std::uint32_t>(i);
  }
  return s;
}
}  // namespace

TEST_CASE("handed-over requests, their tokens, KV and energy are conserved") {
  int held_back = 0, preempted = 0;
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    CAPTURE(seed);
    Scenario s = random_split(seed);
    const RunResult r = run(test_catalog(), s);
    s.fast_forward = false;
    const RunResult slow = run(test_catalog(), s);
    CHECK(r.arrived == r.finished + r.rejected + r.unfinished);
    CHECK(r.unfinished == 0);
    double energy = 0.0, active = 0.0, kv = 0.0, carried = 0.0;
    bool again = false;
    std::int64_t wanted = 0, produced = 0;
    for (std::size_t i = 0; i < r.requests.size(); ++i) {
      const RequestRecord& q = r.requests[i];
      if (q.status != RequestStatus::kFinished) continue;
      const HandoffRecord& h = r.handoffs[i];
      energy += q.energy_j;
      kv += h.bytes;
      again = again || q.preemptions > 0;
      // e2e = queue + parts + KV transfer + queue at the decode replica.
      double parts = (q.scheduled - q.arrival).value();
      if (handed_over(h)) parts += (h.joined - h.prefilled).value();
      for (const double part : q.time.seconds) parts += part;
      CHECK(std::abs(parts - (q.last_token - q.arrival).value()) <= 3e-9 + 1e-9 * q.preemptions);
      wanted += q.output_tokens;
      preempted += q.preemptions;
      CHECK(q.first_token <= q.last_token);
      if (handed_over(h)) {
        CHECK(q.scheduled < h.prefilled);
        CHECK(h.prefilled <= h.arrived);
        CHECK(h.arrived <= h.joined);
        held_back += h.paired > h.prefilled ? 1 : 0;
        // Every token of the prompt is sent once (again after a preemption).
        const double bytes = 256.0 * s.trace.requests[i].input_tokens;
        CHECK((q.preemptions > 0 ? h.bytes >= bytes * (1 - 1e-12) : close(h.bytes, bytes)));
      }
      CHECK(std::abs((q.last_token - slow.requests[i].last_token).value()) <= 1e-6);
      CHECK(close(q.energy_j, slow.requests[i].energy_j, 1e-6));
    }
    for (const ReplicaRecord& replica : r.replicas) {
      active += replica.active_energy_j;
      produced += replica.output_tokens;
      CHECK(replica.peak_blocks <= replica.blocks);
      CHECK(close(replica.attributed_j, replica.active_energy_j, 1e-9));
    }
    // Every byte of KV leaves by one port and enters by another.
    for (const LinkRecord& link : r.links) carried += link.bytes;
    CHECK((again ? carried <= 2.0 * kv * (1 + 1e-12) : close(carried, 2.0 * kv)));
    CHECK(produced == wanted);
    CHECK(close(energy, active, 1e-9));
  }
  CHECK(held_back > 0);
  CHECK(preempted > 0);
}
