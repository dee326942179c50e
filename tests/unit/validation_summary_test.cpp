// What is said about a set of rows, by hand.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "sim/validation/validation.h"

using namespace medley;

namespace {
ValidationRow row(const char* key, const char* group, double measured, double predicted) {
  ValidationRow r;
  r.key = key;
  r.group = group;
  r.basis = "catalogue";
  r.metric = "time";
  r.unit = "s";
  r.measured = measured;
  r.predicted = predicted;
  return r;
}
const ValidationSummary& all_of(const std::vector<ValidationSummary>& lines) {
  for (const ValidationSummary& s : lines) {
    if (s.group == "all" && s.half == Half::kReport) return s;
  }
  FAIL("no line over all groups");
  return lines.front();
}
ValidationSet set_of(std::vector<Target> targets) {
  ValidationSet set;
  set.name = "test";
  set.targets = std::move(targets);
  return set;
}
}  // namespace

// FNV-1a of one byte: (offset ^ byte) * prime. Offset and prime are odd, so bit 0 is that of
// 1 ^ byte: "a" (97) gives 0, "b" (98) gives 1.
TEST_CASE("the half of a row is bit 0 of the FNV-1a of its key") {
  CHECK(half_of("a") == Half::kFit);
  CHECK(half_of("b") == Half::kReport);
  CHECK(half_of("") == Half::kReport);  // the offset itself is odd
}

TEST_CASE("Kendall's tau-b") {
  CHECK(*kendall_tau({1, 2, 3}, {10, 20, 30}) == doctest::Approx(1.0));
  CHECK(*kendall_tau({1, 2, 3}, {30, 20, 10}) == doctest::Approx(-1.0));
  // Pairs: 12 agree, 13 agree, 23 tied in b: 2 / sqrt((2 + 1) * 2).
  CHECK(*kendall_tau({1, 2, 3}, {1, 2, 2}) == doctest::Approx(2.0 / std::sqrt(6.0)));
  // Only pairs inside a group count: (1, 2) and (3, 4) agree, across they would not.
  CHECK(*kendall_tau({1, 2, 3, 4}, {5, 6, 1, 2}, {"x", "x", "y", "y"}) == doctest::Approx(1.0));
  CHECK(!kendall_tau({1}, {1}));
  CHECK(!kendall_tau({1, 1}, {1, 1}));
}

// Errors +10, -20 and +40 %: bias 10, absolute median 20, mean 70/3, 90th percentile 20 + .8 * 20.
TEST_CASE("a summary of three rows, one without a prediction beside them") {
  std::vector<ValidationRow> rows = {row("1", "g", 10.0, 11.0), row("2", "g", 10.0, 8.0),
                                     row("3", "h", 10.0, 14.0),
                                     row("4", "h", 10.0, std::numeric_limits<double>::quiet_NaN())};
  rows[0].baseline = 20.0;
  rows[0].low = 9.0;
  rows[0].high = 12.0;
  rows[1].low = 7.0;
  rows[1].high = 9.0;
  const ValidationSet set = set_of({{"time", "", "", "median_pct", 15.0}});
  const auto lines = summarise(set, rows);
  const ValidationSummary& s = all_of(lines);
  CHECK(s.n == 3);
  CHECK(s.failed == 1);
  CHECK(s.bias_pct == doctest::Approx(10.0));
  CHECK(s.median_pct == doctest::Approx(20.0));
  CHECK(s.mape_pct == doctest::Approx(70.0 / 3.0));
  CHECK(s.p90_pct == doctest::Approx(36.0));
  CHECK(s.max_pct == doctest::Approx(40.0));
  CHECK(*s.baseline_pct == doctest::Approx(100.0));
  CHECK(*s.coverage_pct == doctest::Approx(50.0));  // one of two intervals holds the measurement
  REQUIRE(s.target);
  CHECK(!s.met);             // 20 > 15
  CHECK(lines.size() == 3);  // all, g, h
}

TEST_CASE("a target on rows that were fitted judges nothing") {
  std::vector<ValidationRow> rows = {row("1", "g", 10.0, 20.0)};
  rows[0].half = Half::kFit;
  for (const ValidationSummary& s : summarise(set_of({{"time", "", "", "max_pct", 1.0}}), rows)) {
    CHECK(!s.target);
    CHECK(s.met);
  }
}

TEST_CASE("every registered set names its source, its rows and how they are keyed") {
  for (const ValidationSet& set : validation_sets()) {
    CAPTURE(set.name);
    CHECK(!set.summary.empty());
    CHECK(!set.source.empty());
    CHECK(!set.key.empty());
    CHECK(static_cast<bool>(set.run));
    for (const Target& t : set.targets) CHECK(t.limit > 0.0);
  }
}
