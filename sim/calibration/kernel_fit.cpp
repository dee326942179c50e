#include "sim/calibration/kernel_fit.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/calibration/solve.h"
#include "sim/core/text_file.h"

namespace medley {

namespace {
constexpr double kMargin = 1.03;       ///< over the data sheet, for rounding and boost clocks
constexpr double kCacheMargin = 1.25;  ///< part of a slightly larger set still hits
constexpr double kStreamed = 3e-6;     ///< s; less is fixed time anyway
constexpr std::size_t kRowsPerCell = 40;
constexpr double kSmallKernel = 20e-6;  ///< s
constexpr double kLeastWeight = 0.25;
constexpr double kShortContext = 128.0;
constexpr double kLeastShare = 0.02;
constexpr std::size_t kLeastRows = 6;  ///< in the fitted half
constexpr int kManyRows = 100;
constexpr double kHostBound = 25e-6;  ///< s
constexpr double kFloorRatio = 3.0;
constexpr double kMostRamp = 10e-6;  ///< s
constexpr int kLeastSide = 512;
constexpr double kStreamFraction = 0.8;  ///< of bandwidth, as the priors have it

struct Prepared {
  RampSample sample;
  std::uint64_t hash = 0;
  std::int64_t cell = 0;
};

using Formats = std::tuple<DType, DType, bool>;  ///< arithmetic, stored, block-scaled

struct Group {
  KernelFitRow row;
  std::vector<Prepared> fit, judge;
  bool host_bound = false;
};

std::int64_t octave(double x) {
  return x > 0.0 ? static_cast<std::int64_t>(std::floor(std::log2(x))) : -1;
}

class Preparation {
 public:
  explicit Preparation(const DeviceSpec& device) : device_(device) {
    if (device.last_level_cache.known()) cache_ = (*device.last_level_cache).value();
    if (device.launch_graph.known()) launch_ = (*device.launch_graph).value();
  }

  std::optional<RampRates> rates(DType dtype) const {
    const auto& peak = device_.peak[index(dtype)];
    if (!peak.known() || !device_.memory_bandwidth.known()) return std::nullopt;
    return RampRates{(*peak).value(), (*device_.memory_bandwidth).value()};
  }

  /// Empty: the row is kept, and in `out`.
  const char* take(const KernelSample& s, const RampRates& rates, Prepared& out) const {
    const double kernels = std::max(1, s.kernels);
    RampSample& r = out.sample;
    r.flops = s.flops / kernels;
    r.bytes = s.bytes / kernels;
    r.time_s = (s.time_s - companions_s(s)) / kernels - launch_;
    if (!(r.time_s > 0.0) || !(r.bytes > 0.0)) return "no time or work";
    const double compute = r.flops / rates.peak, memory = r.bytes / rates.bandwidth;
    const bool large = r.bytes > kCacheMargin * cache_;
    if (compute > kMargin * r.time_s || (large && memory > kMargin * r.time_s)) {
      return "faster than the data sheet";
    }
    if (!large && memory > kStreamed && memory > compute) return "cache resident";
    r.weight = std::clamp(r.time_s / kSmallKernel, kLeastWeight, 1.0);
    if (s.op_class == OpClass::kAttentionDecode && s.position < kShortContext) {
      r.weight *= kLeastWeight;
    }
    out.cell = octave(r.flops) * 1000 + octave(r.bytes);
    return nullptr;
  }

  /// Time of memory-bound kernels measured along: their traffic at the device's elementwise rate.
  double companions_s(const KernelSample& s) const {
    const Sourced<Ramp>& ramp = device_.efficiency[index(OpClass::kElementwise)].memory;
    const double fraction = ramp.known() ? (*ramp).fraction : kStreamFraction;
    return s.companion_bytes / ((*device_.memory_bandwidth).value() * fraction);
  }

