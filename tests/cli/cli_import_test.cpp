#include <doctest/doctest.h>

#include "tests/support/command_line.h"

namespace {
using medley::testing::has;
using medley::testing::Outcome;
using medley::testing::Shell;
}  // namespace

TEST_CASE("measurements are read, summed up, screened and written") {
  const Shell shell;
  shell.write("gemm_perf.csv",
              "device,m,n,k,latency\n"
              "NVIDIA H100 80GB HBM3,64,1024,1024,0.010\n"
              "NVIDIA H100 80GB HBM3,128,1024,1024,0.050\n"
              "NVIDIA H100 80GB HBM3,256,1024,1024,0.012\n"
              "NVIDIA H100 80GB HBM3,512,1024,1024,0.0001\n"
              "NVIDIA H100 80GB HBM3,1024,1024,1024,0\n");
  const Outcome read = shell.medley("import gemm_perf.csv --screen --to out.csv");
  REQUIRE(read.code == 0);
  CHECK(has(read.err, "5 rows read = 3 kept"));
  CHECK(has(read.err, "1 dropped (time is not positive)"));
  // 2 * 512 * 1024^2 flops in 0.1 us are 10.7 Pflop/s.
  CHECK(has(read.err, "1 dropped (faster than the device's peak (timer fault))"));
  CHECK(has(read.err, "H100-SXM5-80GB of the catalogue"));
  CHECK(has(read.err, "1 lie more than 10.0 % off"));
  CHECK(has(read.out, "gemm"));

  const Outcome exists = shell.medley("import gemm_perf.csv --to out.csv");
  CHECK(exists.code == 2);
  CHECK(has(exists.err, "--overwrite"));
  const Outcome again = shell.medley("import out.csv --format json");
  CHECK(again.code == 0);
  CHECK(has(again.err, "(native): 2 rows read = 2 kept"));
  CHECK(has(again.out, "\"rows\": 2"));

  shell.write("odd.csv", "a,b\n1,2\n");
  const Outcome odd = shell.medley("import odd.csv");
  CHECK(odd.code == 2);
  CHECK(has(odd.err, "odd.csv:line 1: no known format"));
  CHECK(shell.medley("import gemm_perf.csv --device nosuch").code == 2);
  CHECK(shell.medley("import absent.csv").code == 2);
}
