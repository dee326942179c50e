#include <doctest/doctest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/core/json_reader.h"

using namespace medley;

namespace {
std::string error_of(std::string_view text) {
  try {
    parse_json(text, "a.json");
  } catch (const InputError& e) {
    return e.what();
  }
  return "no error";
}

/// What `read` finds wrong with `text`, one problem per line.
std::string problems_of(std::string_view text, const std::function<void(ObjectReader&)>& read) {
  const nlohmann::ordered_json tree = parse_json(text, "a.json");
  Problems problems;
  ObjectReader reader(tree, "a.json", "", problems);
  read(reader);
  std::string all;
  for (const Problem& p : problems.list()) all += to_text(p) + "\n";
  return all;
}
}  // namespace

TEST_CASE("json: comments, BOM and key order") {
  const auto tree =
      parse_json("\xef\xbb\xbf{ // one\n \"b\": 1, /* two */ \"a\": [1, 2.5, \"x\"] }", "t");
  CHECK(tree.dump() == R"({"b":1,"a":[1,2.5,"x"]})");
  CHECK(parse_json("[]", "t").dump() == "[]");
  CHECK(parse_json(R"({"deep":{"a":{"b":[{"c":null},{"d":true}]}}})", "t").dump() ==
        R"({"deep":{"a":{"b":[{"c":null},{"d":true}]}}})");
}

TEST_CASE("json: duplicate keys are all found, with their pointers") {
  CHECK(error_of(
            R"({"a": {"x": 1, "y": 2, "x": 3}, "l": [0, {"k/1": 1, "k/1": {"z": 1}}], "a": 2})") ==
        "a.json:/a/x: duplicate key (keep one of them)\n"
        "a.json:/l/1/k~11: duplicate key (keep one of them)\n"
        "a.json:/a: duplicate key (keep one of them)");
  std::string many = "{";
  for (int i = 0; i < 100; ++i) many += "\"k" + std::to_string(i) + "\": 1, ";
  CHECK(error_of(many + "\"last\": 1}") == "no error");
  CHECK(error_of(many + "\"k7\": 1}") == "a.json:/k7: duplicate key (keep one of them)");
  CHECK(error_of(many + "\"k99\": 1}") == "a.json:/k99: duplicate key (keep one of them)");
}

TEST_CASE("json: what is no JSON carries pointer, line and column") {
  CHECK(error_of("{\"a\": [1,\n  NaN]}") ==
        "a.json:/a/1: line 2, column 3: syntax error while parsing value - invalid literal; last "
        "read: '1,<U+000A>  N'");
  CHECK(
      error_of("{\"a\": Infinity}") ==
      "a.json:/a: line 1, column 7: syntax error while parsing value - invalid literal; last read: "
      "'\"a\": I'");
  CHECK(error_of("{\"p\": {\"rate\": 1e999}}") ==
        "a.json:/p/rate: line 1, column 20: number overflow parsing '1e999'");
  CHECK(error_of("{\"a\": -1e999}") ==
        "a.json:/a: line 1, column 12: number overflow parsing '-1e999'");
  CHECK(error_of("").starts_with("a.json: line 1, column "));
  for (const char* text :
       {"{", "[1,]", "{\"a\":1,}", "{'a':1}", "{\"a\":01}", "{\"a\":1} x", "\"\x01\"", "\"\xff\"",
        "{\"a\" 1}", "// only a comment", "/* open", "+1", "tru"}) {
    CAPTURE(text);
    CHECK(error_of(text).find("line 1, column ") != std::string::npos);
  }
}

TEST_CASE("json: a depth bomb is an error, not a crash") {
  const std::string bomb(1000000, '[');
  const std::string text = error_of(bomb);
  CHECK(text.ends_with("nested deeper than 200 levels"));
  std::string deep = std::string(200, '[') + std::string(200, ']');
  CHECK(error_of(deep) == "no error");
}

