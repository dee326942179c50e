#include "sim/runtime/step_player.h"

#include <algorithm>

namespace medley {

namespace {
constexpr double kWorthNoting = 1e-9;  // below: rounding
}

StepPlayer::StepPlayer(Transport& transport, Fidelity fidelity, Listener& listener)
    : transport_(transport), fidelity_(fidelity), listener_(listener) {}

void StepPlayer::set_footprint(std::uint32_t unit, int lanes, StepFootprint footprint) {
  if (units_.size() <= unit) units_.resize(unit + 1);
  units_[unit].footprint = std::move(footprint);
  units_[unit].lanes.resize(static_cast<std::size_t>(lanes));
}

void StepPlayer::begin(std::uint32_t unit, int lane, const StepUse& use, Seconds pipeline_wait,
                       int layers) {
  Play& play = units_[unit].lanes[static_cast<std::size_t>(lane)];
  play.use = use;
  play.parts = 1;
  if (fidelity_ == Fidelity::kLayered) {
    play.parts = std::max(1, use.collectives > 0 ? use.collectives : layers);
  }
  play.part = 0;
  // What the step takes beyond max(device, host floor), and its turn in the pipeline.
  play.tail_s = use.step_s - std::max(use.device_s, use.host_floor_s) + pipeline_wait.value();
  play.phase = Phase::kIdle;
  transport_.catch_up();
  play.start = transport_.now();
  play.phase_start = play.start;
  next_phase(unit, lane);
}

void StepPlayer::abort(std::uint32_t unit, int lane) {
  Play& play = units_[unit].lanes[static_cast<std::size_t>(lane)];
  if (play.phase == Phase::kIdle) return;
  transport_.cancel_activity(play.activity);
  play.phase = Phase::kIdle;
}

void StepPlayer::on_activity(std::uint64_t tag) {
  const auto unit = static_cast<std::uint32_t>(tag >> 8);
  const int lane = static_cast<int>(tag & 0xff);
  UnitState& u = units_[unit];
  Play& play = u.lanes[static_cast<std::size_t>(lane)];
  const double more = (transport_.now() - play.phase_start) - play.phase_alone_s;
  if (more > 0.0 && play.phase == Phase::kKernels) u.waits.device_s += more;
  if (more > 0.0 && play.phase == Phase::kMessages) u.waits.link_s += more;
  if (more > kWorthNoting * play.phase_alone_s && !play.demands.empty()) {
    transport_.blame(
        play.demands, play.marks,
        play.phase == Phase::kMessages ? TrafficKind::kCollective : TrafficKind::kKernels, more);
  }
  next_phase(unit, lane);
}

void StepPlayer::next_phase(std::uint32_t unit, int lane) {
  UnitState& u = units_[unit];
  Play& play = u.lanes[static_cast<std::size_t>(lane)];
  const StepFootprint& f = u.footprint;
  const double n = play.parts;
  const double kernels_s = (play.use.device_s - play.use.link_s) / n;
  const double link_s = play.use.link_s / n;
  for (;;) {
    demands_.clear();
    switch (play.phase) {
      case Phase::kIdle:
        play.phase = Phase::kKernels;
        if (kernels_s <= 0.0) continue;
        if (f.shared_devices) {
          const double compute = play.use.compute_s / n, memory = play.use.memory_s / n;
          for (const StepFootprint::Device& d : f.devices) {
            demands_.push_back(
                {d.compute, d.sliced || d.held ? kernels_s : std::min(compute, kernels_s)});
            if (!d.sliced)
              demands_.push_back({d.memory, d.memory_scale * std::min(memory, kernels_s)});
          }
          const bool whole = f.devices.front().sliced || f.devices.front().held;
          const double largest = whole ? kernels_s : std::min(std::max(compute, memory), kernels_s);
          return start_phase(unit, lane, kernels_s, f.memory_bandwidth * largest);
        }
        return start_phase(unit, lane, kernels_s, 1.0);
      case Phase::kKernels: {
        play.phase = Phase::kMessages;
        if (link_s <= 0.0) continue;
        double sent = 1.0;
        if (f.shared_links) {
          const double reduce = play.use.all_reduce_bytes / n;
          const double all = play.use.all_to_all_bytes / n;
          const double send = play.use.send_bytes / n;
          for (const StepFootprint::Wire& w : f.wires) {
            const double bytes = w.all_reduce * reduce + w.all_to_all * all + w.send * send;
            demands_.push_back({w.resource, std::min(bytes, w.capacity * link_s)});
          }
          sent = std::max(1.0, f.all_reduce_sent * reduce + f.all_to_all_sent * all + send);
        }
        return start_phase(unit, lane, link_s, sent);
      }
      case Phase::kMessages: {
        if (++play.part < play.parts) {
          play.phase = Phase::kIdle;
          continue;
        }
        play.phase = Phase::kTail;
        const double device_s = transport_.now() - play.start;
        const double tail = std::max(0.0, play.use.host_floor_s - device_s) + play.tail_s;
        if (tail > 0.0) {
          // One thread beside the CPU replica's, one per core: cores are shared by threads.
          if (f.shared_host) demands_.push_back({f.cores, tail * f.one_core});
          return start_phase(unit, lane, tail, f.memory_bandwidth * tail);
        }
        continue;
      }
      case Phase::kTail:
        play.phase = Phase::kIdle;
        listener_.on_step_played(unit, lane, transport_.now().rounded());
        return;
    }
  }
}

void StepPlayer::start_phase(std::uint32_t unit, int lane, double seconds, double level) {
  Play& play = units_[unit].lanes[static_cast<std::size_t>(lane)];
  play.phase_start = transport_.now();
  play.phase_alone_s = seconds;
  FluidActivity activity;
  activity.demands = demands_;
  activity.work = 1.0;
  activity.level = level;
  activity.bound = 1.0 / seconds;
  activity.tag = tag_of(unit, lane);
  play.demands = demands_;
  transport_.mark(demands_, play.marks);
  play.activity = transport_.start_activity(activity);
}

}  // namespace medley
