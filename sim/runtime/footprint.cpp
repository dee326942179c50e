#include "sim/runtime/footprint.h"

#include <algorithm>

#include "sim/runtime/handoff.h"

namespace medley {

namespace {
constexpr std::uint64_t kHashes = 16;
constexpr std::uint32_t kNobody = 0xffffffffU;
constexpr std::uint32_t kSeveral = 0xfffffffeU;

using Wire = StepFootprint::Wire;

void add_path(const Transport& t, std::uint32_t from, std::uint32_t to, double per_byte,
              double Wire::*field, std::vector<Wire>& out) {
  std::vector<std::uint32_t> wires;
  t.wires_between(from, to, from, wires);
  for (const std::uint32_t w : wires) {
    auto it = std::find_if(out.begin(), out.end(), [&](const Wire& x) { return x.resource == w; });
    if (it == out.end()) it = out.insert(out.end(), Wire{w, t.wire_capacity(w), 0.0, 0.0, 0.0});
    (*it).*field += per_byte;
  }
}

/// Who uses each wire: nobody, one user, several.
class WireUsers {
 public:
  explicit WireUsers(std::size_t wires) : user_(wires, kNobody) {}
  void add(std::uint32_t wire, std::uint32_t user) {
    std::uint32_t& u = user_[wire];
    u = u == kNobody || u == user ? user : kSeveral;
  }
  bool several(std::uint32_t wire) const { return user_[wire] == kSeveral; }

 private:
  std::vector<std::uint32_t> user_;
};
}  // namespace

DevicePlace place_of(const ReplicaSite& site, int i) {
  DevicePlace p = site.place;
  const std::uint32_t at = p.device + static_cast<std::uint32_t>(i);
  const auto per_node = static_cast<std::uint32_t>(site.devices_per_node);
  p.node += at / per_node;
  p.device = at % per_node;
  return p;
}

StepFootprint footprint_of(const Transport& transport, const ReplicaSite& site) {
  StepFootprint f;
  const int tp = site.pool->tensor_parallel, pp = site.pool->pipeline_parallel;
  const auto vertex = [&](int stage, int rank) {
    return transport.vertex(place_of(site, stage * tp + rank));
  };
  const double n = tp;
  f.all_reduce_sent = 2.0 * (n - 1.0) / n;
  f.all_to_all_sent = (n - 1.0) / n;
  for (int s = 0; s < pp; ++s) {
    for (int r = 0; r < tp; ++r) {
      if (tp > 1) {
        add_path(transport, vertex(s, r), vertex(s, (r + 1) % tp), f.all_reduce_sent / pp,
                 &Wire::all_reduce, f.wires);
        for (int other = 0; site.pool->expert_parallel && other < tp; ++other) {
          if (other == r) continue;
          add_path(transport, vertex(s, r), vertex(s, other), 1.0 / n / pp, &Wire::all_to_all,
                   f.wires);
        }
      }
      if (s > 0) {
        add_path(transport, vertex(s - 1, r), vertex(s, r), 1.0 / (pp - 1), &Wire::send, f.wires);
      }
    }
  }
  return f;
}

void find_shared_links(const Transport& transport, const std::vector<ReplicaSite>& sites,
                       std::vector<StepFootprint>& footprints) {
  WireUsers users(transport.wire_count());
  for (std::uint32_t u = 0; u < sites.size(); ++u) {
    for (const Wire& w : footprints[u].wires) users.add(w.resource, u);
  }
  const auto kv = static_cast<std::uint32_t>(sites.size());
  std::vector<std::uint32_t> wires;
  for (const ReplicaSite& from : sites) {
    if (from.pool->role != PoolRole::kPrefill) continue;
    for (const ReplicaSite& to : sites) {
      if (to.pool->role != PoolRole::kDecode || to.pool->model_name != from.pool->model_name) {
        continue;
      }
      for (const KvPath& path : kv_paths(*from.pool, *to.pool)) {
        for (std::uint64_t hash = 0; hash < kHashes; ++hash) {
          transport.wires_between(transport.vertex(place_of(from, path.from)),
                                  transport.vertex(place_of(to, path.to)), hash, wires);
          for (const std::uint32_t w : wires) users.add(w, kv);
        }
      }
    }
  }
  for (StepFootprint& f : footprints) {
    f.shared_links = std::any_of(f.wires.begin(), f.wires.end(),
                                 [&](const Wire& w) { return users.several(w.resource); });
  }
}

}  // namespace medley
