#include <doctest/doctest.h>

#include "sim/core/error.h"
#include "sim/measure/read_kernel_table.h"
#include "tests/support/scratch_directory.h"

namespace {
using medley::DType;
using medley::KernelReadOptions;
using medley::KernelTable;
using medley::OpClass;
using medley::read_kernel_table;
using medley::ScratchDirectory;

std::int64_t dropped(const KernelTable& table, const std::string& reason) {
  for (const auto& [why, rows] : table.account.dropped) {
    if (why == reason) return rows;
  }
  return 0;
}

bool adds_up(const KernelTable& table) {
  std::int64_t rows = table.account.kept;
  for (const auto& [why, n] : table.account.dropped) rows += n;
  return rows == table.account.rows_read;
}
}  // namespace

TEST_CASE("aiconfigurator gemm rows: work, formats, account") {
  const ScratchDirectory dir;
  const std::string file = dir.write("gemm_perf.csv",
                                     "gemm_dtype,m,n,k,latency,power\n"
                                     "bfloat16,8,1024,512,0.010,300\n"
                                     "fp8_block,8,1024,512,0.008,\n"
                                     "int4_wo,8,1024,512,0.006,0\n"
                                     "bfloat16,8,1024,512,0.011,300\n"  // again
                                     "bfloat16,16,1024,512,0,300\n"
                                     "bfloat16,x,1024,512,0.01,300\n"
                                     "bfloat16,16,1024,512,nan,300\n"
                                     "float3,16,1024,512,0.01,300\n"
                                     "bfloat16,16,1024\n");
  const KernelTable t = read_kernel_table(file);
  CHECK(t.format == "aiconfigurator");
  CHECK(t.account.rows_read == 9);
  CHECK(t.account.kept == 3);
  CHECK(adds_up(t));
  CHECK(dropped(t, "repeats an earlier row") == 1);
  CHECK(dropped(t, "time is not positive") == 1);
  CHECK(dropped(t, "a size cannot be read") == 1);
  CHECK(dropped(t, "time cannot be read") == 1);
  CHECK(dropped(t, "unknown number format `float3`") == 1);
  CHECK(dropped(t, "wrong number of fields") == 1);
  REQUIRE(t.kernels.size() == 3);
  // 2 * 8 * 1024 * 512 = 8,388,608 flops. bf16: (512 * 1024 + 8 * (512 + 1024)) * 2 bytes.
  CHECK(t.kernels[0].op_class == OpClass::kGemm);
  CHECK(t.kernels[0].flops == 8388608.0);
  CHECK(t.kernels[0].bytes == (524288.0 + 8 * 1536) * 2);
  CHECK(t.kernels[0].time_s == doctest::Approx(1e-5));
  CHECK(t.kernels[0].watts == 300.0);
  CHECK(t.kernels[0].position == 8.0);
  // fp8: weights and inputs 1 byte, outputs 2.
  CHECK(t.kernels[1].dtype == DType::kFp8);
  CHECK(t.kernels[1].bytes == 524288.0 + 8 * 512 + 8 * 1024 * 2);
  CHECK(!t.kernels[1].watts);
  // int4 weights only: arithmetic and activations bf16, 0.5 + 2/128 bytes a weight.
  CHECK(t.kernels[2].dtype == DType::kBf16);
  CHECK(t.kernels[2].weights == DType::kInt4);
  CHECK(t.kernels[2].bytes == doctest::Approx(524288.0 * 0.515625 + 8 * 1536 * 2));
  CHECK(!t.kernels[2].watts);
  CHECK(t.kernels[0].curve != t.kernels[1].curve);
  CHECK(t.kernels[0].key() != t.kernels[1].key());
}

TEST_CASE("a time that beats the device's peak is the timer's fault") {
  const ScratchDirectory dir;
  const std::string file = dir.write("gemm_perf.csv",
                                     "m,n,k,latency\n"
                                     "4096,4096,4096,0.1374\n"    // 2 * 4096^3 / 1e15 = 0.13744 ms
                                     "4096,4096,8192,0.2700\n");  // 0.27488 ms at peak: 1.018 of it
  medley::DeviceSpec device;
  device.peak[index(DType::kBf16)].value = medley::FlopsPerSec(1e15);
  KernelReadOptions options;
  options.spec = &device;
  const KernelTable t = read_kernel_table(file, options);
  CHECK(t.account.kept == 1);
  CHECK(dropped(t, "faster than the device's peak (timer fault)") == 1);
}

