// Event rates of the engine against its targets. Prints a table; gates nothing.
//
//   hold          PHOLD-like, through the engine's callback: fire the first event, schedule one.
//   cancel-heavy  fire one event and reschedule it, then reschedule four random others; an
//                 operation is any of the five.
//   cursor        arrivals from an ArrivalSource, each scheduling one completion.
// Delays are exponential (a table, so that their cost stays out). Time is CPU time of the process,
// best of --reps. The last column is the same hold model on std::priority_queue with 24-byte
// entries in the same run: a ratio that a busy machine moves less than it moves the rates.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <new>
#include <queue>
#include <vector>

#include "sim/core/rng.h"
#include "sim/engine/engine.h"

namespace {
std::uint64_t allocations = 0;
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
namespace {

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Figure {
  double per_second = 0.0;
  double allocations_per_op = 0.0;
};

// Exponential delays with mean 1 us per pending event, so about one event per microsecond.
class Delays {
 public:
  explicit Delays(std::size_t pending) {
    Rng rng(1, "bench/delays");
    for (std::int64_t& d : table_) {
      d = 1 + std::llround(rng.exponential(1000.0 * static_cast<double>(pending)));
    }
  }
  std::int64_t next() { return table_[random() & (table_.size() - 1)]; }
  std::uint64_t random() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  std::uint32_t below(std::uint32_t n) {
    return static_cast<std::uint32_t>(((random() >> 32) * n) >> 32);
  }

