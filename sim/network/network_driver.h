#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/engine.h"
#include "sim/network/network.h"

namespace medley {

/// Puts a network under an engine's clock: one pending event at the tick that its next time rounds
/// to. When that event fires, everything whose own time rounds to now or earlier is handled at its
/// own fine time, in order; what the handler starts then starts at that fine time.
///
///   driver.catch_up();             // before starting anything from an engine event
///   network.start(...);
///   driver.arm();                  // after the last change
///   on event {entity, kind}:  driver.on_event();
///
/// Law: in exact arithmetic completions differ from a run of the network alone by nothing: the
/// engine's ticks decide only when they are told, never when they happen.
class NetworkDriver {
 public:
  using Handler = void (*)(void* context, const NetworkCompletion& completion);

  NetworkDriver(Engine& engine, Network& network, EventClass cls, std::uint32_t entity,
                std::uint32_t kind)
      : engine_(&engine), network_(&network), class_(cls), entity_(entity), kind_(kind) {}

  template <auto Method, class Object>
  void bind(Object& object) {
    handler_ = [](void* context, const NetworkCompletion& c) {
      (static_cast<Object*>(context)->*Method)(c);
    };
    context_ = &object;
  }

  /// Brings the network to max(engine's now, its own now). What is due by then (it rounds to this
  /// instant and its event has not fired yet) is handled first. Within the handler: nothing.
  void catch_up();
  /// Sets the event to the network's next time. Within the handler: nothing, on_event does it.
  void arm();
  void on_event();

 private:
  void drain();

  Engine* engine_;
  Network* network_;
  EventClass class_;
  std::uint32_t entity_, kind_;
  Handler handler_ = nullptr;
  void* context_ = nullptr;
  EventHandle event_;
  bool draining_ = false;
  std::vector<NetworkCompletion> batch_;
};

}  // namespace medley
