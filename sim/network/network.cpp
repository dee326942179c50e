#include "sim/network/network.h"

#include <algorithm>
#include <cmath>

#include "sim/core/error.h"

namespace medley {

Network::Network(const Topology& topology, const NetworkOptions& options, FineTime start)
    : topology_(&topology),
      options_(options),
      wires_(static_cast<std::uint32_t>(topology.wires.size())),
      fluid_(start),
      failures_(topology),
      waits_(topology.wires.size()) {
  MEDLEY_CHECK(options.local_rate > 0.0, "a local rate is above 0");
  nominal_.reserve(wires_);
  for (const TopologyWire& w : topology.wires) {
    fluid_.add_resource(w.bandwidth.value());
    nominal_.push_back(w.bandwidth.value());
  }
}

void Network::find_path(std::uint32_t from, std::uint32_t to, std::uint64_t flow,
                        NetworkPath& out) const {
  out.from = from;
  out.to = to;
  out.flow = flow;
  out.epoch = epoch_;
  out.local_rate = options_.local_rate;
  out.latency_s = 0.0;
  out.demands.clear();
  if (from == to) return;
  if (!failures_.any() || !find_detour(from, to, flow)) topology_->route(from, to, flow, route_);
  out.latency_s = route_.latency.value();
  for (const std::uint32_t l : route_.links) {
    const std::uint32_t wire = topology_->links[l].wire;
    const auto same = std::find_if(out.demands.begin(), out.demands.end(),
                                   [&](const FluidDemand& d) { return d.resource == wire; });
    if (same == out.demands.end()) {
      out.demands.push_back({wire, 1.0});
    } else {
      same->amount += 1.0;
    }
  }
}

/// A way around what is down; false where there is none.
bool Network::find_detour(std::uint32_t from, std::uint32_t to, std::uint64_t flow) const {
  try {
    topology_->route(from, to, flow, failures_, route_);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

double Network::rate_alone(const NetworkPath& path) const {
  double rate = path.demands.empty() ? path.local_rate : FluidActivity{}.bound;
  for (const FluidDemand& d : path.demands) {
    rate = std::min(rate, fluid_.capacity(d.resource) / d.amount);
  }
  return rate;
}

std::uint32_t Network::take_slot() {
  ++active_;
  if (!free_.empty()) {
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  transfers_.emplace_back();
  return static_cast<std::uint32_t>(transfers_.size() - 1);
}

void Network::free_slot(std::uint32_t slot) {
  Transfer& t = transfers_[slot];
  t.phase = Phase::kFree;
  ++t.generation;
  free_.push_back(slot);
  --active_;
}

TransferHandle Network::start(std::uint32_t from, std::uint32_t to, std::uint64_t flow,
                              const TransferSpec& spec) {
  find_path(from, to, flow, scratch_);
  return start(scratch_, spec);
}

TransferHandle Network::start(const NetworkPath& path, const TransferSpec& spec) {
  MEDLEY_CHECK(spec.bytes >= 0.0 && spec.bound >= 0.0 && spec.extra_latency_s >= 0.0,
               "bytes, bounds and latencies are not negative");
  MEDLEY_CHECK(path.epoch == epoch_, "a path is looked up again when the network has changed");
  const std::uint32_t slot = take_slot();
  Transfer& t = transfers_[slot];
  t.tag = spec.tag;
  t.flow = path.flow;
  t.from = path.from;
  t.to = path.to;
  t.sequence = sequence_++;
  t.bytes = spec.bytes;
  t.bound = path.demands.empty() ? std::min(spec.bound, path.local_rate) : spec.bound;
  t.latency_s = path.latency_s + spec.extra_latency_s;
  t.extra_latency_s = spec.extra_latency_s;
  t.place = spec.latency;
  t.kind = spec.kind;
  t.notify_sent = spec.notify_sent && spec.latency == LatencyPlace::kAfter;
  t.demands.assign(path.demands.begin(), path.demands.end());
  t.path_demands = static_cast<std::uint32_t>(t.demands.size());
  t.demands.insert(t.demands.end(), spec.extra.begin(), spec.extra.end());
  if (t.place == LatencyPlace::kAfter || t.latency_s == 0.0) {
    begin_flow(slot);
  } else {
    delay(slot, Phase::kBefore);
  }
  return {slot, transfers_[slot].generation};
}

FluidHandle Network::start_activity(const FluidActivity& activity) {
  MEDLEY_CHECK(activity.tag < kTransferBit, "tags of an owner's activities are below 2^63");
  return fluid_.start(activity);
}

void Network::delay(std::uint32_t slot, Phase phase) {
  Transfer& t = transfers_[slot];
  t.phase = phase;
  delays_.push(now(), t.latency_s, slot, t.generation);
}

void Network::begin_flow(std::uint32_t slot) {
  Transfer& t = transfers_[slot];
  t.phase = Phase::kFlowing;
  t.began = now();
  if (options_.track_waits) {
    t.alone = t.bound;
    t.marks.clear();
    for (const FluidDemand& d : t.demands) {
      t.alone = std::min(t.alone, fluid_.capacity(d.resource) / d.amount);
      t.marks.push_back(fluid_.account(d.resource).saturated_s);
    }
  }
  // Work in bytes, one unit of each wire per byte: the level is the rate in bytes/s.
  t.handle = fluid_.start({.demands = t.demands,
                           .work = t.bytes,
                           .level = 1.0,
                           .bound = t.bound,
                           .tag = kTransferBit | slot});
}

void Network::find_wait(const Transfer& t, NetworkCompletion& c) {
  if (!options_.track_waits || !(t.alone > 0.0)) return;
  const double took = now() - t.began;
  const double waited = took - t.bytes / t.alone;
  if (!(waited > 1e-9 * took)) return;
  c.waited_on = blame(t.demands, t.marks, t.kind, waited);
  c.waited_s = waited;
}

void Network::end_flow(std::uint32_t slot, std::vector<NetworkCompletion>& out) {
  Transfer& t = transfers_[slot];
  NetworkCompletion c{t.tag, now(), NetworkEvent::kDelivered, NetworkCompletion::kNone, 0.0};
  find_wait(t, c);
  t.bytes = 0.0;
  if (t.place == LatencyPlace::kBefore || (t.latency_s == 0.0 && !t.notify_sent)) {
    out.push_back(c);
    free_slot(slot);
    return;
  }
  c.event = NetworkEvent::kSent;
  if (t.notify_sent) out.push_back(c);
  delay(slot, Phase::kAfter);
}

void Network::deliver(std::uint32_t slot, std::vector<NetworkCompletion>& out) {
  out.push_back(
      {transfers_[slot].tag, now(), NetworkEvent::kDelivered, NetworkCompletion::kNone, 0.0});
  free_slot(slot);
}

FineTime Network::next_time() {
  if (fluid_.needs_solve()) fluid_.solve();
  return std::min(fluid_.next_completion(), delays_.next_time());
}

void Network::advance_to(FineTime time) {
  MEDLEY_CHECK(time >= now() && time <= next_time(), "the network moves on to its next event");
  fluid_.advance(time);
}

bool Network::step(std::vector<NetworkCompletion>& out) {
  const FineTime time = next_time();
  if (time == FineTime::max()) return false;
  fluid_.advance(time);
  while (delays_.next_time() <= time) {
    const DelayQueue::Entry e = delays_.pop();
    const Transfer& t = transfers_[e.slot];
    if (t.generation != e.generation) continue;  // cancelled
    if (t.phase == Phase::kBefore) {
      begin_flow(e.slot);
    } else {
      deliver(e.slot, out);
    }
  }
  ended_.clear();
  fluid_.take_completions(ended_);
  for (const FluidCompletion& c : ended_) {
    if (c.tag & kTransferBit) {
      end_flow(static_cast<std::uint32_t>(c.tag & ~kTransferBit), out);
    } else {
      out.push_back({c.tag, c.time, NetworkEvent::kActivity, NetworkCompletion::kNone, 0.0});
    }
  }
  return true;
}

}  // namespace medley
