// Permuting ties: what may change (order inside one (time, class)) and what may not.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sim/core/rng.h"
#include "sim/engine/engine.h"

namespace medley {
namespace {

struct Counter : ArrivalSource {
  Counter(std::uint32_t source, std::int64_t n) : id(source), left(n) {}
  SimTime next_time() override { return left > 0 ? SimTime::from_ns(at) : SimTime::max(); }
  EventBody take() override {
    --left;
    if (left % 3 == 0) ++at;  // three arrivals per tick
    return {id, 1, order++};
  }
  std::uint32_t id;
  std::int64_t left;
  std::int64_t at = 0;
  std::uint64_t order = 0;
};

struct Run {
  std::vector<Event> events;
  std::uint64_t fingerprint = 0;
};

// Events on few ticks, each of which spawns one more, plus two cursors.
Run run(std::optional<std::uint64_t> tie_seed, std::uint64_t seed) {
  struct Model {
    explicit Model(const EngineOptions& options) : engine(options) {
      engine.bind<&Model::on_event>(*this);
    }
    void on_event(const Event& e) {
      result.events.push_back(e);
      // What an event causes depends on itself alone, so ties commute.
      if (e.cls != EventClass::kArrival && e.body.kind < 3) {
        engine.schedule(SimTime::from_ns(e.time.ns() + e.body.entity % 3), e.cls, e.body.entity,
                        e.body.kind + 1);
      }
    }
    Engine engine;
    Run result;
  };
  EngineOptions options;
  options.tie_seed = tie_seed;
  Model model(options);
  Counter a(1000, 60), b(2000, 60);
  model.engine.add_source(a);
  model.engine.add_source(b);
  Rng rng(seed, "test/ties");
  for (std::uint32_t i = 0; i < 200; ++i) {
    model.engine.schedule(SimTime::from_ns(static_cast<std::int64_t>(rng.below(20))),
                          static_cast<EventClass>(rng.below(3)), i, 0);
  }
  model.engine.run();
  model.result.fingerprint = model.engine.fingerprint().value();
  return model.result;
}

// What each instant held, whatever the order inside it.
std::map<std::int64_t, std::multiset<std::pair<std::uint32_t, std::uint32_t>>> instants(
    const Run& r) {
  std::map<std::int64_t, std::multiset<std::pair<std::uint32_t, std::uint32_t>>> sets;
  for (const Event& e : r.events) sets[e.time.ns()].insert({e.body.entity, e.body.kind});
  return sets;
}

TEST_CASE("property: permuted ties keep every instant's events and change their order") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    const Run fifo = run(std::nullopt, seed);
    CHECK(fifo.fingerprint == run(std::nullopt, seed).fingerprint);
    std::set<std::uint64_t> prints{fifo.fingerprint};
    for (std::uint64_t tie_seed = 0; tie_seed < 5; ++tie_seed) {
      CAPTURE(tie_seed);
      const Run permuted = run(tie_seed, seed);
      CHECK(instants(permuted) == instants(fifo));
      CHECK(permuted.fingerprint == run(tie_seed, seed).fingerprint);
      CHECK(prints.insert(permuted.fingerprint).second);
      // Clock monotone (INV-2), and a source keeps its own order.
      std::map<std::uint32_t, std::uint64_t> next;
      for (std::size_t i = 0; i < permuted.events.size(); ++i) {
        const Event& e = permuted.events[i];
        if (i > 0) CHECK(permuted.events[i - 1].time <= e.time);
        if (e.body.entity >= 1000) CHECK(e.body.payload == next[e.body.entity]++);
      }
    }
  }
}

TEST_CASE("property: every order of three ties turns up") {
  std::set<std::vector<std::uint32_t>> orders;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    EventQueue queue(seed);
    for (std::uint32_t i = 0; i < 3; ++i) {
      queue.push(SimTime::from_ns(1), EventClass::kArrival, {i, 0, 0});
    }
    queue.push(SimTime::from_ns(1), EventClass::kCompletion, {7, 0, 0});
    queue.push(SimTime::from_ns(0), EventClass::kSample, {8, 0, 0});
    CHECK(queue.pop().body.entity == 8);
    CHECK(queue.pop().body.entity == 7);
    std::vector<std::uint32_t> order;
    while (!queue.empty()) order.push_back(queue.pop().body.entity);
    orders.insert(order);
  }
  CHECK(orders.size() == 6);
}

TEST_CASE("property: a cursor arrival and a pushed one of the same instant swap under some seed") {
  std::set<std::uint32_t> first;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    struct Model {
      void on_event(const Event& e) { order.push_back(e.body.entity); }
      std::vector<std::uint32_t> order;
    } model;
    EngineOptions options;
    options.tie_seed = seed;
    Engine engine(options);
    engine.bind<&Model::on_event>(model);
    Counter cursor(1000, 1);
    engine.add_source(cursor);
    engine.schedule(SimTime(), EventClass::kArrival, 1, 0);
    CHECK(engine.run() == StopReason::kEmpty);
    CHECK(model.order.size() == 2);
    first.insert(model.order.front());
  }
  CHECK(first == std::set<std::uint32_t>{1, 1000});
}

TEST_CASE("property: stopping at horizons changes nothing") {
  const auto total = [](std::int64_t step) {
    struct Model {
      void on_event(const Event& e) {
        if (e.body.kind < 20) {
          const auto delay = static_cast<std::int64_t>(e.body.entity * 7 % 13);
          engine.schedule(SimTime::from_ns(e.time.ns() + delay), EventClass::kCompletion,
                          e.body.entity, e.body.kind + 1);
        }
      }
      Engine engine;
    } model;
    model.engine.bind<&Model::on_event>(model);
    for (std::uint32_t i = 0; i < 50; ++i) {
      model.engine.schedule(SimTime::from_ns(i % 5), EventClass::kCompletion, i, 0);
    }
    Counter cursor(1000, 90);
    model.engine.add_source(cursor);
    StopReason reason = StopReason::kHorizon;
    for (std::int64_t t = step; reason == StopReason::kHorizon; t += step) {
      reason = model.engine.run_until(SimTime::from_ns(t));
    }
    CHECK(reason == StopReason::kEmpty);
    return model.engine.fingerprint();
  };
  const Fingerprint whole = total(1'000'000);
  for (const std::int64_t step : {1, 2, 3, 17, 100}) {
    CAPTURE(step);
    CHECK(total(step) == whole);
  }
}

}  // namespace
}  // namespace medley
