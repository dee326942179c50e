#pragma once

#include <vector>

#include "workloads/request.h"

namespace medley {

/// Closed loops whose waiting requests stand in one queue (FollowUp::loop): whichever request of a
/// loop ends, the first that waits starts. Law: in flight = min(concurrency, what is left).
class SharedLoops {
 public:
  explicit SharedLoops(const Trace& trace) : trace_(trace) {
    for (std::size_t i = 0; i < trace.follow_ups.size(); ++i) {
      const FollowUp& f = trace.follow_ups[i];
      if (f.loop == 0) continue;
      if (loop_of_.empty()) loop_of_.assign(trace.requests.size(), 0);
      loop_of_[f.previous] = loop_of_[f.next] = f.loop;
      if (waiting_.size() < f.loop) waiting_.resize(f.loop);
      waiting_[f.loop - 1].links.push_back(i);
    }
  }

  /// The link whose `next` starts now that `ended` has; null: none waits, or it is in no loop.
  const FollowUp* next(std::uint32_t ended) {
    if (loop_of_.empty() || loop_of_[ended] == 0) return nullptr;
    Queue& queue = waiting_[loop_of_[ended] - 1];
    if (queue.first == queue.links.size()) return nullptr;
    return &trace_.follow_ups[queue.links[queue.first++]];
  }

 private:
  struct Queue {
    std::vector<std::size_t> links;
    std::size_t first = 0;
  };
  const Trace& trace_;
  std::vector<std::uint32_t> loop_of_;  ///< by request; empty where no loop is shared
  std::vector<Queue> waiting_;          ///< by loop
};

}  // namespace medley
