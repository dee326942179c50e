#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/request.h"

namespace medley {

/// Whose watts a log holds.
enum class PowerScope : std::uint8_t {
  kDevice,     ///< accelerators, each its own
  kServer,     ///< a whole server
  kContainer,  ///< what software attributes to a workload (Kepler)
};
std::string_view to_string(PowerScope scope);

/// One meter's readings: a device, a server, or a counter. Times ascend.
struct PowerSeries {
  std::string name;            ///< "0", "GPU-1234...", "server"
  std::vector<double> time_s;  ///< Unix time where the log says so, else since its first reading
  std::vector<double> watts;   ///< at that time (gauges), or since the reading before (counters)
  bool from_counter = false;
};

/// Measured power. Energy is the integral of the readings: gauges are linear between two readings,
/// counters exact. Valid for readings closer than what changes (nvidia-smi averages over 25 to
/// 100 ms on most devices; DCGM exporters are read every 30 s by default).
struct PowerLog {
  std::string format;
  PowerScope scope = PowerScope::kDevice;
  std::vector<PowerSeries> series;
  ImportAccount account;

  double start_s() const;  ///< first and last reading over all series
  double end_s() const;
  /// Sum over series of the energy in [from, to] [J], clipped to what each series covers; absent
  /// where no series has two readings in it.
  std::optional<double> energy_j(double from, double to) const;
  /// Sum over series of the mean power in [from, to] [W]; likewise.
  std::optional<double> mean_w(double from, double to) const;
};

/// Reads what power meters write; the format is told from the content:
///   nvidia-smi   --query-gpu=timestamp,index,power.draw,... --format=csv[,noheader][,nounits];
///                [N/A] readings are dropped; rows without header: time, index, ..., watts last
///   dcgm-prom    Prometheus text of DCGM exporters, one scrape or several with time stamps (ms):
///                DCGM_FI_DEV_POWER_USAGE [W], else DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION [mJ];
///                the blank sentinel 9223372036854775794 is dropped
///   metric-csv   timestamp,<metric>: DCGM_FI_DEV_POWER_USAGE,
///   DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION,
///                kepler_*_joules_total
///   server-csv   date time,watts without header
/// Rows that cannot be read are dropped and counted up to 1 % of them (one at least): loggers are
/// killed in the middle of a line. Several readings of one second are spread evenly over it. Times
/// without zone are UTC. Throws InputError (file, line) with every problem found.
PowerLog read_power_log(const std::string& path);

}  // namespace medley