 private:
  const DeviceSpec& device_;
  double cache_ = 0.0;
  double launch_ = 0.0;
};

/// Value of `name=` in "n=4096,k=4096,format=fp8"; empty when it is not there.
std::string_view axis(std::string_view curve, std::string_view name) {
  while (!curve.empty()) {
    const std::size_t end = std::min(curve.find(','), curve.size());
    const std::string_view part = curve.substr(0, end);
    if (part.size() > name.size() && part.starts_with(name) && part[name.size()] == '=') {
      return part.substr(name.size() + 1);
    }
    curve.remove_prefix(std::min(end + 1, curve.size()));
  }
  return {};
}

/// The kernel that a row measured, where a table holds several for one format.
std::string variant(const KernelSample& s) {
  const std::string_view format = axis(s.curve, "format"), kernel = axis(s.curve, "kernel");
  std::string name(format);
  if (!format.empty() && !kernel.empty()) name += ' ';
  return name.append(kernel);
}

bool usual_heads(const KernelSample& s) {
  const std::string_view d = axis(s.curve, "d"), window = axis(s.curve, "window");
  return (d.empty() || d == "128") && (window.empty() || window == "0");
}

/// A side of the matrix that no projection of a served model has on one device.
bool narrow(const KernelSample& s) {
  for (const std::string_view side : {axis(s.curve, "n"), axis(s.curve, "k")}) {
    int value = kLeastSide;
    std::from_chars(side.data(), side.data() + side.size(), value);
    if (value < kLeastSide) return true;
  }
  return false;
}

/// What of a table is fitted: the most frequent kernel of each pair of formats, and full attention
/// of head size 128 where the class has such rows.
class Choice {
 public:
  Choice(const std::vector<KernelSample>& samples, const DeviceSpec& device) {
    std::map<Key, std::map<std::string, int>> counts;
    for (const KernelSample& s : samples) {
      ++counts[key(s, device)][variant(s)];
      if (usual_heads(s)) usual_.insert(s.op_class);
    }
    for (const auto& [formats, names] : counts) {
      // Of equally frequent ones the plainest name: "fp8" before "fp8_block".
      const auto better = [](const auto& a, const auto& b) {
        return std::pair(a.second, -static_cast<int>(a.first.size())) <
               std::pair(b.second, -static_cast<int>(b.first.size()));
      };
      chosen_[formats] = std::max_element(names.begin(), names.end(), better)->first;
    }
  }
  /// Empty when the row is wanted.
  const char* why_not(const KernelSample& s, const DeviceSpec& device) const {
    if (usual_.count(s.op_class) != 0 && !usual_heads(s)) return "window or head size not 128";
    if (chosen_.at(key(s, device)) != variant(s)) return "another kernel of the format";
    return s.op_class == OpClass::kGemm && narrow(s) ? "narrow matrix" : nullptr;
  }

