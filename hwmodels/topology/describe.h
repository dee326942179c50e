#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hwmodels/topology/topology.h"

namespace medley {

/// What a topology amounts to.
struct TopologySummary {
  struct Cables {
    std::string link;  ///< catalogue name; "(given)" where numbers were given
    BytesPerSec bandwidth;
    Seconds latency;
    Provenance provenance = Provenance::kAssumed;
    std::size_t count = 0;
    std::size_t half_duplex = 0;  ///< of them
  };
  std::vector<std::size_t> vertices;  ///< by kind
  std::vector<Cables> cables;         ///< by link, rate, latency; in order of appearance
  std::size_t endpoints = 0;
  /// The narrowest of the natural cuts of the endpoints into halves (first and second half; by each
  /// bit of their number), by max-flow over everything in between, one direction. Never below the
  /// true bisection bandwidth, and equal to it for the structures of the registry.
  /// Where every endpoint is on a device fabric, over that alone, as their routes are.
  BytesPerSec bisection;
  BytesPerSec injection;          ///< what the endpoints of one half can send
  double oversubscription = 0.0;  ///< injection / bisection; 0 where nothing crosses
  std::size_t diameter = 0;       ///< links of the longest route
  double mean_links = 0.0;
  Seconds longest;       ///< latency
  bool sampled = false;  ///< routes of some sources only
};
TopologySummary summarize(const Topology& topology);

/// Each vertex with its neighbours; alike ones together above `each_up_to` vertices.
std::string draw_text(const Topology& topology, std::size_t each_up_to = 48);
/// Graphviz, undirected, one edge per cable, names quoted.
std::string draw_dot(const Topology& topology, const std::string& name);

}  // namespace medley
