#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/report/table_file.h"
#include "sim/report/writers.h"

namespace medley {

namespace {
constexpr std::size_t kMostRows = 1000000;
constexpr double kSecond = 1.0;
constexpr double kMinute = 60.0;

struct Curve {
  PowerCourse course;
  Known known;  ///< value unused: whether energy is known at all
  double limit_w = kBlank;
  double devices = 0.0;  ///< of a pool
  PowerCourse limited;   ///< their seconds at the limit, summed, in place of joules
};

Curve fresh_curve(const Analysis& a) {
  const PowerCourse empty(a.result().bin.value(), a.account().run_s());
  return {empty, {}, kBlank, 0.0, empty};
}

Curve pool_curve(const Analysis& a, std::size_t pool) {
  const PoolPower& power = a.account().pools()[pool];
  Curve c = fresh_curve(a);
  if (!power.dynamic_known) c.known = Known::unknown(power.missing);
  for (const ReplicaRecord& r : a.result().replicas) {
    if (r.pool != pool) continue;
    const double n = a.scenario().pools[pool].device_share();
    c.course.add(r.extra_energy_j);
    c.devices += n;
    c.limited.add(r.limited_bin_s, n);
  }
  c.course.add_constant(power.context_idle_w.value * c.devices);
  c.course.finish();
  if (power.limit_w.known()) c.limit_w = power.limit_w.value * c.devices;
  c.limited.finish();
  return c;
}

/// Adds a node's AC power.
void add_node(const Analysis& a, const NodeAccount& node, double factor, Curve& c) {
  const GroupPower& g = a.account().groups()[node.group];
  if (!g.overhead_w.known()) c.known += g.overhead_w;
  if (!g.psu.known()) c.known += g.psu;
  const double spare = a.scenario().nodes[node.group].type.devices - node.assigned;
  double watts = g.overhead_w.value;
  if (spare > 0) {
    watts += spare * g.deep_idle_w.value;
    if (!g.deep_idle_w.known()) c.known += g.deep_idle_w;
  }
  const double scale = factor / (g.psu.known() ? g.psu.value : 1.0);
  for (const Resident& i : node.residents) {
    const ReplicaRecord& r = a.result().replicas[i.replica];
    const PoolPower& power = a.account().pools()[r.pool];
    if (!power.dynamic_known) c.known += Known::unknown(power.missing);
    watts += power.context_idle_w.value * a.scenario().pools[r.pool].device_share() * i.part;
    c.course.add(r.extra_energy_j, scale * i.part);
  }
  c.course.add_constant(watts * scale);
}

class EnergyTable {
 public:
  EnergyTable(const Analysis& a, const std::string& path) : a_(a), out_("energy.csv", path) {
    const double bin = a.result().bin.value();
    const double interval = a.scenario().report.interval.value();
    step_ = static_cast<std::size_t>(std::max(1.0, std::round(interval / bin)));
    const std::size_t bins = PowerCourse(bin, a.account().run_s()).bins();
    const std::size_t curves = 1 + a.scenario().pools.size() + a.account().nodes().size();
    while ((bins / step_ + 1) * curves > kMostRows && step_ < bins) step_ *= 2;
  }

  void write(const Curve& c, std::string_view scope, std::string_view name) {
    for (std::size_t first = 0; first < c.course.bins(); first += step_) {
      const std::size_t last = std::min(first + step_, c.course.bins());
      const double from = c.course.begin(first);
      const double to = c.course.begin(last);
      out_.seconds(edge_ns(first)).seconds(edge_ns(last)).text(scope).text(name);
      if (c.known.known()) {
        const double joules = c.course.joules(from, to);
        out_.number(joules).number(joules / (to - from));
        out_.number(c.course.peak_w(kSecond, first, last));
        out_.number(c.course.peak_w(kMinute, first, last));
      } else {
        out_.blank().blank().blank().blank();
      }
      out_.number(c.limit_w);
      out_.number(c.devices > 0.0 ? c.limited.joules(from, to) / c.devices : kBlank);
      out_.end_row();
    }
  }
  void close() { out_.close(); }

 private:
  std::int64_t edge_ns(std::size_t bin) const {
    return std::min(static_cast<std::int64_t>(bin) * SimTime::from_seconds(a_.result().bin).ns(),
                    a_.result().end.ns());
  }
  const Analysis& a_;
  TableFile out_;
  std::size_t step_ = 1;
};
}  // namespace

void write_energy_csv(const Analysis& a, const std::string& path) {
  EnergyTable table(a, path);
  Curve site = fresh_curve(a);
  for (const NodeAccount& node : a.account().nodes()) {
    add_node(a, node, a.scenario().price.pue, site);
  }
  site.course.finish();
  table.write(site, "site", "site");
  for (std::size_t p = 0; p < a.scenario().pools.size(); ++p) {
    table.write(pool_curve(a, p), "pool", a.scenario().pools[p].name);
  }
  for (const NodeAccount& node : a.account().nodes()) {
    Curve c = fresh_curve(a);
    add_node(a, node, 1.0, c);
    c.course.finish();
    table.write(c, "node", fmt::format("{}/{}", a.scenario().nodes[node.group].name, node.node));
  }
  table.close();
}

void write_timeseries_csv(const Analysis& a, const std::string& path) {
  TableFile out("timeseries.csv", path);
  std::vector<Curve> curves;
  for (std::size_t p = 0; p < a.scenario().pools.size(); ++p) curves.push_back(pool_curve(a, p));
  std::vector<const PoolSample*> last(curves.size(), nullptr);
  for (const PoolSample& s : a.result().samples) {
    const PoolSample* before = last[s.pool];
    last[s.pool] = &s;
    out.seconds(s.time.ns()).text(a.scenario().pools[s.pool].name);
    out.integer(s.running).integer(s.waiting).number(s.kv_usage * 100.0);
    const double seconds = before ? (s.time - before->time).value() : 0.0;
    if (seconds > 0.0) {
      out.number(static_cast<double>(s.prompt_tokens - before->prompt_tokens) / seconds);
      out.number(static_cast<double>(s.output_tokens - before->output_tokens) / seconds);
      const Curve& c = curves[s.pool];
      const double joules =
          c.course.joules(before->time.seconds().value(), s.time.seconds().value());
      out.number(c.known.known() ? joules / seconds : kBlank);
    } else {
      out.blank().blank().blank();
    }
    out.end_row();
  }
  out.close();
}

}  // namespace medley
