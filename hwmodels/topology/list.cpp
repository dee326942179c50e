#include <fmt/format.h>

#include <map>
#include <set>

#include "hwmodels/topology/graph_router.h"
#include "hwmodels/topology/kinds.h"
#include "sim/core/error.h"

namespace medley {

namespace {
using NamedVertices = std::map<std::string, std::vector<std::uint32_t>>;

NamedVertices add_listed(const FabricSpec& spec, FabricContext& context) {
  NamedVertices named;
  std::map<VertexKind, std::uint32_t> next;
  for (const FabricVertex& v : spec.vertices) {
    for (int i = 0; i < v.count; ++i) {
      const std::string name = v.count > 1 ? fmt::format("{}{}", v.name, i) : v.name;
      const std::uint32_t id = context.add_vertex(name, v.kind);
      context.topology.vertices[id].index = next[v.kind]++;
      context.topology.vertices[id].forwards = v.forwards;
      named[name] = {id};
      if (v.count > 1) named[v.name + "*"].push_back(id);
      context.extras.push_back(id);
    }
  }
  return named;
}

/// The vertices that an end of a cable names: listed ones, or ports of the cluster.
std::vector<std::uint32_t> named_ends(const FabricSpec& spec, FabricContext& context,
                                      const NamedVertices& named, const std::string& name,
                                      const std::string& pointer) {
  if (const auto it = named.find(name); it != named.end()) return it->second;
  std::vector<std::uint32_t> found;
  if (context.find_ports) found = context.find_ports(name);
  if (!found.empty()) return found;
  std::vector<std::string> known;
  for (const auto& [key, ids] : named) known.push_back(key);
  known.insert(known.end(), context.port_names.begin(), context.port_names.end());
  context.problems.add(spec.file, pointer, fmt::format("there is no \"{}\"", name),
                       suggest(name, known));
  return {};
}

std::unique_ptr<PortRouter> build_list(const FabricSpec& spec, FabricContext& context) {
  const auto first_link = static_cast<std::uint32_t>(context.topology.links.size());
  const NamedVertices named = add_listed(spec, context);
  for (const FabricCable& cable : spec.cables) {
    const ResolvedLink link = context.resolve(cable.link, spec.file);
    const auto from = named_ends(spec, context, named, cable.from, cable.pointer + "/from");
    const auto to = named_ends(spec, context, named, cable.to, cable.pointer + "/to");
    for (const std::uint32_t a : from) {
      for (const std::uint32_t b : to) {
        if (a == b) {
          context.problems.add(spec.file, cable.pointer,
                               fmt::format("joins \"{}\" to itself", cable.from), "leave it out");
          continue;
        }
        context.add_cable(a, b, link);
      }
    }
  }
  if (!context.problems.empty()) return nullptr;
  std::vector<std::uint32_t> members = context.ports;
  members.insert(members.end(), context.extras.begin(), context.extras.end());
  context.topology.finish();
  auto router = GraphRouter::make(context.topology, members, first_link);
  if (!router) {
    context.problem(spec, "", "the list has too many corners with several neighbours",
                    fmt::format("at most {}; or use a kind: leaf-spine, fat-tree, torus, ...",
                                GraphRouter::kMostCore));
  }
  return router;
}
}  // namespace

FabricKindInfo list_kind() {
  return {"list",
          "corners and cables one by one: {\"nodes\": {\"leaf0\": {\"kind\": \"switch\"}}, "
          "\"links\": [{\"from\", \"to\", \"link\"}]}",
          FabricPorts::kNics,
          {},
          [](const FabricSpec&) { return std::int64_t{-1}; },
          build_list};
}

}  // namespace medley
