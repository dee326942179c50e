#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "hwmodels/backend.h"
#include "hwmodels/device.h"
#include "hwmodels/node.h"
#include "sim/core/provenance.h"

namespace medley {

/// Kinds of number, by how well numbers of one class are known (keys of priors.json).
enum class DrawKind : std::uint8_t {
  kPeak,        ///< peaks and bandwidths of devices and links
  kCapacity,    ///< memory capacity
  kEfficiency,  ///< fraction of a ramp, sustained share
  kRampHalf,    ///< half of a ramp
  kLaunch,      ///< launch gaps
  kClock,       ///< clock_min, voltage_floor
  kIdlePower,   ///< deep idle, context idle, active floor
  kEnergy,      ///< per flop and per byte
  kAchieved,    ///< share of a link's bandwidth
  kLatency,     ///< of a link
  kCollective,  ///< measured all-reduce times
  kHost,        ///< engine's host time per step and per sequence
  kSkew,        ///< decode skew
  kReserve,     ///< memory the engine keeps for itself
  kNodePower,   ///< node overhead and idle power
  kSupply,      ///< power supply efficiency
  kPrice        ///< capex and rent
};
inline constexpr int kDrawKinds = 17;
std::string_view to_string(DrawKind kind);  ///< "peak", "capacity", "efficiency", ...

/// What a step's time rests on, for the error of the model's form.
enum class ModelBasis : std::uint8_t {
  kTables,              ///< kernel tables of the card
  kRooflineCalibrated,  ///< roofline whose GEMM and attention ramps are measured on the device
  kRooflineCatalogue,   ///< roofline with a derived or assumed one among them
  kConstant             ///< times the user gave
};
inline constexpr int kModelBases = 4;
std::string_view to_string(ModelBasis basis);  ///< "tables", "roofline_calibrated", ...

/// Relative standard errors where a value states none of its own: hwmodels/catalog/priors.json,
/// section "uncertainty".
struct DrawPriors {
  std::array<std::array<double, kProvenanceClasses>, kDrawKinds> sigma{};  ///< by kind and class
  std::array<std::string, kDrawKinds> reason;
  std::array<double, kModelBases> model_error{};  ///< of the time of a step
  std::array<std::string, kModelBases> model_reason;
};

/// The source of values that the scenario itself sets: they are taken as given and not drawn.
inline constexpr std::string_view kGivenInScenario = "given in the scenario";

/// One draw of every uncertain number of hardware and backends.
///
///   drawn = nominal * exp(sigma z - sigma^2 / 2),   z ~ N(0, 1),  E[factor] = 1
///
/// sigma: the value's own `error` where it states one (calibrated), else the prior of its kind and
/// class. A stated error of a ramp is that of the whole curve: it moves `fraction`, and `half`
/// stays. Then clipped to what is physical: shares to 1; deep idle <= context idle <= active floor
/// <= 0.9 limit (where the nominal values are in that order).
///
/// z comes from a stream named by (seed, index, identity of the number), so that a part is drawn
/// alike in every scenario, whatever else is in it: comparisons are paired. Numbers that rest on
/// one fit or one physical cause share a z: all formats of one op class of one device (fraction and
/// half apart), all peaks of a device, energy per flop of all formats, the three idle powers
/// (static power of one die), host time per step and per sequence of one backend, the all-reduce
/// tables of a node with the rate and latency of the link that continues them (else the small
/// difference of two large times, by which a table is left downwards, would be drawn), capex and
/// rent. Otherwise numbers are drawn independently, op classes and devices too. Not drawn: peaks,
/// bandwidths and capacities of data sheets (prior 0), power limits, counts and limits of engines,
/// what the scenario itself sets (kGivenInScenario).
///
/// Assumes log-normal errors. An interval over draws is the uncertainty of the parameters plus one
/// common factor per device for the form of the step model (model_factor); it does not hold
/// mis-stated workloads, other software versions or faults.
/// Law: index 0, or scale 0, gives the nominal to the bit; factors do not depend on the order of
/// calls.
class ParameterDraw {
 public:
  /// `scale` multiplies every error.
  ParameterDraw(const DrawPriors& priors, std::uint64_t seed, int index, double scale = 1.0)
      : priors_(&priors), seed_(seed), index_(index), scale_(scale) {}

  DeviceSpec device(const DeviceSpec& nominal) const;
  LinkSpec link(const LinkSpec& nominal) const;
  /// `fabric`: the link that joins the node's devices (its fabric's, else the host's), resolved;
  /// nullptr without one. The drawn one goes into NodeSpec::resolved_link.
  NodeSpec node(const NodeSpec& nominal, const LinkSpec* fabric) const;
  BackendSpec backend(const BackendSpec& nominal) const;
  /// Factor on every device time of steps modelled on `basis` on device `device`. Candidates on one
  /// device share it.
  double model_factor(ModelBasis basis, std::string_view device) const;

  /// exp(s z - s^2 / 2) with s = scale * sigma; exactly 1 where s is 0 or for draw 0.
  double factor(std::string_view identity, double sigma) const;
  int index() const { return index_; }
  const DrawPriors& priors() const { return *priors_; }

 private:
  const DrawPriors* priors_;
  std::uint64_t seed_;
  int index_;
  double scale_;
};

/// kRooflineCalibrated when gemm (compute of `arithmetic`, memory), attention_prefill (compute) and
/// attention_decode (memory) ramps are all `measured`, else kRooflineCatalogue.
ModelBasis roofline_basis(const DeviceSpec& device, DType arithmetic);

}  // namespace medley
