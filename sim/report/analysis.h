#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/report/fleet_account.h"
#include "sim/report/statistics.h"

namespace medley {

/// One line of summary.csv: a distribution, or a single number (its `mean`).
struct MetricRow {
  std::string metric;
  std::string unit;
  bool distribution = false;
  Moments moments;
  std::string status;  ///< "ok", "saturated", "inconclusive", "empty", "missing:<field>"
};

/// All metrics of the fleet or of one pool, model, SLO class or tenant.
struct ScopeSummary {
  std::string scope;  ///< "fleet", "pool", "model", "slo_class", "tenant"
  std::string name;
  Stability stability = Stability::kStable;
  std::vector<MetricRow> rows;
  const MetricRow* find(std::string_view metric) const;
  double value(std::string_view metric) const;  ///< `mean`; NaN when blank or absent
};

/// The stretch of time that is measured.
///   Requests count by arrival in [from, to): [warmup, warmup + window), to the end without window.
///   Rates (throughput, goodput, energy per token) count what happens in it, over its length:
///   completions at their last token, prompts at their first token, output tokens spread evenly
///   between a request's first and last one. So a saturated run shows its capacity, not its load.
///   Without warm-up and window these are the totals of the run over the time to the last
///   completion, as serving benchmarks define them.
struct MeasuredWindow {
  double from = 0.0;
  double to = 0.0;
  double seconds() const { return to - from; }
  bool whole_run = true;
};

/// A request met its objectives: all that its class sets. Rejected ones miss; unfinished ones miss
/// when the clock has already passed an objective, else nothing is known.
enum class SloVerdict : std::uint8_t { kNone, kMet, kMissed, kUnknown };

/// Times of one request in seconds, NaN where undefined.
struct RequestTimes {
  double queue = kBlank;         ///< scheduled - arrival
  double prefill = kBlank;       ///< prompt computed - scheduled
  double kv_transfer = kBlank;   ///< KV at the decode replica - prompt computed; 0: one replica
  double decode_queue = kBlank;  ///< joined a batch there - KV there; 0: one replica
  double ttft = kBlank;          ///< first token - arrival
  double tpot = kBlank;          ///< (last - first) / (out - 1); undefined for one output token
  double e2e = kBlank;           ///< last token - arrival
};

/// Share of what a link could have carried in `run_s`; NaN for one that is down.
double link_utilization(const LinkRecord& link, double run_s);

/// Everything the writers need, computed once. Keeps references to scenario and result.
class Analysis {
 public:
  Analysis(const Scenario& scenario, const RunResult& result);

  const FleetAccount& account() const { return account_; }
  const MeasuredWindow& window() const { return window_; }
  const std::vector<ScopeSummary>& scopes() const { return scopes_; }  ///< the fleet first
  const ScopeSummary& fleet() const { return scopes_.front(); }
  const ScopeSummary& pool(std::size_t pool) const { return scopes_[1 + pool]; }

  bool arrived(std::size_t request) const;
  bool measured(std::size_t request) const {  ///< arrived inside the window
    return measured_[request];
  }
  RequestTimes times(std::size_t request) const;
  /// Where its time in batches went (TimeShares::Part); NaN unless finished. Law:
  /// e2e = queue + sum + kv_transfer + decode_queue.
  double time_in(std::size_t request, int part) const;
  SloVerdict slo(std::size_t request) const;
  const SloSpec* slo_of(std::size_t request) const;  ///< its class's objectives, or nullptr
  /// Attributed energy; NaN where the pool's power is unknown.
  double energy_j(std::size_t request) const;
  /// What a request had of `pool`: its energy there [J] (tokens where power is unknown).
  double weight_in(std::size_t request, std::size_t pool) const;
  /// The request's part of its pool's hardware cost of the whole run, idle time included: in
  /// proportion to attributed energy, or to tokens where power is unknown.
  double cost_usd(std::size_t request) const;

  /// Shares of busy device time and of device energy by provenance class, each summing to 1 (or all
  /// 0 when there is none). Time: the weakest number each step's time rests on. Energy: the weakest
  /// power number of the pool.
  struct Trust {
    double time[kProvenanceClasses] = {};
    double energy[kProvenanceClasses] = {};
  };
  const Trust& trust() const { return trust_; }

  const Scenario& scenario() const { return account_.scenario(); }
  const RunResult& result() const { return account_.result(); }

 private:
  void find_window();
  void find_measured();
  void find_trust();
  void price_requests();
  std::size_t prefill_pool(std::size_t request) const;
  void summarize();

  FleetAccount account_;
  MeasuredWindow window_;
  std::vector<const SloSpec*> slo_of_class_;
  std::vector<bool> measured_;
  std::vector<double> pool_cost_, pool_weight_;
  Trust trust_;
  std::vector<ScopeSummary> scopes_;
};

}  // namespace medley
