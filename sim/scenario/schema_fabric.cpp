#include <fmt/format.h>

#include "hwmodels/topology/fabric.h"
#include "sim/scenario/schema_sections.h"

namespace medley {

SchemaSection fabric_section() {
  constexpr const char* kJoins[] = {"NICs", "devices", "sockets", "the inside of every server"};
  SchemaSection s;
  s.title = "Fabric";
  s.note =
      "How servers are joined: the name of a topology (`medley list topologies`), one structure by "
      "kind, an explicit list, or several side by side. A cable (`link`, `uplink`, ...) is the "
      "name "
      "of a catalogue link, or `{\"link\", \"bandwidth\", \"latency\", \"count\", \"duplex\"}`; a "
      "bandwidth given so is what a large transfer reaches. Sizes that are left out follow from "
      "the "
      "cluster. `medley show topology` draws it.";
  s.keys = {
      {"cluster.fabric", "name, or an object", "one non-blocking switch over all NICs",
       "between servers; inside of them the node type says"},
      {"cluster.fabric.kind", "name of a kind, below", "", "one structure, its parameters beside"},
      {"cluster.fabric.nodes", "{name: {kind, count, forwards}}", "",
       "explicit list: switches, hosts, ..."},
      {"cluster.fabric.links", "list of {from, to, link, ...}", "",
       "explicit list: names of `nodes`; `<group>/<n>` (all NICs of a server), "
       "`<group>/<n>/nic<i>`, `<group>/*`"},
      {"cluster.fabric.network", "name or structure", "", "several: what joins the NICs"},
      {"cluster.fabric.devices", "name or structure", "",
       "what joins devices across the servers of a group: a torus, an NVLink domain"},
      {"cluster.fabric.pool", "name or structure", "", "memory that all sockets reach"},
      {"cluster.fabric.host", "structure", "", "the PCIe tree inside every server"},
      {"cluster.fabric.storage", "cable", "one NVMe Gen4 x4 for every two devices",
       "the drives of a server"},
      {"cluster.fabric.nics_per_node", "integer 1..64",
       "one per device from 100 Gbit/s each, else 1", "they share the node type's `network`"}};
  for (const FabricKindInfo& kind : fabric_kinds()) {
    std::string params;
    for (const FabricParam& p : kind.params) {
      params += fmt::format("; {} ({}): {}", p.name, p.fallback, p.summary);
    }
    s.keys.push_back({"", fmt::format("kind `{}`", kind.name),
                      kJoins[static_cast<std::size_t>(kind.ports)], kind.summary + params});
  }
  return s;
}

}  // namespace medley
