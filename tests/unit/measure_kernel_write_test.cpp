#include <doctest/doctest.h>

#include "sim/measure/kernel_write.h"
#include "sim/measure/read_kernel_table.h"
#include "tests/support/scratch_directory.h"

TEST_CASE("native CSV reads back as what was written") {
  medley::KernelTable table;
  table.device = "Card, large";
  medley::KernelSample s;
  s.op_class = medley::OpClass::kGroupedGemm;
  s.dtype = medley::DType::kBf16;
  s.weights = medley::DType::kInt4;
  s.flops = 1.0 / 3.0 * 1e12;
  s.bytes = 12345.678;
  s.kernels = 2;
  s.time_s = 1.0 / 7.0 * 1e-4;
  s.watts = 512.5;
  s.curve = "hidden=64,inter=32";
  s.position = 17.0;
  s.op = "moe";
  table.kernels = {s, s};
  table.kernels[1].position = 18.0;
  table.kernels[1].watts.reset();
  table.kernels[1].limit_watts = 700.0;
  table.collectives = {{"all_gather", "custom_graph", 8, 8192.0, 3e-5}};
  const medley::ScratchDirectory dir;
  const std::string file = dir.write("t.csv", medley::native_kernel_csv(table));
  const medley::KernelTable back = medley::read_kernel_table(file);
  CHECK(back.device == table.device);
  CHECK(back.account.kept == 3);
  REQUIRE(back.kernels.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const medley::KernelSample &a = table.kernels[i], &b = back.kernels[i];
    CHECK(a.key() == b.key());
    CHECK(a.op_class == b.op_class);
    CHECK(a.flops == b.flops);
    CHECK(a.bytes == b.bytes);
    CHECK(a.kernels == b.kernels);
    CHECK(a.time_s == b.time_s);
    CHECK(a.watts == b.watts);
    CHECK(a.limit_watts == b.limit_watts);
  }
  REQUIRE(back.collectives.size() == 1);
  CHECK(back.collectives[0].variant == "custom_graph");
  CHECK(back.collectives[0].bytes == 8192.0);
  CHECK(medley::native_kernel_csv(back) == medley::native_kernel_csv(table));
}
