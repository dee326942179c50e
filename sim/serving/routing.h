#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/registry.h"
#include "sim/core/rng.h"
#include "sim/core/units.h"
#include "workloads/request.h"

namespace medley {

/// What a controller can know of one pool before and during a run: rates measured (here: evaluated)
/// at a reference load of 1,024-token contexts, and prices.
struct PoolProfile {
  static constexpr std::int64_t kReferenceContext = 1024;
  double decode_tokens_per_s = 0.0;        ///< one replica, largest batch that fits
  double prefill_tokens_per_s = 0.0;       ///< one replica
  std::vector<double> step_s_at;           ///< decode step time at 1, 2, 4, ... sequences
  std::optional<double> usd_per_s;         ///< one replica
  std::optional<double> joules_per_token;  ///< at the reference load
};

/// What a router may see (INV-8: no future). Replicas are numbered over the whole fleet.
class RouterView {
 public:
  virtual ~RouterView() = default;
  virtual std::size_t replicas() const = 0;
  virtual std::uint16_t pool_of(std::uint32_t replica) const = 0;
  virtual const PoolProfile& profile(std::uint16_t pool) const = 0;
  virtual double outstanding_requests(std::uint32_t replica) const = 0;
  /// Prompt + expected output of what was sent and has not ended, less prompts already computed.
  virtual double outstanding_tokens(std::uint32_t replica) const = 0;
  /// The part of outstanding_tokens that is prompts still to compute.
  virtual double outstanding_prompt_tokens(std::uint32_t replica) const = 0;
  virtual bool has_room(std::uint32_t replica, std::int64_t input_tokens) const = 0;
  struct Slo {
    std::optional<double> ttft_s, tpot_s;
  };
  virtual Slo slo(std::uint16_t slo_class) const = 0;
};

/// Sends each request to one of `candidates` (the replicas that serve its model and could ever hold
/// it), or holds it in the central queue.
/// Contract: deterministic given view, candidates and rng; reads only the view.
class Router {
 public:
  static constexpr std::uint32_t kHold = 0xffffffffU;
  virtual ~Router() = default;
  virtual std::uint32_t route(const PublicRequest& request,
                              const std::vector<std::uint32_t>& candidates, const RouterView& view,
                              Rng& rng) = 0;
  /// The load of `replica` changed (dispatch, first token, completion).
  virtual void load_changed(std::uint32_t replica, const RouterView& view) {
    (void)replica, (void)view;
  }
};

struct RouterContext {
  std::size_t replicas = 0;
  /// Candidate lists, one per model; outlive the router. `route` gets one of them, or another list.
  const std::vector<std::vector<std::uint32_t>>* groups = nullptr;
  const std::map<std::string, double>* params = nullptr;
  double param(const std::string& name) const { return params->at(name); }
};
using RouterFactory = std::unique_ptr<Router> (*)(const RouterContext&);

/// All routing policies with their parameters; the registration lines are in routing.cpp.
const Registry<RouterFactory>& routing_registry();

}  // namespace medley
