// One KV tier against a naive list, on random calls.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "sim/core/rng.h"
#include "sim/serving/kv_tier.h"

using namespace medley;

namespace {

/// Entries from least to most recently used.
struct NaiveTier {
  struct Entry {
    std::uint64_t id;
    std::int64_t blocks, coming;
    int readers;
    bool idle() const { return coming == 0 && readers == 0; }
  };
  std::int64_t capacity;
  std::vector<Entry> entries;
  auto at(std::uint64_t id) {
    return std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.id == id; });
  }
  std::int64_t used() const {
    std::int64_t sum = 0;
    for (const Entry& e : entries) sum += e.blocks + e.coming;
    return sum;
  }
  void to_end(std::uint64_t id) { std::rotate(at(id), at(id) + 1, entries.end()); }
  bool reserve(std::uint64_t id, std::int64_t blocks, std::vector<KvTier::Piece>& evicted) {
    const std::int64_t more = blocks - (at(id) == entries.end() ? 0 : at(id)->blocks);
    std::int64_t free = capacity - used();
    for (const Entry& e : entries) free += e.idle() && e.id != id ? e.blocks : 0;
    if (more > free) return false;
    while (used() + more > capacity) {
      const auto oldest = std::find_if(entries.begin(), entries.end(),
                                       [&](const Entry& e) { return e.idle() && e.id != id; });
      evicted.push_back({oldest->id, oldest->blocks});
      entries.erase(oldest);
    }
    if (at(id) == entries.end()) entries.push_back({id, 0, 0, 0});
    at(id)->coming = more;
    return true;
  }
};

}  // namespace

TEST_CASE("a tier keeps what was used last, never more than fits, and nothing that moves goes") {
  int evictions = 0, refused = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    Rng rng(seed, "tier");
    const auto capacity = static_cast<std::int64_t>(4 + rng.below(60));
    KvTier tier(capacity);
    NaiveTier naive{capacity, {}};
    for (int step = 0; step < 400; ++step) {
      const std::uint64_t id = rng.below(20);
      const auto e = naive.at(id);
      const bool there = e != naive.entries.end();
      switch (rng.below(5)) {
        case 0: {
          const auto blocks = static_cast<std::int64_t>(1 + rng.below(12));
          if (there && (e->coming > 0 || e->blocks >= blocks)) break;
          std::vector<KvTier::Piece> a, b;
          const bool taken = naive.reserve(id, blocks, b);
          REQUIRE(tier.reserve(id, blocks, a) == taken);
          REQUIRE(a.size() == b.size());
          for (std::size_t i = 0; i < a.size(); ++i) {
            CHECK(a[i].id == b[i].id);
            CHECK(a[i].blocks == b[i].blocks);
          }
          evictions += static_cast<int>(a.size());
          refused += taken ? 0 : 1;
          break;
        }
        case 1:
          if (!there || e->coming == 0) break;
          tier.arrived(id);
          e->blocks += e->coming;
          e->coming = 0;
          if (e->readers == 0) naive.to_end(id);
          break;
        case 2:
          if (!there || e->blocks == 0) break;
          tier.hold(id);
          ++e->readers;
          break;
        case 3:
          if (!there || e->readers == 0) break;
          tier.release(id);
          if (--e->readers == 0 && e->coming == 0) naive.to_end(id);
          break;
        default:
          tier.touch(id);
          if (there && e->idle()) naive.to_end(id);
      }
      CHECK(tier.used() == naive.used());
      CHECK(tier.used() <= tier.capacity());
      const auto now = naive.at(id);
      const bool present = now != naive.entries.end();
      CHECK(tier.find(id) == (present ? now->blocks : 0));
      CHECK(tier.known(id) == (present ? now->blocks + now->coming : 0));
    }
  }
  CHECK(evictions > 500);
  CHECK(refused > 50);
}

TEST_CASE("an erased entry goes when nothing of it moves any more") {
  KvTier tier(10);
  std::vector<KvTier::Piece> evicted;
  REQUIRE(tier.reserve(1, 4, evicted));
  tier.erase(1);
  CHECK(tier.used() == 4);
  tier.arrived(1);
  CHECK(tier.used() == 0);
  REQUIRE(tier.reserve(2, 4, evicted));
  tier.arrived(2);
  tier.hold(2);
  tier.erase(2);
  CHECK(tier.find(2) == 0);
  CHECK(tier.used() == 4);
  tier.release(2);
  CHECK(tier.used() == 0);
  CHECK(evicted.empty());
}
