#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hwmodels/device.h"
#include "hwmodels/draw.h"
#include "hwmodels/node.h"
#include "sim/core/op.h"
#include "sim/core/units.h"

namespace medley {

/// A ramp free of any one device: `half` follows from the device's own rate, so that a kernel pays
/// `ramp_time` once on top of work / (rate * fraction):
///   half = rate * fraction * ramp_time.
struct RampPrior {
  double fraction = 1.0;
  Seconds ramp_time;
  double serial = 0.0;  ///< of compute ramps (see Ramp)
};

struct OpPrior {
  RampPrior compute;
  RampPrior memory;
  std::string reason;
};

/// One assumed number and why it is that one.
template <class T>
struct Prior {
  T value{};
  std::string reason;
};

/// What is assumed about a device of one kind ("gpu", "cpu", ...) where the catalogue is silent.
struct KindPriors {
  // Filled into every entry when it is read (efficiencies, overheads and the shape of the clock):
  PerOpClass<std::optional<OpPrior>> efficiency;
  Prior<double> block_scaled;    ///< factor on fp8 compute fractions with a scale per block
  Prior<double> narrow_formats;  ///< factor on compute fractions for formats of 8 bits and fewer
  Prior<Seconds> launch_stream;
  Prior<Seconds> launch_graph;
  Prior<double> clock_min;
  Prior<double> voltage_floor;
  // Filled only on request (`with_assumed`):
  Prior<JoulesPerFlop> limit_per_flop;  ///< power limit over the best 16-bit peak (8-bit: half)
  Prior<double> deep_idle;              ///< of the power limit
  Prior<double> context_idle;           ///< of the power limit
  Prior<double> active_floor;           ///< of the power limit
  Prior<double> sustained;  ///< share of the 16-bit peak at which matrix work meets the limit
  Prior<JoulesPerByte> energy_per_byte;
  Prior<double> capex_per_watt;  ///< USD per watt of power limit
  Prior<Seconds> rent_over;      ///< rental time that pays the capex back
};

struct LinkPriors {
  Prior<double> achieved;
  Prior<Seconds> latency;
  Prior<JoulesPerByte> energy_per_byte;  ///< only on request
};

/// Only on request.
struct NodePriors {
  Prior<Watts> overhead_fixed;
  Prior<Watts> overhead_per_cpu;
  Prior<double> overhead_per_device_watt;  ///< fans, NICs, drives over the devices' power limits
  Prior<double> psu_efficiency;
  Prior<double> capex_over_devices;  ///< whole node over the sum of its devices
};

/// Documented class priors (hwmodels/catalog/priors.json). Every value used is marked `assumed`.
/// Never for peaks, capacity, bandwidth; power and price only through `with_assumed`.
struct Priors {
  std::string file;
  std::map<std::string, KindPriors> kinds;
  std::map<std::string, LinkPriors> links;  ///< by link kind
  NodePriors node;
  DrawPriors uncertainty;  ///< errors of numbers that state none (hwmodels/draw.h)
};

/// Fills efficiencies (for every format with a known peak, and for memory where bandwidth is
/// known), launch overheads, clock_min and voltage_floor where they are unknown.
///   fraction = min(prior, the device's own 16-bit gemm fraction) * narrow_formats (8 bits, fewer),
///   times block_scaled for grouped GEMMs of fp8 with a scale per block,
///   and never above the device's own gemm of the format.
void fill_model_gaps(DeviceSpec& device, const Priors& priors);
/// Fills `achieved` and `latency` where they are unknown.
void fill_model_gaps(LinkSpec& link, const Priors& priors);

/// A copy with missing power and price values filled and marked `assumed` (`--assume-missing`).
/// What the prior needs and is itself unknown (a peak for a limit) leaves the value unknown.
///   limit       = limit_per_flop * 16-bit peak, at least twice a known context idle
///   idle, floor = fractions of the limit, kept in the order deep <= context <= floor
///   e_flop[16b] = (limit - floor) / (sustained * peak[16b]);   narrower formats in proportion to
///   their peaks (the same watts at their own rate)
DeviceSpec with_assumed(const DeviceSpec& device, const Priors& priors);
/// `device` is the node's own, with its gaps filled, for the terms that scale with it.
NodeSpec with_assumed(const NodeSpec& node, const DeviceSpec& device, const Priors& priors);
LinkSpec with_assumed(const LinkSpec& link, const Priors& priors);

}  // namespace medley
