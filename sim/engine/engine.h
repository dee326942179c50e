#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/sim_time.h"
#include "sim/engine/event.h"
#include "sim/engine/event_queue.h"
#include "sim/engine/fingerprint.h"

namespace medley {

/// Arrivals already in order of time (a trace, a generator): a cursor, so that a million of them
/// cost the heap nothing. They fire as EventClass::kArrival.
class ArrivalSource {
 public:
  virtual ~ArrivalSource() = default;
  /// Time of the next arrival, SimTime::max() when there is none left; never decreases.
  virtual SimTime next_time() = 0;
  /// Body of that arrival; moves the cursor on. The engine asks `next_time` again straight after.
  virtual EventBody take() = 0;
};

enum class StopReason : std::uint8_t {
  kEmpty,        ///< nothing left to fire but samples
  kHorizon,      ///< the next event lies beyond the horizon
  kStopped,      ///< a handler called stop()
  kInterrupted,  ///< the interrupt flag was set
  kStalled,      ///< the clock stands still: too many events at one instant (see stall_report)
};
const char* to_text(StopReason reason);

struct EngineOptions {
  /// Permutes events of equal (time, class) by this seed, and arrivals of different sources at one
  /// instant. Results must not change; where they do, a model depends on accidental order.
  /// Arrivals of one source keep its order, which is data.
  std::optional<std::uint64_t> tie_seed;
  /// Set from a signal handler or another thread to end the run after the event at hand.
  const std::atomic<bool>* interrupt = nullptr;
  /// More events than this at one instant mean that the model runs in a circle.
  std::uint64_t max_events_per_instant = 50'000'000;
};

/// The clock and the event loop. One engine is one simulation: no global state, not copyable, used
/// by one thread; engines in different threads do not notice each other.
///
/// Order of events: (time, EventClass, sequence). Cursor arrivals at an instant precede pushed
/// events of class kArrival at the same instant; several sources go in the order they were added.
/// Law (INV-2): the clock never runs backwards; an event or arrival before `now` is an error.
/// Law (INV-6): same calls, same order, same fingerprint.
///
/// Samples (EventClass::kSample) only look: they are not in the fingerprint and do not keep the run
/// alive, so a sampler may re-arm itself for ever and report settings cannot change results.
class Engine {
 public:
  using Handler = void (*)(void* context, const Event& event);

  explicit Engine(const EngineOptions& options = {});
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// The one function that receives every event: `engine.bind<&Simulation::on_event>(*this)`.
  template <auto Method, class Object>
  void bind(Object& object) {
    bind([](void* context, const Event& event) { (static_cast<Object*>(context)->*Method)(event); },
         &object);
  }
  void bind(Handler handler, void* context);
  /// Not owned; must outlive the engine's runs.
  void add_source(ArrivalSource& source);

  EventHandle schedule(SimTime time, EventClass cls, std::uint32_t entity, std::uint32_t kind,
                       std::uint64_t payload = 0);
  /// At now + delay, rounded to the nearest nanosecond; delay >= 0.
  EventHandle schedule_after(Seconds delay, EventClass cls, std::uint32_t entity,
                             std::uint32_t kind, std::uint64_t payload = 0);
  /// False when the event has already fired or been cancelled.
  bool cancel(EventHandle handle);
  /// As cancel and schedule again with the same class and body; the handle stays good.
  /// Entities with one pending event each (replicas) need no queue of their own: keep the handle,
  /// reschedule while pending, schedule again on firing. A heap indexed by entity was measured 4 ns
  /// per operation faster at 1,000 entities, under 1 % of what serving one request costs.
  bool reschedule(EventHandle handle, SimTime time);
  bool pending(EventHandle handle) const { return queue_.pending(handle); }
  std::optional<SimTime> time_of(EventHandle handle) const { return queue_.time_of(handle); }

  /// Fires every event with time <= horizon, in order. `now` ends at the horizon for kHorizon, else
  /// at the last event. May be called again: run_until(a), run_until(b) equals run_until(b).
  StopReason run_until(SimTime horizon);
  StopReason run() { return run_until(SimTime::max()); }
  /// From a handler: the run returns after the present event.
  void stop() { stop_requested_ = true; }

  SimTime now() const { return now_; }
  std::size_t pending_events() const { return queue_.size(); }
  /// Time of the next event or arrival, SimTime::max() when there is none.
  SimTime next_time() const;
  void reserve(std::size_t events) { queue_.reserve(events); }

  /// Events fired, samples included.
  std::uint64_t events_fired() const { return fired_; }
  std::uint64_t samples_fired() const { return samples_fired_; }
  /// Of (time, entity, kind) of each event fired, samples excepted.
  const Fingerprint& fingerprint() const { return fingerprint_; }
  /// "4f0c1d2e3b5a6978": 16 hex digits.
  std::string fingerprint_text() const;
  /// What the engine was doing when it stopped with kStalled, in one line.
  std::string stall_report() const;

 private:
  using Key = EventQueue::Key;
  struct Source {
    ArrivalSource* cursor;
    Key key;  // of its next arrival, kNoKey when exhausted
    std::uint64_t taken;
  };

  Key next_key() const {
    const Key top = queue_.top_key();
    return next_arrival_ < top ? next_arrival_ : top;
  }
  void fire(const Event& event);
  Event take_arrival();
  Key key_of(std::size_t source, SimTime not_before) const;
  void find_next_arrival();
  StopReason finish(SimTime horizon);
  bool only_samples_left() const;
  [[noreturn]] void fail_past(SimTime time, std::uint32_t entity, std::uint32_t kind) const;

  EventQueue queue_;
  Key next_arrival_ = EventQueue::kNoKey;  // of the earliest source
  SimTime now_;
  Handler handler_ = nullptr;
  void* context_ = nullptr;
  const std::atomic<bool>* interrupt_;
  std::uint64_t fired_ = 0;
  std::uint64_t fired_before_instant_ = 0;
  Fingerprint fingerprint_;
  bool stop_requested_ = false;
  EngineOptions options_;
  std::size_t next_source_ = 0;
  std::size_t samples_pending_ = 0;
  std::uint64_t samples_fired_ = 0;
  std::vector<Source> sources_;
  Event last_;  // set when stalled
  std::atomic<bool> never_{false};
};

}  // namespace medley
