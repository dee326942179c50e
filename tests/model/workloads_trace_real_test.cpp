// Published traces against the statistics table of their survey: whole-file counts, means and
// nearest-rank quantiles. Skipped where the files are not at hand.
#include "tests/support/traces.h"
#include "workloads/trace_stats.h"

using namespace medley;

namespace {
struct Expected {
  const char* file;
  const char* format;
  std::int64_t rows;
  double span_s, rate;
  double in_mean, out_mean;
  std::int64_t in_p50, in_p90, in_p99, in_max, out_p50, out_p90, out_p99, out_max;
  double burstiness;
};
constexpr Expected kTable[] = {
    {"azure-llm/AzureLLMInferenceTrace_code.csv", "azure-llm", 8819, 3436, 2.57, 2048, 27.9, 1469,
     5188, 7436, 7437, 13, 55, 251, 1899, 13.2},
    {"azure-llm/AzureLLMInferenceTrace_conv.csv", "azure-llm", 19366, 3502, 5.53, 1155, 211, 1020,
     2734, 4142, 14050, 129, 424, 601, 1000, 1.4},
    {"mooncake/conversation_trace.jsonl", "mooncake", 12031, 3537, 3.40, 12035, 343, 6909, 27367,
     85400, 126195, 350, 597, 1119, 2000, 7.9},
    {"mooncake/synthetic_trace.jsonl", "mooncake", 3993, 1022, 3.91, 15325, 149, 11587, 38611,
     66456, 191378, 69, 389, 768, 893, 1.1},
};

bool near(double a, double b, double relative) {
  return std::abs(a - b) <= relative * std::abs(b);
}
}  // namespace

TEST_CASE("the surveyed traces read in full and have the surveyed statistics") {
  const std::string dir = shared_traces();
  if (dir.empty()) return;
  for (const Expected& e : kTable) {
    CAPTURE(e.file);
    TraceFileSpec spec;
    spec.file = e.file;
    spec.path = dir + "/" + e.file;
    const Trace t = read_trace(spec);
    check_trace(t);
    const TraceStats s = trace_stats(t);
    CHECK(t.accounts[0].format == e.format);
    CHECK(t.accounts[0].rows_read == e.rows);
    CHECK(t.accounts[0].kept == e.rows);
    CHECK(near(s.span_s, e.span_s, 2e-4));
    CHECK(near(s.rate_per_s, e.rate, 2e-3));
    CHECK(near(s.input.mean, e.in_mean, 5e-4));
    CHECK(near(s.output.mean, e.out_mean, 4e-3));
    CHECK(near(s.burstiness, e.burstiness, 0.05));
    // The survey's quantiles interpolate; nearest rank differs by one sorted place.
    CHECK(near(static_cast<double>(s.input.p50), static_cast<double>(e.in_p50), 2e-3));
    CHECK(near(static_cast<double>(s.input.p90), static_cast<double>(e.in_p90), 2e-3));
    CHECK(near(static_cast<double>(s.input.p99), static_cast<double>(e.in_p99), 3e-3));
    CHECK(s.input.max == e.in_max);
    CHECK(near(static_cast<double>(s.output.p50), static_cast<double>(e.out_p50), 2e-2));
    CHECK(near(static_cast<double>(s.output.p90), static_cast<double>(e.out_p90), 5e-3));
    CHECK(near(static_cast<double>(s.output.p99), static_cast<double>(e.out_p99), 1e-2));
    CHECK(s.output.max == e.out_max);
  }
}

TEST_CASE("ideal prefix reuse of the Mooncake traces: 37.4 % and 65.1 %") {
  const std::string dir = shared_traces();
  if (dir.empty()) return;
  for (const auto& [file, reuse] : {std::pair{"mooncake/conversation_trace.jsonl", 0.374},
                                    {"mooncake/synthetic_trace.jsonl", 0.651}}) {
    TraceFileSpec spec;
    spec.file = spec.path = dir + "/" + file;
    const TraceStats s = trace_stats(read_trace(spec));
    CAPTURE(file);
    CHECK(std::abs(s.ideal_prefix_reuse - reuse) < 5e-4);
  }
}

TEST_CASE("the other public formats") {
  const std::string dir = shared_traces();
  if (dir.empty()) return;
  const auto read = [&](const std::string& file, auto change) {
    TraceFileSpec spec;
    spec.file = spec.path = dir + "/" + file;
    change(spec);
    Trace t = read_trace(spec);
    check_trace(t);
    return t;
  };
  const auto plain = [](TraceFileSpec&) {};
  // The same hour of Azure's code trace as another project rebased it: equal to the microsecond.
  const Trace code = read("azure-llm/AzureLLMInferenceTrace_code.csv", plain);
  const Trace vidur = read("vidur/splitwise_code.csv", plain);
  REQUIRE(code.requests.size() == vidur.requests.size());
  for (std::size_t i = 0; i < code.requests.size(); ++i) {
    REQUIRE(code.requests[i].input_tokens == vidur.requests[i].input_tokens);
    REQUIRE(std::abs(code.requests[i].arrival.ns() - vidur.requests[i].arrival.ns()) <= 1000);
  }
  const Trace rag = read("ragpulse/0_trace.jsonl", plain);
  CHECK(rag.requests.size() == 7106);
  CHECK(rag.sessions.size() == 3990);
  CHECK(read("burstgpt/BurstGPT_1_first_rows.csv", plain).models.size() == 2);
  CHECK(read("burstgpt/BurstGPT_3_first_rows.csv", plain).requests[3].arrival.ns() ==
        144'000'000'000);
  const std::string sharegpt =
      "llmservingsim-vllm-measured/workload_sharegpt-llama-3.1-8b-300-sps10.notokens.jsonl";
  CHECK(read(sharegpt, plain).requests.size() == 300);
  const Trace with_ids = read(sharegpt, [](TraceFileSpec& s) {
    s.columns = {{TraceField::kHashIds, "hash_ids_blk16", std::nullopt}};
  });
  CHECK(with_ids.hash_block_tokens == 16);
  const Trace lengths = read("sharegpt-aibrix/aibrix_8min_up_and_down_lengths.csv", plain);
  CHECK(lengths.accounts[0].kept == 2024);
  CHECK(lengths.accounts[0].dropped.at(0).second == 2);
}
