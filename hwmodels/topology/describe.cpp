#include "hwmodels/topology/describe.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>

namespace medley {

namespace {
/// Dinic's maximum flow in whole bytes per second.
class MaxFlow {
 public:
  explicit MaxFlow(std::size_t vertices) : first_(vertices, -1) {}
  void add(std::uint32_t from, std::uint32_t to, std::int64_t capacity) {
    edges_.push_back({to, first_[from], capacity});
    first_[from] = static_cast<int>(edges_.size()) - 1;
    edges_.push_back({from, first_[to], 0});
    first_[to] = static_cast<int>(edges_.size()) - 1;
  }
  double run(std::uint32_t source, std::uint32_t sink) {
    double total = 0.0;
    while (rank(source, sink)) {
      next_ = first_;
      while (const std::int64_t f = push(source, sink, std::numeric_limits<std::int64_t>::max())) {
        total += static_cast<double>(f);
      }
    }
    return total;
  }

 private:
  struct Edge {
    std::uint32_t to;
    int next;
    std::int64_t left;
  };
  bool rank(std::uint32_t source, std::uint32_t sink) {
    level_.assign(first_.size(), -1);
    level_[source] = 0;
    std::vector<std::uint32_t> queue = {source};
    for (std::size_t i = 0; i < queue.size(); ++i) {
      for (int e = first_[queue[i]]; e >= 0; e = edge(e).next) {
        if (edge(e).left <= 0 || level_[edge(e).to] >= 0) continue;
        level_[edge(e).to] = level_[queue[i]] + 1;
        queue.push_back(edge(e).to);
      }
    }
    return level_[sink] >= 0;
  }
  std::int64_t push(std::uint32_t at, std::uint32_t sink, std::int64_t most) {
    if (at == sink) return most;
    for (int& e = next_[at]; e >= 0; e = edge(e).next) {
      if (edge(e).left <= 0 || level_[edge(e).to] != level_[at] + 1) continue;
      const std::int64_t f = push(edge(e).to, sink, std::min(most, edge(e).left));
      if (f <= 0) continue;
      edge(e).left -= f;
      edge(e ^ 1).left += f;
      return f;
    }
    return 0;
  }
  Edge& edge(int e) { return edges_[static_cast<std::size_t>(e)]; }
  std::vector<Edge> edges_;
  std::vector<int> first_, next_, level_;
};

constexpr double kMostRate = 1e15;  ///< B/s; stands for "no limit" in flows

/// Endpoints with a fabric of their own talk over nothing else.
bool counts(const TopologyLink& link, bool fabric_only) {
  return !fabric_only || link.plane == LinkPlane::kFabric;
}

/// Flow from the endpoints of one half to those of the other.
double cut_flow(const Topology& t, const std::vector<bool>& left, const std::vector<bool>& right,
                bool fabric_only) {
  const auto n = static_cast<std::uint32_t>(t.vertices.size());
  MaxFlow flow(n + 2);
  for (const TopologyLink& l : t.links) {
    if (!counts(l, fabric_only)) continue;
    // Who does not forward only sends what is his and takes what is for him.
    if (left[l.to] && !t.vertices[l.to].forwards) continue;
    if (right[l.from] && !t.vertices[l.from].forwards) continue;
    const bool passes = t.vertices[l.from].forwards || left[l.from];
    const bool arrives = t.vertices[l.to].forwards || right[l.to];
    if (!passes || !arrives) continue;
    flow.add(l.from, l.to,
             static_cast<std::int64_t>(std::min(kMostRate, t.wires[l.wire].bandwidth.value())));
  }
  for (std::uint32_t v = 0; v < n; ++v) {
    if (left[v]) flow.add(n, v, std::numeric_limits<std::int64_t>::max() / 4);
    if (right[v]) flow.add(v, n + 1, std::numeric_limits<std::int64_t>::max() / 4);
  }
  return flow.run(n, n + 1);
}

double injection_of(const Topology& t, const std::vector<bool>& half, bool fabric_only) {
  double sum = 0.0;
  for (const TopologyLink& l : t.links) {
    if (half[l.from] && counts(l, fabric_only))
      sum += std::min(kMostRate, t.wires[l.wire].bandwidth.value());
  }
  return sum;
}

void find_bisection(const Topology& t, TopologySummary& s) {
  constexpr std::size_t kManyLinks = 60000;  // then only the plain halves
  const std::size_t n = t.endpoints.size();
  if (n < 2) return;
  const bool fabric_only =
      std::all_of(t.endpoints.begin(), t.endpoints.end(), [&](std::uint32_t e) {
        const auto out = t.out_links(e);
        return std::any_of(out.begin(), out.end(),
                           [&](std::uint32_t l) { return t.links[l].plane == LinkPlane::kFabric; });
      });
  double narrowest = std::numeric_limits<double>::infinity();
  std::size_t block = (n + 1) / 2;
  while (true) {
    std::vector<bool> left(t.vertices.size(), false), right(t.vertices.size(), false);
    std::size_t on_left = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const bool is_left = i / block % 2 == 0;
      (is_left ? left : right)[t.endpoints[i]] = true;
      on_left += is_left ? 1 : 0;
    }
    if (on_left == n / 2 || on_left == n - n / 2) {
      const double flow = cut_flow(t, left, right, fabric_only);
      if (flow < narrowest) {
        narrowest = flow;
        s.bisection = BytesPerSec(flow);
        s.injection = BytesPerSec(
            std::min(injection_of(t, left, fabric_only), injection_of(t, right, fabric_only)));
      }
    }
    if (block == 1 || t.links.size() > kManyLinks) break;
    block /= 2;
  }
  if (narrowest > 0.0) s.oversubscription = s.injection / s.bisection;
}

void find_diameter(const Topology& t, TopologySummary& s) {
  constexpr std::size_t kManyPairs = 70000;
  const std::size_t n = t.endpoints.size();
  if (n < 2) return;
  const std::size_t sources = std::clamp<std::size_t>(kManyPairs / n, 1, n);
  s.sampled = sources < n;
  TopologyRoute r;
  double sum = 0.0;
  for (std::size_t i = 0; i < sources; ++i) {
    const std::uint32_t a = t.endpoints[i * n / sources];
    for (const std::uint32_t b : t.endpoints) {
      t.route(a, b, 0, r);
      s.diameter = std::max(s.diameter, r.links.size());
      s.longest = std::max(s.longest, r.latency);
      sum += static_cast<double>(r.links.size());
    }
  }
  s.mean_links = sum / static_cast<double>(sources * (n - 1));
}
}  // namespace

TopologySummary summarize(const Topology& t) {
  TopologySummary s;
  s.vertices.assign(kVertexKinds, 0);
  for (const TopologyVertex& v : t.vertices) ++s.vertices[static_cast<std::size_t>(v.kind)];
  s.endpoints = t.endpoints.size();
  for (std::size_t l = 0; l < t.links.size(); l += 2) {
    const TopologyWire& w = t.wires[t.links[l].wire];
    const std::string name = w.link.empty() ? "(given)" : w.link;
    const auto same = [&](const TopologySummary::Cables& c) {
      return c.link == name && c.bandwidth == w.bandwidth && c.latency == t.links[l].latency;
    };
    auto it = std::find_if(s.cables.begin(), s.cables.end(), same);
    if (it == s.cables.end()) {
      s.cables.push_back({name, w.bandwidth, t.links[l].latency, w.provenance, 0, 0});
      it = s.cables.end() - 1;
    }
    ++it->count;
    it->half_duplex += t.links[l].wire == t.links[l + 1].wire ? 1 : 0;
  }
  find_bisection(t, s);
  find_diameter(t, s);
  return s;
}

}  // namespace medley
