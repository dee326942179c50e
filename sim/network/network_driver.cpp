#include "sim/network/network_driver.h"

#include "sim/core/error.h"

namespace medley {

void NetworkDriver::drain() {
  MEDLEY_CHECK(handler_ != nullptr, "a driver's completions go to a handler");
  draining_ = true;
  while (network_->next_time() != FineTime::max() &&
         network_->next_time().rounded() <= engine_->now()) {
    batch_.clear();
    network_->step(batch_);
    for (const NetworkCompletion& c : batch_) handler_(context_, c);
  }
  draining_ = false;
}

void NetworkDriver::catch_up() {
  if (draining_) return;
  drain();
  const FineTime now(engine_->now());
  if (network_->now() < now) network_->advance_to(now);
}

void NetworkDriver::arm() {
  if (draining_) return;
  const FineTime next = network_->next_time();
  if (next == FineTime::max()) {
    engine_->cancel(event_);
    return;
  }
  SimTime tick = next.rounded();
  if (tick < engine_->now()) tick = engine_->now();
  if (!engine_->reschedule(event_, tick)) event_ = engine_->schedule(tick, class_, entity_, kind_);
}

void NetworkDriver::on_event() {
  drain();
  arm();
}

}  // namespace medley
