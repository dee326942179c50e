#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/measure/bench_json.h"
#include "sim/measure/bench_result.h"

namespace medley {

/// Readers of one format each; used by bench_read.cpp only. They add results and what they dropped;
/// what is wrong goes to the problems of the objects (or `problems`).
using BenchObjects = std::vector<LooseObject>;

void read_bench_serving(const BenchObjects& objects, BenchFile& out);  ///< vLLM and SGLang
void read_inference_perf(const BenchObjects& objects, BenchFile& out);
void read_guidellm(const BenchObjects& objects, BenchFile& out);
void read_perf_json(const BenchObjects& objects,
                    BenchFile& out);  ///< AIPerf, genai-perf aggregates
void read_llmperf_summary(const BenchObjects& objects, BenchFile& out);

void read_aiperf_records(const BenchObjects& objects, BenchFile& out);
void read_llmperf_requests(const BenchObjects& objects, BenchFile& out);
void read_engine_requests(const BenchObjects& objects, BenchFile& out);  ///< LLMServingSim's vLLM

void read_perf_csv(std::string_view text, BenchFile& out, Problems& problems);
void read_multiround_csv(std::string_view text, BenchFile& out, Problems& problems);

/// {"mean", "median" or "p50", "p90", ...} times `unit`.
BenchQuantiles quantiles_from(const LooseObject& object, double unit);

/// Counts one row as dropped for `reason`.
void drop_row(ImportAccount& account, const std::string& reason);
/// Fills what follows from the requests or from totals; a result in which nothing completed is a
/// problem.
void finish_result(BenchResult& result, Problems& problems);

}  // namespace medley
