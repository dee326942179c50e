#include <doctest/doctest.h>

#include "sim/core/error.h"
#include "sim/measure/read_kernel_table.h"
#include "tests/support/scratch_directory.h"

namespace {
std::int64_t rows_dropped(const medley::KernelTable& table) {
  std::int64_t rows = 0;
  for (const auto& [why, n] : table.account.dropped) rows += n;
  return rows;
}
}  // namespace

TEST_CASE("an LLMServingSim bundle: shapes from the model its meta data names") {
  const medley::ScratchDirectory dir;
  dir.write("X/bf16/meta.yaml",
            "gpu: Some Card\nmodel: meta-llama/Llama-3.1-8B\nengine_effective:\n  model: /tmp/y\n");
  dir.write("X/bf16/tp2/attention.csv",
            "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n"
            "0,0,4,128,10\n"
            "16,32,0,0,20\n"
            "16,32,4,128,25\n"
            "0,0,0,0,1\n");
  dir.write("X/bf16/tp2/dense.csv",
            "layer,tokens,time_us\n"
            "o_proj,8,5\nqk_norm,8,1\nlayernorm,8,0\n");
  dir.write("X/bf16/tp2/per_sequence.csv", "layer,sequences,time_us\nlm_head,2,600\n");
  dir.write("X/bf16/tp2/skew.csv", "regime,n\npure,2\n");
  const medley::KernelTable t = medley::read_kernel_table(dir.path() + "/X/bf16/tp2");
  CHECK(t.format == "llmservingsim");
  CHECK(t.device == "Some Card");
  CHECK(t.account.rows_read == 8);
  CHECK(t.account.kept == 5);
  CHECK(rows_dropped(t) == 3);
  CHECK(t.account.notes.size() == 1);  // the skew file is left out
  REQUIRE(t.kernels.size() == 5);
  // Llama-3.1-8B on one of two ranks: 16 heads over 4 KV heads of 128. 2 (128 + 128) 16 = 8192
  // flops a pair; 4 * 256 * 2 = 2048 bytes of KV a token; 16 * 256 * 2 = 8192 bytes of query and
  // output a token.
  const auto& decode = t.kernels[0];
  CHECK(decode.op == "attention_decode");
  CHECK(decode.flops == 4 * 128 * 8192.0);
  CHECK(decode.bytes == 4 * 128 * 2048.0 + 4 * 8192.0);
  CHECK(decode.time_s == doctest::Approx(1e-5));
  // A chunk of 16 behind 32 cached: 16 * 32 + 16 * 17 / 2 = 648 pairs, 48 tokens of context.
  const auto& prefill = t.kernels[1];
  CHECK(prefill.flops == 648 * 8192.0);
  CHECK(prefill.bytes == 48 * 2048.0 + 16 * 8192.0);
  const auto& mixed = t.kernels[2];
  CHECK(mixed.op == "attention_mixed");
  CHECK(mixed.flops == decode.flops + prefill.flops);
  CHECK(mixed.bytes == decode.bytes + prefill.bytes);
  CHECK(mixed.kernels == 1);
  CHECK(mixed.position == 128.0);
  // o_proj: 2048 x 4096 on this rank.
  CHECK(t.kernels[3].flops == 2.0 * 8 * 2048 * 4096);
  CHECK(t.kernels[3].bytes == 2.0 * (2048 * 4096 + 8 * (2048 + 4096)));
  // lm_head: half of 128,256 rows of vocabulary.
  CHECK(t.kernels[4].flops == 2.0 * 2 * 4096 * 64128);
}

TEST_CASE("experts of a bundle read the weights of those they were given") {
  const medley::ScratchDirectory dir;
  dir.write("H/Qwen/Qwen3-30B-A3B/bf16/tp1/moe.csv",
            "tokens,activated_experts,time_us\n16,8,57\n16,128,817\n");
  const medley::KernelTable t = medley::read_kernel_table(dir.path());
  CHECK(t.device == "H");
  REQUIRE(t.kernels.size() == 2);
  // 2048 x 1536 and 768 x 2048 weights an expert; 16 tokens to 8 experts each are 128 rows.
  const double weights = 2048.0 * 1536 + 768.0 * 2048;
  CHECK(t.kernels[0].flops == 2 * 128 * weights);
  CHECK(t.kernels[1].flops == t.kernels[0].flops);
  CHECK(t.kernels[1].bytes - t.kernels[0].bytes == 120 * weights * 2);
}

TEST_CASE("older profiles: projections one by one, decode adds the new token") {
  const medley::ScratchDirectory dir;
  dir.write("C/meta-llama/Llama-3.1-8B/tp1/layers.csv",
            "layer_name,input,kv_cache,tp_size,latency(ns)\n"
            "k_proj,4,0,1,7000\nattn,4,0,1,9000\nmystery,4,0,1,5\n");
  dir.write("C/meta-llama/Llama-3.1-8B/tp1/attention.csv",
            "prefill_chunk_size,kv_cache_size,batch_size,is_prefill,mean_ns,p50_ns,p90_ns,max_ns\n"
            "32,64,1,True,7096.9,7102.5,7199.6,7242.6\n"
            "0,127,4,False,9000.5,9000,9100,9200\n");
  const medley::KernelTable t = medley::read_kernel_table(dir.path());
  CHECK(t.device == "C");
  CHECK(t.account.kept == 4);
  CHECK(rows_dropped(t) == 1);
  REQUIRE(t.kernels.size() == 4);
  CHECK(t.kernels[0].flops == (32 * 64 + 32 * 33 / 2) * 16384.0);
  CHECK(t.kernels[0].time_s == doctest::Approx(7.1025e-6));
  CHECK(t.kernels[1].flops == 4 * 128 * 16384.0);
  CHECK(t.kernels[1].position == 128.0);
  CHECK(t.kernels[2].flops == 2.0 * 4 * 4096 * 1024);
  CHECK(t.kernels[3].flops == 10 * 16384.0);
}

TEST_CASE("a profile of a model nobody knows says how to name one") {
  const medley::ScratchDirectory dir;
  const std::string file =
      dir.write("C/org/unknown-model/tp1/dense.csv", "layer,tokens,time_us\no_proj,8,5\n");
  CHECK_THROWS_WITH_AS(medley::read_kernel_table(file), doctest::Contains("org/unknown-model"),
                       medley::InputError);
  medley::KernelReadOptions options;
  options.model = "llama-3.1-8b";
  CHECK(medley::read_kernel_table(file, options).account.kept == 1);
}
