#include <doctest/doctest.h>

#include <algorithm>

#include "sim/core/rng.h"
#include "tests/support/models.h"

using namespace medley;

TEST_CASE("closed forms of a chunk equal counting pair by pair") {
  Rng rng(3, "chunks");
  for (int round = 0; round < 200; ++round) {
    const auto tokens = static_cast<std::int64_t>(rng.below(60));
    const auto prior = static_cast<std::int64_t>(rng.below(60));
    const auto window = static_cast<std::int64_t>(rng.below(50));  // 0: none
    double pairs = 0.0;
    std::int64_t oldest = prior + tokens;
    for (std::int64_t p = prior; p < prior + tokens; ++p) {
      const std::int64_t seen = window > 0 ? std::min(p + 1, window) : p + 1;
      pairs += static_cast<double>(seen);
      oldest = std::min(oldest, p + 1 - seen);
    }
    CHECK(chunk_pairs(tokens, prior, window) == pairs);
    if (tokens > 0) {
      CHECK(chunk_context(tokens, prior, window) == static_cast<double>(prior + tokens - oldest));
    }
  }
}

TEST_CASE("decode context is cut at the window") {
  CHECK(decode_context(100) == 100.0);
  CHECK(decode_context(100, 128) == 100.0);
  CHECK(decode_context(1000, 128) == 128.0);
}

TEST_CASE("expected experts hit") {
  CHECK(experts_hit(0.0, 8, 2) == 0.0);
  CHECK(near(experts_hit(1.0, 8, 2), 2.0));
  CHECK(near(experts_hit(2.0, 8, 2), 3.5));
  CHECK(experts_hit(5.0, 4, 4) == 4.0);
  CHECK(experts_hit(5.0, 0, 0) == 0.0);
  CHECK(near(experts_hit(1.0, 512, 10), 10.0, 1e-12));
  CHECK(near(experts_hit(1e9, 256, 8), 256.0));
}

TEST_CASE("features of a mixed batch") {
  const FeatureContext context{128, 8, 2};
  const Features x = make_features(context, {{100, 0, true}, {50, 200, false}}, {10, 500});
  CHECK(at(x, Feature::kOne) == 1.0);
  CHECK(at(x, Feature::kTokens) == 152.0);
  CHECK(at(x, Feature::kLogits) == 3.0);
  CHECK(at(x, Feature::kChunkTokens) == 150.0);
  CHECK(at(x, Feature::kChunkPairs) == 5050.0 + 50.0 * 200.0 + 1275.0);
  CHECK(at(x, Feature::kChunkContext) == 350.0);
  CHECK(at(x, Feature::kDecodes) == 2.0);
  CHECK(at(x, Feature::kDecodeContext) == 510.0);
  CHECK(at(x, Feature::kChunkPairsWindow) == 5050.0 + 50.0 * 128.0);
  CHECK(at(x, Feature::kChunkContextWindow) == 100.0 + 177.0);
  CHECK(at(x, Feature::kDecodeContextWindow) == 138.0);
  CHECK(near(at(x, Feature::kExpertsHit), 8.0));
  CHECK(at(x, Feature::kSequences) == 4.0);
  CHECK(at(x, Feature::kHasChunks) == 1.0);
  CHECK(at(x, Feature::kHasDecodes) == 1.0);
  const Features nothing = make_features(context, {}, {});
  CHECK(nothing == Features{});
}

TEST_CASE("window features equal the plain ones where a model has no window") {
  const Features x = make_features({}, {{100, 50, true}}, {10, 500});
  CHECK(at(x, Feature::kChunkPairsWindow) == at(x, Feature::kChunkPairs));
  CHECK(at(x, Feature::kChunkContextWindow) == at(x, Feature::kChunkContext));
  CHECK(at(x, Feature::kDecodeContextWindow) == at(x, Feature::kDecodeContext));
}
