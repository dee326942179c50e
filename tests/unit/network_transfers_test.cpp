#include <doctest/doctest.h>

#include <vector>

#include "sim/core/error.h"
#include "sim/network/network.h"
#include "sim/network/network_driver.h"
#include "tests/support/network_topologies.h"

using namespace medley;

namespace {

std::vector<NetworkCompletion> finish_all(Network& network) {
  std::vector<NetworkCompletion> all;
  while (network.step(all)) {
  }
  return all;
}

TransferSpec bytes_of(double bytes, std::uint64_t tag) {
  TransferSpec spec;
  spec.bytes = bytes;
  spec.tag = tag;
  return spec;
}

double seconds(const NetworkCompletion& c) {
  return c.time - FineTime();
}

}  // namespace

TEST_CASE("alone: latency + bytes / bandwidth; nothing: the latency") {
  const Topology t = test::star(3, 100.0, 0.5);
  Network network(t);
  network.start(0, 1, 0, bytes_of(150.0, 1));
  network.start(1, 2, 0, bytes_of(0.0, 2));
  TransferSpec slow = bytes_of(50.0, 3);
  slow.bound = 10.0;
  network.start(2, 0, 0, slow);
  const auto all = finish_all(network);
  REQUIRE(all.size() == 3);
  CHECK(all[0].tag == 2);
  CHECK(seconds(all[0]) == doctest::Approx(0.5));
  CHECK(all[1].tag == 1);
  CHECK(seconds(all[1]) == doctest::Approx(2.0));
  CHECK(all[2].tag == 3);
  CHECK(seconds(all[2]) == doctest::Approx(5.5));
  CHECK(all[2].waited_s == 0.0);  // its own bound is nobody's fault
  CHECK(network.account(0).bytes == doctest::Approx(150.0));
  CHECK(network.account(0).busy_s == doctest::Approx(1.5));
}

TEST_CASE("two into one port share it; the wait is put down to that port") {
  // 100 and 300 B into device 2 at 100 B/s: 50 B/s each, the first done at 2 s (alone: 1 s), the
  // second has 200 B left: 4 s (alone: 3 s).
  const Topology t = test::star(3, 100.0, 0.0);
  Network network(t);
  network.start(0, 2, 0, bytes_of(100.0, 1));
  network.start(1, 2, 0, bytes_of(300.0, 2));
  const auto all = finish_all(network);
  REQUIRE(all.size() == 2);
  CHECK(seconds(all[0]) == doctest::Approx(2.0));
  CHECK(all[0].waited_s == doctest::Approx(1.0));
  CHECK(all[0].waited_on == 5);  // down to device 2
  CHECK(seconds(all[1]) == doctest::Approx(4.0));
  CHECK(all[1].waited_s == doctest::Approx(1.0));
  const WireAccount port = network.account(5);
  CHECK(port.bytes == doctest::Approx(400.0));
  CHECK(port.saturated_s == doctest::Approx(4.0));
  CHECK(port.waited_s == doctest::Approx(2.0));
}

TEST_CASE("latency before: the wire is free meanwhile; after: the sender is free at once") {
  // Before: A (100 B, 1 s latency) meets B (100 B) only from 1 s on, when B is gone.
  const Topology t = test::star(2, 100.0, 0.0);
  Network before(t);
  TransferSpec a = bytes_of(100.0, 1);
  a.extra_latency_s = 1.0;
  before.start(0, 1, 0, a);
  before.start(0, 1, 0, bytes_of(100.0, 2));
  auto all = finish_all(before);
  REQUIRE(all.size() == 2);
  CHECK(seconds(all[0]) == doctest::Approx(1.0));
  CHECK(seconds(all[1]) == doctest::Approx(2.0));
  // After: both flow at once at 50 B/s until 2 s, A arrives a second later and says when it left.
  Network after(t);
  a.latency = LatencyPlace::kAfter;
  a.notify_sent = true;
  after.start(0, 1, 0, a);
  after.start(0, 1, 0, bytes_of(100.0, 2));
  all = finish_all(after);
  REQUIRE(all.size() == 3);
  CHECK(all[0].event == NetworkEvent::kSent);
  CHECK(all[0].tag == 1);
  CHECK(seconds(all[0]) == doctest::Approx(2.0));
  CHECK(seconds(all[1]) == doctest::Approx(2.0));
  CHECK(all[2].event == NetworkEvent::kDelivered);
  CHECK(all[2].tag == 1);
  CHECK(seconds(all[2]) == doctest::Approx(3.0));
}

