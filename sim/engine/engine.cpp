#include "sim/engine/engine.h"

#include <fmt/format.h>

#include "sim/core/error.h"

namespace medley {

const char* to_text(StopReason reason) {
  switch (reason) {
    case StopReason::kEmpty:
      return "empty";
    case StopReason::kHorizon:
      return "horizon";
    case StopReason::kStopped:
      return "stopped";
    case StopReason::kInterrupted:
      return "interrupted";
    case StopReason::kStalled:
      return "stalled";
  }
  return "?";
}

Engine::Engine(const EngineOptions& options)
    : queue_(options.tie_seed),
      interrupt_(options.interrupt != nullptr ? options.interrupt : &never_),
      options_(options) {}

void Engine::bind(Handler handler, void* context) {
  handler_ = handler;
  context_ = context;
}

void Engine::add_source(ArrivalSource& source) {
  sources_.push_back(Source{&source, EventQueue::kNoKey, 0});
  sources_.back().key = key_of(sources_.size() - 1, now_);
  find_next_arrival();
}

EventHandle Engine::schedule(SimTime time, EventClass cls, std::uint32_t entity, std::uint32_t kind,
                             std::uint64_t payload) {
  if (time < now_) [[unlikely]]
    fail_past(time, entity, kind);
  samples_pending_ += cls == EventClass::kSample ? 1U : 0U;
  return queue_.push(time, cls, EventBody{entity, kind, payload});
}

EventHandle Engine::schedule_after(Seconds delay, EventClass cls, std::uint32_t entity,
                                   std::uint32_t kind, std::uint64_t payload) {
  return schedule(SimTime::after(now_, delay), cls, entity, kind, payload);
}

bool Engine::cancel(EventHandle handle) {
  samples_pending_ -= queue_.class_of(handle) == EventClass::kSample ? 1U : 0U;
  return queue_.cancel(handle);
}

bool Engine::reschedule(EventHandle handle, SimTime time) {
  MEDLEY_CHECK(time >= now_, "INV-2: event rescheduled into the past");
  return queue_.reschedule(handle, time);
}

StopReason Engine::run_until(SimTime horizon) {
  MEDLEY_CHECK(handler_ != nullptr, "engine runs without a handler");
  MEDLEY_CHECK(horizon >= now_, "INV-2: horizon lies in the past");
  const Key beyond = horizon == SimTime::max()
                         ? EventQueue::kNoKey
                         : EventQueue::first_key(SimTime::from_ns(horizon.ns() + 1), EventClass{});
  stop_requested_ = false;
  for (;;) {
    if (interrupt_->load(std::memory_order_relaxed)) return StopReason::kInterrupted;
    const Key key = next_key();
    if (key >= beyond) return finish(horizon);
    if (EventQueue::key_class(key) == EventClass::kSample && only_samples_left()) {
      return StopReason::kEmpty;
    }
    const Event event = key == next_arrival_ ? take_arrival() : queue_.pop();
    fire(event);
    if (stop_requested_) return StopReason::kStopped;
    if (fired_ - fired_before_instant_ > options_.max_events_per_instant) [[unlikely]] {
      last_ = event;
      return StopReason::kStalled;
    }
  }
}

void Engine::fire(const Event& event) {
  if (event.time != now_) {
    MEDLEY_CHECK(event.time > now_, "INV-2: the clock ran backwards");
    now_ = event.time;
    fired_before_instant_ = fired_;
  }
  ++fired_;
  if (event.cls == EventClass::kSample) {
    ++samples_fired_;
    --samples_pending_;
  } else {
    fingerprint_.add(event.time, event.body.entity, event.body.kind);
  }
  handler_(context_, event);
}

StopReason Engine::finish(SimTime horizon) {
  if (only_samples_left()) return StopReason::kEmpty;
  now_ = horizon;
  return StopReason::kHorizon;
}

bool Engine::only_samples_left() const {
  return samples_pending_ == queue_.size() && next_arrival_ == EventQueue::kNoKey;
}

Event Engine::take_arrival() {
  Source& source = sources_[next_source_];
  const SimTime time = EventQueue::key_time(source.key);
  const Event event{time, EventClass::kArrival, source.cursor->take()};
  ++source.taken;
  source.key = key_of(next_source_, time);
  if (sources_.size() == 1) {
    next_arrival_ = source.key;
  } else {
    find_next_arrival();
  }
  return event;
}

Engine::Key Engine::key_of(std::size_t source, SimTime not_before) const {
  const SimTime time = sources_[source].cursor->next_time();
  if (time == SimTime::max()) return EventQueue::kNoKey;
  MEDLEY_CHECK(time >= not_before, "INV-2: an arrival source runs backwards");
  const Key first = EventQueue::first_key(time, EventClass::kArrival);
  if (!options_.tie_seed) return first;
  // A place among the arrivals of this instant that the seed, the source and its count decide.
  Fingerprint draw;
  draw.add(SimTime::from_ns(static_cast<std::int64_t>(*options_.tie_seed)),
           static_cast<std::uint32_t>(source), static_cast<std::uint32_t>(sources_[source].taken));
  return first | Key{draw.value() >> 3};
}

void Engine::find_next_arrival() {
  next_arrival_ = EventQueue::kNoKey;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    if (sources_[i].key < next_arrival_) {
      next_arrival_ = sources_[i].key;
      next_source_ = i;
    }
  }
}

SimTime Engine::next_time() const {
  const Key key = next_key();
  return key == EventQueue::kNoKey ? SimTime::max() : EventQueue::key_time(key);
}

std::string Engine::fingerprint_text() const {
  return fmt::format("{:016x}", fingerprint_.value());
}

std::string Engine::stall_report() const {
  return fmt::format(
      "the clock stands still at {} ns: {} events fired at this instant, {} pending, the last one "
      "entity {} kind {}",
      now_.ns(), fired_ - fired_before_instant_, queue_.size(), last_.body.entity, last_.body.kind);
}

void Engine::fail_past(SimTime time, std::uint32_t entity, std::uint32_t kind) const {
  throw InternalError(fmt::format("INV-2: event (entity {}, kind {}) at {} ns, before now = {} ns",
                                  entity, kind, time.ns(), now_.ns()));
}

}  // namespace medley
