#include "hwmodels/topology/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "sim/core/error.h"

namespace medley {

namespace {
/// What ECMP hashes: the flow and its ends.
std::uint64_t flow_hash(std::uint32_t from, std::uint32_t to, std::uint64_t flow) {
  return mix_hash(mix_hash((std::uint64_t{from} << 32) | to) ^ flow);
}
constexpr int kOtherEquals = 16;  ///< tried before a search
}  // namespace

std::string_view to_string(VertexKind kind) {
  constexpr std::array<std::string_view, kVertexKinds> kNames = {
      "device", "host", "nic", "switch", "memory", "storage", "site"};
  return kNames[static_cast<std::size_t>(kind)];
}

LinkFailures::LinkFailures(const Topology& topology)
    : topology_(&topology), down_(topology.links.size(), false) {}

void LinkFailures::set_link(std::uint32_t link, bool down) {
  if (down_[link] == down) return;
  down_[link] = down;
  count_ += down ? 1U : static_cast<std::size_t>(-1);
}

void LinkFailures::set_cable(std::uint32_t link, bool down) {
  set_link(link, down);
  set_link(link ^ 1U, down);
}

void LinkFailures::set_vertex(std::uint32_t vertex, bool down) {
  for (const std::uint32_t link : topology_->out_links(vertex)) set_cable(link, down);
}

void Topology::finish() {
  out_offset_.assign(vertices.size() + 1, 0);
  for (const TopologyLink& l : links) ++out_offset_[l.from + 1];
  for (std::size_t v = 0; v < vertices.size(); ++v) out_offset_[v + 1] += out_offset_[v];
  out_link_.resize(links.size());
  std::vector<std::uint32_t> next(out_offset_.begin(), out_offset_.end() - 1);
  for (std::uint32_t l = 0; l < links.size(); ++l) out_link_[next[links[l].from]++] = l;
}

Topology::Adjacent Topology::out_links(std::uint32_t vertex) const {
  const std::uint32_t* base = out_link_.data();
  return {base + out_offset_[vertex], base + out_offset_[vertex + 1]};
}

void Topology::fill_latency(TopologyRoute& out) const {
  double sum = 0.0;
  for (const std::uint32_t l : out.links) sum += links[l].latency.value();
  out.latency = Seconds(sum);
}

void Topology::fail_no_way(std::uint32_t from, std::uint32_t to) const {
  throw InputError(
      "", "",
      fmt::format("there is no way from \"{}\" to \"{}\"", vertices[from].name, vertices[to].name),
      "join them by a link; devices pass on what is not theirs only in rings and "
      "tori, or with \"forwards\": true");
}

void Topology::route(std::uint32_t from, std::uint32_t to, std::uint64_t flow,
                     TopologyRoute& out) const {
  MEDLEY_CHECK(from < vertices.size() && to < vertices.size(), "a route needs two vertices");
  out.links.clear();
  out.latency = Seconds(0.0);
  if (from == to) return;
  const std::uint64_t hash = flow_hash(from, to, flow);
  const bool found = (router && router->append(*this, from, to, hash, out.links)) ||
                     (out.links.clear(), search_route(*this, from, to, hash, nullptr, out.links));
  if (!found) fail_no_way(from, to);
  fill_latency(out);
}

void Topology::route(std::uint32_t from, std::uint32_t to, std::uint64_t flow,
                     const LinkFailures& failures, TopologyRoute& out) const {
  route(from, to, flow, out);
  if (!failures.any()) return;
  const auto intact = [&] {
    return std::none_of(out.links.begin(), out.links.end(),
                        [&](std::uint32_t l) { return failures.down(l); });
  };
  std::uint64_t hash = flow_hash(from, to, flow);
  bool found = intact();
  for (int i = 0; !found && router && i < kOtherEquals; ++i) {
    hash = mix_hash(hash);
    out.links.clear();
    found = router->append(*this, from, to, hash, out.links) && intact();
  }
  if (!found) {
    out.links.clear();
    if (!search_route(*this, from, to, hash, &failures, out.links)) fail_no_way(from, to);
  }
  fill_latency(out);
}

BytesPerSec Topology::bottleneck(const TopologyRoute& route) const {
  double lowest = std::numeric_limits<double>::infinity();
  for (const std::uint32_t l : route.links) {
    lowest = std::min(lowest, wires[links[l].wire].bandwidth.value());
  }
  return BytesPerSec(lowest);
}

std::uint32_t Topology::find(std::string_view name) const {
  for (std::uint32_t v = 0; v < vertices.size(); ++v) {
    if (vertices[v].name == name) return v;
  }
  return TopologyVertex::kNone;
}

}  // namespace medley
