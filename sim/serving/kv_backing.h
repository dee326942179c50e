#pragma once

#include <cstdint>
#include <vector>

namespace medley {

/// What a replica sees of the KV tiers below it. The implementation moves the bytes.
class KvBacking {
 public:
  virtual ~KvBacking() = default;
  /// Blocks of an entry, [first, first + blocks) of it.
  struct Part {
    std::uint64_t id = 0;
    std::int64_t first = 0;
    std::int64_t blocks = 0;
  };
  /// Blocks of an entry, from its first one on, that a recall could bring.
  virtual std::int64_t find(std::uint64_t id) const = 0;
  /// Whether a recall of these is worth `recompute_s` of prefill.
  virtual bool worth(const std::vector<Part>& parts, double recompute_s) const = 0;
  /// Whether `worth` wants to know.
  virtual bool compares() const = 0;
  /// Brings these; Replica::fetched(slot) follows when all are there. `again`: of a request that
  /// was preempted.
  virtual void fetch(std::uint32_t slot, std::uint32_t request, bool again,
                     const std::vector<Part>& parts) = 0;
  /// The device's copy of an entry is about to be overwritten; it has `blocks`.
  virtual void evicted(std::uint64_t id, std::int64_t blocks) = 0;
  /// An entry has been computed as far as its first `blocks`.
  virtual void computed(std::uint64_t id, std::int64_t blocks) = 0;
  /// Nobody will ask for it again.
  virtual void forget(std::uint64_t id) = 0;
};

}  // namespace medley
