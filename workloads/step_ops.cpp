#include "workloads/step_ops.h"

#include <algorithm>
#include <cmath>

namespace medley {

FeatureContext feature_context(const ModelSpec& model) {
  return {model.window(), model.experts(), model.experts_per_token()};
}

double chunk_pairs(std::int64_t tokens, std::int64_t prior, std::int64_t window) {
  const auto n = static_cast<double>(tokens);
  const auto p = static_cast<double>(prior);
  if (window <= 0) return n * p + 0.5 * n * (n + 1.0);
  // Tokens still short of a full window see prior + 1, prior + 2, ...; the rest see `window` each.
  const auto growing = static_cast<double>(std::clamp<std::int64_t>(window - prior, 0, tokens));
  return growing * p + 0.5 * growing * (growing + 1.0) +
         (n - growing) * static_cast<double>(window);
}

double chunk_context(std::int64_t tokens, std::int64_t prior, std::int64_t window) {
  const std::int64_t seen = window <= 0 ? prior : std::min(prior, window - 1);
  return static_cast<double>(seen + tokens);
}

double decode_context(std::int64_t kv_length, std::int64_t window) {
  return static_cast<double>(window <= 0 ? kv_length : std::min(kv_length, window));
}

double experts_hit(double tokens, int experts, int experts_per_token) {
  if (experts <= 0 || tokens <= 0.0) return 0.0;
  if (experts_per_token >= experts) return experts;
  // -expm1(n log1p(-q)) keeps precision for few tokens over many experts.
  const double q = static_cast<double>(experts_per_token) / experts;
  return -experts * std::expm1(tokens * std::log1p(-q));
}

void FeatureBuilder::add_chunk(const PrefillChunk& chunk) {
  const auto add = [&](Feature f, double v) { at(sums_, f) += v; };
  const auto n = static_cast<double>(chunk.tokens);
  add(Feature::kTokens, n);
  add(Feature::kChunkTokens, n);
  add(Feature::kSequences, 1.0);
  add(Feature::kLogits, chunk.ends_prompt ? 1.0 : 0.0);
  add(Feature::kChunkPairs, chunk_pairs(chunk.tokens, chunk.prior));
  add(Feature::kChunkContext, chunk_context(chunk.tokens, chunk.prior));
  add(Feature::kChunkPairsWindow, chunk_pairs(chunk.tokens, chunk.prior, context_.window));
  add(Feature::kChunkContextWindow, chunk_context(chunk.tokens, chunk.prior, context_.window));
}

void FeatureBuilder::add_decode(std::int64_t kv_length) {
  for (const Feature f :
       {Feature::kTokens, Feature::kLogits, Feature::kDecodes, Feature::kSequences}) {
    at(sums_, f) += 1.0;
  }
  at(sums_, Feature::kDecodeContext) += decode_context(kv_length);
  at(sums_, Feature::kDecodeContextWindow) += decode_context(kv_length, context_.window);
}

Features FeatureBuilder::features() const {
  Features x = sums_;
  const double tokens = at(x, Feature::kTokens);
  at(x, Feature::kOne) = tokens > 0.0 ? 1.0 : 0.0;
  at(x, Feature::kHasChunks) = at(x, Feature::kChunkTokens) > 0.0 ? 1.0 : 0.0;
  at(x, Feature::kHasDecodes) = at(x, Feature::kDecodes) > 0.0 ? 1.0 : 0.0;
  at(x, Feature::kExpertsHit) =
      medley::experts_hit(tokens, context_.experts, context_.experts_per_token);
  return x;
}

Features make_features(const FeatureContext& context, const std::vector<PrefillChunk>& chunks,
                       const std::vector<std::int64_t>& decode_kv_lengths) {
  FeatureBuilder builder(context);
  for (const PrefillChunk& c : chunks) builder.add_chunk(c);
  for (const std::int64_t length : decode_kv_lengths) builder.add_decode(length);
  return builder.features();
}

double stage_bytes_per_token(const ModelSpec& model, const Precision& precision) {
  const double element = precision.activations == DType::kFp32 ? 4.0 : 2.0;
  return 2.0 * model.hidden * element;
}

}  // namespace medley
