// Closed loops, sessions and shared prefixes: structure by hand.
#include <algorithm>
#include <cmath>
#include <set>

#include "tests/support/traces.h"
#include "workloads/trace_stats.h"

using namespace medley;

namespace {
std::vector<std::uint64_t> ids_of(const Trace& t, const Request& r) {
  const auto begin = t.hash_ids.begin() + r.hash_begin;
  return {begin, begin + r.hash_count};
}
bool starts_with(const std::vector<std::uint64_t>& longer,
                 const std::vector<std::uint64_t>& prefix) {
  return longer.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), longer.begin());
}
}  // namespace

TEST_CASE("fixed concurrency: N start, every later one follows the one N before") {
  const Trace t = trace_of(R"({"generate": {"arrivals": {"process": "closed_loop", "concurrency": 3,
    "think_time": "250 ms", "ramp_up": "3 s"}, "input_tokens": 10, "output_tokens": 5, "requests": 10}})");
  check_trace(t);
  REQUIRE(t.requests.size() == 10);
  CHECK(t.requests[1].arrival.ns() == 1'000'000'000);
  CHECK(t.requests[2].arrival.ns() == 2'000'000'000);
  REQUIRE(t.follow_ups.size() == 7);
  for (std::uint32_t i = 0; i < 7; ++i) {
    CHECK(t.follow_ups[i].previous == i);
    CHECK(t.follow_ups[i].next == i + 3);
    CHECK(t.follow_ups[i].delay.value() == 0.25);
  }
  CHECK(t.sessions.empty());
}

TEST_CASE(
    "sessions of one user at a time: each turn's prompt is the last prompt, output and input") {
  const Trace t = trace_of(R"({"generate": {
    "arrivals": {"process": "closed_loop", "concurrency": 2, "think_time": "1 min"},
    "session": {"turns": {"dist": "uniform", "min": 1, "max": 5},
                "think_time": {"dist": "exponential", "mean": "5 s"}},
    "shared_prefix": {"tokens": 100},
    "input_tokens": {"dist": "uniform", "min": 1, "max": 40}, "output_tokens": 7, "requests": 500}})");
  check_trace(t);
  CHECK(t.requests.size() == 500);
  CHECK(t.follow_ups.size() == 498);  // all but the two users' first
  std::vector<const Request*> last(t.sessions.size(), nullptr);
  std::size_t session_starts = 0;
  for (const FollowUp& f : t.follow_ups) {
    const Request& a = t.requests[f.previous];
    const Request& b = t.requests[f.next];
    if (a.session != b.session) {
      CHECK(b.turn == 0);
      CHECK(f.delay.value() == 60.0);
      ++session_starts;
      continue;
    }
    CHECK(b.turn == a.turn + 1);
    CHECK(b.input_tokens > a.input_tokens + a.output_tokens);
    CHECK(b.input_tokens <= a.input_tokens + a.output_tokens + 40);
    CHECK(starts_with(ids_of(t, b), ids_of(t, a)));
  }
  CHECK(session_starts + 2 == t.sessions.size());
  // Six whole blocks of 16 of the 100-token system prompt are everyone's, the seventh is not.
  std::set<std::uint64_t> sixth, seventh;
  for (const Request& r : t.requests) {
    if (r.turn != 0 || r.hash_count < 7) continue;
    sixth.insert(t.hash_ids[r.hash_begin + 5]);
    seventh.insert(t.hash_ids[r.hash_begin + 6]);
  }
  CHECK(sixth.size() == 1);
  CHECK(seventh.size() > 50);
}

TEST_CASE("open sessions start by the arrival process and end before the context limit") {
  const Trace t = trace_of(R"({"generate": {
    "arrivals": {"process": "poisson", "rate": "1 req/s"}, "duration": "300 s",
    "session": {"turns": 50, "think_time": "2 s", "max_context_tokens": 1000, "first_input_tokens": 300},
    "input_tokens": 50, "output_tokens": 50}})");
  check_trace(t);
  std::size_t open = 0;
  for (const Request& r : t.requests) {
    open += r.arrival != SimTime::max();
    // 300 + 50, then + 100 a turn: turn 6 ends at 950, turn 7 would end at 1050.
    CHECK(r.turn <= 6);
    CHECK(r.input_tokens == 300 + 100 * r.turn);
  }
  CHECK(open == t.sessions.size());
  CHECK(t.requests.size() == 7 * open);
}

