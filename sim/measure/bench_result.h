#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/request.h"

namespace medley {

inline constexpr double kNotTold = std::numeric_limits<double>::quiet_NaN();

/// A distribution as a load generator tells it; NaN where it does not.
struct BenchQuantiles {
  double mean = kNotTold;
  double p50 = kNotTold, p90 = kNotTold, p95 = kNotTold, p99 = kNotTold;
  double min = kNotTold, max = kNotTold, std = kNotTold;
  bool known() const;
  void scale(double factor);
};
/// Mean, population deviation and numpy's linear quantiles of `values`; all NaN when empty.
BenchQuantiles quantiles_of(std::vector<double> values);

/// One finished request of a measured run. Times in seconds, NaN where not told.
struct BenchRequest {
  double start_s = kNotTold;  ///< since the first request of the run
  std::int64_t input = 0;
  std::int64_t output = 0;
  double ttft_s = kNotTold;
  double e2e_s = kNotTold;
  std::vector<double> itls;  ///< gaps between pieces of the answer [s], where told
  /// (e2e - ttft) / (output - 1); NaN below two tokens.
  double tpot_s() const;
};

/// One measured run at one load, whatever wrote it.
///
/// Meanings are the same for all tools, so readers convert:
///   ttft  request sent (or queued, `server_side`) to first token
///   tpot  (e2e - ttft) / (output - 1) of a request: vLLM's TPOT, "inter token latency" of
///         genai-perf, AIPerf and guidellm
///   itl   gaps between tokens, over all requests together: vLLM's ITL
///   e2e   request sent to last token
struct BenchResult {
  std::string tool;     ///< "vllm bench serve", "sglang bench_serving", ...
  std::string version;  ///< of the tool
  std::string engine;   ///< what served, as the file says: "vllm", "sglang", ...
  std::string model;    ///< as the file names it; empty: not named
  std::string source;   ///< "file", "file:12", "file:/benchmarks/0"
  std::string label;    ///< short name of the load point: "stage 3", "line 2", "c=16"; may be empty

  std::optional<double> request_rate;       ///< offered [1/s]; infinite: all at once
  std::optional<std::int64_t> concurrency;  ///< most requests in flight; absent: no limit
  std::optional<double> sent_rate;          ///< what the generator managed to send [1/s]
  std::optional<double> burstiness;         ///< shape of gamma gaps; 1 is Poisson
  bool even_spacing = false;                ///< gaps are constant

  double duration_s = kNotTold;
  double start_epoch_s = kNotTold;  ///< when it began (Unix time), to lay power logs beside it
  std::int64_t completed = 0;
  std::int64_t failed = 0;
  double input_tokens = kNotTold, output_tokens = kNotTold;  ///< of completed requests, in all
  double requests_per_s = kNotTold, output_tokens_per_s = kNotTold, tokens_per_s = kNotTold;
  BenchQuantiles ttft, tpot, itl, e2e;         ///< s
  BenchQuantiles input_length, output_length;  ///< tokens

  /// What the file says of how lengths were made; absent: nothing.
  std::optional<double> random_input, random_output;  ///< nominal lengths of random data
  std::optional<double> range_ratio;                  ///< SGLang: uniform from N x ratio to N

  std::vector<BenchRequest> requests;  ///< completed ones in order of issue; empty: totals only
  bool server_side = false;            ///< times are the engine's own, without client and network
  std::vector<std::string> notes;      ///< gaps and conversions worth reading

  double mean_input() const;   ///< tokens a request; NaN unknown
  double mean_output() const;  ///< likewise
};

/// What a file or folder held. Law: rows read = kept + dropped (rows are requests where the file
/// lists requests, else results).
struct BenchFile {
  std::string format;
  std::vector<BenchResult> results;
  ImportAccount account;
};

struct BenchFormat {
  std::string name;     ///< for `--as`
  std::string summary;  ///< one line
};
/// Every format that `read_bench` knows.
const std::vector<BenchFormat>& bench_formats();

/// Reads what load generators write. The format is told from the content unless named; a folder
/// means the stage_<n>_lifecycle_metrics.json of inference-perf in it.
/// Python's Infinity and NaN are survived; of a repeated key the first counts (and is noted).
/// Throws InputError (file, line or JSON pointer) with every problem found: unreadable, of no known
/// format, broken off, wrong types, several formats in one file, nothing completed.
BenchFile read_bench(const std::string& path, const std::string& format = "auto");

}  // namespace medley
