#include "sim/engine/event_queue.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "sim/core/error.h"
#include "tests/support/event_queue_access.h"

namespace medley {
namespace {

SimTime ns(std::int64_t t) {
  return SimTime::from_ns(t);
}

std::vector<std::uint32_t> drain(EventQueue& queue) {
  std::vector<std::uint32_t> entities;
  while (!queue.empty()) entities.push_back(queue.pop().body.entity);
  return entities;
}

TEST_CASE("event queue: time, then class, then order of pushing") {
  EventQueue queue;
  queue.push(ns(20), EventClass::kCompletion, {5, 0, 0});
  queue.push(ns(10), EventClass::kSample, {4, 0, 0});
  queue.push(ns(10), EventClass::kSchedule, {3, 0, 0});
  queue.push(ns(10), EventClass::kArrival, {1, 0, 0});
  queue.push(ns(10), EventClass::kArrival, {2, 0, 0});
  queue.push(ns(10), EventClass::kCompletion, {0, 0, 0});
  CHECK(queue.size() == 6);
  CHECK(drain(queue) == std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("event queue: an event comes back whole") {
  EventQueue queue;
  queue.push(ns(INT64_MAX - 1), EventClass::kSchedule, {UINT32_MAX, 7, UINT64_MAX});
  const Event e = queue.pop();
  CHECK(e.time.ns() == INT64_MAX - 1);
  CHECK(e.cls == EventClass::kSchedule);
  CHECK(e.body.entity == UINT32_MAX);
  CHECK(e.body.kind == 7);
  CHECK(e.body.payload == UINT64_MAX);
  CHECK(queue.top_key() == EventQueue::kNoKey);
}

TEST_CASE("event queue: a thousand ties are served first in, first out") {
  EventQueue queue;
  std::vector<std::uint32_t> expected;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    queue.push(ns(42), EventClass::kArrival, {i, 0, 0});
    expected.push_back(i);
  }
  CHECK(drain(queue) == expected);
}

TEST_CASE("event queue: cancel removes exactly its event and says whether it was pending") {
  EventQueue queue;
  std::vector<EventHandle> handles;
  for (std::uint32_t i = 0; i < 100; ++i) {
    handles.push_back(queue.push(ns(100 - i), EventClass::kArrival, {i, 0, 0}));
  }
  for (std::size_t i = 0; i < 100; i += 2) CHECK(queue.cancel(handles[i]));
  CHECK_FALSE(queue.cancel(handles[0]));
  CHECK_FALSE(queue.pending(handles[0]));
  CHECK_FALSE(queue.time_of(handles[0]).has_value());
  CHECK(queue.time_of(handles[1]) == ns(99));
  CHECK(queue.class_of(handles[1]) == EventClass::kArrival);
  std::vector<std::uint32_t> expected;
  for (std::uint32_t i = 0; i < 100; i += 2) expected.push_back(99 - i);
  CHECK(drain(queue) == expected);
}

TEST_CASE("event queue: a stale handle does not touch the event that took its slot") {
  EventQueue queue;
  const EventHandle fired = queue.push(ns(1), EventClass::kArrival, {1, 0, 0});
  queue.pop();
  const EventHandle next = queue.push(ns(2), EventClass::kArrival, {2, 0, 0});
  CHECK_FALSE(queue.cancel(fired));
  CHECK_FALSE(queue.reschedule(fired, ns(9)));
  CHECK(queue.pending(next));
  CHECK_FALSE(queue.pending(EventHandle()));
  CHECK_FALSE(queue.cancel(EventHandle()));
  CHECK(queue.pop().body.entity == 2);
}

TEST_CASE("event queue: a rescheduled event goes behind those already at its time") {
  EventQueue queue;
  const EventHandle a = queue.push(ns(10), EventClass::kCompletion, {0, 0, 0});
  queue.push(ns(20), EventClass::kCompletion, {1, 0, 0});
  queue.push(ns(20), EventClass::kCompletion, {2, 0, 0});
  SUBCASE("later") {
    CHECK(queue.reschedule(a, ns(20)));
    CHECK(drain(queue) == std::vector<std::uint32_t>{1, 2, 0});
  }
  SUBCASE("away and back keeps the handle good") {
    CHECK(queue.reschedule(a, ns(30)));
    CHECK(queue.reschedule(a, ns(5)));
    CHECK(queue.time_of(a) == ns(5));
    CHECK(drain(queue) == std::vector<std::uint32_t>{0, 1, 2});
  }
  SUBCASE("to the time it already has") {
    queue.push(ns(10), EventClass::kCompletion, {3, 0, 0});
    CHECK(queue.reschedule(a, ns(10)));
    CHECK(drain(queue) == std::vector<std::uint32_t>{3, 0, 1, 2});
  }
}

TEST_CASE("event queue: refuses what it cannot order") {
  EventQueue queue;
  CHECK_THROWS_AS(queue.pop(), InternalError);
  CHECK_THROWS_AS(queue.push(ns(-1), EventClass::kArrival, {}), InternalError);
  CHECK_THROWS_AS(queue.push(SimTime::max(), EventClass::kArrival, {}), InternalError);
  CHECK_THROWS_AS(queue.reserve(EventQueue::kMaxPending + 1), InternalError);
  const EventHandle h = queue.push(ns(0), EventClass::kArrival, {});
  CHECK_THROWS_AS(queue.reschedule(h, SimTime::max()), InternalError);
  CHECK(queue.size() == 1);
}

TEST_CASE("event queue: order survives the renumbering of sequences") {
  // The sequence field overflows after the third push: the pending events are renumbered and the
  // later pushes must still come behind them.
  for (const bool permute : {false, true}) {
    CAPTURE(permute);
    EventQueue queue(permute ? std::optional<std::uint64_t>(3) : std::nullopt);
    EventQueueTestAccess::set_next_sequence(queue, EventQueue::kSequenceLimit - 3);
    std::vector<EventHandle> handles;
    for (std::uint32_t i = 0; i < 50; ++i) {
      handles.push_back(queue.push(ns(7), EventClass::kArrival, {i, 0, 0}));
    }
    queue.push(ns(6), EventClass::kArrival, {50, 0, 0});
    CHECK(queue.cancel(handles[10]));
    std::vector<std::uint32_t> got = drain(queue);
    std::vector<std::uint32_t> expected{50};
    for (std::uint32_t i = 0; i < 50; ++i) {
      if (i != 10) expected.push_back(i);
    }
    if (permute) {
      CHECK(got.front() == 50);
      std::sort(got.begin(), got.end());
      std::sort(expected.begin(), expected.end());
    }
    CHECK(got == expected);
  }
}

TEST_CASE("event queue: a reschedule may be the operation that renumbers") {
  EventQueue queue;
  EventQueueTestAccess::set_next_sequence(queue, EventQueue::kSequenceLimit - 2);
  const EventHandle a = queue.push(ns(7), EventClass::kArrival, {0, 0, 0});
  queue.push(ns(7), EventClass::kArrival, {1, 0, 0});
  CHECK(queue.reschedule(a, ns(7)));
  CHECK(drain(queue) == std::vector<std::uint32_t>{1, 0});
}

TEST_CASE("event queue: the push right after a pop may be the operation that renumbers") {
  EventQueue queue;
  for (std::uint32_t i = 0; i < 20; ++i) queue.push(ns(7), EventClass::kArrival, {i, 0, 0});
  CHECK(queue.pop().body.entity == 0);
  EventQueueTestAccess::set_next_sequence(queue, EventQueue::kSequenceLimit);
  queue.push(ns(7), EventClass::kArrival, {20, 0, 0});
  for (std::uint32_t i = 1; i <= 20; ++i) {
    CHECK(EventQueue::key_time(queue.top_key()) == ns(7));
    CHECK(queue.pop().body.entity == i);
  }
  CHECK(queue.empty());
}

TEST_CASE("event queue: the first key is right between a pop and the next operation") {
  EventQueue queue;
  for (const std::int64_t t : {5, 3, 9, 4}) queue.push(ns(t), EventClass::kSchedule, {});
  queue.pop();
  CHECK(queue.top_key() >= EventQueue::first_key(ns(4), EventClass::kSchedule));
  CHECK(EventQueue::key_time(queue.top_key()) == ns(4));
  CHECK(EventQueue::key_class(queue.top_key()) == EventClass::kSchedule);
  queue.push(ns(1), EventClass::kArrival, {});  // before the popped one: the queue has no clock
  CHECK(queue.pop().time == ns(1));
  CHECK(queue.pop().time == ns(4));
  CHECK(queue.size() == 2);
}

}  // namespace
}  // namespace medley
