#include <doctest/doctest.h>

#include "sim/core/error.h"
#include "sim/measure/read_kernel_table.h"
#include "tests/support/scratch_directory.h"

namespace {
std::int64_t all_dropped(const medley::KernelTable& table) {
  std::int64_t rows = 0;
  for (const auto& [why, n] : table.account.dropped) rows += n;
  return rows;
}
std::string error_of(const std::string& path, const medley::KernelReadOptions& options = {}) {
  try {
    medley::read_kernel_table(path, options);
  } catch (const medley::InputError& e) {
    return e.what();
  }
  return "";
}
}  // namespace

TEST_CASE("vidur linear operators: one row times several kernels") {
  const medley::ScratchDirectory dir;
  const std::string columns =
      "time_stats.attn_pre_proj.median,time_stats.mlp_up_proj.median,time_stats.emb.median,"
      "n_head,n_kv_head,n_embd,n_expanded_embd,vocab_size,use_gated_mlp,num_tokens,"
      "num_tensor_parallel_workers\n";
  const std::string file = dir.write("compute/card/org/some-model/mlp.csv",
                                     columns +
                                         "0.1,0.2,0.01,8,2,512,1024,1000,True,16,2\n"
                                         "0.1,0,,8,2,512,1024,1000,True,32,2\n"
                                         ",,,8,2,512,1024,1000,True,48,2\n"
                                         "0.1,0.2,0.01,8,2,512,1024,1000,True,16,2\n");
  const medley::KernelTable t = medley::read_kernel_table(file);
  CHECK(t.format == "vidur");
  CHECK(t.device == "card");
  CHECK(t.account.rows_read == 4);
  CHECK(t.account.kept == 2);
  CHECK(all_dropped(t) == 2);
  REQUIRE(t.kernels.size() == 4);
  // A rank of two: 4 query heads and 1 + 1 KV heads of 64: 512 x 384. Gate and up: 512 x 1024.
  CHECK(t.kernels[0].op == "emb");
  CHECK(t.kernels[1].op == "attn_pre_proj");
  CHECK(t.kernels[1].flops == 2.0 * 16 * 512 * 384);
  CHECK(t.kernels[1].time_s == doctest::Approx(1e-4));
  CHECK(t.kernels[2].op == "mlp_up_proj");
  CHECK(t.kernels[2].flops == 2.0 * 16 * 512 * 1024);
  CHECK(t.kernels[3].flops == 2.0 * 32 * 512 * 384);
}

TEST_CASE("vidur attention: equal sequences only, the new token counts") {
  const medley::ScratchDirectory dir;
  const std::string file = dir.write(
      "attention.csv",
      "time_stats.attn_prefill.median,time_stats.attn_decode.median,n_embd,n_q_head,n_kv_head,"
      "num_tensor_parallel_workers,batch_size,prefill_chunk_size,kv_cache_size,is_prefill,"
      "is_mixed_batch,mode,seq_lens\n"
      "0.02,0,512,8,2,1,1,16,32,True,False,even,\"[16, 16]\"\n"
      "0.02,0,512,8,2,1,1,16,64,True,False,even,[16]\n"
      "0,0.03,512,8,2,1,4,0,127,False,False,even,[1]\n"
      "0,0.03,512,8,2,1,4,0,127,False,True,even,[1]\n"
      "0,0.03,512,8,2,1,4,0,255,False,False,random,[1]\n");
  const medley::KernelTable t = medley::read_kernel_table(file);
  CHECK(t.account.kept == 3);
  CHECK(all_dropped(t) == 2);
  REQUIRE(t.kernels.size() == 3);
  // 2 (64 + 64) 8 = 2048 flops a pair; 16 * 32 + 16 * 17 / 2 = 648 and 16 * 64 + 136 = 1160 pairs.
  CHECK(t.kernels[0].flops == 648 * 2048.0);
  CHECK(t.kernels[1].flops == 1160 * 2048.0);
  CHECK(t.kernels[2].flops == 4 * 128 * 2048.0);
  CHECK(t.kernels[2].time_s == doctest::Approx(3e-5));
}

TEST_CASE("a model that normalises queries and keys must be named for its head size") {
  const medley::ScratchDirectory dir;
  const std::string file = dir.write(
      "linear_op.csv",
      "time_stats.attn_pre_proj.median,time_stats.input_layernorm.median,n_head,n_kv_head,"
      "n_embd,n_expanded_embd,vocab_size,use_gated_mlp,use_qk_norm,num_tokens,"
      "num_tensor_parallel_workers,profiling_precision\n"
      "0.1,0.01,32,4,2048,768,1000,True,True,16,1,BF16\n");
  CHECK(medley::read_kernel_table(file).kernels.size() == 1);
  medley::KernelReadOptions options;
  options.model = "qwen3-30b-a3b";  // heads of 128: 32 + 4 + 4
  const medley::KernelTable t = medley::read_kernel_table(file, options);
  REQUIRE(t.kernels.size() == 2);
  CHECK(t.kernels[1].flops == 2.0 * 16 * 2048 * 40 * 128);
}

