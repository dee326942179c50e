#pragma once

#include <atomic>
#include <functional>
#include <stdexcept>

#include "sim/runtime/records.h"
#include "sim/scenario/scenario.h"

namespace medley {

/// Hooks of a run; all optional.
struct RunHooks {
  const std::atomic<bool>* interrupt = nullptr;  ///< set to stop early (status: interrupted)
  std::function<void(double done, SimTime now)>
      progress;  ///< share of requests ended, called rarely
};

/// The front door: simulates one frozen scenario. Deterministic; callable from many threads at
/// once. Throws InfeasibleError when a model fits on none of its devices, Interrupted when told to
/// stop.
RunResult run(const Catalog& catalog, const Scenario& scenario, const RunHooks& hooks = {});

class Interrupted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace medley
