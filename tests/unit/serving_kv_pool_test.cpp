#include <doctest/doctest.h>

#include "sim/core/error.h"
#include "sim/core/rng.h"
#include "sim/serving/kv_pool.h"

using medley::KvLease;
using medley::KvPool;
using medley::Rng;

TEST_CASE("blocks round up and come back") {
  KvPool pool(10, 16, 0, true);
  KvLease lease;
  pool.extend(nullptr, 0, 0, 33, lease);  // 33 tokens: 3 blocks
  CHECK(lease.blocks() == 3);
  CHECK(pool.free() == 7);
  pool.extend(nullptr, 0, 0, 48, lease);  // still 3
  CHECK(pool.used() == 3);
  pool.take(2);
  lease.own_blocks += 2;
  pool.release(lease, 0, 0);
  CHECK(pool.free() == 10);
  CHECK(pool.peak_used() == 5);
}

TEST_CASE("a second prompt hits the whole blocks inside common ids, never the last token") {
  KvPool pool(100, 16, 512, true);  // one id = 32 blocks
  const std::uint64_t ids[] = {7, 8, 9};
  KvLease first;
  pool.extend(ids, 3, 1100, 1100, first);  // ids 7, 8 whole; 9 covers 76 tokens = 4 whole blocks
  CHECK(first.shared_blocks == 32 + 32 + 4);
  CHECK(first.own_blocks == 1);  // the 69th block is partly filled
  auto hit = pool.lookup(ids, 3, 1100, 1100, 0);
  CHECK(hit.blocks == 68);
  CHECK(hit.evictable == 0);  // all held by the first
  // 1,024 tokens, all named: the last one must be computed, so 63 of 64 blocks.
  hit = pool.lookup(ids, 2, 1024, 1024, 0);
  CHECK(hit.blocks == 63);
  const std::uint64_t other[] = {7, 99};
  hit = pool.lookup(other, 2, 1024, 1024, 0);
  CHECK(hit.blocks == 32);
  CHECK(hit.ids == 1);
  pool.release(first, 0, 0);
  CHECK(pool.free() == 100);
  hit = pool.lookup(ids, 3, 1100, 1100, 0);
  CHECK(hit.blocks == 68);
  CHECK(hit.evictable == 68);
}

TEST_CASE("chunks that end inside a block name it once it is full") {
  KvPool pool(100, 16, 64, true);  // one id = 4 blocks
  const std::uint64_t ids[] = {1, 2, 3};
  KvLease lease;
  pool.extend(ids, 3, 192, 70, lease);  // 4 blocks of id 1, and 6 tokens of the fifth
  CHECK(lease.shared_blocks == 4);
  CHECK(lease.own_blocks == 1);
  pool.extend(ids, 3, 192, 150, lease);
  CHECK(lease.shared_blocks == 9);
  pool.extend(ids, 3, 192, 192, lease);
  CHECK(lease.shared_blocks == 12);
  CHECK(lease.own_blocks == 0);
  CHECK(pool.lookup(ids, 3, 192, 200, 0).blocks == 12);
}

TEST_CASE("the tail of a prompt is evicted before its head, the oldest prompt first") {
  KvPool pool(64, 16, 512, true);
  const std::uint64_t a[] = {1}, b[] = {2};
  KvLease la, lb;
  pool.extend(a, 1, 512, 512, la);
  pool.release(la, 0, 0);  // fresh 32 blocks lie ahead of a's in the queue
  pool.extend(b, 1, 512, 512, lb);
  pool.release(lb, 0, 0);
  KvLease c;
  pool.extend(nullptr, 0, 0, 10 * 16, c);  // takes 10 blocks of a, from its tail
  CHECK(pool.lookup(a, 1, 512, 512, 0).blocks == 22);
  CHECK(pool.lookup(b, 1, 512, 512, 0).blocks == 31);  // all but the last token's block
  KvLease d;
  pool.extend(nullptr, 0, 0, 22 * 16, d);
  CHECK(pool.lookup(a, 1, 512, 512, 0).blocks == 0);
  // A hit on the part that is left is extended in place.
  KvLease e;
  pool.release(c, 0, 0);
  pool.release(d, 0, 0);
  const auto hit = pool.lookup(b, 1, 512, 512, 0);
  pool.acquire(hit, b, 0, e);
  CHECK(pool.used() == 32);
}

