// Counts every allocation of this test program, to prove that a steady state makes none.
#include <doctest/doctest.h>

#include <cstdlib>
#include <new>
#include <vector>

#include "sim/core/rng.h"
#include "sim/engine/engine.h"

namespace {
std::size_t allocations = 0;
}

// Not inlined: GCC 12 otherwise takes new and free for a mismatched pair.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t align) {
  ++allocations;
  const auto a = static_cast<std::size_t>(align);
  if (void* p = std::aligned_alloc(a, (size + a - 1) / a * a)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept {
  std::free(p);
}
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept {
  std::free(p);
}
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
  std::free(p);
}

namespace medley {

std::size_t counted_allocations();  // for the other files of this program
std::size_t counted_allocations() {
  return allocations;
}

namespace {

// Entities that fire, schedule themselves again, reschedule a neighbour, and cancel and replace
// another; arrivals come from the cursor all the while.
struct Churn : ArrivalSource {
  static constexpr std::uint32_t kEntities = 500;
  Engine engine;
  Rng rng{1, "test/churn"};
  std::vector<EventHandle> handles;
  std::int64_t next_arrival = 0;

  Churn() {
    engine.bind<&Churn::on_event>(*this);
    engine.add_source(*this);
    for (std::uint32_t i = 0; i < kEntities; ++i) handles.push_back(start(i));
  }
  SimTime next_time() override { return SimTime::from_ns(next_arrival); }
  EventBody take() override {
    next_arrival += 100;
    return {0, 1, 0};
  }
  SimTime later() {
    return SimTime::from_ns(engine.now().ns() + 1 + static_cast<std::int64_t>(rng.below(1000)));
  }
  EventHandle start(std::uint32_t i) {
    return engine.schedule(later(), EventClass::kCompletion, i, 0);
  }
  void on_event(const Event& e) {
    if (e.cls == EventClass::kCompletion) handles[e.body.entity] = start(e.body.entity);
    engine.reschedule(handles[rng.below(kEntities)], later());
    const auto other = static_cast<std::uint32_t>(rng.below(kEntities));
    if (engine.cancel(handles[other])) handles[other] = start(other);
  }
};

TEST_CASE("engine: no allocation per event in a steady state") {
  Churn churn;
  churn.engine.run_until(SimTime::from_ns(10'000));
  const std::uint64_t fired = churn.engine.events_fired();
  const std::size_t before = allocations;
  churn.engine.run_until(SimTime::from_ns(200'000));
  CHECK(allocations == before);
  CHECK(churn.engine.events_fired() - fired > 50'000);
  CHECK(churn.engine.pending_events() == Churn::kEntities);
}

TEST_CASE("engine: reserve takes all memory at once") {
  EventQueue queue;
  queue.reserve(10'000);
  const std::size_t before = allocations;
  for (int round = 0; round < 2; ++round) {
    for (std::int64_t i = 0; i < 10'000; ++i) {
      queue.push(SimTime::from_ns(i * 7919 % 10'007), EventClass::kArrival, {});
    }
    while (!queue.empty()) queue.pop();
  }
  CHECK(allocations == before);
  queue.reserve(20'000);  // the counter does count
  CHECK(allocations > before);
}

}  // namespace
}  // namespace medley
