#include "hwmodels/draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/core/rng.h"

namespace medley {

namespace {
constexpr double kMostFloor = 0.9;  ///< of the power limit

/// Draws the numbers of one part; `part` is "device:<name>".
class PartDraw {
 public:
  PartDraw(const ParameterDraw& draw, std::string part) : draw_(draw), part_(std::move(part)) {}

  template <class T>
  double sigma(const Sourced<T>& value, DrawKind kind) const {
    if (!value.known() || value.source == kGivenInScenario) return 0.0;
    if (value.error > 0.0) return value.error;
    return draw_.priors()
        .sigma[static_cast<std::size_t>(kind)][static_cast<std::size_t>(value.provenance)];
  }
  double factor(const char* name, double sigma) const {
    return sigma > 0.0 ? draw_.factor(fmt::format("{}/{}", part_, name), sigma) : 1.0;
  }
  template <class T>
  void scale(Sourced<T>& value, const char* name, DrawKind kind) const {
    const double s = sigma(value, kind);
    if (s > 0.0) value.value = factor(name, s) * *value;
  }
  /// A share: at most 1.
  void share(Sourced<double>& value, const char* name, DrawKind kind) const {
    const double s = sigma(value, kind);
    if (s > 0.0) value.value = std::min(1.0, factor(name, s) * *value);
  }
  void ramp(Sourced<Ramp>& value, const std::string& name) const {
    const double s = sigma(value, DrawKind::kEfficiency);
    if (s > 0.0) {
      value.value->fraction = std::min(1.0, factor(name.c_str(), s) * value.value->fraction);
    }
    if (value.error > 0.0 || sigma(value, DrawKind::kRampHalf) == 0.0) return;
    value.value->half *= factor((name + ".half").c_str(), sigma(value, DrawKind::kRampHalf));
  }

