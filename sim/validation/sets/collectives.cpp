#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "hwmodels/catalog.h"
#include "sim/network/nccl_model.h"
#include "sim/validation/csv_rows.h"
#include "sim/validation/sets/sets.h"

namespace medley {

namespace {

/// One measured collective.
struct Point {
  std::string key, device, node, algorithm;
  CollectiveKind kind = CollectiveKind::kAllReduce;
  int ranks = 0, nodes = 0;
  double bytes = 0.0, time_s = 0.0;
  Half half = Half::kReport;

  /// Bytes of bus bandwidth per byte of payload.
  double factor() const {
    return (kind == CollectiveKind::kAllReduce ? 2.0 : 1.0) * (ranks - 1) / ranks;
  }
};

const char* node_of(const std::string& device) {
  if (device == "A100") return "8xA100-SXM-80GB";
  if (device == "H100") return "8xH100-SXM";
  if (device == "H200") return "8xH200-SXM";
  if (device == "B200") return "8xB200-SXM";
  if (device == "V100") return "8xV100-SXM2";
  return nullptr;
}

std::optional<CollectiveKind> kind_of(const std::string& name) {
  for (int k = 0; k < kCollectiveKinds; ++k) {
    if (to_string(static_cast<CollectiveKind>(k)) == name) return static_cast<CollectiveKind>(k);
  }
  return {};
}

void add_point(std::vector<Point>& points, Point p, const char* source) {
  p.key = fmt::format("{}|{}x{}|{}|{}|{:.0f}|{}", p.device, p.nodes, p.ranks / p.nodes,
                      to_string(p.kind), p.algorithm, p.bytes, source);
  p.half = half_of(p.key);
  points.push_back(std::move(p));
}

/// One-node rows of nccl-tests and all_reduce_bench; several nodes as well.
void read_all_reduce(const std::string& path, std::vector<Point>& points) {
  const CsvRows csv(path);
  for (std::size_t i = 0; i < csv.size(); ++i) {
    Point p;
    for (const char* device : {"A100", "H200", "B200"}) {
      if (csv.text(i, "system").find(device) != std::string::npos) p.device = device;
    }
    if (p.device.empty()) continue;
    p.algorithm = "default";
    p.ranks = csv.integer(i, "ranks");
    p.nodes = csv.integer(i, "nodes");
    p.bytes = csv.number(i, "payload_bytes");
    p.time_s = 1e-6 * csv.number(i, "time_us(derived from busbw unless nccl-tests)");
    if (p.nodes > 1 && p.bytes < 131072.0) continue;  // its bandwidth has one digit
    add_point(points, std::move(p), "all_reduce");
  }
}

/// The same devices from other sources; rows that repeat the first file, that contradict
/// themselves (time and bandwidth of different systems), that name no size or that the model has
/// no place for are left out.
void read_bus_bandwidth(const std::string& path, std::vector<Point>& points) {
  const CsvRows csv(path);
  const std::size_t first = points.size();
  for (std::size_t i = 0; i < csv.size(); ++i) {
    Point p;
    p.device = csv.text(i, "device");
    const std::optional<CollectiveKind> kind = kind_of(csv.text(i, "collective"));
    if (node_of(p.device) == nullptr || !kind || csv.blank(i, "time_us")) continue;
    p.kind = *kind;
    p.algorithm = csv.text(i, "algo");
    p.ranks = csv.integer(i, "ranks");
    p.nodes = csv.integer(i, "nodes");
    p.bytes = csv.number(i, "bytes");
    p.time_s = 1e-6 * csv.number(i, "time_us");
    if (!(p.bytes > 0.0) || p.algorithm == "NVLSTree") continue;
    if (p.device == "V100" && p.ranks < 8) continue;
    const double bus = 1e-9 * p.factor() * p.bytes / p.time_s;
    if (std::fabs(bus / csv.number(i, "busbw_GBps") - 1.0) > 0.03) continue;
    const bool repeats =
        std::any_of(points.begin(), points.begin() + static_cast<long>(first), [&](const Point& o) {
          return o.device == p.device && o.ranks == p.ranks && o.nodes == p.nodes &&
                 o.bytes == p.bytes && std::fabs(o.time_s / p.time_s - 1.0) < 0.01;
        });
    if (repeats) continue;
    add_point(points, std::move(p), "busbw");
  }
}

std::optional<NcclAlgorithm> forced(const std::string& algorithm) {
  if (algorithm.starts_with("Ring")) return NcclAlgorithm::kRing;
  if (algorithm == "NVLS") return NcclAlgorithm::kNvls;
  return {};
}

struct Fitted {
  NcclCalibration nccl;
  double network_latency_s = 0.0;  ///< of EFA, which the 4-node systems have
};

double model_time(const Catalog& catalog, const Point& p, const Fitted& fitted) {
  const NodeSpec& node = catalog.node(node_of(p.device));
  std::optional<NcclPlace> place = nccl_place(catalog, node, p.ranks / p.nodes);
  if (place) place->network_latency_s = fitted.network_latency_s;
  if (!place) return std::numeric_limits<double>::quiet_NaN();
  const auto choice =
      nccl_choose(*place, p.kind, p.ranks, p.nodes, p.bytes, fitted.nccl, forced(p.algorithm));
  return choice ? choice->time_s : std::numeric_limits<double>::quiet_NaN();
}

template <class Use>
double fit_error(const Catalog& catalog, const std::vector<Point>& points, const Fitted& fitted,
                 Use use) {
  double error = 0.0;
  for (const Point& p : points) {
    if (p.half != Half::kFit || !use(p)) continue;
    error += std::fabs(std::log(model_time(catalog, p, fitted) / p.time_s));
  }
  return error;
}

/// Least absolute logarithmic errors over the fit half: first of single nodes with switched NVLink,
/// then the network's latency on 4 nodes of B200.
Fitted fit(const Catalog& catalog, const std::vector<Point>& points) {
  Fitted best;
  double least = INFINITY;
  const auto consider = [&](const Fitted& f, auto use) {
    const double error = fit_error(catalog, points, f, use);
    if (error >= least) return;
    least = error;
    best = f;
  };
  for (int call = 0; call <= 50; call += 2) {
    for (int fill = 0; fill <= 24; ++fill) {
      consider({{1e-6 * call, 0.25e-3 * fill}, 0.0},
               [](const Point& p) { return p.nodes == 1 && p.device != "V100"; });
    }
  }
  const NcclCalibration nccl = best.nccl;
  least = INFINITY;
  for (int us = 0; us <= 100; us += 5) {
    consider({nccl, 1e-6 * us}, [](const Point& p) { return p.nodes > 1 && p.device == "B200"; });
  }
  return best;
}

std::string size_class(double bytes) {
  constexpr double kMiB = 1048576.0;
  if (bytes < kMiB) return "< 1 MiB";
  if (bytes <= 16.0 * kMiB) return "1-16 MiB";
  return bytes < 64.0 * kMiB ? "16-64 MiB" : ">= 64 MiB";
}

ValidationRow row_of(const Catalog& catalog, const Point& p, double predicted_s) {
  const NodeSpec& node = catalog.node(node_of(p.device));
  ValidationRow r;
  r.key = p.key;
  r.group = fmt::format("{}{}, {}", p.device,
                        p.nodes > 1 ? fmt::format(" on {} nodes", p.nodes) : std::string(),
                        size_class(p.bytes));
  r.metric = "bus_bandwidth";
  r.unit = "GB/s";
  r.measured = 1e-9 * p.factor() * p.bytes / p.time_s;
  r.predicted = 1e-9 * p.factor() * p.bytes / predicted_s;
  // Naive: the data sheet's fabric (several nodes: network) bandwidth, whatever the size.
  double sheet = node.fabric_bandwidth.value->value();
  if (p.nodes > 1) sheet = std::min(sheet, node.network.value->value());
  r.baseline = 1e-9 * sheet;
  r.half = p.half;
  r.n = 1;
  return r;
}

/// Tables of the fit half in place of the catalogue's, for the points of their own system.
void add_table_rows(const Catalog& catalog, const std::vector<Point>& points,
                    std::vector<ValidationRow>& rows) {
  std::map<std::string, std::vector<const Point*>> systems;
  for (const Point& p : points) {
    if (p.nodes > 1 || p.kind != CollectiveKind::kAllReduce || p.device == "V100") continue;
    const bool one = p.algorithm == "default" || p.algorithm == "NCCL default";
    if (!one) continue;
    const std::string source = p.key.substr(p.key.rfind('|'));
    systems[fmt::format("{}|{}{}", p.device, p.ranks, source)].push_back(&p);
  }
  for (const auto& [name, all] : systems) {
    AllReduceTable table;
    table.ranks = all.front()->ranks;
    table.source = "fit half of " + name;
    for (const Point* p : all) {
      if (p->half == Half::kFit) table.points.push_back({Bytes(p->bytes), Seconds(p->time_s)});
    }
    if (table.points.size() < 3) continue;
    std::sort(table.points.begin(), table.points.end(),
              [](const auto& a, const auto& b) { return a.payload < b.payload; });
    NodeSpec node = catalog.node(node_of(all.front()->device));
    node.all_reduce = {table};
    EstimateOptions options;
    options.in_graph = false;
    for (const Point* p : all) {
      if (p->half == Half::kFit) continue;
      const CollectiveEstimate e =
          estimate_collective(catalog, node, p->kind, p->ranks, p->nodes, Bytes(p->bytes), options);
      ValidationRow r = row_of(catalog, *p, e.time.time.value());
      r.basis = "tables";
      r.measured_pct = 100.0;
      r.extrapolated_pct = e.time.extrapolated ? 100.0 : 0.0;
      rows.push_back(std::move(r));
    }
  }
}

std::vector<ValidationRow> run_collectives(const ValidationContext& context) {
  const Catalog catalog({});
  std::vector<Point> points;
  read_all_reduce(context.data + "/hardware/allreduce_measured.csv", points);
  read_bus_bandwidth(context.data + "/training/nccl_busbw.csv", points);
  const Fitted fitted = fit(catalog, points);
  std::vector<ValidationRow> rows;
  for (const Point& p : points) {
    ValidationRow r = row_of(catalog, p, model_time(catalog, p, fitted));
    r.basis = "calibrated";
    if (rows.empty()) {
      r.note = fmt::format("fitted: {:.0f} us per call, fill {:.2f}e-3 s^1/2, EFA {:.0f} us a hop",
                           1e6 * fitted.nccl.call_s, 1e3 * fitted.nccl.fill_root_s,
                           1e6 * fitted.network_latency_s);
    }
    rows.push_back(std::move(r));
  }
  add_table_rows(catalog, points, rows);
  return rows;
}

}  // namespace

ValidationSet collectives_set() {
  std::vector<Target> targets;
  for (const char* device : {"A100", "H100", "H200", "B200", "B200 on 4 nodes"}) {
    for (const char* basis : {"calibrated", "tables"}) {
      targets.push_back(
          {"bus_bandwidth", basis, fmt::format("{}, >= 64 MiB", device), "mape_pct", 10.0});
      targets.push_back(
          {"bus_bandwidth", basis, fmt::format("{}, 1-16 MiB", device), "mape_pct", 25.0});
    }
  }
  return {"collectives",
          "bus bandwidth of NCCL collectives by size: A100, H100, H200, B200, V100 nodes; 4 nodes",
          "stas00/ml-engineering network pages (CC BY-SA 4.0), VIA-Research/vTrain tables, "
          "NVIDIA/nccl and nccl-tests issues",
          "device|nodes x ranks|collective|algorithm|bytes|source; two numbers (time per call, "
          "fill) are fitted to the fit half of single nodes with switched NVLink, the latency of "
          "EFA to that of 4 B200 nodes; \"tables\": measured tables of the fit half",
          "the data sheet's bandwidth at any size",
          "ASTRA-sim publishes 20.6/12.0/9.7 % on rings of 2/4/8 H100",
          targets,
          run_collectives};
}

}  // namespace medley
