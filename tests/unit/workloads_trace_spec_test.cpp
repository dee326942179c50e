// What the loader refuses, with pointer and hint.
#include "tests/support/traces.h"

using namespace medley;

namespace {
std::string load_error(const std::string& json, const std::string& dir = ".") {
  return error_of([&] { trace_of(json, 1, dir); });
}
bool has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return true;
  MESSAGE(text);
  return false;
}
std::string generate(const std::string& arrivals, const std::string& more = R"("requests": 5)") {
  return R"({"generate": {"arrivals": {)" + arrivals +
         R"(}, "input_tokens": 5, "output_tokens": 5, )" + more + "}}";
}
constexpr const char* kPoisson = R"("process": "poisson", "rate": "5 req/s")";
}  // namespace

TEST_CASE("a source is a trace or a generator") {
  CHECK(has(load_error("{}"), R"(needs either "trace" or "generate")"));
  CHECK(has(load_error(R"({"sources": {}})"), "/sources: is empty"));
  CHECK(has(load_error(R"({"sources": {"chat": {"model": "x"}}})"), "/sources/chat: needs either"));
  CHECK(has(load_error(R"({"trace": {"file": "nowhere.csv"}})"),
            "/trace/file: there is no file `nowhere.csv`"));
  CHECK(has(load_error(R"({"trace": {"file": "x", "format": "azure"}})"), "/trace/format"));
  CHECK(has(load_error(R"({"trace": {"file": "x", "columns": {"arival": "t"}}})"),
            "/trace/columns/arival: is no field of a request (did you mean \"arrival\"?"));
  CHECK(has(
      load_error(R"({"trace": {"file": "x", "columns": {"model": {"name": "m", "unit": "s"}}}})"),
      "only arrival and delay have a unit"));
}

TEST_CASE("unknown keys are errors, at any depth") {
  CHECK(has(load_error(generate(std::string(kPoisson) + R"(, "cv": 2)")), "/generate/arrivals"));
  CHECK(has(load_error(R"({"sources": {"a": {"generat": {}}}})"), "generat"));
  CHECK(has(load_error(generate(kPoisson, R"("requests": 5, "request": 6)")), "request"));
}

TEST_CASE("arrivals") {
  CHECK(has(load_error(generate(R"("process": "posson", "rate": "5 req/s")")), "poisson"));
  CHECK(has(load_error(generate(R"("process": "poisson")")), "needs exactly one of rate"));
  CHECK(has(load_error(generate(R"("process": "poisson", "rate": "5 req/s", "ramp": {}")")), ""));
  CHECK(has(load_error(generate(R"("process": "poisson", "rate": 5)")), "/generate/arrivals/rate"));
  CHECK(has(load_error(generate(R"("process": "poisson", "rate": "-5 req/s")")), "rate"));
  CHECK(has(load_error(generate(R"("process": "gamma", "rate": "5 req/s")")),
            "/generate/arrivals/cv"));
  CHECK(has(load_error(generate(kPoisson, R"("comment": "endless")")),
            "needs \"duration\" or \"requests\""));
  CHECK(has(
      load_error(generate(R"("process": "closed_loop", "concurrency": 4)", R"("duration": "5 s")")),
      "/generate/requests: is missing"));
  CHECK(has(load_error(generate(R"("process": "closed_loop", "concurrency": 0)")), "concurrency"));
  CHECK(has(load_error(generate(
                R"("process": "poisson", "hourly": {"mean": "1 req/s", "levels": [0, 0]})")),
            "no level is above 0"));
  CHECK(has(load_error(generate(R"("process": "poisson", "series": {"file": "none.csv"})")),
            "there is no file `none.csv`"));
  CHECK(has(
      load_error(generate(R"("process": "poisson", "rate": "1 req/h")", R"("duration": "1 ms")")),
      "generates no request"));
}

TEST_CASE("a rate series must be usable") {
  const ScratchDirectory dir;
  dir.write("r.csv", "t_s,rate\n0,1\n5,nan\n");
  dir.write("back.csv", "t_s,rate\n5,1\n0,2\n");
  const auto series = [&](const std::string& keys) {
    return load_error(generate(R"("process": "poisson", "series": {)" + keys + "}"), dir.path());
  };
  CHECK(has(series(R"("file": "r.csv")"), "r.csv:line 3: rate `nan` is not a finite number"));
  CHECK(has(series(R"("file": "r.csv", "rate": "rates")"), "has no column `rates` (did you mean"));
  CHECK(has(series(R"("file": "back.csv")"), "times must ascend"));
}

TEST_CASE("distributions") {
  const auto input = [](const std::string& d) {
    return load_error(R"({"generate": {"arrivals": {"process": "poisson", "rate": "5 req/s"},
      "input_tokens": )" +
                      d + R"(, "output_tokens": 5, "requests": 5}})");
  };
  CHECK(has(input(R"({"dist": "normal"})"), "/generate/input_tokens/dist"));
  CHECK(has(input(R"({"dist": "lognormal", "p50": 5})"), "exactly two"));
  CHECK(has(input(R"({"dist": "lognormal", "p50": 9, "p99": 5})"), "smaller value"));
  CHECK(has(input(R"({"dist": "uniform", "min": 9, "max": 5})"), "is below min"));
  CHECK(has(input(R"({"dist": "exponential", "mean": -3})"), "/generate/input_tokens/mean"));
  CHECK(has(input(R"({"dist": "histogram", "bins": [[1, 0]]})"), "no bin has a weight above 0"));
  CHECK(has(input(R"({"dist": "histogram", "bins": [[5, 1, 1]]})"), "bin 0 is not"));
  CHECK(has(input("\"512\""), "/generate/input_tokens"));
  CHECK(has(input("-1"), "/generate/input_tokens"));
  CHECK(has(load_error(R"({"generate": {"arrivals": {"process": "poisson", "rate": "5 req/s"},
      "output_tokens": 5, "requests": 5}})"),
            "/generate/input_tokens: is missing"));
}

