#include "hwmodels/topology/builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "hwmodels/catalog.h"
#include "sim/core/error.h"

namespace medley {

double FabricSpec::number(std::string_view key, double fallback) const {
  const auto it = numbers.find(key);
  return it == numbers.end() ? fallback : it->second;
}
std::int64_t FabricSpec::count(std::string_view key, std::int64_t fallback) const {
  const auto it = numbers.find(key);
  return it == numbers.end() ? fallback : static_cast<std::int64_t>(it->second);
}
std::string FabricSpec::word(std::string_view key, std::string_view fallback) const {
  const auto it = words.find(key);
  return it == words.end() ? std::string(fallback) : it->second;
}

ResolvedLink ResolvedLink::capped(BytesPerSec cap) const {
  ResolvedLink out = *this;
  if (!(cap < raw)) return out;
  out.bandwidth = bandwidth * (cap / raw);
  out.raw = cap;
  return out;
}

ResolvedLink resolve_spec(const LinkSpec& spec) {
  if (!spec.bandwidth.known()) {
    throw InputError("", "", fmt::format("the bandwidth of link \"{}\" is unknown", spec.name),
                     "give \"bandwidth\" beside \"link\"");
  }
  ResolvedLink out;
  out.link = spec.name;
  out.raw = *spec.bandwidth;
  out.bandwidth = *spec.bandwidth * (spec.achieved.known() ? *spec.achieved : 1.0);
  out.latency = spec.latency.known() ? *spec.latency : Seconds(0.0);
  if (spec.energy_per_byte.known()) out.energy = *spec.energy_per_byte;
  out.provenance =
      weaker(weaker(spec.bandwidth.provenance, spec.achieved.provenance), spec.latency.provenance);
  return out;
}

ResolvedLink resolve_link(const Catalog& catalog, std::string_view name) {
  return resolve_spec(catalog.link(name));
}

std::uint32_t add_cable(Topology& t, std::uint32_t from, std::uint32_t to, const ResolvedLink& link,
                        LinkPlane plane) {
  const auto first = static_cast<std::uint32_t>(t.links.size());
  const auto wire = static_cast<std::uint32_t>(t.wires.size());
  const auto add_wire = [&](std::uint32_t a, std::uint32_t b, const char* arrow) {
    t.wires.push_back({t.vertices[a].name + arrow + t.vertices[b].name, link.bandwidth, link.energy,
                       link.link, link.provenance});
  };
  if (link.half_duplex) {
    add_wire(from, to, " <> ");
  } else {
    add_wire(from, to, " > ");
    add_wire(to, from, " > ");
  }
  t.links.push_back({from, to, wire, link.latency, plane});
  t.links.push_back({to, from, link.half_duplex ? wire : wire + 1, link.latency, plane});
  return first;
}

std::uint32_t FabricContext::add_vertex(const std::string& name, VertexKind kind) {
  topology.vertices.push_back({prefix + name, kind, TopologyVertex::kNone, TopologyVertex::kNone, 0,
                               kind != VertexKind::kMemory && kind != VertexKind::kStorage});
  return static_cast<std::uint32_t>(topology.vertices.size() - 1);
}

std::uint32_t FabricContext::add_cable(std::uint32_t from, std::uint32_t to,
                                       const ResolvedLink& link) {
  return medley::add_cable(topology, from, to, link, plane);
}

std::uint32_t FabricContext::add_port_cable(std::uint32_t p, std::uint32_t to,
                                            const ResolvedLink& link) {
  if (p >= wide_from) return add_cable(ports[p], to, wide_link.with_latency(link.latency));
  return add_cable(ports[p], to, limits.empty() ? link : link.capped(limits[p]));
}

ResolvedLink FabricContext::resolve(const LinkUse& use, const std::string& file) {
  ResolvedLink out;
  out.raw = out.bandwidth = BytesPerSec(1.0);
  if (!use.link.empty()) {
    const LinkSpec* spec = catalog.find_link(use.link);
    if (spec == nullptr) {
      std::vector<std::string> known;
      for (const LinkSpec* l : catalog.links()) known.push_back(l->name);
      problems.add(file, use.pointer, fmt::format("unknown link \"{}\"", use.link),
                   suggest(use.link, known));
      return out;
    }
    if (!spec->bandwidth.known() && !use.bandwidth) {
      problems.add(file, use.pointer,
                   fmt::format("the bandwidth of link \"{}\" is unknown", spec->name),
                   "give \"bandwidth\" beside \"link\"");
      return out;
    }
    LinkSpec with = *spec;
    if (use.bandwidth) {
      with.bandwidth.value = *use.bandwidth;
      with.bandwidth.provenance = use.provenance;
      with.achieved = {1.0, use.provenance, use.source, 0.0, 0};
    }
    out = resolve_spec(with);
  } else if (use.bandwidth) {
    out.raw = out.bandwidth = *use.bandwidth;
    out.provenance = use.provenance;
  }
  if (use.latency) out.latency = *use.latency;
  if (use.latency) out.provenance = weaker(out.provenance, use.provenance);
  out.raw *= use.count;
  out.bandwidth *= use.count;
  out.half_duplex = use.half_duplex;
  return out;
}

ResolvedLink FabricContext::link(const FabricSpec& spec, std::string_view key,
                                 std::string_view fallback) {
  const auto it = spec.links.find(key);
  if (it != spec.links.end() && it->second.given()) return resolve(it->second, spec.file);
  if (key == "link" && default_link && fallback.empty()) return *default_link;
  LinkUse use;
  use.link = fallback;
  use.pointer = spec.pointer + "/" + std::string(key);
  if (use.link.empty()) {
    problem(spec, key, "missing required key",
            "name a catalogue link (`medley list links`) or give {\"bandwidth\", \"latency\"}");
  }
  return resolve(use, spec.file);
}

void FabricContext::problem(const FabricSpec& spec, std::string_view key, std::string message,
                            std::string hint) {
  problems.add(spec.file, key.empty() ? spec.pointer : spec.pointer + "/" + std::string(key),
               std::move(message), std::move(hint));
}

}  // namespace medley
