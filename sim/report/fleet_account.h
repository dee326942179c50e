#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/provenance.h"
#include "sim/runtime/records.h"
#include "sim/scenario/scenario.h"

namespace medley {

/// Something that was not known, so that cells stay blank.
struct MissingValue {
  std::string field;     ///< "power.energy_per_byte", "price.energy"
  std::string group;     ///< node group, or empty
  std::string set_line;  ///< the option that supplies it
  std::string affects;   ///< "energy", "cost", "carbon"
  bool operator==(const MissingValue&) const = default;
};

/// A number, or the field whose absence leaves its cell blank.
struct Known {
  double value = 0.0;
  std::string missing;  ///< empty: known
  bool known() const { return missing.empty(); }
  double or_blank() const;
  std::string status() const;  ///< "" or "missing:<field>"
  static Known unknown(std::string field);
  Known& operator+=(const Known& other);
  Known& operator*=(double factor);
};

/// A replica on a server: the whole of it, or the part that its devices there are.
struct Resident {
  std::uint32_t replica = 0;  ///< index into RunResult::replicas
  std::uint32_t first = 0;    ///< device within the server
  std::uint32_t devices = 0;
  double part = 1.0;  ///< of the replica's devices
};

/// One physical server.
struct NodeAccount {
  std::size_t group = 0;
  int node = 0;  ///< within the group
  std::vector<Resident> residents;
  double assigned = 0.0;  ///< devices that serve a pool
};

/// Power of a pool's devices and of a group's other parts.
struct PoolPower {
  Known context_idle_w;  ///< one device, loaded and idle
  Known limit_w;         ///< one device
  bool dynamic_known = false;
  std::string missing;  ///< first field that leaves active energy unknown
  Provenance provenance = Provenance::kAssumed;
};
struct GroupPower {
  Known deep_idle_w;                             ///< one device that serves nothing
  Known overhead_w;                              ///< DC, without devices
  Known psu;                                     ///< DC over AC
  Provenance provenance = Provenance::kAssumed;  ///< weaker of overhead and PSU
};

/// Datasheet rates of one device as the pool uses it: the peak of the format its matrix products
/// run in, and memory bandwidth; 0 where unknown.
struct PoolRates {
  double peak_flops = 0.0;
  double bandwidth = 0.0;
};
PoolRates pool_rates(const Scenario& scenario, const PoolSpec& pool);

/// Where every replica sits and what it draws and costs.
///   device:  context idle * time + extra energy (bins), per replica
///   node AC: (overhead * time + its devices) / psu_efficiency; devices of no pool draw deep idle
///   site:    sum of nodes * PUE
/// A pool's share of a node's overhead and unassigned devices is its share of the assigned devices
/// there; nodes without any replica count for the site only.
/// Assumes: device energy inside one bin is drawn evenly (only a window that cuts a bin notices).
class FleetAccount {
 public:
  /// Keeps references to both.
  FleetAccount(const Scenario& scenario, const RunResult& result);

  const std::vector<NodeAccount>& nodes() const { return nodes_; }
  const std::vector<PoolPower>& pools() const { return pools_; }
  const std::vector<GroupPower>& groups() const { return groups_; }
  const std::vector<MissingValue>& missing() const { return missing_; }
  double run_s() const { return run_s_; }
  int devices() const;  ///< of the whole cluster

  /// Energy in [from, to) seconds, J.
  Known replica_j(std::size_t replica, double from, double to) const;
  Known pool_devices_j(std::size_t pool, double from, double to) const;
  /// A pool's devices with its share of the nodes around them, AC.
  Known pool_it_j(std::size_t pool, double from, double to) const;
  Known node_j(const NodeAccount& node, double from, double to) const;  ///< AC
  Known cluster_devices_j(double from, double to) const;
  Known cluster_it_j(double from, double to) const;  ///< AC, all nodes

  /// Hardware price of one node [USD/s]: rent, or capex over the amortisation time.
  Known node_usd_per_s(std::size_t group) const;
  /// Hardware and, when owned, site energy; over [from, to). Rent includes power.
  Known pool_usd(std::size_t pool, double from, double to) const;
  Known cluster_usd(double from, double to) const;
  Known energy_usd(const Known& it_j) const;
  Known carbon_g(const Known& it_j) const;

  const Scenario& scenario() const { return scenario_; }
  const RunResult& result() const { return result_; }

 private:
  void place();
  void read_power();
  void find_missing();
  double share(const NodeAccount& node, std::size_t pool) const;
  Known overhead_j(const NodeAccount& node, double seconds) const;
  void add_missing(std::string field, const std::string& group, std::string set_line,
                   std::string affects);

  const Scenario& scenario_;
  const RunResult& result_;
  double run_s_ = 0.0;
  std::vector<NodeAccount> nodes_;
  std::vector<PoolPower> pools_;
  std::vector<GroupPower> groups_;
  std::vector<MissingValue> missing_;
};

/// Checks INV-1 and INV-5 on the records: arrived = finished + rejected + unfinished, and per
/// replica attributed + idle = device total, the bins included, to 1e-9 of the total. Throws
/// InternalError.
void check_conservation(const Scenario& scenario, const RunResult& result);

}  // namespace medley
