#pragma once

#include <cstdint>

#include "sim/engine/event_queue.h"

namespace medley {

/// Lets tests reach the overflow of the sequence field without 2^37 pushes.
struct EventQueueTestAccess {
  static void set_next_sequence(EventQueue& queue, std::uint64_t sequence) {
    queue.next_sequence_ = sequence;
  }
};

}  // namespace medley
