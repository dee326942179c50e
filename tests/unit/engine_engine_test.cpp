#include "sim/engine/engine.h"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "sim/core/error.h"

namespace medley {
namespace {

SimTime ns(std::int64_t t) {
  return SimTime::from_ns(t);
}

// Records every event as "time:entity"; reacts through `then`.
struct Recorder {
  explicit Recorder(const EngineOptions& options = {}) : engine(options) {
    engine.bind<&Recorder::on_event>(*this);
  }
  void on_event(const Event& e) {
    log += std::to_string(e.time.ns()) + ":" + std::to_string(e.body.entity) + " ";
    CHECK(engine.now() == e.time);
    if (then) then(e);
  }
  Engine engine;
  std::string log;
  std::function<void(const Event&)> then;
};

// Arrivals at given times; entities count from `first`.
struct ListSource : ArrivalSource {
  ListSource(std::vector<std::int64_t> t, std::uint32_t first_entity)
      : times(std::move(t)), first(first_entity) {}
  SimTime next_time() override { return at < times.size() ? ns(times[at]) : SimTime::max(); }
  EventBody take() override { return {first + static_cast<std::uint32_t>(at++), 9, 0}; }
  std::vector<std::int64_t> times;
  std::uint32_t first;
  std::size_t at = 0;
};

TEST_CASE("engine: fires in order, counts, and ends empty at the last event") {
  Recorder r;
  r.engine.schedule(ns(30), EventClass::kArrival, 3, 0);
  r.engine.schedule(ns(10), EventClass::kArrival, 1, 0);
  r.engine.schedule(ns(10), EventClass::kCompletion, 2, 0);
  CHECK(r.engine.next_time() == ns(10));
  CHECK(r.engine.run() == StopReason::kEmpty);
  CHECK(r.log == "10:2 10:1 30:3 ");
  CHECK(r.engine.now() == ns(30));
  CHECK(r.engine.events_fired() == 3);
  CHECK(r.engine.next_time() == SimTime::max());
}

TEST_CASE("engine: an instant goes round until only later classes are left") {
  // A scheduling decision at 5 starts work that completes at 5: the completion fires before the
  // other decision pending at 5, and the sample sees the end of it all.
  Recorder r;
  r.engine.schedule(ns(5), EventClass::kSample, 4, 0);
  r.engine.schedule(ns(5), EventClass::kSchedule, 1, 0);
  r.engine.schedule(ns(5), EventClass::kSchedule, 2, 0);
  r.then = [&](const Event& e) {
    if (e.body.entity == 1) r.engine.schedule(ns(5), EventClass::kCompletion, 3, 0);
  };
  r.engine.run();
  CHECK(r.log == "5:1 5:3 5:2 ");  // only the sample was left: the run is over
  r.log.clear();
  r.then = nullptr;
  r.engine.schedule(ns(6), EventClass::kSchedule, 5, 0);
  r.engine.run();
  CHECK(r.log == "5:4 6:5 ");
}

TEST_CASE("engine: events at the horizon fire, later ones wait") {
  Recorder r;
  for (const std::int64_t t : {10, 20, 30}) {
    r.engine.schedule(ns(t), EventClass::kArrival, static_cast<std::uint32_t>(t), 0);
  }
  CHECK(r.engine.run_until(ns(20)) == StopReason::kHorizon);
  CHECK(r.log == "10:10 20:20 ");
  CHECK(r.engine.now() == ns(20));
  CHECK(r.engine.run_until(ns(25)) == StopReason::kHorizon);
  CHECK(r.engine.now() == ns(25));
  CHECK_THROWS_AS(r.engine.run_until(ns(24)), InternalError);
  CHECK(r.engine.run_until(ns(1000)) == StopReason::kEmpty);
  CHECK(r.engine.now() == ns(30));
}

TEST_CASE("engine: cancel, reschedule and schedule_after") {
  Recorder r;
  const EventHandle a = r.engine.schedule(ns(10), EventClass::kArrival, 1, 0);
  const EventHandle b = r.engine.schedule(ns(20), EventClass::kArrival, 2, 0);
  CHECK(r.engine.cancel(a));
  CHECK_FALSE(r.engine.cancel(a));
  CHECK(r.engine.reschedule(b, ns(5)));
  CHECK(r.engine.time_of(b) == ns(5));
  r.then = [&](const Event& e) {
    // 1.5 ns rounds to even.
    if (e.body.entity == 2) {
      r.engine.schedule_after(Seconds(1.5e-9), EventClass::kArrival, 3, 0);
    }
  };
  r.engine.run();
  CHECK(r.log == "5:2 7:3 ");
  CHECK_FALSE(r.engine.pending(b));
}

TEST_CASE("engine: the clock is monotone (INV-2)") {
  Recorder r;
  r.engine.schedule(ns(10), EventClass::kArrival, 1, 0);
  const EventHandle h = r.engine.schedule(ns(20), EventClass::kArrival, 2, 0);
  r.engine.run_until(ns(10));
  CHECK_THROWS_WITH_AS(r.engine.schedule(ns(9), EventClass::kArrival, 7, 4),
                       "INV-2: event (entity 7, kind 4) at 9 ns, before now = 10 ns",
                       InternalError);
  CHECK_THROWS_AS(r.engine.reschedule(h, ns(9)), InternalError);
  CHECK_THROWS_AS(r.engine.schedule_after(Seconds(-1e-9), EventClass::kArrival, 1, 0),
                  InternalError);
  ListSource late({5}, 0);
  CHECK_THROWS_AS(r.engine.add_source(late), InternalError);
}

TEST_CASE("engine: an arrival source that runs backwards is an error") {
  Recorder r;
  ListSource source({10, 9}, 0);
  r.engine.add_source(source);
  CHECK_THROWS_WITH_AS(r.engine.run(), doctest::Contains("INV-2: an arrival source runs backwards"),
                       InternalError);
  CHECK(r.log.empty());  // found as soon as the source says so
}

TEST_CASE("engine: a run needs a handler") {
  Engine engine;
  CHECK_THROWS_AS(engine.run(), InternalError);
}

TEST_CASE("engine: cursor arrivals mix with pushed events by (time, class)") {
  Recorder r;
  ListSource source({10, 10, 20}, 100);
  // Pushed first, with sequence 0: a cursor arrival still precedes a pushed one of its instant.
  r.engine.schedule(ns(10), EventClass::kArrival, 1, 0);
  r.engine.schedule(ns(10), EventClass::kCompletion, 2, 0);
  r.engine.schedule(ns(10), EventClass::kSchedule, 3, 0);
  r.engine.schedule(ns(15), EventClass::kArrival, 4, 0);
  r.engine.add_source(source);
  CHECK(r.engine.next_time() == ns(10));
  CHECK(r.engine.run() == StopReason::kEmpty);
  CHECK(r.log == "10:2 10:100 10:101 10:1 10:3 15:4 20:102 ");
  CHECK(r.engine.events_fired() == 7);
}

TEST_CASE("engine: several sources interleave by time, ties by order of adding") {
  Recorder r;
  ListSource a({1, 5, 9}, 10), b({2, 5, 5}, 20), none({}, 30);
  r.engine.add_source(a);
  r.engine.add_source(none);
  r.engine.add_source(b);
  CHECK(r.engine.run_until(ns(2)) == StopReason::kHorizon);
  CHECK(r.engine.run() == StopReason::kEmpty);
  CHECK(r.log == "1:10 2:20 5:11 5:21 5:22 9:12 ");
}

TEST_CASE("engine: stop and interrupt end the run after the present event") {
  std::atomic<bool> interrupt{false};
  EngineOptions options;
  options.interrupt = &interrupt;
  Recorder r(options);
  for (std::uint32_t i = 1; i <= 3; ++i) r.engine.schedule(ns(i), EventClass::kArrival, i, 0);
  r.then = [&](const Event& e) {
    if (e.body.entity == 1) r.engine.stop();
    if (e.body.entity == 2) interrupt = true;
  };
  CHECK(r.engine.run() == StopReason::kStopped);
  CHECK(r.log == "1:1 ");
  CHECK(r.engine.run() == StopReason::kInterrupted);
  CHECK(r.log == "1:1 2:2 ");
  CHECK(r.engine.run() == StopReason::kInterrupted);
  interrupt = false;
  CHECK(r.engine.run() == StopReason::kEmpty);
  CHECK(r.log == "1:1 2:2 3:3 ");
  CHECK(std::string(to_text(StopReason::kInterrupted)) == "interrupted");
}

TEST_CASE("engine: a model that runs in a circle is named, not waited for") {
  EngineOptions options;
  options.max_events_per_instant = 100;
  Recorder r(options);
  r.engine.schedule(ns(1), EventClass::kSchedule, 4, 2);
  r.then = [&](const Event& e) { r.engine.schedule(e.time, EventClass::kSchedule, 4, 2); };
  CHECK(r.engine.run() == StopReason::kStalled);
  CHECK(r.engine.events_fired() == 101);
  CHECK(r.engine.stall_report() ==
        "the clock stands still at 1 ns: 101 events fired at this instant, 1 pending, the last one "
        "entity 4 kind 2");
}

TEST_CASE("engine: many events at one instant, none too many, do not stall") {
  EngineOptions options;
  options.max_events_per_instant = 100;
  Recorder r(options);
  for (std::int64_t t = 0; t < 3; ++t) {
    for (std::uint32_t i = 0; i < 100; ++i) r.engine.schedule(ns(t), EventClass::kArrival, i, 0);
  }
  CHECK(r.engine.run() == StopReason::kEmpty);
  CHECK(r.engine.events_fired() == 300);
}

TEST_CASE("engine: samples neither keep the run alive nor change the fingerprint") {
  const auto run = [](std::int64_t period) {
    Recorder r;
    for (std::uint32_t i = 1; i <= 5; ++i) {
      r.engine.schedule(ns(10 * i), EventClass::kCompletion, i, 0);
    }
    if (period > 0) r.engine.schedule(ns(0), EventClass::kSample, 99, 0);
    r.then = [&, period](const Event& e) {
      if (e.cls == EventClass::kSample) {
        r.engine.schedule(ns(e.time.ns() + period), EventClass::kSample, 99, 0);
      }
    };
    CHECK(r.engine.run() == StopReason::kEmpty);
    CHECK(r.engine.now() == ns(50));
    CHECK(r.engine.events_fired() - r.engine.samples_fired() == 5);
    CHECK(r.engine.samples_fired() == (period == 0 ? 0U : period == 3 ? 17U : 5U));
    return r.engine.fingerprint_text();
  };
  const std::string without = run(0);
  CHECK(without.size() == 16);
  CHECK(run(3) == without);  // at 0, 3, ... 48
  CHECK(run(10) ==
        without);  // at 0, 10, ... 40; the one at 50 finds nothing left to look forward to
}

TEST_CASE("engine: a cancelled sample no longer counts as one") {
  Recorder r;
  const EventHandle sample = r.engine.schedule(ns(5), EventClass::kSample, 1, 0);
  r.engine.schedule(ns(7), EventClass::kArrival, 2, 0);
  CHECK(r.engine.cancel(sample));
  CHECK_FALSE(r.engine.cancel(sample));
  CHECK(r.engine.run() == StopReason::kEmpty);
  CHECK(r.log == "7:2 ");
}

TEST_CASE("engine: the fingerprint tells order, time, entity and kind apart") {
  struct Spec {
    std::int64_t time;
    std::uint32_t entity, kind;
  };
  const auto print = [](const std::vector<Spec>& events) {
    Recorder r;
    for (const Spec& e : events) {
      r.engine.schedule(ns(e.time), EventClass::kArrival, e.entity, e.kind, 5);
    }
    r.engine.run();
    return r.engine.fingerprint().value();
  };
  const std::uint64_t base = print({{1, 2, 3}, {1, 4, 5}});
  CHECK(base == print({{1, 2, 3}, {1, 4, 5}}));
  CHECK(base != print({{1, 4, 5}, {1, 2, 3}}));
  CHECK(base != print({{2, 2, 3}, {1, 4, 5}}));
  CHECK(base != print({{1, 3, 2}, {1, 4, 5}}));
  CHECK(base != print({{1, 2, 3}, {1, 4, 6}}));
  CHECK(base != print({{1, 2, 3}}));
  CHECK(print({{0, 0, 0}}) != print({}));
  CHECK(print({{0, 0, 0}}) != print({{0, 0, 0}, {0, 0, 0}}));
}

TEST_CASE("fingerprint: the same on every machine") {
  // Worked out apart from the code, with integer arithmetic modulo 2^64.
  Fingerprint f;
  CHECK(f.value() == 0xcbf29ce484222325U);
  f.add(ns(1), 2, 3);
  f.add(ns(1000), 0, 7);
  CHECK(f.value() == 0x8f996ff57104095dU);
}

}  // namespace
}  // namespace medley
