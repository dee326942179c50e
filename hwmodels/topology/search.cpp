#include <algorithm>
#include <vector>

#include "hwmodels/topology/topology.h"
#include "sim/core/error.h"

namespace medley {

namespace {
/// Which links a search may use.
struct PlaneSet {
  bool fabric, host, pool, network;
  bool has(LinkPlane p) const {
    return p == LinkPlane::kFabric ? fabric
           : p == LinkPlane::kHost ? host
           : p == LinkPlane::kPool ? pool
                                   : network;
  }
};

/// Distances to the target, kept from search to search.
struct SearchScratch {
  std::vector<std::uint32_t> epoch;  ///< of `hops` and `latency`
  std::vector<std::uint32_t> hops;
  std::vector<double> latency;
  std::vector<std::uint32_t> queue;
  std::uint32_t now = 0;

  void begin(std::size_t vertices) {
    if (epoch.size() < vertices) {
      epoch.resize(vertices, 0);
      hops.resize(vertices);
      latency.resize(vertices);
    }
    if (++now == 0) {
      std::fill(epoch.begin(), epoch.end(), 0);
      now = 1;
    }
    queue.clear();
  }
  bool seen(std::uint32_t v) const { return epoch[v] == now; }
};

class Search {
 public:
  Search(const Topology& t, const LinkFailures* failures, SearchScratch& scratch)
      : t_(t), failures_(failures), s_(scratch) {}

  bool find(std::uint32_t from, std::uint32_t to, const PlaneSet& planes, std::uint64_t hash,
            std::vector<std::uint32_t>& links) {
    flood(from, to, planes);
    if (!s_.seen(from)) return false;
    for (std::uint32_t at = from; at != to;) at = step(at, from, to, planes, hash, links);
    return true;
  }

 private:
  bool usable(std::uint32_t link, const PlaneSet& planes) const {
    return planes.has(t_.links[link].plane) && !(failures_ && failures_->down(link));
  }
  /// May a path go on from v, which is neither of its ends?
  bool passes(std::uint32_t v) const { return t_.vertices[v].forwards; }

  /// Distances of everything that reaches `to`, until `from` is at the front. Latency is exact when
  /// a vertex leaves the queue: all of the level before it have left.
  void flood(std::uint32_t from, std::uint32_t to, const PlaneSet& planes) {
    s_.begin(t_.vertices.size());
    note(to, 0, 0.0);
    for (std::size_t i = 0; i < s_.queue.size(); ++i) {
      const std::uint32_t v = s_.queue[i];
      if (v == from) return;
      if (v != to && !passes(v)) continue;
      for (const std::uint32_t out : t_.out_links(v)) {
        const std::uint32_t in = out ^ 1U;  // the same cable, towards v
        if (!usable(in, planes)) continue;
        const std::uint32_t u = t_.links[in].from;
        const double latency = s_.latency[v] + t_.links[in].latency.value();
        if (!s_.seen(u)) {
          note(u, s_.hops[v] + 1, latency);
        } else if (s_.hops[u] == s_.hops[v] + 1) {
          s_.latency[u] = std::min(s_.latency[u], latency);
        }
      }
    }
  }
  void note(std::uint32_t v, std::uint32_t hops, double latency) {
    s_.epoch[v] = s_.now;
    s_.hops[v] = hops;
    s_.latency[v] = latency;
    s_.queue.push_back(v);
  }

  /// Takes one of the links that lead on best.
  std::uint32_t step(std::uint32_t at, std::uint32_t from, std::uint32_t to, const PlaneSet& planes,
                     std::uint64_t& hash, std::vector<std::uint32_t>& links) {
    constexpr double kSame = 1.0 + 1e-12;  // sums of the same latencies in another order
    const auto good = [&](std::uint32_t l) {
      const std::uint32_t w = t_.links[l].to;
      return usable(l, planes) && s_.seen(w) && s_.hops[w] + 1 == s_.hops[at] &&
             (w == to || passes(w)) &&
             s_.latency[w] + t_.links[l].latency.value() <= s_.latency[at] * kSame;
    };
    std::uint64_t equals = 0;
    for (const std::uint32_t l : t_.out_links(at)) equals += good(l) ? 1 : 0;
    MEDLEY_CHECK(equals > 0, "a search lost its way");
    hash = mix_hash(hash + from);
    std::uint64_t pick = hash % equals;
    for (const std::uint32_t l : t_.out_links(at)) {
      if (good(l) && pick-- == 0) {
        links.push_back(l);
        return t_.links[l].to;
      }
    }
    return to;
  }

  const Topology& t_;
  const LinkFailures* failures_;
  SearchScratch& s_;
};
}  // namespace

bool search_route(const Topology& topology, std::uint32_t from, std::uint32_t to,
                  std::uint64_t hash, const LinkFailures* failures,
                  std::vector<std::uint32_t>& links) {
  static thread_local SearchScratch scratch;
  if (from == to) return true;
  const auto is = [&](std::uint32_t v, VertexKind k) { return topology.vertices[v].kind == k; };
  const bool devices = is(from, VertexKind::kDevice) && is(to, VertexKind::kDevice);
  // A pool's memory is of no server; servers do not talk through it.
  const auto in_pool = [&](std::uint32_t v) {
    return is(v, VertexKind::kMemory) && topology.vertices[v].group == TopologyVertex::kNone;
  };
  const bool pooled = in_pool(from) || in_pool(to);
  Search search(topology, failures, scratch);
  const auto in = [&](PlaneSet planes) { return search.find(from, to, planes, hash, links); };
  return (devices && in({true, false, false, false})) || in({false, true, false, false}) ||
         (pooled && in({false, true, true, false})) || in({false, true, false, true}) ||
         in({true, true, pooled || topology.vertices[from].group == TopologyVertex::kNone, true});
}

}  // namespace medley