TEST_CASE("to oneself: the local rate") {
  const Topology t = test::star(2, 100.0, 1.0);
  NetworkOptions options;
  options.local_rate = 20.0;
  Network network(t, options);
  network.start(1, 1, 0, bytes_of(50.0, 1));
  CHECK(seconds(finish_all(network)[0]) == doctest::Approx(2.5));
  Network free_copy(t);
  free_copy.start(1, 1, 0, bytes_of(50.0, 1));
  CHECK(seconds(finish_all(free_copy)[0]) == 0.0);
}

TEST_CASE("a memory at both ends and the owner's own work share with transfers") {
  // 100 B/s of wire, 80 B/s of memory that a kernel also wants: max-min gives each 40.
  const Topology t = test::star(2, 100.0, 0.0);
  Network network(t);
  const std::uint32_t memory = network.add_resource(80.0);
  const FluidDemand reads[] = {{memory, 1.0}};
  TransferSpec spec = bytes_of(80.0, 1);
  spec.extra = reads;
  network.start(0, 1, 0, spec);
  network.start_activity({.demands = reads, .work = 200.0, .level = 1.0, .tag = 9});
  const auto all = finish_all(network);
  REQUIRE(all.size() == 2);
  CHECK(seconds(all[0]) == doctest::Approx(2.0));  // 80 B at 40 B/s
  CHECK(all[0].waited_s == doctest::Approx(1.0));
  CHECK(all[0].waited_on == memory);
  CHECK(all[1].event == NetworkEvent::kActivity);
  CHECK(all[1].tag == 9);
  CHECK(seconds(all[1]) == doctest::Approx(2.0 + 120.0 / 80.0));
}

TEST_CASE("cancel and bounds, in the latency and while flowing") {
  const Topology t = test::star(2, 100.0, 1.0);
  Network network(t);
  const TransferHandle a = network.start(0, 1, 0, bytes_of(100.0, 1));
  const TransferHandle b = network.start(0, 1, 0, bytes_of(100.0, 2));
  CHECK(network.cancel(a) == 100.0);
  CHECK(!network.running(a));
  std::vector<NetworkCompletion> out;
  CHECK(network.step(out));  // both latencies end
  CHECK(out.empty());
  network.set_bound(b, 50.0);
  network.next_time();
  CHECK(network.rate(b) == doctest::Approx(50.0));
  network.advance_to(FineTime().after(2.0));
  CHECK(network.remaining(b) == doctest::Approx(50.0));
  network.set_bound(b, 1e9);
  while (network.step(out)) {
  }
  REQUIRE(out.size() == 1);
  CHECK(seconds(out[0]) == doctest::Approx(2.5));
  CHECK(network.active() == 0);
}

TEST_CASE("a failed link stalls what flows; it goes on when mended, or by another way") {
  // Two devices, two switches between them.
  Topology t;
  test::add_vertex(t, "a", VertexKind::kDevice);
  test::add_vertex(t, "b", VertexKind::kDevice);
  test::add_vertex(t, "s", VertexKind::kSwitch);
  test::add_vertex(t, "u", VertexKind::kSwitch);
  for (const std::uint32_t hub : {2U, 3U}) {
    test::add_cable(t, 0, hub, 100.0, 0.25);
    test::add_cable(t, hub, 1, 100.0, 0.25);
  }
  t.finish();
  for (const bool mend : {true, false}) {
    Network network(t);
    NetworkPath path;
    network.find_path(0, 1, 7, path);
    const std::uint32_t link = path.demands[0].resource;  // wires and links are numbered alike
    const TransferHandle h = network.start(0, 1, 7, bytes_of(100.0, 1));
    std::vector<NetworkCompletion> out;
    network.step(out);  // 0.5 s of latency
    network.next_time();
    network.advance_to(FineTime().after(1.0));  // 50 B gone
    network.fail_link(link, true);
    CHECK(network.next_time() == FineTime::max());
    std::vector<TransferHandle> stuck;
    network.stalled(stuck);
    REQUIRE(stuck.size() == 1);
    CHECK(stuck[0] == h);
    CHECK(network.remaining(h) == doctest::Approx(50.0));
    network.advance_to(FineTime().after(3.0));
    if (mend) {
      network.fail_link(link, false);
    } else {
      network.reroute(h);  // pays 0.5 s again
    }
    while (network.step(out)) {
    }
    REQUIRE(out.size() == 1);
    CHECK(seconds(out[0]) == doctest::Approx(mend ? 3.5 : 4.0));
  }
  Network cut(t);
  cut.fail_vertex(2, true);
  cut.fail_vertex(3, true);
  // No way at all: it stalls on the old one, and goes on when that is back.
  cut.start(0, 1, 0, bytes_of(100.0, 5));
  CHECK(finish_all(cut).empty());
  std::vector<TransferHandle> stuck;
  cut.stalled(stuck);
  REQUIRE(stuck.size() == 1);
  CHECK(cut.tag(stuck[0]) == 5);
  cut.fail_vertex(2, false);
  cut.fail_vertex(3, false);
  CHECK(finish_all(cut).size() == 1);
}

