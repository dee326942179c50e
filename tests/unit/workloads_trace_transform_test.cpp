#include "tests/support/traces.h"
#include "workloads/trace_stats.h"
#include "workloads/trace_transform.h"

using namespace medley;

namespace {
/// Five requests at 0, 1, 2, 4, 8 s with inputs 100..500 and outputs 10..50.
Trace transformed(const std::string& keys, std::uint64_t seed = 1, const std::string& more = "") {
  const ScratchDirectory dir;
  dir.write(
      "t.csv",
      "arrival_s,input_tokens,output_tokens\n0,100,10\n1,200,20\n2,300,30\n4,400,40\n8,500,50\n");
  const Trace t = trace_of(
      R"({"trace": {"file": "t.csv")" + more + "}" + (keys.empty() ? "" : ", ") + keys + "}", seed,
      dir.path());
  check_trace(t);
  return t;
}
std::vector<double> times(const Trace& t) {
  std::vector<double> s;
  for (const Request& r : t.requests) s.push_back(r.arrival.seconds().value());
  return s;
}
std::vector<std::int32_t> inputs(const Trace& t) {
  std::vector<std::int32_t> v;
  for (const Request& r : t.requests) v.push_back(r.input_tokens);
  return v;
}
using Times = std::vector<double>;
using Tokens = std::vector<std::int32_t>;
}  // namespace

TEST_CASE("rates scale times, to a factor or to a target") {
  CHECK(times(transformed(R"("scale_rate": 2)")) == Times{0, 0.5, 1, 2, 4});
  // 4 gaps in 8 s is 0.5/s; a target of 2/s divides by 4.
  CHECK(times(transformed(R"("target_rate": "2 req/s")")) == Times{0, 0.25, 0.5, 1, 2});
}

TEST_CASE("slices start over at 0; the first N") {
  const Trace t = transformed(R"("slice": {"from": "1 s", "to": "4 s"})");
  CHECK(times(t) == Times{0, 1});
  CHECK(inputs(t) == Tokens{200, 300});
  CHECK(t.accounts[0].dropped.at(0) ==
        std::pair<std::string, std::int64_t>("outside the slice", 3));
  CHECK(inputs(transformed(R"("first": 2)")) == Tokens{100, 200});
  CHECK(inputs(transformed(R"("slice": {"from": "2 s"}, "first": 1)")) == Tokens{300});
}

TEST_CASE("lengths scale and clamp, with an account") {
  const Trace t = transformed(R"("scale_input": 0.5, "scale_output": 1.55, "max_input_tokens": 200,
                                 "max_output_tokens": 60)");
  CHECK(inputs(t) == Tokens{50, 100, 150, 200, 200});
  CHECK(t.requests[0].output_tokens == 16);  // 15.5, ties to even
  CHECK(t.requests[4].output_tokens == 60);
  REQUIRE(t.accounts[0].adjusted.size() == 2);
  CHECK(t.accounts[0].adjusted[0].second == 1);
  CHECK(t.accounts[0].adjusted[1].second == 2);
}

TEST_CASE("repeats keep the pace: span plus a mean gap, or the given period") {
  // Mean gap 2 s: copies start at 0, 10, 20.
  CHECK(times(transformed(R"("repeat": 3)")) ==
        Times{0, 1, 2, 4, 8, 10, 11, 12, 14, 18, 20, 21, 22, 24, 28});
  const Trace t = transformed(R"("repeat": 2, "repeat_period": "1 s")");
  CHECK(times(t) == Times{0, 1, 1, 2, 2, 3, 4, 5, 8, 9});
  CHECK(inputs(t) == Tokens{100, 200, 100, 300, 200, 300, 400, 400, 500, 500});
  CHECK(t.accounts[0].kept == 5);
}

TEST_CASE("time warp is linear between knots and goes on past the last") {
  CHECK(times(transformed(R"("warp": [["0 s", "0 s"], ["2 s", "1 s"], ["4 s", "5 s"]])")) ==
        Times{0, 0.5, 1, 5, 13});
}

TEST_CASE("jitter spreads ties, is counted, and is the seed's") {
  const Trace a = transformed(R"("jitter": "3 s")", 1);
  const Trace b = transformed(R"("jitter": "3 s")", 1);
  const Trace c = transformed(R"("jitter": "3 s")", 2);
  CHECK(times(a) == times(b));
  CHECK(times(a) != times(c));
  CHECK(a.accounts[0].adjusted.at(0).second == 5);
  const Times before = times(transformed(""));
  for (const Request& r : a.requests) {
    const double moved = r.arrival.seconds().value() - before[r.row];
    CHECK(moved >= 0.0);
    CHECK(moved < 3.0);
  }
}

TEST_CASE("shift comes last") {
  CHECK(times(transformed(R"("shift": "10 s", "scale_rate": 2)")) == Times{10, 10.5, 11, 12, 14});
}

TEST_CASE("a trace's own times can be replaced") {
  const std::string arrivals = R"("arrivals": {"process": "constant", "rate": "4 req/s"})";
  CHECK(times(transformed(arrivals)) == Times{0, 0.25, 0.5, 0.75, 1});
  const Trace loop = transformed(R"("arrivals": {"process": "closed_loop", "concurrency": 2})");
  CHECK(loop.follow_ups.size() == 3);
  CHECK(inputs(loop) == Tokens{100, 200, 300, 400, 500});
}