 private:
  std::array<std::int64_t, 2048> table_{};
  std::uint64_t state_ = 88172645463325252U;
};

SimTime later(SimTime now, std::int64_t ns) {
  return SimTime::from_ns(now.ns() + ns);
}

struct HoldModel {
  Engine engine;
  Delays delays;
  std::uint64_t left = 0;
  explicit HoldModel(std::uint32_t pending) : delays(pending) {
    engine.bind<&HoldModel::on_event>(*this);
    for (std::uint32_t i = 0; i < pending; ++i) {
      engine.schedule(later({}, delays.next()), EventClass::kCompletion, i, 0);
    }
  }
  void on_event(const Event& e) {
    engine.schedule(later(e.time, delays.next()), EventClass::kCompletion, e.body.entity, 0);
    if (--left == 0) engine.stop();
  }
  void step(std::uint64_t events) {
    left = events;
    engine.run();
  }
};

struct CancelModel {
  Engine engine;
  Delays delays;
  std::vector<EventHandle> handle;
  std::uint64_t left = 0;
  explicit CancelModel(std::uint32_t pending) : delays(pending) {
    engine.bind<&CancelModel::on_event>(*this);
    for (std::uint32_t i = 0; i < pending; ++i) {
      handle.push_back(engine.schedule(later({}, delays.next()), EventClass::kCompletion, i, 0));
    }
  }
  void on_event(const Event& e) {
    const std::uint32_t self = e.body.entity;
    handle[self] = engine.schedule(later(e.time, delays.next()), EventClass::kCompletion, self, 0);
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t other = delays.below(static_cast<std::uint32_t>(handle.size()));
      engine.reschedule(handle[other], later(e.time, delays.next()));
    }
    if (--left == 0) engine.stop();
  }
  void step(std::uint64_t operations) {
    left = operations / 5;
    engine.run();
  }
};

struct CursorModel : ArrivalSource {
  Engine engine;
  Delays delays;
  SimTime at;
  std::uint64_t left = 0;
  explicit CursorModel(std::uint32_t pending) : delays(pending) {
    engine.bind<&CursorModel::on_event>(*this);
    engine.add_source(*this);
  }
  SimTime next_time() override { return at; }
  EventBody take() override {
    at = later(at, 1000);
    return {0, 1, 0};
  }
  void on_event(const Event& e) {
    if (e.cls == EventClass::kArrival) {
      engine.schedule(later(e.time, delays.next()), EventClass::kCompletion, 0, 0);
    }
    if (--left == 0) engine.stop();
  }
  void step(std::uint64_t events) {
    left = events;
    engine.run();
  }
};

struct PriorityQueueModel {
  struct Entry {
    std::int64_t time;
    std::uint64_t sequence;
    std::uint64_t body;
    bool operator<(const Entry& o) const {
      return time != o.time ? time > o.time : sequence > o.sequence;
    }
  };
  std::priority_queue<Entry> queue;
  Delays delays;
  std::uint64_t sequence = 0;
  explicit PriorityQueueModel(std::uint32_t pending) : delays(pending) {
    for (std::uint32_t i = 0; i < pending; ++i) queue.push({delays.next(), sequence++, i});
  }
  void step(std::uint64_t events) {
    for (std::uint64_t i = 0; i < events; ++i) {
      const Entry e = queue.top();
      queue.pop();
      queue.push({e.time + delays.next(), sequence++, e.body});
    }
  }
};

template <class Model>
Figure measure(std::uint32_t pending, std::uint64_t operations, int reps) {
  Model model(pending);
  model.step(std::max<std::uint64_t>(2U * pending, operations / 4));  // warm, past the first fill
  Figure best;
  for (int r = 0; r < reps; ++r) {
    const std::uint64_t before = allocations;
    const double start = cpu_seconds();
    model.step(operations);
    const double rate = static_cast<double>(operations) / (cpu_seconds() - start);
    best.per_second = std::max(best.per_second, rate);
    best.allocations_per_op =
        static_cast<double>(allocations - before) / static_cast<double>(operations);
  }
  return best;
}

template <class Model>
void row(const char* name, std::uint32_t pending, double target_million, double baseline,
         double millions, int reps) {
  const auto operations = static_cast<std::uint64_t>(millions * 1e6);
  const Figure f = measure<Model>(pending, operations, reps);
  fmt::print("{:<14}{:>9}{:>10.2f}{:>9}{:>10.1f}{:>12.6f}{:>10}  {}\n", name, pending,
             f.per_second * 1e-6,
             target_million > 0.0 ? fmt::format("{:g}", target_million) : std::string("-"),
             1e9 / f.per_second, f.allocations_per_op,
             baseline > 0.0 ? fmt::format("{:.2f}x", f.per_second / baseline) : std::string("-"),
             target_million <= 0.0                  ? ""
             : f.per_second >= target_million * 1e6 ? "ok"
                                                    : "BELOW TARGET");
}

void run(int reps, double millions) {
  fmt::print("{:<14}{:>9}{:>10}{:>9}{:>10}{:>12}{:>10}\n", "case", "pending", "M ops/s", "target",
             "ns/op", "allocs/op", "vs std");
  const std::array<std::uint32_t, 3> pending{1'000, 100'000, 1'000'000};
  const std::array<double, 3> hold_target{15, 4, 1};
  const std::array<double, 3> cancel_target{25, 10, 2};
  for (std::size_t i = 0; i < pending.size(); ++i) {
    const double baseline =
        measure<PriorityQueueModel>(pending[i], static_cast<std::uint64_t>(millions * 1e6), reps)
            .per_second;
    row<HoldModel>("hold", pending[i], hold_target[i], baseline, millions, reps);
    row<CancelModel>("cancel-heavy", pending[i], cancel_target[i], 0.0, millions, reps);
  }
  row<CursorModel>("cursor", 1'000, 0.0, 0.0, millions, reps);
}

}  // namespace
}  // namespace medley

int main(int argc, char** argv) {
  CLI::App app{"event rates of the engine"};
  int reps = 5;
  double millions = 2.0;
  app.add_option("--reps", reps, "repetitions, the best counts")->check(CLI::PositiveNumber);
  app.add_option("--millions", millions, "million operations per repetition")
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  medley::run(reps, millions);
  return 0;
}
