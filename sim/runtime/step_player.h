#pragma once

#include <cstdint>
#include <vector>

#include "sim/cost/step_model.h"
#include "sim/runtime/transport.h"

namespace medley {

/// Which of the cluster's resources a replica's steps use, and how much per unit.
struct StepFootprint {
  bool shared = false;  ///< somebody else uses some of them: steps must be played
  bool shared_devices = false;
  bool shared_links = false;
  /// Bytes over a wire per byte of payload per rank. Ring neighbours for reductions, every pair for
  /// all-to-all, same ranks of neighbouring stages for sends; payloads are taken as spread evenly
  /// over stages. Never more than the wire carries in the messages' time alone: what they take
  /// alone (measured tables) is the truth, also where it is less than the wires would allow.
  struct Wire {
    std::uint32_t resource = 0;
    double capacity = 0.0;
    double all_reduce = 0.0, all_to_all = 0.0, send = 0.0;
  };
  std::vector<Wire> wires;
  double all_reduce_sent = 0.0;  ///< bytes that the busiest rank sends per byte of payload
  double all_to_all_sent = 0.0;
  // Co-located devices: one resource each for time slices, or two for arithmetic and memory.
  struct Device {
    std::uint32_t compute = 0, memory = 0;
    bool sliced = false;  ///< kernels take turns: `compute` alone, as device time
    bool held = false;    ///< kernels keep `compute` while they wait for memory: a CPU's cores
    double memory_scale = 1.0;  ///< units of `memory` per second at full rate: 1, or a wire's bytes
  };
  std::vector<Device> devices;
  /// Cores of the socket that a CPU replica computes on: host work takes one of them.
  bool shared_host = false;
  std::uint32_t cores = 0;        ///< resource, in sockets
  double one_core = 1.0;          ///< of the socket
  double memory_bandwidth = 1.0;  ///< [B/s]: makes levels of kernels and of DMA comparable
};

/// How finely steps are played.
enum class Fidelity : std::uint8_t {
  kFolded,  ///< all kernels of a step, then all its messages
  kLayered  ///< kernels and messages of every layer in turn
};

/// Plays steps of replicas whose devices or links others use too: kernels and messages one after
/// the other as activities on the shared resources, each no faster than alone.
///
///   folded:   kernels (device_s - link_s), messages (link_s)
///   layered:  the same in n equal parts, n the number of messages of the step (or layers)
///   then the host: end = max(device end, start + host floor) + what follows
///
/// What nobody else uses is a plain delay. A step that nobody disturbs takes exactly step_s in
/// both. Fairness (fluid.h): messages by bytes/s; kernels by their largest demand in units of the
/// device's memory bandwidth. Law: a step is never shorter than step_s.
class StepPlayer {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    /// The step of (unit, lane) ends at `end`, not before now.
    virtual void on_step_played(std::uint32_t unit, int lane, SimTime end) = 0;
  };
  StepPlayer(Transport& transport, Fidelity fidelity, Listener& listener);

  void set_footprint(std::uint32_t unit, int lanes, StepFootprint footprint);
  const StepFootprint& footprint(std::uint32_t unit) const { return units_[unit].footprint; }
  void begin(std::uint32_t unit, int lane, const StepUse& use, Seconds pipeline_wait, int layers);
  /// Forgets a step under way.
  void abort(std::uint32_t unit, int lane);
  /// An activity of ours ended.
  void on_activity(std::uint64_t tag);

  struct Waits {
    double device_s = 0.0;  ///< kernels longer than alone
    double link_s = 0.0;    ///< messages longer than alone
  };
  const Waits& waits(std::uint32_t unit) const { return units_[unit].waits; }

 private:
  enum class Phase : std::uint8_t { kIdle, kKernels, kMessages, kTail };
  struct Play {
    Phase phase = Phase::kIdle;
    int parts = 1, part = 0;
    StepUse use;
    double tail_s = 0.0;
    FineTime start, phase_start;
    double phase_alone_s = 0.0;
    FluidHandle activity;
    std::vector<FluidDemand> demands;  ///< of the phase under way,
    std::vector<double> marks;         ///< and how long each had been saturated when it began
  };
  struct UnitState {
    StepFootprint footprint;
    std::vector<Play> lanes;
    Waits waits;
  };
  void next_phase(std::uint32_t unit, int lane);
  void start_phase(std::uint32_t unit, int lane, double seconds, double level);
  static std::uint64_t tag_of(std::uint32_t unit, int lane) {
    return std::uint64_t{unit} << 8 | static_cast<std::uint64_t>(lane);
  }

  Transport& transport_;
  Fidelity fidelity_;
  Listener& listener_;
  std::vector<UnitState> units_;
  std::vector<FluidDemand> demands_;
};

}  // namespace medley
