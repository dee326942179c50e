#include "sim/network/closed_forms.h"

#include <algorithm>
#include <bit>

namespace medley {

double ring_time(std::uint32_t steps, std::uint32_t ranks, std::uint32_t chunks, double bytes,
                 const LinkModel& m) {
  if (steps == 0) return 0.0;
  const double x = bytes / ranks / chunks / m.bandwidth;
  return (steps - 1) * std::max(chunks * x, x + m.latency) + chunks * x + m.latency;
}

double chain_time(std::uint32_t hops, std::uint32_t chunks, double bytes, const LinkModel& m) {
  if (hops == 0) return 0.0;
  const double x = bytes / chunks / m.bandwidth;
  return hops * (x + m.latency) + (chunks - 1) * x;
}

double tree_time(std::uint32_t levels, std::uint32_t streams, std::uint32_t chunks, double bytes,
                 const LinkModel& m) {
  if (levels == 0) return 0.0;
  const double x = 0.5 * bytes / chunks / (m.bandwidth / streams);
  return levels * (x + m.latency) + (chunks - 1) * x;
}

double halving_time(std::uint32_t ranks, bool all_reduce, double bytes, const LinkModel& m) {
  if (ranks < 2) return 0.0;
  const std::uint32_t q = std::bit_floor(ranks);
  const double p = std::bit_width(q) - 1;
  const double whole = bytes / m.bandwidth;
  const double half = p * m.latency + (1.0 - 1.0 / q) * whole;
  return (all_reduce ? 2.0 : 1.0) * half + (ranks > q ? 2.0 * (m.latency + whole) : 0.0);
}

double direct_time(std::uint32_t messages, double bytes, const LinkModel& m) {
  return messages == 0 ? 0.0 : m.latency + messages * bytes / m.bandwidth;
}

double hierarchical_time(std::uint32_t ranks, std::uint32_t group, bool all_reduce, double bytes,
                         const LinkModel& m) {
  const double inside =
      ranks == 0 ? 0.0 : (group - 1) * (m.inner_latency + bytes / group / m.inner_bandwidth);
  const double between = (ranks / group - 1) * (m.latency + bytes / ranks / m.bandwidth);
  return (all_reduce ? 2.0 : 1.0) * ((group > 1 ? inside : 0.0) + (ranks > group ? between : 0.0));
}

double in_switch_time(double factor, std::uint32_t chunks, double bytes, const LinkModel& m) {
  const double x = factor * bytes / chunks / m.bandwidth;
  return 2.0 * x + m.latency + (chunks - 1) * x;
}

}  // namespace medley
