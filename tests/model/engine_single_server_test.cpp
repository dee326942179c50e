// A single-server queue on the engine, against arithmetic done by hand and known laws.
#include <doctest/doctest.h>

#include <cmath>
#include <deque>
#include <vector>

#include "sim/core/rng.h"
#include "sim/engine/engine.h"

namespace medley {
namespace {

// Jobs arrive by the cursor, wait first in, first out, and are served one at a time.
class SingleServer : public ArrivalSource {
 public:
  SingleServer(std::vector<std::int64_t> arrivals, std::int64_t service_ns)
      : arrivals_(std::move(arrivals)), service_ns_(service_ns) {
    engine.bind<&SingleServer::on_event>(*this);
    engine.add_source(*this);
  }

  SimTime next_time() override {
    return next_ < arrivals_.size() ? SimTime::from_ns(arrivals_[next_]) : SimTime::max();
  }
  EventBody take() override { return {static_cast<std::uint32_t>(next_++), 0, 0}; }

  void on_event(const Event& e) {
    const std::int64_t now = e.time.ns();
    number_integral += number() * (now - last_change_);
    last_change_ = now;
    if (e.cls == EventClass::kArrival) {
      found.push_back(number());
      waiting_.push_back(e.body.entity);
    } else {
      response_sum += now - arrivals_[e.body.entity];
      finished.push_back(now);
      in_service_ = false;
    }
    if (!in_service_ && !waiting_.empty()) start(now);
  }

  Engine engine;
  std::vector<std::int64_t> finished;  // ns, in order
  std::vector<std::int64_t> waits;     // ns, in order of start
  std::vector<std::int64_t> found;     // jobs present that each arrival finds
  std::int64_t number_integral = 0;    // of N(t) dt, job ns
  std::int64_t response_sum = 0;       // ns
  std::int64_t busy = 0;               // ns

 private:
  std::int64_t number() const {
    return static_cast<std::int64_t>(waiting_.size()) + (in_service_ ? 1 : 0);
  }
  void start(std::int64_t now) {
    const std::uint32_t job = waiting_.front();
    waiting_.pop_front();
    in_service_ = true;
    waits.push_back(now - arrivals_[job]);
    busy += service_ns_;
    engine.schedule(SimTime::from_ns(now + service_ns_), EventClass::kCompletion, job, 1);
  }

  std::vector<std::int64_t> arrivals_;
  std::int64_t service_ns_;
  std::deque<std::uint32_t> waiting_;
  bool in_service_ = false;
  std::size_t next_ = 0;
  std::int64_t last_change_ = 0;
};

std::vector<std::int64_t> poisson(std::uint64_t seed, std::size_t n, double mean_gap_ns) {
  Rng rng(seed, "test/single-server");
  std::vector<std::int64_t> times;
  double t = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    t += rng.exponential(mean_gap_ns);
    times.push_back(std::llround(t));
  }
  return times;
}

TEST_CASE("model: five jobs by hand") {
  // Service 20, arrivals 0, 10, 10, 50, 60.
  //   starts 0, 20, 40, 60, 80; ends 20, 40, 60, 80, 100; responses 20, 30, 50, 30, 40 = 170.
  // The fifth arrives at 60, exactly when the third ends and the fourth starts: completions come
  // first, so it finds one job (the fourth), not two.
  // N(t): 1 on [0,10), 3 on [10,20), 2 on [20,40), 1 on [40,50), 2 on [50,60), 2 on [60,80),
  // 1 on [80,100): 10 + 30 + 40 + 10 + 20 + 40 + 20 = 170, the sum of the responses (Little).
  SingleServer queue({0, 10, 10, 50, 60}, 20);
  CHECK(queue.engine.run() == StopReason::kEmpty);
  CHECK(queue.finished == std::vector<std::int64_t>{20, 40, 60, 80, 100});
  CHECK(queue.waits == std::vector<std::int64_t>{0, 10, 30, 10, 20});
  CHECK(queue.found == std::vector<std::int64_t>{0, 1, 2, 1, 1});
  CHECK(queue.response_sum == 170);
  CHECK(queue.number_integral == 170);
  CHECK(queue.busy == 100);
  CHECK(queue.engine.events_fired() == 10);
}

TEST_CASE("model: D/D/1 at exactly full load never queues") {
  // Gap = service: each arrival meets the completion of the one before at the same nanosecond.
  std::vector<std::int64_t> arrivals;
  for (std::int64_t i = 0; i < 1000; ++i) arrivals.push_back(i * 50);
  SingleServer queue(arrivals, 50);
  queue.engine.run();
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    CHECK(queue.found[i] == 0);
    CHECK(queue.waits[i] == 0);
  }
  CHECK(queue.busy == queue.engine.now().ns());
}

TEST_CASE("model: Little's law holds exactly on every sample path") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    SingleServer queue(poisson(seed, 5000, 1250.0), 1000);
    CHECK(queue.engine.run() == StopReason::kEmpty);
    CHECK(queue.finished.size() == 5000);
    CHECK(queue.number_integral == queue.response_sum);
    CHECK(queue.busy == 5000 * 1000);
  }
}

TEST_CASE("model: M/D/1 mean wait") {
  // Pollaczek-Khinchine with a constant service S = 1: Wq = rho S / (2 (1 - rho)) = 2 at rho = 0.8.
  // Standard deviation from 100 batch means of 4,000 jobs (correlation dies out over ~100 jobs);
  // the first 4,000 are left out. Fixed seed, gate at four standard deviations.
  constexpr std::size_t kBatches = 100, kBatch = 4000;
  constexpr double kService = 1e6;
  SingleServer queue(poisson(7, (kBatches + 1) * kBatch, kService / 0.8), 1'000'000);
  queue.engine.run();
  double sum = 0.0, squares = 0.0;
  for (std::size_t b = 1; b <= kBatches; ++b) {
    double batch = 0.0;
    for (std::size_t i = b * kBatch; i < (b + 1) * kBatch; ++i) {
      batch += static_cast<double>(queue.waits[i]) / kService;
    }
    batch /= kBatch;
    sum += batch;
    squares += batch * batch;
  }
  const double mean = sum / kBatches;
  const double sd = std::sqrt((squares / kBatches - mean * mean) / (kBatches - 1));
  CAPTURE(mean);
  CAPTURE(sd);
  CHECK(sd < 0.04);
  CHECK(std::abs(mean - 2.0) < 4.0 * sd);
}

}  // namespace
}  // namespace medley
