#pragma once

#include <cstddef>
#include <functional>

#include "sim/validation/validation.h"

namespace medley {

/// Calls `body(i)` for i in [0, count) on `context.threads` threads; the first exception (by index)
/// is thrown once all have ended. Results belong in slots by index, so that order never depends on
/// the threads.
void for_each_row(const ValidationContext& context, std::size_t count,
                  const std::function<void(std::size_t)>& body);

}  // namespace medley