// With one group of P tokens on top of each prompt, all but the first request find P in an infinite
// cache: reuse = (n - 1) P / (n (P + I)).
TEST_CASE("shared prefixes: reuse as the shares say, and ids only where shared") {
  const Trace t = trace_of(R"({"generate": {"arrivals": {"process": "poisson", "rate": "5 req/s"},
    "shared_prefix": {"tokens": 320}, "input_tokens": 80, "output_tokens": 5, "requests": 1000}})");
  check_trace(t);
  CHECK(t.hash_ids.size() == 20);
  CHECK(t.requests[999].input_tokens == 400);
  CHECK(trace_stats(t).ideal_prefix_reuse == doctest::Approx(999.0 * 320 / (1000.0 * 400)));
  const Trace half =
      trace_of(R"({"generate": {"arrivals": {"process": "poisson", "rate": "5 req/s"},
    "shared_prefix": {"tokens": 320, "groups": 10, "zipf": 1, "share": 0.5},
    "input_tokens": 80, "output_tokens": 5, "requests": 4000}})");
  double sharing = 0;
  for (const Request& r : half.requests) sharing += r.hash_count > 0;
  CHECK(std::abs(sharing / 4000 - 0.5) < 4.0 * std::sqrt(0.25 / 4000));
}

TEST_CASE("seeds and streams: same seed, same trace; one source's draws are its own") {
  const std::string chat =
      R"("chat": {"generate": {"arrivals": {"process": "poisson", "rate": "5 req/s"},
    "input_tokens": {"dist": "exponential", "mean": 100}, "output_tokens": {"dist": "exponential", "mean": 10},
    "requests": 200}, "tenant": {"a": 1, "b": 1}})";
  const auto lengths = [](const Trace& t, const std::string& model) {
    std::vector<std::int64_t> out;
    for (const Request& r : t.requests) {
      if (t.models[r.model] != model) continue;
      out.insert(out.end(), {r.arrival.ns(), r.input_tokens, r.output_tokens});
    }
    return out;
  };
  const Trace one = trace_of(R"({"sources": {)" + chat + "}}", 42);
  const Trace again = trace_of(R"({"sources": {)" + chat + "}}", 42);
  const Trace other = trace_of(R"({"sources": {)" + chat + "}}", 43);
  CHECK(lengths(one, "default") == lengths(again, "default"));
  CHECK(lengths(one, "default") != lengths(other, "default"));
  const Trace two =
      trace_of(R"({"sources": {"extra": {"generate": {"arrivals": {"process": "constant",
    "rate": "9 req/s"}, "input_tokens": 1, "output_tokens": 1, "requests": 50}, "model": "m2"}, )" +
                   chat + "}}",
               42);
  CHECK(lengths(two, "default") == lengths(one, "default"));
  check_trace(two);
}

TEST_CASE("a shared queue: the same requests, marked as one loop per source") {
  const std::string source = R"({"generate": {"arrivals": {"process": "closed_loop",
    "concurrency": 2, "queue": "shared"}, "input_tokens": 10, "output_tokens": 5, "requests": 5}})";
  const Trace one = trace_of(source);
  check_trace(one);
  REQUIRE(one.follow_ups.size() == 3);
  for (const FollowUp& f : one.follow_ups) CHECK(f.loop == 1);
  const Trace two = trace_of(R"({"sources": {"a": )" + source + R"(, "b": )" + source + "}}");
  check_trace(two);
  REQUIRE(two.follow_ups.size() == 6);
  int of_first = 0;
  for (const FollowUp& f : two.follow_ups) of_first += f.loop == 1;
  CHECK(of_first == 3);
  CHECK(std::all_of(two.follow_ups.begin(), two.follow_ups.end(),
                    [](const FollowUp& f) { return f.loop == 1 || f.loop == 2; }));
}
