#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/core/error.h"
#include "sim/core/rng.h"
#include "tests/support/scenario_text.h"

using namespace medley;
using Pointer = nlohmann::json::json_pointer;

namespace {
/// Pointers of every value of `json`, containers too, the root left out.
void collect(const nlohmann::json& json, const Pointer& at, std::vector<Pointer>& all) {
  if (!at.empty()) all.push_back(at);
  if (json.is_object()) {
    for (const auto& item : json.items()) collect(item.value(), at / item.key(), all);
  } else if (json.is_array()) {
    for (std::size_t i = 0; i < json.size(); ++i) collect(json[i], at / i, all);
  }
}

const std::vector<nlohmann::json>& odd_values() {
  static const std::vector<nlohmann::json> values = {nullptr,
                                                     true,
                                                     0,
                                                     -1,
                                                     1,
                                                     3,
                                                     0.5,
                                                     1e300,
                                                     INT64_MAX,
                                                     UINT64_MAX,
                                                     "",
                                                     "0",
                                                     "x",
                                                     "1 s",
                                                     "-5 W",
                                                     "1e999 s",
                                                     "nan",
                                                     "\xc3\xa9\xe2\x82\xac",
                                                     nlohmann::json::array(),
                                                     nlohmann::json::object(),
                                                     nlohmann::json::array({1, "a", nullptr}),
                                                     {{"type", "x"}, {"", 0}},
                                                     {{"a/b~c", {{"d", 1}}}}};
  return values;
}
}  // namespace

// Whatever stands anywhere, loading either works or says what is wrong: no other exception, no
// problem without a message, and every problem has a JSON pointer or is about the whole file.
TEST_CASE("any value in any place is accepted or explained") {
  const nlohmann::json base = nlohmann::json::parse(test::kScenario);
  std::vector<Pointer> places;
  collect(base, Pointer(), places);
  Rng rng(4711, "mutations");
  int accepted = 0, refused = 0;
  for (int i = 0; i < 500; ++i) {
    nlohmann::json mutated = base;
    const Pointer& place = places[rng.below(places.size())];
    const nlohmann::json& value = odd_values()[rng.below(odd_values().size())];
    mutated[place] = value;
    const std::string text = mutated.dump();
    INFO("case " << i << ": " << place.to_string() << " = " << value.dump());
    try {
      LoadOptions options = test::options_of(text);
      load_scenario(options);
      ++accepted;
    } catch (const InputError& error) {
      ++refused;
      REQUIRE_FALSE(error.problems().empty());
      for (const Problem& p : error.problems()) {
        CHECK_FALSE(p.message.empty());
        const bool placed = p.pointer.empty() || p.pointer.starts_with("/");
        CHECK(placed);
      }
    }
  }
  CHECK(accepted > 5);
  CHECK(refused > 200);
}

TEST_CASE("a text cut anywhere is refused with line and column") {
  const std::string text = test::kScenario;
  for (std::size_t cut = 0; cut + 1 < text.size(); cut += 37) {
    INFO("cut at " << cut);
    try {
      test::load_text(text.substr(0, cut));
      FAIL_CHECK("accepted");
    } catch (const InputError& error) {
      CHECK(std::string(error.what()).find("line ") != std::string::npos);
    }
  }
}
