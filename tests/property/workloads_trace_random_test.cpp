// Laws of reading and transforming on random traces; the round is printed on failure.
#include <set>

#include "tests/support/traces.h"
#include "workloads/trace_transform.h"
#include "workloads/trace_write.h"

using namespace medley;

namespace {
/// A random native CSV with ties, disorder, zero lengths and rubbish.
std::string random_csv(Rng& rng, int rows) {
  std::string text = "arrival_ms,input_tokens,output_tokens,session_id\n";
  for (int i = 0; i < rows; ++i) {
    const std::uint64_t kind = rng.below(20);
    const std::string time = kind == 0 ? "oops" : std::to_string(rng.below(300));
    text += time + "," + std::to_string(rng.below(50)) + "," + std::to_string(rng.below(9)) + ",";
    if (rng.below(3) == 0) text += "s" + std::to_string(rng.below(10));
    text += kind == 1 ? ",\n" : "\n";
  }
  return text;
}

std::string random_workload(Rng& rng) {
  const std::string n = std::to_string(20 + rng.below(60));
  const char* arrivals[] = {R"("process": "poisson", "rate": "5 req/s")",
                            R"("process": "gamma", "cv": 3, "rate": "5 req/s")",
                            R"("process": "closed_loop", "concurrency": 4, "ramp_up": "2 s")"};
  std::string json = R"({"generate": {"arrivals": {)" + std::string(arrivals[rng.below(3)]) +
                     R"(}, "input_tokens": {"dist": "exponential", "mean": 60},
       "output_tokens": {"dist": "uniform", "min": 1, "max": 9}, "requests": )" +
                     n;
  if (rng.below(2) == 0)
    json += R"(, "session": {"turns": {"dist": "uniform", "min": 1, "max": 6},
       "think_time": {"dist": "exponential", "mean": "1 s"}})";
  if (rng.below(2) == 0)
    json += R"(, "shared_prefix": {"groups": 3, "tokens": {"dist": "uniform",
       "min": 0, "max": 90}, "zipf": 1, "share": 0.7})";
  json += R"(}, "model": {"a": 1, "b": 2}, "priority": {"0": 1, "2": 1})";
  return json;
}

bool same_requests(const Trace& a, const Trace& b) {
  if (a.requests.size() != b.requests.size()) return false;
  for (std::size_t i = 0; i < a.requests.size(); ++i) {
    const Request& x = a.requests[i];
    const Request& y = b.requests[i];
    const bool same = x.arrival == y.arrival && x.input_tokens == y.input_tokens &&
                      x.output_tokens == y.output_tokens && x.turn == y.turn &&
                      x.priority == y.priority && a.models[x.model] == b.models[y.model] &&
                      x.hash_count == y.hash_count &&
                      (x.session == Request::kNone) == (y.session == Request::kNone);
    if (!same) return false;
    for (std::uint32_t k = 0; k < x.hash_count; ++k) {
      if (a.hash_ids[x.hash_begin + k] != b.hash_ids[y.hash_begin + k]) return false;
    }
  }
  return true;
}
}  // namespace

TEST_CASE("property: rows read = kept + dropped, sorted, ties by row") {
  Rng rng(1, "csv");
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    const int rows = 10 + static_cast<int>(rng.below(80));
    const Trace t = read_text(random_csv(rng, rows), [](TraceFileSpec& s) {
      s.on_bad_row = TraceFileSpec::BadRow::kDrop;
    });
    CHECK(t.accounts[0].rows_read == rows);
    check_trace(t);
  }
}