 private:
  using Key = std::tuple<OpClass, DType, DType, bool>;
  static Key key(const KernelSample& s, const DeviceSpec& device) {
    return {s.op_class, compute_fallback(device, s.dtype).value_or(s.dtype), s.weights,
            s.block_scaled};
  }
  std::map<Key, std::string> chosen_;
  std::set<OpClass> usual_;
};

/// At most kRowsPerCell rows of each cell, those of the smallest hashes.
std::vector<RampSample> thinned(std::vector<Prepared> rows) {
  std::sort(rows.begin(), rows.end(), [](const Prepared& a, const Prepared& b) {
    return std::pair(a.cell, a.hash) < std::pair(b.cell, b.hash);
  });
  std::vector<RampSample> out;
  std::size_t in_cell = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    in_cell = i > 0 && rows[i].cell == rows[i - 1].cell ? in_cell + 1 : 0;
    if (in_cell < kRowsPerCell) out.push_back(rows[i].sample);
  }
  return out;
}

std::vector<RampSample> plain(const std::vector<Prepared>& rows) {
  std::vector<RampSample> out;
  for (const Prepared& p : rows) out.push_back(p.sample);
  return out;
}

/// Least time of a group's kernels: first percentile.
double floor_of(const Group& g) {
  std::vector<double> times;
  for (const auto* half : {&g.fit, &g.judge}) {
    for (const Prepared& p : *half) times.push_back(p.sample.time_s);
  }
  return quantile(times, 0.01);
}

/// Keeps the rows whose ideal compute time alone is above the floor.
void drop_host_bound(Group& g, double floor, double peak) {
  g.host_bound = true;
  for (auto* half : {&g.fit, &g.judge}) {
    const auto gone =
        std::erase_if(*half, [&](const Prepared& p) { return p.sample.flops / peak < floor; });
    g.row.dropped["loop bound by the host"] += static_cast<int>(gone);
  }
}

/// What every format of one class has to go by: the 16-bit group's, where there is one.
struct Base {
  double floor = 0.0;
  std::optional<RampPair> ramps;
  double compute_ramp_s = kMostRamp;
};

RampPair solve(const Group& g, const std::vector<RampSample>& training, const RampRates& rates,
               const std::optional<Ramp>& compute, const Base& base) {
  if (!g.host_bound) return fit_ramps(training, rates, compute);
  RampPair pair = *base.ramps;
  pair.compute = fit_compute_ramp(training, rates, 2.0 * base.compute_ramp_s);
  return pair;
}

void fit_group(Group& g, const RampRates& rates, const std::optional<Ramp>& compute,
               const Base& base, const KernelFitOptions& options) {
  KernelFitRow& row = g.row;
  row.rates = rates;
  std::vector<RampSample> training = thinned(g.fit);
  row.ramps = solve(g, training, rates, compute, base);
  row.judged = plain(g.judge);
  row.held_out = residuals(row.ramps, rates, row.judged);
  std::vector<Prepared> all = g.fit;
  if (!options.holdout) {
    all.insert(all.end(), g.judge.begin(), g.judge.end());
    training = thinned(all);
    row.ramps = solve(g, training, rates, compute, base);
  }
  row.fitted = static_cast<int>(training.size());
  const RampSample& first = all.front().sample;
  row.low_flops = row.high_flops = first.flops;
  row.low_bytes = row.high_bytes = first.bytes;
  for (const Prepared& p : all) {
    row.low_flops = std::min(row.low_flops, p.sample.flops);
    row.high_flops = std::max(row.high_flops, p.sample.flops);
    row.low_bytes = std::min(row.low_bytes, p.sample.bytes);
    row.high_bytes = std::max(row.high_bytes, p.sample.bytes);
  }
  row.compute_rows =
      static_cast<int>(std::count_if(training.begin(), training.end(), [&](const RampSample& s) {
        return row.ramps.compute_bound(rates, s.flops, s.bytes);
      }));
}

Sourced<Ramp> leaf(Ramp ramp, const KernelFitRow& row, bool compute) {
  ramp.fraction = std::min(1.0, rounded(ramp.fraction));
  ramp.half = rounded(ramp.half);
  ramp.serial = compute ? rounded(ramp.serial, 3) : 0.0;
  ramp.low = rounded(compute ? row.low_flops : row.low_bytes);
  ramp.high = rounded(compute ? row.high_flops : row.high_bytes);
  Sourced<Ramp> out;
  out.value = ramp;
  out.provenance = Provenance::kMeasured;
  out.error = rounded(row.held_out.sigma, 3);
  out.n = row.fitted;
  return out;
}

void emit(const Group& g, OpEfficiency& into) {
  const KernelFitRow& row = g.row;
  Sourced<Ramp>& compute = row.block_scaled          ? into.compute_block_scaled[index(row.dtype)]
                           : row.stored == row.dtype ? into.compute[index(row.dtype)]
                                                     : into.compute_by_format[index(row.stored)];
  const bool tied = row.ramps.compute.serial > 0.02 && row.fitted >= kManyRows;
  const auto enough = [&](int rows) {
    return tied || rows >= std::max(static_cast<double>(kLeastRows), kLeastShare * row.fitted);
  };
  const bool binds = enough(row.compute_rows);
  const bool memory_binds = enough(row.fitted - row.compute_rows);
  if (!compute.known() && binds) compute = leaf(row.ramps.compute, row, true);
  if (!memory_binds || g.host_bound) return;
  const Sourced<Ramp> memory = leaf(row.ramps.memory, row, false);
  if (!into.memory.known()) {
    into.memory = memory;
  } else if (!into.memory_by_format[index(row.stored)].known()) {
    into.memory_by_format[index(row.stored)] = memory;
  }
}

/// Where a table holds block-scaled kernels alone they stand for the others too.
void share_blocks(OpEfficiency& e) {
  for (std::size_t d = 0; d < kDTypes; ++d) {
    if (e.compute[d].known() || !e.compute_block_scaled[d].known()) continue;
    e.compute[d] = e.compute_block_scaled[d];
    e.compute[d].provenance = Provenance::kDerived;
  }
}

/// fp16 and bf16 run on the same units.
void share_sixteen_bits(const DeviceSpec& device, OpEfficiency& e) {
  const auto& bf16 = device.peak[index(DType::kBf16)];
  const auto& fp16 = device.peak[index(DType::kFp16)];
  if (!bf16.known() || !fp16.known() || *bf16 != *fp16) return;
  Sourced<Ramp>& a = e.compute[index(DType::kBf16)];
  Sourced<Ramp>& b = e.compute[index(DType::kFp16)];
  if (a.known() == b.known()) return;
  Sourced<Ramp>& copy = a.known() ? b : a;
  copy = a.known() ? a : b;
  copy.provenance = Provenance::kDerived;
}

/// 16 bits before the rest; the same format stored first, then the most frequent.
std::vector<Group*> in_order(std::map<Formats, Group>& groups) {
  std::vector<Group*> order;
  for (auto& [formats, g] : groups) {
    if (g.fit.size() >= kLeastRows) order.push_back(&g);
  }
  const auto rank = [](const Group* g) {
    const DType d = g->row.dtype;
    return std::tuple(d != DType::kBf16 && d != DType::kFp16, index(d), g->row.block_scaled,
                      g->row.stored != d, -static_cast<int>(g->fit.size()));
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const Group* a, const Group* b) { return rank(a) < rank(b); });
  return order;
}
}  // namespace

