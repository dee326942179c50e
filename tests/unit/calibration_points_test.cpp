#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/calibration/points.h"
#include "sim/calibration/transfer.h"
#include "sim/core/error.h"
#include "tests/support/scratch_directory.h"

using namespace medley;

namespace {
std::string problems_of(const std::string& text) {
  const ScratchDirectory scratch;
  try {
    (void)read_points(scratch.write("points.csv", text));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}
bool tells(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}
}  // namespace

TEST_CASE("the native table of points, columns in any order") {
  const ScratchDirectory scratch;
  const auto points = read_points(
      scratch.write("p.csv",
                    "concurrency,model,tp,input,output,tpot_s,output_tok_per_s,watts_per_gpu\n"
                    "8,m,2,1024,128,0.02,,310\n16,m,1,128,128,,400,\n,m,1,128,128,0.05,200,\n"));
  REQUIRE(points.size() == 3);
  CHECK(points[0].tensor_parallel == 2);
  CHECK(points[0].step_s == 0.02);
  CHECK(points[0].watts == 310.0);
  CHECK(points[1].step_s == doctest::Approx(0.04));  // 16 sequences, 400 tokens/s
  CHECK(!points[1].watts);
  CHECK(points[2].batch == doctest::Approx(10.0));  // 200 tokens/s of 0.05 s each
}

TEST_CASE("a bad table of points tells every problem") {
  const std::string head = "model,tp,concurrency,input,output,tpot_s\n";
  CHECK(tells(problems_of("model,tp,tpot_ms\n"), "tpot_ms"));
  CHECK(tells(problems_of("model,tp,tpot_ms\n"), "\"input\" is missing"));
  const std::string two = problems_of(head + "m,1,8,128,128,fast\nm,1,-8,128,128,0.01\n");
  CHECK(tells(two, "line 2"));
  CHECK(tells(two, "fast"));
  CHECK(tells(two, "line 3"));
  CHECK(tells(problems_of(head + "m,1,8,128,128\n"), "expected 6 cells"));
  CHECK(tells(problems_of(head), "no rows"));
}

TEST_CASE("host times and idle powers come back, serial and overlapped") {
  // Device step 1 ms + 20 us per sequence; host 3 ms + 50 us per sequence; 90 W floor, 60 W idle,
  // 100 W dynamic.
  for (const HostMode mode : {HostMode::kSerial, HostMode::kOverlapped}) {
    std::vector<ServingPoint> points;
    const auto device_s = [](double batch) { return 1e-3 + 0.02e-3 * batch; };
    for (int i = 1; i <= 60; ++i) {
      ServingPoint p;
      p.model = "m";
      p.batch = i;
      p.input_tokens = 100.0;
      const double host = 3e-3 + 50e-6 * p.batch;
      p.step_s =
          mode == HostMode::kSerial ? device_s(p.batch) + host : std::max(device_s(p.batch), host);
      const double busy = device_s(p.batch) / p.step_s;
      p.watts = 100.0 + 90.0 * busy + 60.0 * (1.0 - busy);
      points.push_back(p);
    }
    const HostFit fit = fit_host(points, mode, [&](const ServingPoint& p) {
      return DeviceStep{device_s(p.batch), 100.0};
    });
    CHECK(fit.rows + fit.judged == 60);
    REQUIRE(fit.per_step.known());
    REQUIRE(fit.active_floor.known());
    REQUIRE(fit.context_idle.known());
    CHECK((*fit.per_step).value() == doctest::Approx(3e-3).epsilon(1e-3));
    CHECK((*fit.per_sequence).value() == doctest::Approx(50e-6).epsilon(1e-3));
    CHECK(fit.median_error < 1e-3);
    CHECK((*fit.active_floor).value() == doctest::Approx(90.0).epsilon(1e-3));
    CHECK((*fit.context_idle).value() == doctest::Approx(60.0).epsilon(1e-3));
  }
}

TEST_CASE("a ramp carried to a device twice as fast keeps its time") {
  // 2 GFLOP at 0.5 of 100 TFLOP/s take 40 us; on 200 TFLOP/s 40 us are 4 GFLOP.
  RampPair pair;
  pair.compute = Ramp{0.5, 2e9};
  pair.compute.serial = 0.3;
  pair.memory = Ramp{0.8, 8e6};  // 10 us of 1 TB/s
  const RampPair there = carried_over(pair, {100e12, 1e12}, {200e12, 3e12});
  CHECK(there.compute.half == doctest::Approx(4e9));
  CHECK(there.compute.fraction == 0.5);
  CHECK(there.compute.serial == 0.3);
  CHECK(there.memory.half == doctest::Approx(24e6));
  // The median over three devices of ramp times 10, 20 and 30 us at 0.8: 20 us of 1 TB/s at 0.8.
  std::vector<std::pair<RampPair, RampRates>> all;
  for (const double us : {10.0, 30.0, 20.0}) {
    RampPair one = pair;
    one.memory.half = us * 1e-6 * 2e12 * 0.8;
    all.emplace_back(one, RampRates{100e12, 2e12});
  }
  CHECK(median_ramps(all, {100e12, 1e12}).memory.half == doctest::Approx(16e6));
}