TEST_CASE("transforms and shares") {
  const auto with = [](const std::string& keys) {
    return load_error(R"({"generate": {"arrivals": {"process": "poisson", "rate": "5 req/s"},
      "input_tokens": 5, "output_tokens": 5, "requests": 5}, )" +
                      keys + "}");
  };
  CHECK(has(with(R"("scale_rate": 0)"), "/scale_rate"));
  CHECK(has(with(R"("scale_rate": 2, "target_rate": "1 req/s")"), "set the same thing"));
  CHECK(has(with(R"("thin": 1.5)"), "/thin"));
  CHECK(has(with(R"("thin": 0)"), "nothing is left after `thinned out`"));
  CHECK(has(with(R"("slice": {"from": "2 s", "to": "1 s"})"), "is not after from"));
  CHECK(has(with(R"("slice": {"from": "2 h"})"), "nothing is left after `outside the slice`"));
  CHECK(has(with(R"("warp": [["0 s", "0 s"], ["1 s", "-1 s"]])"), "/warp"));
  CHECK(has(with(R"("warp": [["0 s", "0 s"]])"), "two or more knots"));
  CHECK(has(with(R"("repeat_period": "1 h")"), "/repeat: is missing"));
  CHECK(has(with(R"("model": {"a": 0})"), "no share is above 0"));
  CHECK(has(with(R"("model": 5)"), "neither a name nor"));
  CHECK(has(with(R"("model_names": {"a": "b"})"), "has no effect"));
  CHECK(has(with(R"("priority": "high")"), "`high` is not a whole number"));
  CHECK(has(with(R"("arrivals": {"process": "poisson", "rate": "5 req/s"})"), "belongs inside"));
  CHECK(has(with(R"("shift": "-1 s")"), "/shift"));
}

TEST_CASE("all problems of a workload come at once") {
  const std::string error = load_error(
      R"({"sources": {"a": {"trace": {"file": "x.csv", "on_bad_row": "skip"}, "thin": 2}, "b": {}}})");
  for (const char* part : {"/sources/a/trace/file", "/sources/a/trace/on_bad_row",
                           "/sources/a/thin", "/sources/b: needs either"}) {
    CHECK(has(error, part));
  }
}

TEST_CASE("problems while building name the source's place in the scenario") {
  CHECK(has(load_error(R"({"sources": {"a": {"generate": {"arrivals": {"process": "poisson",
    "rate": "5 req/s"}, "input_tokens": 5, "output_tokens": 5, "requests": 5}, "thin": 0}}})"),
            "test.json:/sources/a: source a: nothing is left"));
}