TEST_CASE("vidur experts and network") {
  const medley::ScratchDirectory dir;
  dir.write("moe.csv",
            "time_stats.moe_grouped_gemm.median,num_tokens,num_experts,num_experts_per_device,"
            "expert_parallel_size,router_topk,hidden_dim,expert_hidden_dim,use_gated,"
            "num_tensor_parallel_workers,total_routed_tokens,expert_utilization\n"
            "0.2,4,16,8,2,2,64,32,True,1,6,0.5\n");
  dir.write("network/card_pairs/all_reduce.csv",
            "time_stats.all_reduce.median,rank,num_workers,size,collective,devices_per_node\n"
            "0.05,0,2,10240,all_reduce,2\n"
            "0.05,1,2,10240,all_reduce,2\n"
            "0.09,0,2,10240,all_reduce,1\n");
  const medley::KernelTable t = medley::read_kernel_table(dir.path());
  CHECK(t.account.rows_read == 4);
  CHECK(t.account.kept == 3);
  REQUIRE(t.kernels.size() == 1);
  // 6 rows over 4 used experts of 64 x 64 + 32 x 64 = 6144 weights; 224 elements moved a row.
  CHECK(t.kernels[0].flops == 2.0 * 6 * 6144);
  CHECK(t.kernels[0].bytes == 2.0 * (4 * 6144 + 6 * 224));
  REQUIRE(t.collectives.size() == 2);
  CHECK(t.collectives[0].variant == "nccl");
  CHECK(t.collectives[0].bytes == 10240.0);
  CHECK(t.collectives[1].variant == "nccl_1_per_node");
}

TEST_CASE("splitwise rows are whole batches; the capped ones are no measurement") {
  const medley::ScratchDirectory dir;
  const std::string file = dir.write(
      "perf_model.csv",
      "model,hardware,prompt_size,batch_size,token_size,peak_power,average_power,prompt_time,"
      "token_time,e2e_time,tensor_parallel\n"
      "m-70b,card,512,2,128,1.0,0.7,200,50,6600,4\n"
      "m-70b,card-pcap,512,2,128,0,0,260,50,6660,4\n"
      "m-70b,card,512,2,128,0,0,,50,6600,4\n");
  const medley::KernelTable t = medley::read_kernel_table(file);
  CHECK(t.account.rows_read == 3);
  CHECK(t.account.kept == 1);
  CHECK(all_dropped(t) == 2);
  REQUIRE(t.points.size() == 1);
  CHECK(t.points[0].prefill_s == doctest::Approx(0.2));
  CHECK(t.points[0].token_s == doctest::Approx(0.05));
  CHECK(t.points[0].total_s == doctest::Approx(6.6));
  CHECK(t.points[0].mean_power == 0.7);
  CHECK(t.points[0].batch == 2);
}

TEST_CASE("nccl-tests: text with its remarks, both columns of times, several runs in a file") {
  const medley::ScratchDirectory dir;
  const std::string file = dir.write("log.txt",
                                     "# Collective test starting: all_reduce_perf\n"
                                     "# nThread 1 nGpus 1 minBytes 8 maxBytes 64\n"
                                     "# Using devices\n"
                                     "#  Rank  0 Group  0 Pid 11 on node device  0 [0x07] Card\n"
                                     "#  Rank  1 Group  0 Pid 12 on node device  1 [0x0f] Card\n"
                                     "#\n"
                                     "#                      out-of-place    in-place\n"
                                     "# size count type redop root time algbw busbw #wrong time "
                                     "algbw busbw #wrong\n"
                                     "#  (B) (elements)  (us) (GB/s) (GB/s)  (us) (GB/s) (GB/s)\n"
                                     "  1024 256 float sum -1 10.50 0.10 0.10 0 11.00 0.09 0.09 0\n"
                                     "  2048 512 float sum -1 0.00 0.10 0.10 0 11.00 0.09 0.09 0\n"
                                     "  cut short\n"
                                     "# Out of bounds values : 0 OK\n");
  const medley::KernelTable t = medley::read_kernel_table(file);
  CHECK(t.format == "nccl-tests");
  CHECK(t.account.rows_read == 3);
  CHECK(t.account.kept == 1);
  REQUIRE(t.collectives.size() == 2);
  CHECK(t.collectives[0].op == "all_reduce");
  CHECK(t.collectives[0].devices == 2);
  CHECK(t.collectives[0].bytes == 1024.0);
  CHECK(t.collectives[0].time_s == doctest::Approx(10.5e-6));
  CHECK(t.collectives[1].variant == "nccl_in_place");
  CHECK(t.collectives[1].time_s == doctest::Approx(11e-6));

  const std::string csv = dir.write("alltoall.csv",
                                    "size,count,type,redop,root,time,algbw,busbw\n"
                                    "4096,1024,half,none,-1,20,1,1\n");
  CHECK(error_of(csv).find("--devices") != std::string::npos);
  medley::KernelReadOptions options;
  options.devices = 8;
  const medley::KernelTable c = medley::read_kernel_table(csv, options);
  REQUIRE(c.collectives.size() == 1);
  CHECK(c.collectives[0].op == "all_to_all");
  CHECK(c.collectives[0].devices == 8);
}

