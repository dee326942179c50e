#include "tools/batch_text.h"

#include <fmt/format.h>

#include <charconv>

#include "sim/core/error.h"

namespace medley::cli {

namespace {
constexpr std::int64_t kMostSequences = 1000000;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 40;

[[noreturn]] void refuse(const std::string& part) {
  throw InputError("--batch", "", fmt::format("cannot read \"{}\"", part),
                   "for example \"prefill:512@0,decode:32x1024\": 512 new tokens after 0 cached "
                   "ones, and 32 sequences with 1024 tokens of context");
}

std::int64_t number(std::string_view text, std::int64_t min, std::int64_t max,
                    const std::string& part) {
  std::int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < min || n > max) refuse(part);
  return n;
}

void read_part(const std::string& part, Batch& batch) {
  const std::size_t colon = part.find(':');
  if (colon == std::string::npos) refuse(part);
  const std::string kind = part.substr(0, colon);
  std::string_view rest = std::string_view(part).substr(colon + 1);
  std::int64_t count = 1;
  if (const std::size_t x = rest.find('x'); x != std::string_view::npos) {
    count = number(rest.substr(0, x), 1, kMostSequences, part);
    rest.remove_prefix(x + 1);
  }
  if (kind == "decode") {
    const std::int64_t context = number(rest, 1, kMostTokens, part);
    batch.decodes.insert(batch.decodes.end(), static_cast<std::size_t>(count), context);
  } else if (kind == "prefill") {
    const std::size_t at = rest.find('@');
    PrefillChunk chunk;
    chunk.tokens = number(rest.substr(0, at), 1, kMostTokens, part);
    if (at != std::string_view::npos) {
      chunk.prior = number(rest.substr(at + 1), 0, kMostTokens, part);
    }
    batch.chunks.insert(batch.chunks.end(), static_cast<std::size_t>(count), chunk);
  } else {
    refuse(part);
  }
}
}  // namespace

Batch parse_batch(const std::string& text) {
  Batch batch;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    std::string part = text.substr(begin, comma - begin);
    part.erase(0, part.find_first_not_of(' '));
    part.erase(part.find_last_not_of(' ') + 1);
    read_part(part, batch);
    begin = comma + 1;
  }
  return batch;
}

}  // namespace medley::cli
