#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hwmodels/topology/builder.h"

namespace medley {

/// Shortest paths of an irregular structure: fewest links, then latency, ECMP among equals. Costs
/// are kept for pairs of its core only: what hangs on one neighbour (a server on its switch, a
/// device on its root port) goes there and on. Core vertices are limited to kMostCore.
class GraphRouter : public PortRouter {
 public:
  static constexpr std::uint32_t kMostCore = 2048;
  /// Over `members` (the ports first, in order, then whatever else; no vertex twice) and those of
  /// the topology's links from `first_link` on that join two members. Null when the core is too
  /// large.
  static std::unique_ptr<GraphRouter> make(const Topology& topology,
                                           const std::vector<std::uint32_t>& members,
                                           std::uint32_t first_link);

  /// By position among `members`.
  RouteCost cost(std::uint32_t a, std::uint32_t b) const override;
  void append(std::uint32_t a, std::uint32_t b, std::uint64_t hash, std::uint32_t offset,
              std::vector<std::uint32_t>& links) const override;

 private:
  static constexpr std::uint32_t kNone = 0xffffffffU;
  struct Edge {
    std::uint32_t link, to;  ///< `to` by position
    RouteCost cost;
  };
  GraphRouter() = default;
  void read_edges(const Topology& topology, const std::vector<std::uint32_t>& members,
                  std::uint32_t first_link);
  void find_core();
  void flood(std::uint32_t target);
  bool attached(std::uint32_t v) const { return attach_[v] != kNone; }
  RouteCost core_cost(std::uint32_t v, std::uint32_t target) const;
  RouteCost best_edge(std::uint32_t from, std::uint32_t to) const;
  /// Takes one of the cheapest edges between neighbours.
  void take_edge(std::uint32_t from, std::uint32_t to, std::uint64_t& hash, std::uint32_t offset,
                 std::vector<std::uint32_t>& links) const;

  std::vector<std::uint32_t> edge_begin_;
  std::vector<Edge> edges_;
  std::vector<bool> forwards_;
  std::vector<std::uint32_t> attach_;  ///< the one neighbour, kNone for core vertices
  std::vector<std::uint32_t> core_;    ///< number within the core
  std::uint32_t core_size_ = 0;
  std::vector<RouteCost> table_;  ///< [target core][from core]
};

}  // namespace medley