TEST_CASE("property: writing and reading native CSV gives the trace back, and the same bytes") {
  Rng rng(2, "workloads");
  for (int round = 0; round < 40; ++round) {
    CAPTURE(round);
    const Trace t = trace_of(random_workload(rng) + "}", rng());
    check_trace(t);
    const std::string text = native_csv(t);
    const Trace back =
        read_text(text, [](TraceFileSpec& s) { s.origin = TraceFileSpec::Origin::kZero; });
    check_trace(back);
    CHECK(same_requests(t, back));
    REQUIRE(t.follow_ups.size() == back.follow_ups.size());
    for (std::size_t i = 0; i < t.follow_ups.size(); ++i) {
      CHECK(t.follow_ups[i].next == back.follow_ups[i].next);
      CHECK(std::abs((t.follow_ups[i].delay - back.follow_ups[i].delay).value()) < 1e-9);
    }
    CHECK(native_csv(back) == text);
  }
}

TEST_CASE("property: thinning keeps a subset, in order, unchanged") {
  Rng rng(3, "workloads");
  for (int round = 0; round < 40; ++round) {
    CAPTURE(round);
    const std::string json = random_workload(rng);
    const std::uint64_t seed = rng();
    const Trace all = trace_of(json + "}", seed);
    Trace some;
    try {
      some = trace_of(json + R"(, "thin": 0.6})", seed);
    } catch (const InputError&) {
      continue;  // nothing left of a small loop
    }
    check_trace(some);
    std::size_t at = 0;
    for (const Request& r : some.requests) {
      while (at < all.requests.size() && all.requests[at].row != r.row) ++at;
      REQUIRE(at < all.requests.size());
      REQUIRE(all.requests[at].arrival == r.arrival);
      REQUIRE(all.requests[at].input_tokens == r.input_tokens);
      REQUIRE(all.requests[at].model == r.model);
    }
  }
}

TEST_CASE("property: scaling the rate scales the span exactly and nothing else") {
  Rng rng(4, "workloads");
  for (int round = 0; round < 30; ++round) {
    CAPTURE(round);
    const std::string json = random_workload(rng);
    const std::uint64_t seed = rng();
    const Trace t = trace_of(json + "}", seed);
    const Trace u = trace_of(json + R"(, "scale_rate": 4})", seed);
    REQUIRE(t.requests.size() == u.requests.size());
    for (std::size_t i = 0; i < t.requests.size(); ++i) {
      const Request& a = t.requests[i];
      const Request& b = u.requests[i];
      if (a.arrival != SimTime::max()) {
        // Exact but for the rounding of one time to whole nanoseconds.
        REQUIRE(std::abs(b.arrival.ns() * 4 - a.arrival.ns()) <= 2);
      }
      REQUIRE(a.input_tokens == b.input_tokens);
    }
    CHECK(t.follow_ups.size() == u.follow_ups.size());
  }
}

TEST_CASE("property: superposing adds up, and each source survives in order") {
  Rng rng(5, "workloads");
  for (int round = 0; round < 30; ++round) {
    CAPTURE(round);
    const std::uint64_t seed = rng();
    const std::string a = random_workload(rng) + "}";
    const std::string b = random_workload(rng) + "}";
    const Trace both = trace_of(R"({"sources": {"a": )" + a + R"(, "b": )" + b + "}}", seed);
    const Trace one = trace_of(R"({"sources": {"a": )" + a + "}}", seed);
    const Trace two = trace_of(R"({"sources": {"b": )" + b + "}}", seed);
    check_trace(both);
    CHECK(both.requests.size() == one.requests.size() + two.requests.size());
    CHECK(both.follow_ups.size() == one.follow_ups.size() + two.follow_ups.size());
    // Rows are numbered through, so the rows of `a` come first.
    std::vector<std::int32_t> of_a;
    for (const Request& r : both.requests) {
      if (r.row < one.requests.size()) of_a.push_back(r.input_tokens);
    }
    std::vector<std::int32_t> expected;
    for (const Request& r : one.requests) expected.push_back(r.input_tokens);
    CHECK(of_a == expected);
    std::set<std::uint32_t> rows;
    for (const Request& r : both.requests) rows.insert(r.row);
    CHECK(rows.size() == both.requests.size());
  }
}
