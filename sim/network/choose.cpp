#include "sim/network/choose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/core/error.h"

namespace medley {

namespace {

/// Load of one step's messages on the wires.
class StepLoad {
 public:
  StepLoad(const Network& network, const CollectiveCall& call)
      : network_(network), call_(call), load_(network.wires(), 0.0) {}
  void add(std::uint32_t from, std::uint32_t to) {
    network_.find_path(from, to, call_.flow, path_);
    latency_ = std::max(latency_, path_.latency_s);
    if (path_.demands.empty()) local_ = std::min(local_, path_.local_rate);
    for (const FluidDemand& d : path_.demands) {
      if (load_[d.resource] == 0.0) touched_.push_back(d.resource);
      load_[d.resource] += d.amount;
    }
  }
  void finish(double& latency, double& bandwidth) const {
    latency = latency_;
    bandwidth = local_;
    for (const std::uint32_t w : touched_) {
      bandwidth = std::min(bandwidth, network_.wire_capacity(w) / load_[w]);
    }
  }

 private:
  const Network& network_;
  const CollectiveCall& call_;
  std::vector<double> load_;
  std::vector<std::uint32_t> touched_;
  NetworkPath path_;
  double latency_ = 0.0;
  double local_ = std::numeric_limits<double>::infinity();
};

/// The step r -> to(r), with what the library adds.
template <class To>
void one_step(const Network& network, const CollectiveCall& call, To to, double& latency,
              double& bandwidth) {
  StepLoad load(network, call);
  const auto n = static_cast<std::uint32_t>(call.members.size());
  for (std::uint32_t r = 0; r < n; ++r) load.add(call.members[r], call.members[to(r) % n]);
  load.finish(latency, bandwidth);
  latency += call.step_s;
}

std::uint32_t find_switch(const Network& network, const CollectiveCall& call) {
  const Topology& t = network.topology();
  TopologyRoute route;
  t.route(call.members[0], call.members[1], call.flow, route);
  if (route.links.size() != 2) return CollectivePlan::kNone;
  const std::uint32_t hub = t.links[route.links[0]].to;
  if (t.vertices[hub].kind != VertexKind::kSwitch) return CollectivePlan::kNone;
  for (const std::uint32_t m : call.members) {
    const auto out = t.out_links(m);
    if (std::none_of(out.begin(), out.end(),
                     [&](std::uint32_t l) { return t.links[l].to == hub; })) {
      return CollectivePlan::kNone;
    }
  }
  return hub;
}

LinkModel model_of(const Network& network, const CollectiveCall& call, const CollectivePlan& plan) {
  LinkModel m;
  const auto n = static_cast<std::uint32_t>(call.members.size());
  const std::string& name = plan.algorithm->name;
  const auto next = [](std::uint32_t r) { return r + 1; };
  if (plan.switch_vertex != CollectivePlan::kNone) {
    StepLoad up(network, call);
    for (const std::uint32_t v : call.members) up.add(v, plan.switch_vertex);
    up.finish(m.latency, m.bandwidth);
    m.latency = 2.0 * (m.latency + call.step_s);
    m.bandwidth *= call.efficiency;
    return m;
  }
  if (name == "hierarchical") {
    const std::uint32_t g = plan.shape.group;
    one_step(
        network, call, [g](std::uint32_t r) { return r / g * g + (r + 1) % g; }, m.inner_latency,
        m.inner_bandwidth);
    one_step(
        network, call, [g](std::uint32_t r) { return r + g; }, m.latency, m.bandwidth);
    m.inner_bandwidth *= call.efficiency;
  } else if (name == "halving_doubling") {
    m.bandwidth = std::numeric_limits<double>::infinity();
    for (std::uint32_t d = 1; d < n; d *= 2) {
      double latency, bandwidth;
      one_step(
          network, call, [&](std::uint32_t r) { return (r ^ d) < n ? r ^ d : r; }, latency,
          bandwidth);
      m.latency = std::max(m.latency, latency);
      m.bandwidth = std::min(m.bandwidth, bandwidth);
    }
  } else if (plan.shape.kind == CollectiveKind::kSendRecv ||
             plan.shape.kind == CollectiveKind::kBroadcast) {
    one_step(network, call, next, m.latency, m.bandwidth);
  } else if ((name == "direct" || name == "one_shot" || name == "two_shot") && n <= 64) {
    StepLoad all(network, call);
    for (std::uint32_t i = 0; i < n; ++i) {
      for (std::uint32_t j = 0; j < n; ++j) {
        if (i != j) all.add(call.members[i], call.members[j]);
      }
    }
    all.finish(m.latency, m.bandwidth);
    m.bandwidth *= n - 1;
    m.latency += call.step_s;
  } else if (name == "direct" || name == "one_shot" || name == "two_shot") {
    one_step(
        network, call, [n](std::uint32_t r) { return r + n / 2; }, m.latency, m.bandwidth);
  } else {
    one_step(network, call, next, m.latency, m.bandwidth);
  }
  m.bandwidth *= call.efficiency;
  return m;
}

/// Ranks per server where members are whole servers in order, else 1.
std::uint32_t group_of(const Topology& t, const std::vector<std::uint32_t>& members) {
  const auto node = [&](std::size_t i) { return t.vertices[members[i]].node; };
  if (node(0) == TopologyVertex::kNone) return 1;
  std::size_t g = 1;
  while (g < members.size() && node(g) == node(0)) ++g;
  if (members.size() % g != 0) return 1;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (node(i) != node(i / g * g) || (i % g == 0 && i > 0 && node(i) == node(i - 1))) return 1;
  }
  return static_cast<std::uint32_t>(g);
}

void check_call(const Network& network, const CollectiveCall& call) {
  MEDLEY_CHECK(!call.members.empty(), "a collective has members");
  MEDLEY_CHECK(call.shape.bytes >= 0.0 && call.shape.root < call.members.size() &&
                   call.efficiency > 0.0 && call.efficiency <= 1.0 && call.step_s >= 0.0 &&
                   call.start_s >= 0.0,
               "a collective's numbers are in range");
  for (const std::uint32_t v : call.members) {
    MEDLEY_CHECK(v < network.topology().vertices.size(), "members are vertices");
  }
}

}  // namespace