TEST_CASE("constant columns come from an INDEX.csv in a folder above") {
  const ScratchDirectory dir;
  dir.write("INDEX.csv",
            "file,rows,constant_columns,columns\n"
            "card/gemm/gemm_perf.csv,1,\"device=Card X; gemm_dtype=fp8\",\"m n k latency\"\n");
  dir.write("card/gemm/gemm_perf.csv", "m,n,k,latency\n16,64,32,0.5\n");
  const KernelTable t = read_kernel_table(dir.path() + "/card");
  CHECK(t.device == "Card X");
  REQUIRE(t.kernels.size() == 1);
  CHECK(t.kernels[0].dtype == DType::kFp8);
  CHECK(t.kernels[0].curve == "n=64,k=32");
}

TEST_CASE("aiconfigurator attention: causal pairs, grouped heads, windows, fp8 caches") {
  const ScratchDirectory dir;
  dir.write("context_attention_perf.csv",
            "batch_size,isl,num_heads,num_key_value_heads,head_dim,kv_cache_dtype,window_size,"
            "latency\n"
            "2,100,8,2,64,bfloat16,0,0.1\n"
            "2,100,8,2,64,fp8,10,0.1\n"
            "2,100,8,3,64,fp8,10,0.1\n");
  dir.write("generation_attention_perf.csv",
            "batch_size,isl,step,num_heads,num_key_value_heads,head_dim,kv_cache_dtype,latency\n"
            "4,1,127,8,2,64,fp8,0.02\n");
  const KernelTable t = read_kernel_table(dir.path());
  CHECK(adds_up(t));
  REQUIRE(t.kernels.size() == 3);
  // A prompt of 100 has 100 * 101 / 2 = 5050 causal pairs; 2 (64 + 64) 8 = 2048 flops a pair.
  const auto& whole = t.kernels[0];
  CHECK(whole.op_class == OpClass::kAttentionPrefill);
  CHECK(whole.flops == 2 * 5050 * 2048.0);
  // Queries and outputs 8 (64 + 64) 2 bytes a token, keys and values 2 (64 + 64) 2.
  CHECK(whole.bytes == 200 * 2048.0 + 200 * 512.0);
  CHECK(whole.position == 100.0);
  // Window 10: 55 pairs while it fills, 10 for each of the other 90. Keys and values now 1 byte.
  CHECK(t.kernels[1].flops == 2 * 955 * 2048.0);
  CHECK(t.kernels[1].bytes == 200 * 2048.0 + 200 * 256.0);
  CHECK(t.kernels[1].weights == DType::kFp8);
  CHECK(dropped(t, "heads are no multiple of KV heads") == 1);
  // 4 sequences of 128 with the new token.
  const auto& decode = t.kernels[2];
  CHECK(decode.op_class == OpClass::kAttentionDecode);
  CHECK(decode.flops == 4 * 128 * 2048.0);
  CHECK(decode.bytes == 4 * 128 * 256.0 + 4 * 2048.0);
  CHECK(decode.position == 128.0);
}

