#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/core/provenance.h"
#include "sim/core/registry.h"

using namespace medley;

TEST_CASE("problems are told in one line each") {
  CHECK(to_text({"a.json", "/x/y", "is wrong", "write 3"}) == "a.json:/x/y: is wrong (write 3)");
  CHECK(to_text({"a.csv", "line 12", "is wrong", ""}) == "a.csv:line 12: is wrong");
  CHECK(to_text({"a.csv", "", "is wrong", ""}) == "a.csv: is wrong");
  CHECK(to_text({"", "", "is wrong", ""}) == "is wrong");
  CHECK(to_text({"", "/x", "is wrong", ""}) == "/x: is wrong");
}

TEST_CASE("problems are collected and thrown together") {
  Problems problems;
  CHECK_NOTHROW(problems.throw_if_any());
  problems.add("a", "/1", "one");
  problems.add("a", "/2", "two", "hint");
  CHECK(problems.size() == 2);
  CHECK_THROWS_WITH_AS(problems.throw_if_any(), "a:/1: one\na:/2: two (hint)", InputError);
  CHECK(problems.empty());
}

TEST_CASE("a failed check names condition and place") {
  const int two = 2;
  CHECK_NOTHROW(MEDLEY_CHECK(two == 2, "arithmetic"));
  std::string text;
  try {
    MEDLEY_CHECK(two == 3, "arithmetic is broken");
  } catch (const InternalError& e) {
    text = e.what();
  }
  CHECK(text.starts_with("arithmetic is broken [two == 3 at core_error_test.cpp:"));
}

TEST_CASE("typing errors find their word") {
  const std::vector<std::string> words = {"model", "replicas", "h100_sxm5", "random"};
  CHECK(nearest("modle", words) == "model");  // swapped neighbours are one error
  CHECK(nearest("MODEL", words) == "model");
  CHECK(nearest("replica", words) == "replicas");
  CHECK(nearest("h100-sxm", words) == "h100_sxm5");
  CHECK(nearest("qqqqq", words) == "");
  CHECK(nearest("", words) == "");
  CHECK(suggest("rndom", words) == "did you mean \"random\"?");
  CHECK(suggest("x", words) == "known: model, replicas, h100_sxm5, random");
  CHECK(suggest("x", {}) == "");
  std::vector<std::string> many;
  for (int i = 0; i < 15; ++i) many.push_back("name" + std::to_string(i));
  CHECK(suggest("other", many).ends_with("name11, ... 3 more"));
}

TEST_CASE("provenance: names, and the weaker of two") {
  for (const Provenance p : {Provenance::kMeasured, Provenance::kDatasheet, Provenance::kDerived,
                             Provenance::kAssumed}) {
    CHECK(parse_provenance(to_string(p)) == p);
  }
  CHECK(parse_provenance("guessed") == std::nullopt);
  CHECK(weaker(Provenance::kMeasured, Provenance::kAssumed) == Provenance::kAssumed);
  CHECK(weaker(Provenance::kDerived, Provenance::kDatasheet) == Provenance::kDerived);
  CHECK(!Sourced<double>{}.known());
}

TEST_CASE("registry finds by name and lists in order") {
  Registry<int> registry("router");
  registry.add("random", "any replica", {}, 2);
  registry.add("by_load", "least loaded", {{"weight", 1.0, 0.0, 9.0, "1"}}, 1);
  CHECK(registry.kind() == "router");
  CHECK(registry.names() == std::vector<std::string>{"by_load", "random"});
  CHECK(registry.find("random")->make == 2);
  CHECK(registry.find("by_load")->params.front().name == "weight");
  CHECK(registry.find("rand") == nullptr);
}
