#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/report/analysis.h"

namespace medley {

/// Turns records into ScopeSummary rows; used by Analysis only.
class SummaryBuilder {
 public:
  explicit SummaryBuilder(const Analysis& analysis);
  std::vector<ScopeSummary> build();

 private:
  static constexpr std::uint32_t kNobody = 0xffffffffU;
  /// One way of splitting the requests.
  struct Grouping {
    std::string scope;
    std::vector<std::string> names;
    std::function<std::uint32_t(std::size_t)> of;  ///< request -> index into names, or kNobody
    std::size_t first = 0;                         ///< index of its first scope
  };
  /// Sums over the requests of one scope.
  struct Tally {
    std::int64_t requests = 0, completed = 0, rejected = 0, unfinished = 0;
    std::int64_t input_tokens = 0, output_tokens = 0;  ///< of completed ones
    std::int64_t cached_tokens = 0, started_input_tokens = 0;
    std::int64_t preemptions = 0;
    std::int64_t tier_tokens = 0, migrations = 0;
    std::int64_t with_slo = 0, met = 0;
    std::int64_t ttft_judged = 0, ttft_met = 0, tpot_judged = 0, tpot_met = 0;
    std::int64_t e2e_judged = 0, e2e_met = 0;
    bool has_slo = false;
    // What happened inside the window, whenever the request arrived:
    double finished_in = 0.0, good_in = 0.0, prompt_tokens_in = 0.0, output_tokens_in = 0.0;
  };

  void make_groupings();
  void count_requests();
  void count_request(std::size_t request, Tally& tally) const;
  void count_objectives(std::size_t request, Tally& tally) const;
  void count_in_window(std::size_t request, Tally& tally) const;
  void add_distribution(const std::string& metric, const std::string& unit,
                        const std::function<double(std::size_t)>& value);
  void add_moments(std::size_t scope, const std::string& metric, const std::string& unit,
                   const Moments& moments);
  void add_gaps();
  void add_request_numbers(std::size_t scope);
  void add_rates(std::size_t scope);
  void add_objectives(std::size_t scope);
  void add_pool_numbers(std::size_t pool);
  void add_fleet_numbers();
  struct Hardware {  ///< what the numbers below are computed from
    double devices = 0.0, replicas = 0.0, busy = 0.0, flops = 0.0, peak_flops = 0.0;
    double bytes = 0.0, peak_bytes = 0.0, limited = 0.0, extrapolated = 0.0;
    double waited_device = 0.0, waited_link = 0.0;
    double active_j = 0.0, extrapolated_j = 0.0;
    double loads = 0.0, load_s = 0.0;
    std::string power_missing;        ///< first field that leaves active energy unknown
    void add(const Hardware& other);  ///< all but the devices
  };
  Hardware hardware_of(std::size_t pool) const;
  void add_hardware(std::size_t scope, const Hardware& h);
  void add_load(std::size_t scope, std::uint16_t pool);
  void add_money(std::size_t scope, const Known& devices_j, const Known& it_j, const Known& usd);
  void add_trust();
  void add_links();

  void number(std::size_t scope, std::string metric, std::string unit, double value,
              std::int64_t count = 1);
  void number(std::size_t scope, std::string metric, std::string unit, const Known& value);
  MetricRow& push(std::size_t scope, std::string metric, std::string unit);
  std::string base_status(const ScopeSummary& scope) const;

  const Analysis& a_;
  const Scenario& scenario_;
  const RunResult& result_;
  std::vector<Grouping> groupings_;
  std::vector<Tally> tallies_;  ///< by scope
  std::vector<ScopeSummary> scopes_;
};

}  // namespace medley
