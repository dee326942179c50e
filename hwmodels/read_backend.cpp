#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "hwmodels/calibration.h"
#include "hwmodels/read.h"
#include "hwmodels/sourced_reader.h"

namespace medley {

namespace {
constexpr std::int64_t kMostTokens = 100000000;

std::vector<DType> read_dtypes(ObjectReader& reader, std::string_view key) {
  std::vector<DType> all;
  const auto names = reader.texts_or_empty(key);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (const auto dtype = parse_dtype(names[i])) {
      all.push_back(*dtype);
    } else {
      reader.problem(key, fmt::format("unknown number format \"{}\"", names[i]),
                     suggest(names[i], dtype_names()));
    }
  }
  if (names.empty()) reader.problem(key, "list at least one number format");
  return all;
}

void read_limits(ObjectReader& reader, BackendSpec& backend) {
  auto defaults = reader.maybe_object("defaults");
  if (!defaults) return;
  const auto count = [&](std::string_view key, int fallback) {
    return static_cast<int>(defaults->integer_or(key, fallback, 1, kMostTokens));
  };
  backend.block_size = count("block_size", backend.block_size);
  backend.max_num_seqs = count("max_num_seqs", backend.max_num_seqs);
  backend.max_num_batched_tokens = count("max_num_batched_tokens", backend.max_num_batched_tokens);
  backend.chunked_prefill = defaults->boolean_or("enable_chunked_prefill", backend.chunked_prefill);
  backend.prefix_caching = defaults->boolean_or("enable_prefix_caching", backend.prefix_caching);
  defaults->finish();
}
}  // namespace

void read_calibrated(ObjectReader& host, ObjectReader& kernels, ObjectReader& memory,
                     SourcedReader& sourced, BackendSpec& backend) {
  backend.host_per_step = sourced.quantity<Seconds>(host, "per_step", Range::non_negative());
  backend.host_per_sequence =
      sourced.quantity<Seconds>(host, "per_sequence", Range::non_negative());
  const auto optional = [&](std::string_view key) {
    return host.has(key) ? sourced.quantity<Seconds>(host, key, Range::non_negative())
                         : Sourced<Seconds>{};
  };
  backend.sync_per_step = optional("sync_per_step");
  backend.sync_per_sequence = optional("sync_per_sequence");
  backend.host_per_kernel = optional("per_kernel");
  backend.request_overhead = optional("per_request");
  backend.prompt_token_overhead = optional("per_prompt_token");
  backend.decode_skew = sourced.number(kernels, "decode_skew", Range::fraction());
  backend.context_reserve =
      sourced.quantity<Bytes>(memory, "context_reserve", Range::non_negative());
  backend.activation_factor = sourced.number(memory, "activation_factor", Range::non_negative());
}

BackendSpec read_backend(ObjectReader& reader, Problems& problems) {
  BackendSpec backend;
  backend.file = reader.file();
  reader.choice("schema", {"medley.backend/1"});
  backend.name = reader.text("name");
  backend.aliases = reader.texts_or_empty("aliases");
  backend.notes = reader.text_or("notes", "");
  SourcedReader sourced(reader, problems);
  ObjectReader host = sourced.section(reader, "host");
  backend.host_mode = host.choice_or("mode", {"serial", "overlapped"}, "serial") == "serial"
                          ? HostMode::kSerial
                          : HostMode::kOverlapped;
  ObjectReader kernels = sourced.section(reader, "kernels");
  backend.graph_capture = kernels.boolean_or("graph_capture", false);
  backend.graph_max_sequences =
      static_cast<int>(kernels.integer_or("graph_max_sequences", 0, 0, kMostTokens));
  backend.kernels_fused = kernels.number_or("fused", 1.0, Range{Range::positive().min, 1.0});
  ObjectReader memory = sourced.section(reader, "memory");
  backend.memory_utilization =
      sourced.number(memory, "utilization", Range{Range::positive().min, 1.0});
  read_calibrated(host, kernels, memory, sourced, backend);
  host.finish();
  kernels.finish();
  memory.finish();
  read_limits(reader, backend);
  const std::string transfer =
      reader.choice_or("kv_transfer", {"none", "equal", "decode_multiple", "any"}, "none");
  backend.kv_transfer = transfer == "any"               ? KvTransferSupport::kAny
                        : transfer == "decode_multiple" ? KvTransferSupport::kDecodeMultiple
                        : transfer == "equal"           ? KvTransferSupport::kEqual
                                                        : KvTransferSupport::kNone;
  backend.weight_dtypes = read_dtypes(reader, "weight_dtypes");
  backend.kv_dtypes = read_dtypes(reader, "kv_dtypes");
  backend.device_kinds = reader.texts_or_empty("device_kinds");
  for (const std::string& kind : backend.device_kinds) {
    const auto& known = device_kinds();
    if (std::find(known.begin(), known.end(), kind) == known.end()) {
      reader.problem("device_kinds", fmt::format("unknown device kind \"{}\"", kind),
                     suggest(kind, known));
    }
  }
  reader.finish();
  return backend;
}

}  // namespace medley