TEST_CASE("reader: right values") {
  const auto tree = parse_json(R"({
    "comment": "free", "$schema": "x", "name": "n", "on": true, "x": 2.5, "n": 3.0, "big": 9007199254740993,
    "bw": "3.35 TB/s", "zero": 0, "none": null, "list": [1, 2.5], "words": ["a", "b"], "kind": "gpu",
    "map": {"u": {"v": 1}, "comment": "skipped", "w": {"v": 2}}, "rows": [{"v": 5}, {"v": 6}]})",
                               "t");
  Problems problems;
  ObjectReader r(tree, "t", "/root", problems);
  CHECK(r.text("name") == "n");
  CHECK(r.text_or("absent", "f") == "f");
  CHECK(r.maybe_text("none") == std::nullopt);
  CHECK(r.boolean_or("on", false));
  CHECK(r.number("x") == 2.5);
  CHECK(r.number("n") == 3.0);
  CHECK(r.number_or("absent", 7.0) == 7.0);
  CHECK(r.integer("n", 0, 10) == 3);
  CHECK(r.integer("big", 0, INT64_MAX) == 9007199254740993);
  CHECK(r.quantity<BytesPerSec>("bw") == BytesPerSec(3.35e12));
  CHECK(r.quantity<Seconds>("zero") == Seconds(0));
  CHECK(r.quantity_or<Seconds>("absent", Seconds(4)) == Seconds(4));
  CHECK(r.numbers_or_empty("list") == std::vector<double>{1.0, 2.5});
  CHECK(r.texts_or_empty("words") == std::vector<std::string>{"a", "b"});
  CHECK(r.choice("kind", {"cpu", "gpu"}) == "gpu");
  CHECK(r.choice_or("absent", {"cpu", "gpu"}, "cpu") == "cpu");
  std::string seen;
  r.each_member("map", [&](const std::string& key, ObjectReader member) {
    seen += key + std::to_string(member.integer("v", 0, 9));
    member.finish();
  });
  r.each_element("rows", [&](std::size_t i, ObjectReader row) {
    seen += row.pointer() + "=" + std::to_string(i);
    CHECK(row.integer("v", 0, 9) == static_cast<int>(i) + 5);
  });
  CHECK(seen == "u1w2/root/rows/0=0/root/rows/1=1");
  CHECK(!r.has("none"));
  CHECK(r.has("x"));
  CHECK(!r.maybe_object("absent"));
  CHECK(r.raw("list")->size() == 2);
  CHECK(r.pointer_to("a/b~c") == "/root/a~1b~0c");
  r.finish();
  CHECK(problems.empty());
  CHECK(r.keys().size() == 15);
}