TEST_CASE("aiconfigurator experts: routing decides which weights are read") {
  const ScratchDirectory dir;
  const std::string file =
      dir.write("moe_perf.csv",
                "moe_dtype,num_tokens,hidden_size,inter_size,topk,num_experts,moe_tp_size,"
                "moe_ep_size,distribution,latency\n"
                "bfloat16,3,64,32,2,8,1,1,balanced,0.1\n"
                "bfloat16,64,64,32,2,8,2,1,balanced,0.1\n"
                "bfloat16,64,64,32,2,8,1,4,balanced,0.1\n"
                "bfloat16,64,64,32,2,8,1,4,power_law_1.2,0.1\n"
                "bfloat16,3,64,32,2,8,1,4,balanced,0.1\n"   // 6 rows for 8 experts
                "bfloat16,64,64,32,2,8,1,8,balanced,0.1\n"  // one expert a rank, two wanted
                "bfloat16,1,64,32,2,8,1,1,power_law_1.2,0.1\n"
                "bfloat16,64,64,32,2,8,1,1,odd,0.1\n");
  const KernelTable t = read_kernel_table(file);
  CHECK(adds_up(t));
  CHECK(t.account.kept == 4);
  REQUIRE(t.kernels.size() == 4);
  // Per expert 64 * 64 gate and up, 32 * 64 down: 6144 weights; 2 * 6144 flops a routed row;
  // a row moves (64 + 64) + (32 + 64) elements through the two GEMMs.
  CHECK(t.kernels[0].op_class == OpClass::kGroupedGemm);
  CHECK(t.kernels[0].kernels == 2);
  CHECK(t.kernels[0].flops == 6 * 2 * 6144.0);
  CHECK(t.kernels[0].bytes == 6 * 6144 * 2.0 + 6 * 224 * 2.0);
  // Split by width over 2: half the weights of all 8 experts, rows of (64 + 32) + (16 + 64).
  CHECK(t.kernels[1].flops == 128 * 6144.0);
  CHECK(t.kernels[1].bytes == 8 * 3072 * 2.0 + 128 * 176 * 2.0);
  // Whole experts over 4: 16 tokens, each to both of the rank's 2 experts.
  CHECK(t.kernels[2].flops == 32 * 2 * 6144.0);
  CHECK(t.kernels[2].bytes == 2 * 6144 * 2.0 + 32 * 224 * 2.0);
}

TEST_CASE("aiconfigurator collectives count elements; DeepEP has two of them a row") {
  const ScratchDirectory dir;
  dir.write("a/nccl_perf.csv",
            "op_name,nccl_dtype,num_gpus,message_size,latency\n"
            "all_reduce,half,8,1024,0.02\n"
            "alltoall,int8,8,1024,0.02\n"
            "all_reduce,half,8,1024,0.03\n");
  dir.write("b/wideep_deepep_ll_perf.csv",
            "hidden_size,num_token,num_topk,num_experts,combine_avg_t_us,combine_bandwidth_gbps,"
            "dispatch_avg_t_us,dispatch_bandwidth_gbps\n"
            "2048,2,8,128,11,5,10,3\n");
  const KernelTable t = read_kernel_table(dir.path());
  CHECK(adds_up(t));
  CHECK(t.account.rows_read == 4);
  CHECK(t.account.kept == 3);
  REQUIRE(t.collectives.size() == 4);
  CHECK(t.collectives[0].op == "all_reduce");
  CHECK(t.collectives[0].bytes == 2048.0);
  CHECK(t.collectives[0].devices == 8);
  CHECK(t.collectives[0].time_s == doctest::Approx(2e-5));
  CHECK(t.collectives[1].op == "all_to_all");
  CHECK(t.collectives[1].bytes == 1024.0);
  CHECK(t.collectives[2].bytes == 16 * 2048 * (1.0 + 4.0 / 128));
  CHECK(t.collectives[3].bytes == 16 * 2048 * 2.0);
  CHECK(t.collectives[3].time_s == doctest::Approx(1.1e-5));
}

TEST_CASE("files of no known format and columns that nobody reads are errors") {
  const ScratchDirectory dir;
  const auto message = [](const std::string& path, const KernelReadOptions& options = {}) {
    try {
      read_kernel_table(path, options);
    } catch (const medley::InputError& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  CHECK(message(dir.write("odd.csv", "a,b\n1,2\n")).find("no known format") != std::string::npos);
  CHECK(message(dir.write("axis.csv", "m,n,k,latency,clock\n1,2,3,4,5\n2,2,3,4,6\n"))
            .find("line 3") != std::string::npos);
  CHECK(read_kernel_table(dir.write("same.csv", "m,n,k,latency,clock\n1,2,3,4,5\n2,2,3,4,5\n"))
            .account.kept == 2);
  KernelReadOptions forced;
  forced.format = "aiconfigurator";
  CHECK(message(dir.write("less.csv", "m,n,latency\n1,2,3\n"), forced).find("has no column `k`") !=
        std::string::npos);
  CHECK(message(dir.path() + "/absent.csv") != "no error");
}
