// Power logs: hand-typed samples; energies by hand.
#include <doctest/doctest.h>

#include "sim/core/error.h"
#include "sim/core/rng.h"
#include "sim/measure/power_log.h"
#include "tests/support/scratch_directory.h"

using namespace medley;

namespace {
PowerLog power_of(const std::string& text, const std::string& name = "power.csv") {
  const ScratchDirectory dir;
  return read_power_log(dir.write(name, text));
}

std::string power_error(const std::string& text) {
  try {
    power_of(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}
}  // namespace

// GPU 0: 100 W at 0 s, 200 W at 2 s; GPU 1: 50 W throughout. From 0 to 2 s: 300 + 100 J, 200 W.
// From 1 to 2 s: GPU 0 from 150 to 200 W: 175 J, with GPU 1 225 W.
TEST_CASE("nvidia-smi CSV: units in header and cells, times to the millisecond, [N/A]") {
  const PowerLog log = power_of(
      "timestamp, index, name, power.draw [W], utilization.gpu [%]\n"
      "2025/01/31 12:00:00.500, 0, NVIDIA H100, 100.00 W, 45 %\n"
      "2025/01/31 12:00:00.500, 1, NVIDIA H100, 50.00 W, 45 %\n"
      "2025/01/31 12:00:01.000, 1, NVIDIA H100, [N/A], 45 %\n"
      "2025/01/31 12:00:02.500, 0, NVIDIA H100, 200.00 W, 45 %\n"
      "2025/01/31 12:00:02.500, 1, NVIDIA H100, 50000 mW, 45 %\n");
  CHECK(log.format == "nvidia-smi");
  CHECK(log.scope == PowerScope::kDevice);
  REQUIRE(log.series.size() == 2);
  CHECK(log.account.rows_read == 5);
  CHECK(log.account.kept == 4);
  const double t = log.start_s();
  CHECK(t == doctest::Approx(1738324800.5));
  CHECK(log.end_s() - t == doctest::Approx(2.0));
  CHECK(*log.energy_j(t, t + 2) == doctest::Approx(400.0));
  CHECK(*log.mean_w(t, t + 2) == doctest::Approx(200.0));
  CHECK(*log.mean_w(t + 1, t + 2) == doctest::Approx(225.0));
  CHECK_FALSE(log.mean_w(t + 3, t + 4).has_value());
}

TEST_CASE("nvidia-smi without header and units: time, index, ..., watts") {
  const PowerLog log = power_of(
      "2025/12/11 21:08:19.000, 0, 7, 30.00\n2025/12/11 21:08:20.000, 0, 8, 50.00\n"
      "2025/12/11 21:08:2");  // killed in the middle of a line
  CHECK(*log.mean_w(0, 1e12) == doctest::Approx(40.0));
  REQUIRE(log.account.dropped.size() == 1);
  CHECK(log.account.dropped[0].second == 1);
}

// Four readings in second 0 stand at 0, 0.25, 0.5 and 0.75 s, the last at 1 s: trapezes of 10, 20,
// 30, 40 and 50 W over a second: (15 + 25 + 35 + 45) / 4 = 30 J.
TEST_CASE("a server's meter: several readings of one second are spread over it") {
  const PowerLog log = power_of(
      "2025-12-11 21:08:18,10\n2025-12-11 21:08:18,20\n2025-12-11 21:08:18,30\n"
      "2025-12-11 21:08:18,40\n2025-12-11 21:08:19,50\n");
  CHECK(log.scope == PowerScope::kServer);
  const double t = log.start_s();
  CHECK(*log.energy_j(t, t + 1) == doctest::Approx(30.0));
}

TEST_CASE("DCGM: Prometheus text with time stamps, gauge before counter, blank values dropped") {
  const PowerLog log = power_of(
      "# HELP DCGM_FI_DEV_POWER_USAGE Power draw (in W).\n# TYPE DCGM_FI_DEV_POWER_USAGE gauge\n"
      "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-a\"} 100 1738324800000\n"
      "DCGM_FI_DEV_POWER_USAGE{gpu=\"1\",UUID=\"GPU-b\"} 9223372036854775794 1738324800000\n"
      "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu=\"0\"} 5 1738324800000\n"
      "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-a\"} 300 1738324802000\n");
  CHECK(log.format == "dcgm-prom");
  REQUIRE(log.series.size() == 1);
  CHECK(*log.mean_w(1738324800, 1738324802) == doctest::Approx(200.0));
  CHECK(power_error("DCGM_FI_DEV_POWER_USAGE{gpu=\"0\"} 100\n").find("no time stamp") !=
        std::string::npos);
}

// mJ counter: 1000 J in 10 s, then 3000 J in 10 s; J counter of Kepler: 50 J in 30 s.
TEST_CASE("counters: power is what grew between two readings; a restart ends the series") {
  const PowerLog dcgm = power_of(
      "timestamp,DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION\n100,5000000\n110,6000000\n120,9000000\n"
      "130,10\n");
  CHECK(*dcgm.mean_w(100, 120) == doctest::Approx(200.0));
  CHECK(*dcgm.mean_w(110, 120) == doctest::Approx(300.0));
  CHECK(*dcgm.energy_j(105, 115) == doctest::Approx(500.0 + 1500.0));
  CHECK(dcgm.account.kept == 3);
  CHECK(dcgm.account.notes.size() == 1);
  const PowerLog kepler =
      power_of("timestamp,kepler_container_gpu_joules_total\n1701412591,10\n1701412621,60\n");
  CHECK(kepler.scope == PowerScope::kContainer);
  CHECK(*kepler.energy_j(0, 2e9) == doctest::Approx(50.0));
}

TEST_CASE("logs that cannot be read say why") {
  CHECK(power_error("").find("empty") != std::string::npos);
  CHECK(power_error("a,b\n1,2\n").find("line 1") != std::string::npos);
  CHECK(power_error("timestamp,DCGM_FI_DEV_GPU_UTIL\n1,2\n").find("measures no power") !=
        std::string::npos);
  CHECK(power_error("timestamp, index\n1,2\n").find("measures no power") != std::string::npos);
  const std::string torn = power_error("index, power.draw [W]\n0, 50.00 W\n");
  CHECK(torn.find("no timestamp") != std::string::npos);
  const std::string many = power_error(
      "timestamp, index, power.draw [W]\n2025/01/31 12:00:00.500, 0, much\nyesterday, 0, 5 W\n");
  CHECK(many.find("line 2") != std::string::npos);
  CHECK(many.find("line 3") != std::string::npos);
}

// Law: energy adds up over neighbouring windows, and lies between the extremes of the readings.
TEST_CASE("energy of a log adds up") {
  Rng rng(3, "power");
  std::string text;
  double t = 0.0;
  for (int i = 0; i < 200; ++i) {
    text += (text.empty() ? "timestamp,DCGM_FI_DEV_POWER_USAGE\n" : "") +
            std::to_string(1000.0 + t) + "," +
            std::to_string(50.0 + static_cast<double>(rng.below(300))) + "\n";
    t += 0.1 + rng.uniform();
  }
  const PowerLog log = power_of(text);
  const double a = log.start_s(), b = log.end_s();
  const double whole = *log.energy_j(a, b);
  for (int i = 0; i < 50; ++i) {
    const double cut = a + (b - a) * (0.01 + 0.98 * rng.uniform());
    CHECK(*log.energy_j(a, cut) + *log.energy_j(cut, b) == doctest::Approx(whole).epsilon(1e-9));
    CHECK(*log.mean_w(a, cut) >= 50.0 - 1e-9);
    CHECK(*log.mean_w(a, cut) <= 350.0 + 1e-9);
  }
}
