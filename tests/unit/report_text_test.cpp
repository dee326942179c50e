#include <doctest/doctest.h>

#include <cmath>

#include "sim/core/error.h"
#include "sim/report/fail_condition.h"
#include "sim/report/text_table.h"
#include "tests/support/report_run.h"

using namespace medley;
using namespace medley::testing;

TEST_CASE("widths count what a terminal shows") {
  CHECK(display_width("abc") == 3);
  CHECK(display_width("Zürich") == 6);
  CHECK(display_width("e\xCC\x81t\xC3\xA9") == 3);  // a combining accent takes no room
  CHECK(display_width("北京") == 4);
  CHECK(display_width("\xff\xfe") == 2);  // invalid bytes do not break anything
}

TEST_CASE("columns align whatever the script") {
  TextTable table({{"pool", "", TextTable::Align::kLeft}, {"n", "", TextTable::Align::kRight}});
  table.add({"北京", "1"});
  table.rule();
  table.add({"chat", "1000"});
  CHECK(table.aligned() ==
        "pool     n\n"
        "----------\n"
        "北京     1\n"
        "----------\n"
        "chat  1000\n");
  CHECK(table.csv() == "pool,n\n北京,1\nchat,1000\n");
  CHECK(table.json().find("\"n\": 1000") != std::string::npos);
  CHECK_THROWS_AS(table.add({"too few"}), InternalError);
}

TEST_CASE("short numbers keep three digits") {
  CHECK(short_number(0.0) == "0");
  CHECK(short_number(std::nan("")) == "-");
  CHECK(short_number(0.01234) == "0.012");
  CHECK(short_number(1.2345) == "1.23");
  CHECK(short_number(9.999) == "10.0");
  CHECK(short_number(99.96) == "100");
  CHECK(short_number(1234.5) == "1234");
  CHECK(short_number(123456) == "123 k");
  CHECK(short_number(999700) == "1.00 M");
  CHECK(short_number(-2.5e9) == "-2.50 G");
  CHECK(short_seconds(0.0123) == "12.3 ms");
  CHECK(short_seconds(1.5e-6) == "1.50 us");
  CHECK(short_seconds(90) == "90.0 s");
  CHECK(short_seconds(7200) == "2.00 h");
  CHECK(short_joules(1.2e6) == "1.20 MJ");
  CHECK(short_joules(7.2e9) == "2.00 MWh");
  CHECK(percent(0.98765) == "98.8 %");
}

TEST_CASE("fail conditions are read with scope, metric, part and unit") {
  const FailCondition c = parse_fail_condition("pool.chat.p99_ttft_ms >= 500");
  CHECK(c.scope == "pool");
  CHECK(c.name == "chat");
  CHECK(c.metric == "ttft");
  CHECK(c.part == "p99");
  CHECK(c.factor == 1e3);
  CHECK(c.op == ">=");
  CHECK(c.bound == 500);
  CHECK(parse_fail_condition("model.llama-3.1-8b.completed<1").name == "llama-3.1-8b");
  CHECK(parse_fail_condition("median_tpot_ms>50").part == "p50");
  CHECK(parse_fail_condition("mean_request_energy>1e3").metric == "request_energy");
}

TEST_CASE("fail conditions that cannot be read say why") {
  const auto message = [](const char* text) {
    try {
      parse_fail_condition(text);
    } catch (const InputError& e) {
      return to_text(e.problems().front());
    }
    return std::string("read");
  };
  CHECK(message("slo_attainment").find("has no comparison") != std::string::npos);
  CHECK(message("slo_atainment<0.9").find("did you mean \"slo_attainment\"") != std::string::npos);
  CHECK(message("ttft>1").find("unknown metric") != std::string::npos);
  CHECK(message("p99_ttft>1").find("p99_ttft_ms") != std::string::npos);
  CHECK(message("slo_attainment<high").find("is no number") != std::string::npos);
  CHECK(message("slo_attainment<nan").find("is no number") != std::string::npos);
  CHECK(message("pols.chat.completed<1").find("unknown scope") != std::string::npos);
  CHECK(message("stability==bad").find("stability") != std::string::npos);
  const HandRun run = hand_run();
  CHECK_THROWS_AS(check_fail_condition(parse_fail_condition("pool.q.completed<1"), run.scenario),
                  InputError);
  CHECK_NOTHROW(check_fail_condition(parse_fail_condition("pool.p.completed<1"), run.scenario));
}

TEST_CASE("fail conditions are judged; a blank value holds") {
  HandRun run = hand_run();
  run.scenario.price.carbon_g_per_joule.reset();
  const Analysis a(run.scenario, run.result);
  const auto holds = [&](const char* text) { return judge(parse_fail_condition(text), a).holds; };
  CHECK(holds("slo_attainment<0.99"));  // 2 of 3
  CHECK_FALSE(holds("slo_attainment<0.6"));
  CHECK(holds("pool.p.p99_ttft_ms>=1000"));
  CHECK_FALSE(holds("pool.p.p99_ttft_ms>1000"));
  CHECK(holds("completed==2"));
  CHECK_FALSE(holds("completed!=2"));
  CHECK(holds("rejected<=1"));
  CHECK(holds("carbon<1e9"));
  CHECK(holds("carbon>1e9"));
  CHECK_FALSE(holds("stability==saturated"));
  CHECK(holds("stability!=saturated"));
}