TEST_CASE("infersim: sizes in the names of files and folders") {
  const medley::ScratchDirectory dir;
  dir.write("gemm/card/data.csv", "m,k,n,latency_us,mfu\n16,64,128,10,0.1\n");
  dir.write("grouped_gemm/decode/card/data.csv",
            "num_experts,num_gpus,num_local_experts,topk,hidden_size,intermediate_size,"
            "batch_size_per_gpu,tokens_per_expert,up_proj_us,up_mfu,down_proj_us,down_mfu\n"
            "8,1,8,2,64,32,16,4,100,0.1,50,0.1\n");
  dir.write("mha/decode/card/16-2-128.csv",
            "dtype,kv_dtype,batch_size,kv_len,latency_us,mfu\nbf16,fp8,4,1024,28,0.1\n");
  dir.write("mla/prefill/card/128-128-64.csv", "dtype,seq_len,latency_us,mfu\nbf16,100,117,0.3\n");
  const medley::KernelTable t = medley::read_kernel_table(dir.path());
  CHECK(t.device == "card");
  CHECK(t.account.kept == 4);
  REQUIRE(t.kernels.size() == 5);
  CHECK(t.kernels[0].dtype == medley::DType::kFp8);
  CHECK(t.kernels[0].bytes == 64 * 128 + 16 * 64 + 16 * 128 * 2.0);
  // 32 rows: up 64 x 64, down 32 x 64.
  CHECK(t.kernels[1].flops == 2.0 * 32 * 64 * 64);
  CHECK(t.kernels[2].flops == 2.0 * 32 * 32 * 64);
  CHECK(t.kernels[2].time_s == doctest::Approx(5e-5));
  CHECK(t.kernels[3].flops == 4 * 1024 * 4.0 * 128 * 16);
  // 5050 pairs of 2 (192 + 128) 128 flops.
  CHECK(t.kernels[4].flops == 5050 * 2.0 * 320 * 128);
}

TEST_CASE("llmcompass matmul has no header") {
  const medley::ScratchDirectory dir;
  const std::string file = dir.write("matmul_CARD.csv",
                                     "64, 128, 256, 0.1900ms, 1.0Tflops\n"
                                     "128, 128, 256, ?, 1.0Tflops\n");
  const medley::KernelTable t = medley::read_kernel_table(file);
  CHECK(t.device == "CARD");
  CHECK(t.account.rows_read == 2);
  REQUIRE(t.kernels.size() == 1);
  CHECK(t.kernels[0].dtype == medley::DType::kFp16);
  CHECK(t.kernels[0].flops == 2.0 * 64 * 128 * 256);
  CHECK(t.kernels[0].time_s == doctest::Approx(1.9e-4));
}

TEST_CASE("native CSV: sizes, direct work, collectives, one unit of time") {
  const medley::ScratchDirectory dir;
  const std::string file =
      dir.write("mine.csv",
                "op_class,dtype,weights,m,n,k,batch,heads,kv_heads,head_dim,context,flops,bytes,"
                "op,devices,time_us,watts\n"
                "gemm,bf16,int4,8,1024,512,,,,,,,,,,10,250\n"
                "attention_decode,bf16,fp8,,,,4,8,2,64,128,,,,,20,\n"
                "elementwise,bf16,,,,,,,,,,100,4096,norm,,2,\n"
                "collective,,,,,,,,,,,,8192,all_gather,4,30,\n"
                "gemm,bf16,,,,,,,,,,,,,,10,\n"
                "matrix,bf16,,8,8,8,,,,,,,,,,10,\n");
  const medley::KernelTable t = medley::read_kernel_table(file);
  CHECK(t.account.rows_read == 6);
  CHECK(t.account.kept == 4);
  CHECK(all_dropped(t) == 2);
  REQUIRE(t.kernels.size() == 3);
  CHECK(t.kernels[0].bytes == doctest::Approx(524288.0 * 0.515625 + 8 * 1536 * 2));
  CHECK(t.kernels[0].watts == 250.0);
  CHECK(t.kernels[1].bytes == 4 * 128 * 256.0 + 4 * 2048.0);
  CHECK(t.kernels[2].op == "norm");
  CHECK(t.kernels[2].bytes == 4096.0);
  REQUIRE(t.collectives.size() == 1);
  CHECK(t.collectives[0].op == "all_gather");
  CHECK(error_of(dir.write("typo.csv", "op_class,dtype,time_us,wats\ngemm,bf16,1,2\n"))
            .find("did you mean \"watts\"") != std::string::npos);
  CHECK(error_of(dir.write("units.csv", "op_class,dtype,time_us,time_ms\ngemm,bf16,1,2\n"))
            .find("2 columns of time") != std::string::npos);
}
