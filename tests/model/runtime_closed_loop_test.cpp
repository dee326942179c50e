// Closed loops: who starts when, by hand.
#include <doctest/doctest.h>

#include <algorithm>

#include "sim/core/rng.h"
#include "tests/support/builders.h"

using namespace medley;
using namespace medley::testing;

namespace {
/// `lengths` as output tokens; the first two start at 0, each other one follows the one two before.
Scenario two_users(const std::vector<int>& lengths, std::uint32_t loop) {
  Scenario s = one_pool(1);
  s.pools[0].num_blocks_override = 1 << 16;
  s.trace.sessions.clear();
  for (std::uint32_t i = 0; i < lengths.size(); ++i) {
    s.trace.requests.push_back(request_at(0.0, 8, lengths[i]));
    s.trace.requests.back().row = i;
    if (i < 2) continue;
    s.trace.requests.back().arrival = SimTime::max();
    s.trace.follow_ups.push_back({i - 2, i, Seconds(1e-6), loop});
  }
  return s;
}
}  // namespace

// Outputs 900, 10, 10, 10 with two users. Per user: request 2 waits for the long request 0, request
// 3 follows 1. Shared: 2 starts when 1 ends, 3 when 2 ends, all while 0 still runs.
TEST_CASE("a shared queue: whoever ends starts the next; else every user waits for its own") {
  const RunResult own = run(test_catalog(), two_users({900, 10, 10, 10}, 0));
  const RunResult shared = run(test_catalog(), two_users({900, 10, 10, 10}, 1));
  const auto after = [](const RunResult& r, std::size_t ended) {
    return r.requests[ended].last_token.ns() + 1000;
  };
  CHECK(own.requests[2].arrival.ns() == after(own, 0));
  CHECK(own.requests[3].arrival.ns() == after(own, 1));
  CHECK(shared.requests[2].arrival.ns() == after(shared, 1));
  CHECK(shared.requests[3].arrival.ns() == after(shared, 2));
  CHECK(shared.requests[3].last_token < shared.requests[0].last_token);
  CHECK(shared.finished == 4);
}

// The front end adds its time to first and last token alike, and the next turn starts after it.
TEST_CASE("time in the front end is seen by the client, not by the engine") {
  Scenario s = two_users({50, 50, 20}, 0);
  const RunResult bare = run(test_catalog(), s);
  s.pools[0].backend.name = "engine";
  // Half of the front end's time by request, half by token of the prompt.
  const double prompt = static_cast<double>(s.trace.requests[0].input_tokens);
  s.pools[0].backend.request_overhead = {Seconds(0.125), Provenance::kAssumed, "test"};
  s.pools[0].backend.prompt_token_overhead = {Seconds(0.125 / prompt), Provenance::kAssumed,
                                              "test"};
  const RunResult served = run(test_catalog(), s);
  for (const std::size_t i : {0U, 1U}) {
    CHECK(served.requests[i].first_token.ns() == bare.requests[i].first_token.ns() + 250'000'000);
    CHECK(served.requests[i].last_token.ns() == bare.requests[i].last_token.ns() + 250'000'000);
  }
  CHECK(served.requests[2].arrival.ns() == served.requests[0].last_token.ns() + 1000);
  CHECK(served.end >= served.requests[2].last_token);
}

// Law: with no think time, from the start to the last arrival exactly C requests are in flight.
TEST_CASE("a shared queue keeps the concurrency to the end of its requests") {
  Scenario s = two_users({}, 1);
  Rng rng(5, "lengths");
  constexpr std::uint32_t kUsers = 7, kRequests = 200;
  for (std::uint32_t i = 0; i < kRequests; ++i) {
    s.trace.requests.push_back(request_at(0.0, 8, 1 + static_cast<std::int32_t>(rng.below(300))));
    s.trace.requests.back().row = i;
    if (i < kUsers) continue;
    s.trace.requests.back().arrival = SimTime::max();
    s.trace.follow_ups.push_back({i - kUsers, i, Seconds(0.0), 1});
  }
  const RunResult r = run(test_catalog(), s);
  REQUIRE(r.finished == kRequests);
  for (std::uint32_t i = kUsers; i < kRequests; ++i) {
    CHECK(r.requests[i].arrival >= r.requests[i - 1].arrival);  // in order
    const SimTime t = r.requests[i].arrival;
    const auto in_flight =
        std::count_if(r.requests.begin(), r.requests.end(),
                      [&](const RequestRecord& q) { return q.arrival <= t && q.last_token > t; });
    const auto ending = std::count_if(r.requests.begin(), r.requests.end(),
                                      [&](const RequestRecord& q) { return q.last_token == t; });
    CHECK(in_flight <= kUsers);
    CHECK(in_flight + ending >= kUsers);
  }
}
