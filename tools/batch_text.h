#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/step_ops.h"

namespace medley::cli {

/// A batch as the user writes it: "prefill:512@0,decode:32x1024" is one prefill chunk of 512 tokens
/// behind 0 cached ones and 32 sequences decoding with 1,024 tokens of context each (the new token
/// included). "prefill:4x512@1024" repeats a chunk.
struct Batch {
  std::vector<PrefillChunk> chunks;
  std::vector<std::int64_t> decodes;  ///< context lengths
};
/// Throws InputError.
Batch parse_batch(const std::string& text);

}  // namespace medley::cli