TEST_CASE("reader: each kind of problem has its own text") {
  CHECK(problems_of("{}", [](ObjectReader& r) { r.text("name"); }) ==
        "a.json:/name: missing required key\n");
  CHECK(problems_of(R"({"name": 3})", [](ObjectReader& r) { r.text("name"); }) ==
        "a.json:/name: expected a string (found 3)\n");
  CHECK(problems_of(R"({"x": "3"})", [](ObjectReader& r) { r.number("x"); }) ==
        "a.json:/x: expected a number (found \"3\")\n");
  CHECK(problems_of(R"({"x": -1})", [](ObjectReader& r) {
          r.number("x", Range::non_negative());
        }) == "a.json:/x: must not be negative (found -1)\n");
  CHECK(problems_of(R"({"x": 0})", [](ObjectReader& r) { r.number("x", Range::positive()); }) ==
        "a.json:/x: must be greater than 0 (found 0)\n");
  CHECK(problems_of(R"({"x": 1.5})", [](ObjectReader& r) { r.number("x", Range::fraction()); }) ==
        "a.json:/x: must be between 0 and 1 (found 1.5)\n");
  CHECK(problems_of(R"({"x": 1.5})", [](ObjectReader& r) { r.number("x", Range::at_least(2)); }) ==
        "a.json:/x: must be at least 2 (found 1.5)\n");
  CHECK(problems_of(R"({"x": 1.5})", [](ObjectReader& r) { r.integer("x", 0, 5); }) ==
        "a.json:/x: expected an integer (found 1.5)\n");
  CHECK(problems_of(R"({"x": true})", [](ObjectReader& r) { r.integer("x", 0, 5); }) ==
        "a.json:/x: expected an integer (found true)\n");
  CHECK(problems_of(R"({"x": 6})", [](ObjectReader& r) { r.integer("x", 0, 5); }) ==
        "a.json:/x: must be between 0 and 5 (found 6)\n");
  CHECK(problems_of(R"({"x": 0})", [](ObjectReader& r) { r.integer("x", 1, INT64_MAX); }) ==
        "a.json:/x: must be at least 1 (found 0)\n");
  CHECK(problems_of(R"({"x": 18446744073709551615})",
                    [](ObjectReader& r) { r.integer("x", 0, INT64_MAX); }) ==
        "a.json:/x: must be between 0 and 9223372036854775807 (found 18446744073709551615)\n");
  CHECK(problems_of(R"({"x": 1e300})", [](ObjectReader& r) { r.integer("x", 0, 9); }) ==
        "a.json:/x: must be between 0 and 9 (found 1e+300)\n");
  CHECK(problems_of(R"({"b": "yes"})", [](ObjectReader& r) { r.boolean_or("b", true); }) ==
        "a.json:/b: expected true or false (found \"yes\")\n");
  CHECK(problems_of(R"({"k": "gpus"})", [](ObjectReader& r) {
          r.choice("k", {"cpu", "gpu"});
        }) == "a.json:/k: unknown value \"gpus\" (did you mean \"gpu\"?)\n");
  CHECK(problems_of(R"({"k": "tractor"})", [](ObjectReader& r) {
          r.choice("k", {"cpu", "gpu"});
        }) == "a.json:/k: unknown value \"tractor\" (known: cpu, gpu)\n");
  CHECK(problems_of(R"({"l": [1, "2"]})", [](ObjectReader& r) { r.numbers_or_empty("l"); }) ==
        "a.json:/l/1: expected a number (found \"2\")\n");
  CHECK(problems_of(R"({"l": ["1", 2]})", [](ObjectReader& r) { r.texts_or_empty("l"); }) ==
        "a.json:/l/1: expected a string (found 2)\n");
}

TEST_CASE("reader: quantities, structure and unknown keys") {
  CHECK(problems_of(R"({"t": 3})", [](ObjectReader& r) { r.quantity<Seconds>("t"); }) ==
        "a.json:/t: \"3\" has no unit; write for example \"500 ms\"\n");
  CHECK(problems_of(R"({"t": "-3 s"})", [](ObjectReader& r) { r.quantity<Seconds>("t"); }) ==
        "a.json:/t: must not be negative (found \"-3 s\")\n");
  CHECK(problems_of(R"({"t": "3 h"})", [](ObjectReader& r) {
          r.quantity<Seconds>("t", {0.0, 0.5});
        }) == "a.json:/t: must be between 0 s and 500 ms (found \"3 h\")\n");
  CHECK(problems_of(R"({"t": [3]})", [](ObjectReader& r) { r.quantity<Seconds>("t"); }) ==
        "a.json:/t: expected a string with a number and a unit (found an array)\n");
  CHECK(problems_of(R"({"o": 3})", [](ObjectReader& r) { r.object("o").text("x"); }) ==
        "a.json:/o: expected an object (found 3)\n");
  CHECK(problems_of("{}", [](ObjectReader& r) { r.object("o").text("x"); }) ==
        "a.json:/o: missing required key\n");
  CHECK(problems_of(R"({"l": {}})", [](ObjectReader& r) {
          r.each_element("l", [](auto, auto) {});
        }) == "a.json:/l: expected an array of objects (found an object)\n");
  CHECK(problems_of(R"({"l": [{}, 4]})", [](ObjectReader& r) {
          r.each_element("l", [](auto, auto) {});
        }) == "a.json:/l/1: expected an object (found 4)\n");
  CHECK(problems_of(R"({"replicsa": 1, "zzz": 2})",
                    [](ObjectReader& r) {
                      r.integer_or("replicas", 1, 0, 9);
                      r.finish();
                    }) ==
        "a.json:/replicsa: unknown key (did you mean \"replicas\"?)\n"
        "a.json:/zzz: unknown key (known: replicas)\n");
}