TEST_CASE("no cable at all is the caller's mistake") {
  Topology t;
  test::add_vertex(t, "a", VertexKind::kDevice);
  test::add_vertex(t, "b", VertexKind::kDevice);
  t.finish();
  const Network network(t);
  NetworkPath path;
  CHECK_THROWS_AS(network.find_path(0, 1, 0, path), InputError);
}

TEST_CASE("a wire's capacity changes under way") {
  const Topology t = test::star(2, 100.0, 0.0);
  Network network(t);
  network.start(0, 1, 0, bytes_of(200.0, 1));
  network.next_time();
  network.advance_to(FineTime().after(1.0));
  network.set_wire_capacity(0, 25.0);
  const auto all = finish_all(network);
  CHECK(seconds(all[0]) == doctest::Approx(5.0));
}

TEST_CASE("delays end in order whatever their number of classes") {
  DelayQueue queue;
  FineTime now;
  for (int round = 0; round < 3; ++round) {
    for (int i = 60; i > 0; --i) queue.push(now, 1e-9 * i, static_cast<std::uint32_t>(i), 0);
    now = now.after(0.25e-9);
  }
  FineTime last;
  std::uint64_t count = 0;
  while (!queue.empty()) {
    const DelayQueue::Entry e = queue.pop();
    CHECK(e.time >= last);
    last = e.time;
    ++count;
  }
  CHECK(count == 180);
  CHECK(queue.next_time() == FineTime::max());
}

namespace {

/// One network under an engine; an engine event starts a second transfer.
struct Driven {
  Engine engine;
  Network network;
  NetworkDriver driver;
  std::vector<NetworkCompletion> done;
  std::vector<SimTime> told;

  explicit Driven(const Topology& t)
      : network(t), driver(engine, network, EventClass::kCompletion, 1, 2) {
    driver.bind<&Driven::on_completion>(*this);
    engine.bind<&Driven::on_event>(*this);
  }
  void on_completion(const NetworkCompletion& c) {
    done.push_back(c);
    told.push_back(engine.now());
    if (c.tag == 1) network.start(0, 1, 0, bytes_of(13.0, 2));  // chained at its own fine time
  }
  void on_event(const Event& e) {
    if (e.body.entity == 1) {
      driver.on_event();
    } else {
      driver.catch_up();
      network.start(1, 0, 0, bytes_of(25.0, e.body.kind));
      driver.arm();
    }
  }
};

}  // namespace

TEST_CASE("under an engine: told at ticks, timed finely") {
  // 10 B per ns and direction. 13 B take 1.3 ns, the chained 13 B end at 2.6 ns; a start from the
  // engine at 5 ns is at 5 ns sharp.
  const Topology t = test::star(2, 10e9, 0.0);
  Driven d(t);
  d.driver.catch_up();
  d.network.start(0, 1, 0, bytes_of(13.0, 1));
  d.driver.arm();
  d.engine.schedule(SimTime::from_ns(5), EventClass::kArrival, 0, 7);
  d.engine.run();
  REQUIRE(d.done.size() == 3);
  CHECK(seconds(d.done[0]) == doctest::Approx(1.3e-9).epsilon(1e-12));
  CHECK(d.told[0] == SimTime::from_ns(1));
  CHECK(seconds(d.done[1]) == doctest::Approx(2.6e-9).epsilon(1e-12));
  CHECK(d.told[1] == SimTime::from_ns(3));
  CHECK(seconds(d.done[2]) == doctest::Approx(7.5e-9).epsilon(1e-12));
  CHECK(d.told[2] == SimTime::from_ns(8));
  CHECK(d.engine.now() == SimTime::from_ns(8));
}

TEST_CASE("a start at the tick a completion rounds to comes after it") {
  // 13 B end at 1.3 ns; the engine's own event at 1 ns starts another on the same wire's way back.
  // At 2 ns the engine starts one more while 24 B (2.4 ns, tick 2) may not have been told: it is
  // told first, and the start is at 2.4 ns.
  const Topology t = test::star(2, 10e9, 0.0);
  Driven d(t);
  d.driver.catch_up();
  d.network.start(0, 1, 0, bytes_of(24.0, 3));
  d.driver.arm();
  d.engine.schedule(SimTime::from_ns(2), EventClass::kCompletion, 0, 8);
  d.engine.run();
  REQUIRE(d.done.size() == 2);
  CHECK(d.done[0].tag == 3);
  CHECK(d.done[1].tag == 8);
  CHECK(seconds(d.done[1]) == doctest::Approx(4.9e-9).epsilon(1e-12));
}