bool held_out(const KernelSample& sample) {
  return (fnv1a(sample.key()) & 1U) != 0;
}

KernelFit fit_kernels(const std::vector<KernelSample>& samples, const DeviceSpec& device,
                      const KernelFitOptions& options) {
  const Preparation preparation(device);
  const Choice choice(samples, device);
  std::map<OpClass, std::map<Formats, Group>> classes;
  for (const KernelSample& s : samples) {
    if (!options.only.empty() && options.only.count(s.op_class) == 0) continue;
    const DType dtype = compute_fallback(device, s.dtype).value_or(s.dtype);
    Group& g = classes[s.op_class][{dtype, s.weights, s.block_scaled}];
    g.row.op_class = s.op_class;
    g.row.dtype = dtype;
    g.row.stored = s.weights;
    g.row.block_scaled = s.block_scaled;
    ++g.row.read;
    if (s.op.ends_with("_module")) {
      ++g.row.dropped["several kinds of kernels in one time"];
      continue;
    }
    const auto rates = preparation.rates(dtype);
    Prepared p;
    const char* why = rates ? choice.why_not(s, device) : "no rate";
    if (why == nullptr) why = preparation.take(s, *rates, p);
    if (why != nullptr) {
      ++g.row.dropped[why];
      continue;
    }
    p.hash = fnv1a(s.key());
    ((p.hash & 1U) != 0 ? g.judge : g.fit).push_back(p);
  }
  KernelFit fit;
  for (auto& [op_class, groups] : classes) {
    OpEfficiency& efficiency = fit.efficiency[index(op_class)];
    Base base;
    for (Group* g : in_order(groups)) {
      const RampRates rates = *preparation.rates(g->row.dtype);
      const double floor = floor_of(*g);
      if (base.ramps && floor > kHostBound && floor > kFloorRatio * base.floor) {
        drop_host_bound(*g, floor, rates.peak);
        if (g->fit.size() < kLeastRows) continue;
      }
      fit_group(*g, rates, std::nullopt, base, options);
      if (!base.ramps) base = {floor, g->row.ramps, g->row.compute_ramp_s()};
      emit(*g, efficiency);
    }
    share_sixteen_bits(device, efficiency);
    share_blocks(efficiency);
    for (auto& [formats, g] : groups) fit.rows.push_back(std::move(g.row));
  }
  return fit;
}

}  // namespace medley