TEST_CASE("a preempted request finds its own blocks again") {
  KvPool pool(20, 16, 0, true);
  KvLease lease;
  pool.extend(nullptr, 0, 0, 100, lease);  // 7 blocks, 6 of them full
  pool.release(lease, 42, 6);
  CHECK(pool.free() == 20);
  const auto hit = pool.lookup(nullptr, 0, 0, 101, 42);
  CHECK(hit.resumed);
  CHECK(hit.blocks == 6);
  pool.acquire(hit, nullptr, 42, lease);
  CHECK(lease.own_blocks == 6);
  CHECK(pool.used() == 6);
  CHECK(pool.lookup(nullptr, 0, 0, 101, 42).blocks == 0);
}

TEST_CASE("output that the trace names can be hit by the next turn") {
  KvPool pool(40, 16, 16, true);
  const std::uint64_t ids[] = {1, 2, 3, 4};  // 64 tokens: 32 of prompt, 32 of output
  KvLease lease;
  pool.extend(ids, 2, 32, 32, lease);
  pool.take(2);
  lease.own_blocks += 2;            // decode filled two more blocks
  pool.publish(ids, 4, 63, lease);  // the last token's KV is not stored
  CHECK(lease.shared_blocks == 3);
  pool.release(lease, 0, 0);
  CHECK(pool.lookup(ids, 4, 64, 80, 0).blocks == 3);
}

TEST_CASE("a block size that does not divide the ids is refused") {
  CHECK_THROWS_AS(KvPool(10, 24, 512, true), medley::InputError);
  CHECK_NOTHROW(KvPool(10, 24, 512, false));
}

TEST_CASE("property: used + free = total, and free never negative, over random traffic (INV-4)") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    Rng rng(seed, "kv");
    KvPool pool(200, 16, 64, true);
    struct Held {
      KvLease lease;
      std::vector<std::uint64_t> ids;
      std::int64_t tokens;
    };
    std::vector<Held> held;
    std::int64_t total_held_bound = 0;
    for (int step = 0; step < 400; ++step) {
      if (rng.uniform() < 0.6) {
        Held h;
        h.tokens = 1 + static_cast<std::int64_t>(rng.below(600));
        const std::uint64_t family = rng.below(3);
        for (std::int64_t i = 0; i * 64 < h.tokens; ++i) {
          h.ids.push_back(family * 1000 + static_cast<std::uint64_t>(i));
        }
        const auto n = static_cast<std::uint32_t>(h.ids.size());
        const auto hit = pool.lookup(h.ids.data(), n, h.tokens, h.tokens, 0);
        CHECK(hit.blocks * 16 < h.tokens);
        if (pool.blocks_for(h.tokens) - hit.blocks + hit.evictable > pool.free()) continue;
        const std::int64_t before = pool.free();
        pool.acquire(hit, h.ids.data(), 0, h.lease);
        CHECK(before - pool.free() == hit.evictable);
        pool.extend(h.ids.data(), n, h.tokens, h.tokens, h.lease);
        CHECK(h.lease.blocks() == pool.blocks_for(h.tokens));
        held.push_back(std::move(h));
      } else if (!held.empty()) {
        const std::size_t i = rng.below(held.size());
        pool.release(held[i].lease, 0, 0);
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
      }
      CHECK(pool.free() >= 0);
      CHECK(pool.free() <= pool.total());
      CHECK(pool.used() + pool.free() == pool.total());
      total_held_bound = 0;
      for (const Held& h : held) total_held_bound += h.lease.blocks();
      CHECK(pool.used() <= std::max<std::int64_t>(total_held_bound + 200, 0));
    }
    for (Held& h : held) pool.release(h.lease, 0, 0);
    CHECK(pool.free() == pool.total());
  }
}