TEST_CASE("selection takes closed-loop turns along") {
  const std::string sessions =
      R"({"generate": {"arrivals": {"process": "constant", "rate": "1 req/s"},
    "session": {"turns": 3, "think_time": "1 s"}, "input_tokens": 5, "output_tokens": 5, "requests": 30}, )";
  for (const char* keys : {R"("first": 4})", R"("slice": {"from": "2 s", "to": "6 s"}})"}) {
    const Trace t = trace_of(sessions + keys);
    check_trace(t);
    CHECK(t.requests.size() == 12);
    CHECK(t.follow_ups.size() == 8);
    for (const FollowUp& f : t.follow_ups) {
      CHECK(t.requests[f.previous].session == t.requests[f.next].session);
    }
  }
  const Trace thin = trace_of(sessions + R"("thin": 0.5})");
  check_trace(thin);
  CHECK(thin.requests.size() % 3 == 0);
  CHECK(thin.requests.size() < 30);
}

TEST_CASE("prefix ids: copies and sources do not meet, block sizes are united") {
  const ScratchDirectory dir;
  dir.write("m.jsonl",
            R"({"timestamp": 0, "input_length": 1024, "output_length": 5, "hash_ids": [0, 1]}
{"timestamp": 1000, "input_length": 600, "output_length": 5, "hash_ids": [0, 2]})");
  dir.write("b.jsonl",
            R"({"chat_id": 1, "parent_chat_id": -1, "timestamp": 0.5, "input_length": 40, )"
            R"("output_length": 5, "hash_ids": [0, 1, 2]})");
  const Trace alone = trace_of(R"({"trace": {"file": "m.jsonl"}})", 1, dir.path());
  // 512 of the second prompt: 512 / 1624.
  CHECK(trace_stats(alone).ideal_prefix_reuse == doctest::Approx(512.0 / 1624.0));
  const Trace fresh = trace_of(R"({"trace": {"file": "m.jsonl"}, "repeat": 2})", 1, dir.path());
  CHECK(trace_stats(fresh).ideal_prefix_reuse == doctest::Approx(512.0 / 1624.0));
  const Trace warm =
      trace_of(R"({"trace": {"file": "m.jsonl"}, "repeat": 2, "repeat_fresh_prefixes": false})", 1,
               dir.path());
  CHECK(trace_stats(warm).ideal_prefix_reuse == doctest::Approx((512.0 + 1624.0) / 3248.0));
  const Trace both = trace_of(
      R"({"sources": {"m": {"trace": {"file": "m.jsonl"}}, "b": {"trace": {"file": "b.jsonl"}}}})",
      1, dir.path());
  check_trace(both);
  CHECK(both.hash_block_tokens == 16);
  CHECK(both.requests[0].hash_count == 64);  // 1024 / 16
  CHECK(both.requests[2].hash_count == 38);  // ceil(600 / 16)
  CHECK(trace_stats(both).ideal_prefix_reuse == doctest::Approx(512.0 / 1664.0));
}

TEST_CASE("models, classes, tenants and priorities: fixed, shared out, renamed") {
  const ScratchDirectory dir;
  dir.write("b.csv",
            "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
            "5,ChatGPT,472,18,490,x\n45,GPT-4,10,20,30,x\n50,o1,10,20,30,x\n");
  const Trace named = trace_of(R"({"trace": {"file": "b.csv"}, "class": "chat", "priority": 3,
    "model_names": {"ChatGPT": "llama-3.1-8b", "GPT-4": "llama-3.1-70b", "o1": "llama-3.1-70b"}})",
                               1, dir.path());
  CHECK(named.models == std::vector<std::string>{"llama-3.1-8b", "llama-3.1-70b"});
  CHECK(named.requests[2].model == 1);
  CHECK(named.classes == std::vector<std::string>{"chat"});
  CHECK(named.requests[1].priority == 3);
  const Trace shared =
      trace_of(R"({"generate": {"arrivals": {"process": "poisson", "rate": "9 req/s"},
    "input_tokens": 1, "output_tokens": 1, "requests": 10000}, "model": {"a": 3, "b": 1, "c": 0},
    "priority": {"0": 0.9, "-5": 0.1}})");
  CHECK(shared.models == std::vector<std::string>{"a", "b"});
  double b = 0, urgent = 0;
  for (const Request& r : shared.requests) {
    b += r.model == 1;
    urgent += r.priority == -5;
  }
  CHECK(std::abs(b / 1e4 - 0.25) < 4 * std::sqrt(0.1875 / 1e4));
  CHECK(std::abs(urgent / 1e4 - 0.1) < 4 * std::sqrt(0.09 / 1e4));
}

TEST_CASE("superposed sources are one sorted trace with common name tables") {
  const Trace t = trace_of(R"({"sources": {
    "a": {"generate": {"arrivals": {"process": "constant", "rate": "2 req/s"}, "input_tokens": 1,
          "output_tokens": 1, "requests": 4}, "model": "m", "class": "x"},
    "b": {"generate": {"arrivals": {"process": "constant", "rate": "1 req/s"}, "input_tokens": 2,
          "output_tokens": 1, "requests": 3}, "model": "n", "class": "x"}}})");
  check_trace(t);
  CHECK(times(t) == Times{0, 0, 0.5, 1, 1, 1.5, 2});
  CHECK(inputs(t) == Tokens{1, 2, 1, 1, 2, 1, 2});
  CHECK(t.classes == std::vector<std::string>{"x"});
  CHECK(t.models == std::vector<std::string>{"m", "n"});
  CHECK(t.accounts.size() == 2);
}
