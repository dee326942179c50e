#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/report/analysis.h"

namespace medley {

/// What a fleet can have more of.
enum class FleetResource : std::uint8_t {
  kArithmetic,       ///< peaks of the devices
  kMemoryBandwidth,  ///< of the devices
  kMemoryCapacity,   ///< of the devices; given KV blocks likewise
  kDeviceLinks,      ///< bandwidth between devices of a server or domain; latencies stay
  kNetwork,          ///< bandwidth between servers
  kHostSpeed,        ///< engines' host times and front ends, launches
  kPowerLimit,       ///< of the devices
  kReplicas          ///< of every pool, rounded, at least one more, with the nodes they need
};
inline constexpr int kFleetResources = 8;
std::string_view to_string(FleetResource resource);  ///< "memory bandwidth"

/// Gives the scenario `factor` times as much of one resource. False where it has none of it to
/// speak of: nothing was changed.
bool scale_resource(const Catalog& catalog, Scenario& scenario, FleetResource resource,
                    double factor);

/// What a run tells of speed, for comparison with others of the same load.
struct RunSpeed {
  double goodput = kBlank;            ///< [request/s]; NaN where no class has objectives
  double output_throughput = kBlank;  ///< [token/s]
  double ttft_p50 = kBlank, ttft_p99 = kBlank, tpot_p50 = kBlank, tpot_p99 = kBlank;  ///< [s]
  double e2e_p50 = kBlank, e2e_p99 = kBlank;
  double rate() const { return goodput == goodput ? goodput : output_throughput; }
};
RunSpeed speed_of(const Analysis& analysis);

/// Marginal gains: the same load and seed with a little more of one resource at a time.
///   rate:   goodput (without objectives: output tokens) per second, over the nominal run's, less 1
///   times:  nominal over changed, less 1
/// A gain of a whole step (one more replica, one more block) is told as it is: `change` says how
/// much more there was. Validity: local. Two resources that limit in turn may both gain little.
struct Bottleneck {
  FleetResource resource = FleetResource::kArithmetic;
  double change = 0.0;  ///< 0.1: 10 % more
  std::string failure;  ///< empty: it ran
  RunSpeed speed;
  double rate_gain = kBlank;
  double ttft_p50_gain = kBlank, ttft_p99_gain = kBlank, tpot_p50_gain = kBlank;
};
struct Bottlenecks {
  RunSpeed nominal;
  double more = 0.1;             ///< what every resource but whole replicas had more
  std::vector<Bottleneck> rows;  ///< most rate gained first, then most time, per unit of `change`
  /// A gain as `more` of the resource would bring it, were it linear.
  double marginal(const Bottleneck& row, double gain) const { return gain * more / row.change; }
};

struct BottleneckOptions {
  double more = 0.1;
  int threads = 1;
  const std::atomic<bool>* interrupt = nullptr;
};
/// One run per resource the scenario has. The result does not depend on the number of threads.
/// Throws Interrupted.
Bottlenecks find_bottlenecks(const Catalog& catalog, const Analysis& nominal,
                             const BottleneckOptions& options);

/// For people: the table, and in one line what limits.
std::string bottleneck_table(const Bottlenecks& b);
/// "memory bandwidth limits it: ..." or "nothing gains more than 1 %: the load limits it".
std::string bottleneck_verdict(const Bottlenecks& b);
void write_bottlenecks_csv(const Bottlenecks& b, const std::string& path);

/// Steps played as a whole (folded) and layer by layer (layered), the same load and seed.
struct FidelityCheck {
  RunSpeed folded, layered;
  bool shared = false;  ///< some steps meet others: else the two are one
};
/// Runs the fidelity that `nominal` was not run with.
FidelityCheck check_fidelity(const Catalog& catalog, const Analysis& nominal,
                             const std::atomic<bool>* interrupt);
/// Largest |layered / folded - 1| over TTFT, TPOT and E2E, p50 and p99.
double fidelity_difference(const FidelityCheck& check);
std::string fidelity_table(const FidelityCheck& check);
/// The times that are compared: metric, of folded, of layered.
struct FidelityRow {
  const char* name;
  double folded, layered;
  double difference() const { return folded > 0.0 ? layered / folded - 1.0 : kBlank; }
};
std::vector<FidelityRow> fidelity_rows(const FidelityCheck& check);

}  // namespace medley
