#include "sim/network/collective_runner.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/core/error.h"
#include "sim/network/choose.h"

namespace medley {

CollectiveRunner::CollectiveRunner(Network& network, std::uint8_t space)
    : network_(&network), space_(space) {
  MEDLEY_CHECK(space < 128, "tags of transfers keep their top bit free");
}

std::uint32_t CollectiveRunner::start(const CollectiveCall& call) {
  const CollectivePlan plan = plan_collective(*network_, call);
  std::uint32_t id;
  if (free_.empty()) {
    id = static_cast<std::uint32_t>(running_.size());
    running_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  MEDLEY_CHECK(id < (1U << 24), "at most 16 million collectives at a time");
  ++active_;
  Running& c = running_[id];
  c = Running{};
  c.live = true;
  c.tag = call.tag;
  c.flow = call.flow;
  c.step_s = call.step_s;
  MEDLEY_CHECK(call.memory.empty() || call.memory.size() == call.members.size(),
               "each member has its memory");
  c.memory = call.memory;
  c.memory_read = call.memory_read;
  c.memory_write = call.memory_write;
  c.parties = call.members;
  if (plan.switch_vertex != kNone) c.parties.push_back(plan.switch_vertex);
  c.joined.assign(c.parties.size(), call.joined);
  if (c.parties.size() > call.members.size()) c.joined.back() = true;
  if (plan.shape.ranks > 1) {
    c.program = plan.algorithm->make(plan.shape);
    const std::uint32_t lanes = c.program->lanes();
    c.lanes.assign(lanes, Lane{});
    for (std::uint32_t l = 0; l < lanes; ++l) c.left += c.program->lane(l).messages;
    const double share = c.program->lane_share();
    c.bound = TransferSpec{}.bound;
    if (share < 1.0 || call.efficiency < 1.0) c.bound = share * plan.model.bandwidth;
    if (call.efficiency < 1.0) c.bound /= c.program->lanes_at_a_time();
  }
  if (c.left == 0 || call.start_s > 0.0) {
    // A message of nothing to oneself: the library's start, or all there is to do.
    network_->find_path(call.members[0], call.members[0], 0, scratch_);
    TransferSpec spec;
    spec.tag = tag_of(id, kStartLane);
    spec.extra_latency_s = call.start_s;
    network_->start(scratch_, spec);
  } else {
    begin(id);
  }
  return id;
}

void CollectiveRunner::begin(std::uint32_t id) {
  running_[id].begun = true;
  const auto lanes = static_cast<std::uint32_t>(running_[id].lanes.size());
  for (std::uint32_t l = 0; l < lanes; ++l) try_send(id, l);
}

void CollectiveRunner::join(std::uint32_t id, std::uint32_t rank) {
  Running& c = running_[id];
  MEDLEY_CHECK(c.live && rank < c.joined.size() && !c.joined[rank], "a rank joins once");
  c.joined[rank] = true;
  if (!c.begun) return;
  const auto lanes = static_cast<std::uint32_t>(c.lanes.size());
  for (std::uint32_t l = 0; l < lanes; ++l) {
    if (c.program->lane(l).from == rank) try_send(id, l);
  }
}

bool CollectiveRunner::ready(Running& c, std::uint32_t l) {
  Lane& lane = c.lanes[l];
  LaneNeed need;
  while (c.program->need(l, lane.started, lane.met, need)) {
    Lane& other = c.lanes[need.lane];
    if ((need.sent ? other.sent : other.delivered) < need.count) {
      lane.waiting = true;
      lane.next_waiter = other.waiters;
      other.waiters = l;
      return false;
    }
    ++lane.met;
  }
  lane.met = 0;
  return true;
}

const NetworkPath& CollectiveRunner::path_of(Running& c, Lane& lane, const CollectiveLane& shape) {
  const std::uint32_t from = c.parties[shape.from];
  const std::uint32_t to = c.parties[shape.to];
  if (shape.messages <= 1) {
    network_->find_path(from, to, c.flow, scratch_);
    return scratch_;
  }
  if (lane.path == kNone) {
    lane.path = static_cast<std::uint32_t>(c.paths.size());
    c.paths.emplace_back();
  }
  NetworkPath& path = c.paths[lane.path];
  if (path.epoch != network_->epoch()) network_->find_path(from, to, c.flow, path);
  return path;
}

void CollectiveRunner::try_send(std::uint32_t id, std::uint32_t l) {
  Running& c = running_[id];
  Lane& lane = c.lanes[l];
  if (lane.waiting || lane.started != lane.sent) return;
  const CollectiveLane shape = c.program->lane(l);
  if (lane.started == shape.messages || !c.joined[shape.from] || !ready(c, l)) return;
  TransferSpec spec;
  spec.bytes = c.program->bytes(l, lane.started);
  spec.bound = c.bound;
  spec.tag = tag_of(id, l);
  spec.extra_latency_s = c.step_s;
  spec.latency = LatencyPlace::kAfter;
  spec.notify_sent = true;
  FluidDemand memory[2];
  std::size_t demands = 0;
  if (shape.from < c.memory.size()) memory[demands++] = {c.memory[shape.from], c.memory_read};
  if (shape.to < c.memory.size()) memory[demands++] = {c.memory[shape.to], c.memory_write};
  spec.extra = {memory, demands};
  ++lane.started;
  network_->start(path_of(c, lane, shape), spec);
}

void CollectiveRunner::wake(std::uint32_t id, std::uint32_t l) {
  Running& c = running_[id];
  std::uint32_t w = c.lanes[l].waiters;
  c.lanes[l].waiters = kNone;
  while (w != kNone) {
    const std::uint32_t next = c.lanes[w].next_waiter;
    c.lanes[w].waiting = false;
    try_send(id, w);
    w = next;
  }
}

bool CollectiveRunner::handle(const NetworkCompletion& completion,
                              std::vector<CollectiveDone>& done) {
  if (completion.event == NetworkEvent::kActivity || completion.tag >> 56 != space_) return false;
  const auto id = static_cast<std::uint32_t>(completion.tag >> 32) & 0xffffffU;
  const auto l = static_cast<std::uint32_t>(completion.tag);
  Running& c = running_[id];
  c.waited_s += completion.waited_s;
  if (l == kStartLane) {
    if (c.left > 0) begin(id);
  } else if (completion.event == NetworkEvent::kSent) {
    ++c.lanes[l].sent;
    try_send(id, l);
    if (c.lanes[l].waiters != kNone) wake(id, l);
    return true;
  } else {
    ++c.lanes[l].delivered;
    --c.left;
    if (c.lanes[l].waiters != kNone) wake(id, l);
  }
  if (c.left == 0) {
    done.push_back({c.tag, completion.time, c.waited_s});
    c = Running{};
    free_.push_back(id);
    --active_;
  }
  return true;
}

double run_alone(const Topology& topology, const CollectiveCall& call) {
  Network network(topology);
  CollectiveRunner runner(network, 1);
  runner.start(call);
  std::vector<NetworkCompletion> batch;
  std::vector<CollectiveDone> done;
  while (done.empty()) {
    batch.clear();
    MEDLEY_CHECK(network.step(batch), "a collective ends");
    for (const NetworkCompletion& c : batch) runner.handle(c, done);
  }
  return done.front().time - FineTime();
}

}  // namespace medley
