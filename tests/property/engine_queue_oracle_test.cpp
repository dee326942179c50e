// The queue against an obviously right one: a std::set of (time, class, sequence, entity), on
// random scripts of push, pop, cancel and reschedule.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include "sim/core/rng.h"
#include "sim/engine/event_queue.h"
#include "tests/support/event_queue_access.h"

namespace medley {
namespace {

struct Script {
  using Entry = std::tuple<std::int64_t, int, std::uint64_t, std::uint32_t>;
  struct Live {
    EventHandle handle;
    Entry entry;
    bool pending;
  };

  explicit Script(std::uint64_t seed) : rng(seed, "test/queue-script") {}

  void push() {
    const auto cls = static_cast<EventClass>(rng.below(4));
    const auto id = static_cast<std::uint32_t>(events.size());
    const std::int64_t time = draw_time();
    const Entry entry{time, static_cast<int>(cls), sequence++, id};
    events.push_back(
        {queue.push(SimTime::from_ns(time), cls, {id, 0, std::uint64_t{id} * 3}), entry, true});
    oracle.insert(entry);
  }
  void pop() {
    const Entry expected = *oracle.begin();
    oracle.erase(oracle.begin());
    const Event got = queue.pop();
    const auto [time, cls, order, id] = expected;
    REQUIRE(got.time.ns() == time);
    REQUIRE(static_cast<int>(got.cls) == cls);
    REQUIRE(got.body.entity == id);
    REQUIRE(got.body.payload == std::uint64_t{id} * 3);
    events[id].pending = false;
  }
  void cancel() {
    Live& e = any();
    REQUIRE(queue.cancel(e.handle) == e.pending);
    oracle.erase(e.entry);
    e.pending = false;
  }
  void reschedule() {
    Live& e = any();
    const std::int64_t time = draw_time();
    REQUIRE(queue.reschedule(e.handle, SimTime::from_ns(time)) == e.pending);
    if (!e.pending) return;
    oracle.erase(e.entry);
    std::get<0>(e.entry) = time;
    std::get<2>(e.entry) = sequence++;
    oracle.insert(e.entry);
    REQUIRE(queue.time_of(e.handle) == SimTime::from_ns(time));
  }
  void check_size() const {
    REQUIRE(queue.size() == oracle.size());
    REQUIRE(queue.empty() == oracle.empty());
  }
  // Mostly the recent ones, so that most are still pending; some stale on purpose.
  Live& any() {
    const std::size_t span = std::min<std::size_t>(events.size(), 2 * oracle.size() + 8);
    return events[events.size() - 1 - rng.below(span)];
  }
  std::int64_t draw_time() { return static_cast<std::int64_t>(rng.below(time_range)); }

  EventQueue queue;
  std::set<Entry> oracle;
  std::vector<Live> events;
  std::uint64_t sequence = 0;
  std::uint64_t time_range = 1;
  Rng rng;
};

TEST_CASE("property: the queue agrees with a sorted set on random scripts") {
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    CAPTURE(seed);
    Script script(seed);
    // From all ties to hardly any; growth and decline alternate so that the heap passes every size.
    script.time_range = std::uint64_t{1} << (seed % 12) * 3;
    if (seed % 5 == 0) {
      EventQueueTestAccess::set_next_sequence(script.queue, EventQueue::kSequenceLimit - 1000);
    }
    script.push();
    for (int step = 0; step < 8000; ++step) {
      const bool grow = step / 1000 % 2 == 0;
      const std::uint64_t dice = script.rng.below(10);
      if (dice < (grow ? 5U : 2U) || script.oracle.empty()) {
        script.push();
      } else if (dice < 6) {
        script.pop();
      } else if (dice < 8) {
        script.reschedule();
      } else {
        script.cancel();
      }
      script.check_size();
    }
    while (!script.oracle.empty()) script.pop();
    script.check_size();
  }
}

}  // namespace
}  // namespace medley
