#include "tools/show_topology.h"

#include <fmt/format.h>

#include "hwmodels/catalog.h"
#include "hwmodels/topology/cluster.h"
#include "hwmodels/topology/describe.h"
#include "sim/core/csv.h"
#include "sim/core/error.h"
#include "sim/core/unit_text.h"

namespace medley::cli {

namespace {
struct Shown {
  std::string name, kind, notes, source;
  Topology topology;
};

Shown find_shown(const Catalog& catalog, const std::string& name) {
  if (const FabricSpec* spec = catalog.find_topology(name)) {
    return {spec->name, spec->kind, spec->notes,
            fmt::format("{}: {}", to_string(spec->provenance), spec->source),
            build_topology(catalog, *spec)};
  }
  if (const NodeSpec* node = catalog.find_node(name)) {
    Shown shown{node->name, "inside of a node type", node->notes, "",
                build_node(catalog, *node).topology};
    const std::string prefix = node->name + "/0/";
    for (TopologyVertex& v : shown.topology.vertices) {
      if (v.name.starts_with(prefix)) v.name.erase(0, prefix.size());
    }
    return shown;
  }
  std::vector<std::string> known;
  for (const FabricSpec* f : catalog.topologies()) known.push_back(f->name);
  const std::size_t topologies = known.size();
  for (const NodeSpec* n : catalog.nodes()) known.push_back(n->name);
  std::string hint = nearest(name, known);
  known.resize(topologies);
  throw InputError("", "", fmt::format("unknown topology or node type \"{}\"", name),
                   hint.empty() ? suggest(name, known) : fmt::format("did you mean \"{}\"?", hint));
}

template <class Q>
std::string three_digits(Q q) {
  return format_quantity(Q(std::stod(fmt::format("{:.3g}", q.value()))));
}

TextTable facts(const Shown& shown, const TopologySummary& s) {
  TextTable table({{"field"}, {"value"}});
  const auto add = [&](const std::string& field, const std::string& value) {
    if (!value.empty()) table.add({field, value});
  };
  add("name", shown.name);
  add("kind", shown.kind);
  add("notes", shown.notes);
  add("structure", shown.source);
  for (int k = 0; k < kVertexKinds; ++k) {
    const std::size_t n = s.vertices[static_cast<std::size_t>(k)];
    if (n > 0) {
      add(fmt::format("vertices.{}", to_string(static_cast<VertexKind>(k))), std::to_string(n));
    }
  }
  add("endpoints", std::to_string(s.endpoints));
  if (s.endpoints < 2) return table;
  add("bisection", three_digits(s.bisection));
  add("injection of a half", three_digits(s.injection));
  add("oversubscription",
      s.oversubscription > 0.0 ? fmt::format("{:.3g}", s.oversubscription) : "nothing crosses");
  add("diameter", fmt::format("{}{} links", s.sampled ? "at least " : "", s.diameter));
  add("mean route", fmt::format("{:.3g} links", s.mean_links));
  add("longest latency", three_digits(s.longest));
  return table;
}

TextTable cables(const TopologySummary& s) {
  using Align = TextTable::Align;
  TextTable table({{"link", "link"},
                   {"cables", "cables", Align::kRight},
                   {"bandwidth", "bandwidth"},
                   {"duplex", "duplex"},
                   {"latency", "latency"},
                   {"class", "class"}});
  for (const TopologySummary::Cables& c : s.cables) {
    table.add({c.link, std::to_string(c.count), three_digits(c.bandwidth),
               c.half_duplex > 0 ? "half" : "full", three_digits(c.latency),
               std::string(to_string(c.provenance))});
  }
  return table;
}
}  // namespace

void show_topology(const std::string& name, const std::vector<std::string>& catalog_dirs,
                   Format format, bool dot) {
  const Catalog catalog(catalog_dirs);
  const Shown shown = find_shown(catalog, name);
  if (dot) return print(draw_dot(shown.topology, shown.name));
  const TopologySummary summary = summarize(shown.topology);
  print_table(facts(shown, summary), format);
  if (format != Format::kTable) return;
  print("\n");
  print_table(cables(summary), format);
  print("\n" + draw_text(shown.topology));
  warn(shown.topology.notes);
}

}  // namespace medley::cli