 private:
  const ParameterDraw& draw_;
  std::string part_;
};

/// Lowers `value` to `most` where the nominal values are in that order.
void keep_below(Sourced<Watts>& value, const Sourced<Watts>& nominal, const Sourced<Watts>& above,
                const Sourced<Watts>& nominal_above) {
  if (!value.known() || !above.known() || *nominal > *nominal_above) return;
  value.value = std::min(*value, *above);
}

void draw_power(const PartDraw& part, const PowerSpec& nominal, PowerSpec& power) {
  for (auto& energy : power.energy_per_flop) {
    part.scale(energy, "power.energy_per_flop", DrawKind::kEnergy);
  }
  part.scale(power.energy_per_byte, "power.energy_per_byte", DrawKind::kEnergy);
  part.share(power.clock_min, "power.clock_min", DrawKind::kClock);
  part.share(power.voltage_floor, "power.voltage_floor", DrawKind::kClock);
  for (Sourced<Watts>* idle : {&power.deep_idle, &power.context_idle, &power.active_floor}) {
    part.scale(*idle, "power.idle", DrawKind::kIdlePower);
  }
  if (power.active_floor.known() && power.limit.known()) {
    const Watts most = std::max(*nominal.active_floor, kMostFloor * *power.limit);
    power.active_floor.value = std::min(*power.active_floor, most);
  }
  keep_below(power.context_idle, nominal.context_idle, power.active_floor, nominal.active_floor);
  keep_below(power.deep_idle, nominal.deep_idle, power.context_idle, nominal.context_idle);
}

double table_factor(const PartDraw& part, const AllReduceTable& table) {
  const Sourced<int> basis{1, table.provenance, table.source};
  return part.factor("all_reduce", part.sigma(basis, DrawKind::kCollective));
}

LinkSpec slowed(LinkSpec link, double factor) {
  if (link.bandwidth.known()) link.bandwidth.value = *link.bandwidth / factor;
  if (link.latency.known()) link.latency.value = factor * *link.latency;
  return link;
}

constexpr std::array<std::string_view, kDrawKinds> kKindNames = {
    "peak",       "capacity", "efficiency", "ramp_half",      "launch",     "clock",
    "idle_power", "energy",   "achieved",   "latency",        "collective", "host",
    "skew",       "reserve",  "node_power", "psu_efficiency", "price"};
constexpr std::array<std::string_view, kModelBases> kBasisNames = {
    "tables", "roofline_calibrated", "roofline_catalogue", "constant"};
}  // namespace

std::string_view to_string(DrawKind kind) {
  return kKindNames[static_cast<std::size_t>(kind)];
}
std::string_view to_string(ModelBasis basis) {
  return kBasisNames[static_cast<std::size_t>(basis)];
}

double ParameterDraw::factor(std::string_view identity, double sigma) const {
  const double s = scale_ * sigma;
  if (index_ == 0 || s == 0.0) return 1.0;
  Rng stream(seed_, fmt::format("draw/{}/{}", index_, identity));
  return std::exp(s * stream.normal(0.0, 1.0) - 0.5 * s * s);
}

DeviceSpec ParameterDraw::device(const DeviceSpec& nominal) const {
  DeviceSpec d = nominal;
  const PartDraw part(*this, "device:" + nominal.name);
  for (auto& peak : d.peak) part.scale(peak, "peak", DrawKind::kPeak);
  for (auto& share : d.sustained) part.share(share, "sustained", DrawKind::kEfficiency);
  part.scale(d.memory_capacity, "memory.capacity", DrawKind::kCapacity);
  part.scale(d.memory_bandwidth, "memory.bandwidth", DrawKind::kPeak);
  for (int c = 0; c < kOpClasses; ++c) {
    OpEfficiency& e = d.efficiency[static_cast<std::size_t>(c)];
    const std::string name = fmt::format("efficiency.{}", to_string(static_cast<OpClass>(c)));
    for (auto& ramp : e.compute) part.ramp(ramp, name + ".compute");
    part.ramp(e.memory, name + ".memory");
    for (auto& ramp : e.compute_block_scaled) part.ramp(ramp, name + ".compute");
    for (auto& ramp : e.compute_by_format) part.ramp(ramp, name + ".compute");
    for (auto& ramp : e.memory_by_format) part.ramp(ramp, name + ".memory");
  }
  part.scale(d.launch_stream, "launch", DrawKind::kLaunch);
  part.scale(d.launch_graph, "launch", DrawKind::kLaunch);
  draw_power(part, nominal.power, d.power);
  part.scale(d.capex, "price", DrawKind::kPrice);
  part.scale(d.rent, "price", DrawKind::kPrice);
  return d;
}

LinkSpec ParameterDraw::link(const LinkSpec& nominal) const {
  LinkSpec l = nominal;
  const PartDraw part(*this, "link:" + nominal.name);
  part.scale(l.bandwidth, "bandwidth", DrawKind::kPeak);
  part.share(l.achieved, "achieved", DrawKind::kAchieved);
  part.scale(l.latency, "latency", DrawKind::kLatency);
  part.scale(l.energy_per_byte, "energy_per_byte", DrawKind::kEnergy);
  return l;
}

NodeSpec ParameterDraw::node(const NodeSpec& nominal, const LinkSpec* fabric) const {
  NodeSpec n = nominal;
  const PartDraw part(*this, "node:" + nominal.name);
  for (AllReduceTable& table : n.all_reduce) {
    const double slower = table_factor(part, table);
    for (AllReducePoint& point : table.points) point.time *= slower;
  }
  if (n.all_reduce.empty()) {
    part.scale(n.fabric_bandwidth, "fabric.bandwidth", DrawKind::kPeak);
    if (fabric != nullptr) n.resolved_link = link(*fabric);
  } else {
    const double slower = table_factor(part, n.all_reduce.front());
    if (n.fabric_bandwidth.known()) n.fabric_bandwidth.value = *n.fabric_bandwidth / slower;
    if (fabric != nullptr) n.resolved_link = slowed(*fabric, slower);
  }
  part.scale(n.idle_power, "power", DrawKind::kNodePower);
  part.scale(n.overhead, "power", DrawKind::kNodePower);
  part.share(n.psu_efficiency, "psu_efficiency", DrawKind::kSupply);
  part.scale(n.capex, "price", DrawKind::kPrice);
  part.scale(n.rent, "price", DrawKind::kPrice);
  return n;
}

BackendSpec ParameterDraw::backend(const BackendSpec& nominal) const {
  BackendSpec b = nominal;
  const PartDraw part(*this, "backend:" + nominal.name);
  part.scale(b.host_per_step, "host", DrawKind::kHost);
  part.scale(b.host_per_sequence, "host", DrawKind::kHost);
  part.scale(b.sync_per_step, "sync", DrawKind::kHost);
  part.scale(b.sync_per_sequence, "sync", DrawKind::kHost);
  part.scale(b.host_per_kernel, "issue", DrawKind::kHost);
  part.scale(b.request_overhead, "request", DrawKind::kHost);
  part.scale(b.prompt_token_overhead, "request", DrawKind::kHost);
  part.scale(b.context_reserve, "context_reserve", DrawKind::kReserve);
  part.scale(b.activation_factor, "activation_factor", DrawKind::kReserve);
  part.share(b.decode_skew, "decode_skew", DrawKind::kSkew);
  return b;
}

double ParameterDraw::model_factor(ModelBasis basis, std::string_view device) const {
  const char* kind = basis == ModelBasis::kTables     ? "tables"
                     : basis == ModelBasis::kConstant ? "constant"
                                                      : "roofline";
  return factor(fmt::format("model:{}/{}", kind, device),
                priors_->model_error[static_cast<std::size_t>(basis)]);
}

ModelBasis roofline_basis(const DeviceSpec& device, DType arithmetic) {
  const OpEfficiency& gemm = device.efficiency[index(OpClass::kGemm)];
  const Sourced<Ramp>* used[] = {
      &gemm.compute[index(arithmetic)], &gemm.memory,
      &device.efficiency[index(OpClass::kAttentionPrefill)].compute[index(arithmetic)],
      &device.efficiency[index(OpClass::kAttentionDecode)].memory};
  const bool measured = std::all_of(std::begin(used), std::end(used), [](const auto* ramp) {
    return ramp->known() && ramp->provenance == Provenance::kMeasured;
  });
  return measured ? ModelBasis::kRooflineCalibrated : ModelBasis::kRooflineCatalogue;
}

}  // namespace medley