CollectivePlan plan_collective(const Network& network, const CollectiveCall& call) {
  check_call(network, call);
  CollectivePlan base;
  base.shape = call.shape;
  base.shape.ranks = static_cast<std::uint32_t>(call.members.size());
  const bool automatic = call.algorithm == "auto";
  const CollectiveAlgorithm* asked = automatic ? nullptr : &collective_algorithm(call.algorithm);
  if (base.shape.ranks == 1) return base;
  if (base.shape.group <= 1) base.shape.group = group_of(network.topology(), call.members);
  const std::uint32_t hub = find_switch(network, call);
  CollectivePlan best;
  for (const CollectiveAlgorithm& a : collective_algorithms()) {
    if (asked != nullptr ? &a != asked : a.needs_switch) continue;
    CollectivePlan plan = base;
    plan.algorithm = &a;
    if (a.needs_switch) plan.switch_vertex = hub;
    if (!a.supports(plan.shape) || (a.needs_switch && hub == CollectivePlan::kNone)) continue;
    plan.model = model_of(network, call, plan);
    plan.estimate_s = call.start_s + a.make(plan.shape)->closed_form(plan.model);
    if (best.algorithm == nullptr || plan.estimate_s < best.estimate_s) best = plan;
  }
  if (best.algorithm == nullptr) {
    throw InputError(
        "", "",
        fmt::format("collective algorithm \"{}\" cannot do {} among {} ranks here", call.algorithm,
                    to_string(call.shape.kind), call.members.size()),
        "use \"auto\"; in-switch algorithms need one switch that joins all ranks, hierarchical "
        "ones several whole servers");
  }
  return best;
}

}  // namespace medley
