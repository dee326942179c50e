#include <algorithm>

#include "sim/core/error.h"
#include "sim/network/network.h"

namespace medley {

Network::Transfer& Network::at(TransferHandle handle) {
  MEDLEY_CHECK(running(handle), "the transfer is under way");
  return transfers_[handle.slot];
}
const Network::Transfer& Network::at(TransferHandle handle) const {
  MEDLEY_CHECK(running(handle), "the transfer is under way");
  return transfers_[handle.slot];
}

bool Network::running(TransferHandle handle) const {
  return handle.slot < transfers_.size() &&
         transfers_[handle.slot].generation == handle.generation &&
         transfers_[handle.slot].phase != Phase::kFree;
}

std::uint64_t Network::tag(TransferHandle handle) const {
  return at(handle).tag;
}

double Network::remaining(TransferHandle handle) const {
  const Transfer& t = at(handle);
  return t.phase == Phase::kFlowing ? fluid_.remaining(t.handle) : t.bytes;
}

double Network::rate(TransferHandle handle) const {
  const Transfer& t = at(handle);
  return t.phase == Phase::kFlowing ? fluid_.rate(t.handle) : 0.0;
}

double Network::cancel(TransferHandle handle) {
  Transfer& t = at(handle);
  const double left = t.phase == Phase::kFlowing ? fluid_.cancel(t.handle) : t.bytes;
  free_slot(handle.slot);
  return left;
}

void Network::set_bound(TransferHandle handle, double bytes_per_s) {
  Transfer& t = at(handle);
  t.bound = t.from == t.to ? std::min(bytes_per_s, options_.local_rate) : bytes_per_s;
  if (t.phase == Phase::kFlowing) fluid_.set_bound(t.handle, t.bound);
}

void Network::set_wire_capacity(std::uint32_t wire, double bytes_per_s) {
  MEDLEY_CHECK(wire < wires_ && bytes_per_s >= 0.0, "a wire's capacity is not negative");
  nominal_[wire] = bytes_per_s;
  refresh_wires();
}

void Network::fail_link(std::uint32_t link, bool down) {
  failures_.set_cable(link, down);
  refresh_wires();
}

void Network::fail_vertex(std::uint32_t vertex, bool down) {
  failures_.set_vertex(vertex, down);
  refresh_wires();
}

void Network::refresh_wires() {
  ++epoch_;
  std::vector<bool> dead(wires_, false);
  if (failures_.any()) {
    for (std::uint32_t l = 0; l < topology_->links.size(); ++l) {
      if (failures_.down(l)) dead[topology_->links[l].wire] = true;
    }
  }
  for (std::uint32_t w = 0; w < wires_; ++w) {
    const double capacity = dead[w] ? 0.0 : nominal_[w];
    if (fluid_.capacity(w) != capacity) fluid_.set_capacity(w, capacity);
  }
}

void Network::stalled(std::vector<TransferHandle>& out) {
  if (fluid_.needs_solve()) fluid_.solve();
  stalled_tags_.clear();
  fluid_.stalled(stalled_tags_);
  for (const std::uint64_t tag : stalled_tags_) {
    if ((tag & kTransferBit) == 0) continue;
    const auto slot = static_cast<std::uint32_t>(tag & ~kTransferBit);
    out.push_back({slot, transfers_[slot].generation});
  }
}

void Network::reroute(TransferHandle handle) {
  Transfer& t = at(handle);
  if (t.phase == Phase::kAfter) return;  // all its bytes have left
  find_path(t.from, t.to, t.flow, scratch_);
  const bool flowing = t.phase == Phase::kFlowing;
  if (flowing) t.bytes = fluid_.cancel(t.handle);
  const std::vector<FluidDemand> extra(t.demands.begin() + t.path_demands, t.demands.end());
  t.demands.assign(scratch_.demands.begin(), scratch_.demands.end());
  t.path_demands = static_cast<std::uint32_t>(t.demands.size());
  t.demands.insert(t.demands.end(), extra.begin(), extra.end());
  t.latency_s = scratch_.latency_s + t.extra_latency_s;
  if (!flowing) return;  // in its latency, which runs on
  if (t.place == LatencyPlace::kAfter || t.latency_s == 0.0) {
    begin_flow(handle.slot);
  } else {
    delay(handle.slot, Phase::kBefore);
  }
}

bool Network::blocked(const Transfer& t) const {
  const auto end = t.demands.begin() + t.path_demands;
  return std::any_of(t.demands.begin(), end,
                     [&](const FluidDemand& d) { return fluid_.capacity(d.resource) == 0.0; });
}

void Network::reroute_blocked() {
  std::vector<TransferHandle> found;
  for (std::uint32_t slot = 0; slot < transfers_.size(); ++slot) {
    const Transfer& t = transfers_[slot];
    if ((t.phase == Phase::kBefore || t.phase == Phase::kFlowing) && blocked(t)) {
      found.push_back({slot, t.generation});
    }
  }
  std::sort(found.begin(), found.end(), [&](const TransferHandle& a, const TransferHandle& b) {
    return transfers_[a.slot].sequence < transfers_[b.slot].sequence;
  });
  for (const TransferHandle& handle : found) {
    const Transfer& t = transfers_[handle.slot];
    if (find_detour(t.from, t.to, t.flow)) reroute(handle);
  }
}

WireAccount Network::account(std::uint32_t resource) const {
  const FluidUse use = fluid_.account(resource);
  WireAccount account{use.units, use.busy_s, use.saturated_s, 0.0, {}};
  if (resource < waits_.size()) account.waits = waits_[resource];
  for (const TrafficWaits& w : account.waits) account.waited_s += w.seconds;
  return account;
}

void Network::mark(std::span<const FluidDemand> demands, std::vector<double>& marks) const {
  marks.clear();
  for (const FluidDemand& d : demands) marks.push_back(fluid_.account(d.resource).saturated_s);
}

std::uint32_t Network::blame(std::span<const FluidDemand> demands, const std::vector<double>& marks,
                             TrafficKind kind, double seconds) {
  std::uint32_t cause = NetworkCompletion::kNone;
  double most = 0.0;
  for (std::size_t i = 0; i < demands.size(); ++i) {
    const double full = fluid_.account(demands[i].resource).saturated_s - marks[i];
    if (full <= most) continue;
    most = full;
    cause = demands[i].resource;
  }
  if (cause == NetworkCompletion::kNone) return cause;
  if (waits_.size() <= cause) waits_.resize(cause + 1);
  TrafficWaits& w = waits_[cause][static_cast<std::size_t>(kind)];
  ++w.count;
  w.seconds += seconds;
  return cause;
}

}  // namespace medley
